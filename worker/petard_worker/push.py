"""Lines onto the list of a pool as they are, unread: the workers judge them."""

from collections.abc import Sequence

from redis import Redis

from petard_schema import Keys


def push_lines(redis: Redis, keys: Keys, pool: str, lines: Sequence[bytes]) -> None:
    """Push one or more lines in one step, and poke the dispatcher."""
    redis.rpush(keys.events(pool), *lines)
    redis.publish(keys.pushed(), pool)
