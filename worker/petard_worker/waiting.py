"""Where an event is that Postgres does not know: still in a list, or nowhere."""

from collections.abc import Iterator
from typing import cast

from redis import Redis

from petard_schema import EventRefused, Keys, parse_event
from petard_worker.dispatch import glob_escape, readable
from petard_worker.postgres.fates import Fate

CHUNK = 1_000


def find_waiting(redis: Redis, keys: Keys, event_id: str) -> Fate | None:
    """Return the fate of an event that waits in any list, that of a pool which does not exist included."""
    needle = event_id.encode()
    for key in event_lists(redis, keys):
        pool = readable(key.removeprefix(keys.events("").encode()))
        for start in range(0, redis.llen(key), CHUNK):
            for raw in cast("list[bytes]", redis.lrange(key, start, start + CHUNK - 1)):
                # An escape in the JSON may hide the id from a search of its bytes.
                if (needle in raw or b"\\" in raw) and (source := source_of(raw, event_id)) is not None:
                    return Fate(source, event_id, pool, None, "waiting", None, [])
    return None


def event_lists(redis: Redis, keys: Keys) -> list[bytes]:
    """Return the keys of all lists of events."""
    pattern = glob_escape(keys.events("")) + "*"
    return sorted(cast("Iterator[bytes]", redis.scan_iter(pattern, count=CHUNK, _type="list")))


def unknown(event_id: str) -> Fate:
    """Return the fate of an event nobody has seen."""
    return Fate(None, event_id, None, None, "unknown", None, [])


def source_of(raw: bytes, event_id: str) -> str | None:
    """Return the source of the event in `raw` if it has this id."""
    try:
        parsed = parse_event(raw)
    except EventRefused:
        return None
    return parsed.source if parsed.id == event_id else None
