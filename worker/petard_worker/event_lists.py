"""Which lists of events there are, those of pools that do not exist included."""

from collections.abc import Iterator
from typing import cast

from redis import Redis

from petard_schema import Keys
from petard_worker.dispatch import glob_escape, readable

SCAN_COUNT = 1_000


def event_lists(redis: Redis, keys: Keys) -> dict[bytes, str]:
    """Return the key of every list of events and the name of its pool, in the order of the keys."""
    start = keys.events("").encode()
    pattern = glob_escape(keys.events("")) + "*"
    found = cast("Iterator[bytes]", redis.scan_iter(pattern, count=SCAN_COUNT, _type="list"))
    return {key: readable(key.removeprefix(start)) for key in sorted(set(found))}
