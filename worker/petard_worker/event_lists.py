"""Which lists of events there are, and what their pools are called, existing ones or not."""

import re
from collections.abc import Iterator
from typing import cast

from redis import Redis

from petard_schema import Keys

SCAN_COUNT = 1_000
MAX_POOL_IN_KEY = 200


def event_lists(redis: Redis, keys: Keys) -> dict[bytes, str]:
    """Return the key of every list of events and the name of its pool, in the order of the keys."""
    start = keys.events("").encode()
    pattern = glob_escape(keys.events("")) + "*"
    found = cast("Iterator[bytes]", redis.scan_iter(pattern, count=SCAN_COUNT, _type="list"))
    return {key: readable(key.removeprefix(start)) for key in sorted(set(found))}


def readable(pool: bytes) -> str:
    """Return a name that JSON, logs and Postgres can all hold; the same one if it is such a name already."""
    text = pool.decode("utf-8", "backslashreplace")
    if len(text) <= MAX_POOL_IN_KEY and text.isprintable():
        return text
    return ascii(text)[1:-1][:MAX_POOL_IN_KEY]


def glob_escape(text: str) -> str:
    """Return the text as a Redis glob pattern that matches just itself."""
    return re.sub(r"([*?\[\]\\^])", r"\\\1", text)
