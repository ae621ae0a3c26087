"""Connections to Redis, with the retries and time limits that pushing and following need.

redis-py retries ten times by itself, in nested loops whose length depends on how the server died, and its
time limit of five seconds cuts longer blocking reads off. Here the clients never retry: `push.py` and
`follow.py` do, each where it is known what a second attempt means. They speak RESP2 and do not introduce
themselves, so that a user who may RPUSH and nothing else can connect without a refused command. A setting
in the query of the URL (`?socket_timeout=5`) wins over the one here.
"""

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, AuthorizationError, ConnectionError, TimeoutError  # noqa: A004
from redis.retry import Retry

ANSWER_WITHIN_S = 2.0
BLOCK_S = 1.0
"""How long one read waits at the server, and so how soon a follower notices that it was stopped."""

LOST_CONNECTION = (ConnectionError, TimeoutError)
REFUSED_LOGIN = (AuthenticationError, AuthorizationError)
"""redis-py counts these among the lost connections, but trying again does not help."""


def connect_to_push(url: str) -> Redis:
    """Return a client whose every attempt ends within two seconds per step."""
    return _client(url, answer_within_s=ANSWER_WITHIN_S)


def connect_to_follow(url: str) -> Redis:
    """Return a client for blocking reads of BLOCK_S: its time limit leaves room for the answer."""
    return _client(url, answer_within_s=BLOCK_S + ANSWER_WITHIN_S)


def worth_retrying(error: Exception) -> bool:
    """Say whether a lost connection may come back by itself."""
    return not isinstance(error, REFUSED_LOGIN)


def _client(url: str, answer_within_s: float) -> Redis:
    return Redis.from_url(
        url,
        protocol=2,
        driver_info=None,
        socket_timeout=answer_within_s,
        socket_connect_timeout=ANSWER_WITHIN_S,
        retry=Retry(NoBackoff(), 0),
    )
