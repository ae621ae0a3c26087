"""Connections to Redis, with the retries and time limits that pushing and following need.

redis-py retries ten times by itself, in nested loops whose length depends on how the server died, and its
time limit of five seconds cuts longer blocking reads off. Here the clients never retry: `push.py` and
`follow.py` do, each where it is known what a second attempt means. They speak RESP2 and do not introduce
themselves, so that a user who may RPUSH and nothing else can connect without a refused command. A setting
in the query of the URL (`?socket_timeout=5`) wins over the one here.
"""

import ssl
from typing import cast

from redis import Redis, SSLConnection
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, AuthorizationError, ConnectionError, TimeoutError  # noqa: A004
from redis.retry import Retry

ANSWER_WITHIN_S = 2.0
BLOCK_S = 1.0
"""How long one read waits at the server, and so how soon a follower notices that it was stopped."""

MOST_TICKETS = 8
"""A server sends two."""

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


class TlsConnection(SSLConnection):
    """A connection that a session ticket does not spoil.

    A server may say something right after the handshake of TLS 1.3, which is no answer. redis-py finds the
    socket readable, takes that for an answer that nobody has fetched, and gives up the new connection, and
    the one after it. Logging in would hide that: the ticket is read with the answer.
    """

    def can_read(self, timeout: float = 0) -> bool:
        """Return whether an answer is there, tickets read; for looking before a call and not for waiting."""
        for _ in range(MOST_TICKETS):
            if not super().can_read(timeout):
                return False
            if self._has_more_than_tickets():
                return True
        return True

    def _has_more_than_tickets(self) -> bool:
        sock = cast("ssl.SSLSocket", self._sock)
        limit = sock.gettimeout()
        sock.settimeout(0)
        try:
            sock.recv(1)  # not to be given back: what was not asked for ends the connection
        except ssl.SSLWantReadError:
            return False
        except OSError:
            return True
        finally:
            sock.settimeout(limit)
        return True


def _client(url: str, answer_within_s: float) -> Redis:
    client = Redis.from_url(
        url,
        protocol=2,
        driver_info=None,
        socket_timeout=answer_within_s,
        socket_connect_timeout=ANSWER_WITHIN_S,
        retry=Retry(NoBackoff(), 0),
    )
    pool = client.connection_pool
    if pool.connection_class is SSLConnection:
        pool.connection_class = TlsConnection
    return client
