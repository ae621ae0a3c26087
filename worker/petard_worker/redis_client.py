"""The Redis client of drains, dispatcher, publisher and commands."""

from redis import Redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

SOCKET_TIMEOUT_SECONDS = 5.0
RETRIES = 3


def connect_redis(url: str) -> Redis:
    """Return a client that reports a lost server within seconds.

    Everything sent over it may be sent twice: trims and appends compare first, a repeated ring or job only
    finds that somebody else answers, a repeated push counts once.
    """
    return Redis.from_url(
        url,
        socket_timeout=SOCKET_TIMEOUT_SECONDS,
        socket_connect_timeout=SOCKET_TIMEOUT_SECONDS,
        retry=Retry(ExponentialWithJitterBackoff(base=0.02, cap=0.2), RETRIES),
    )
