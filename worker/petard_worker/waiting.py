"""Where an event is that Postgres does not know: still in a list, or nowhere."""

from typing import cast

from redis import Redis

from petard_schema import EventRefused, Keys, parse_event
from petard_worker.postgres.fates import Fate

CHUNK = 1_000


def find_waiting(redis: Redis, keys: Keys, pools: list[str], event_id: str) -> Fate | None:
    """Return the fate of an event that waits in the list of one of the pools, or None."""
    needle = event_id.encode()
    for pool in pools:
        for start in range(0, redis.llen(keys.events(pool)), CHUNK):
            chunk = redis.lrange(keys.events(pool), start, start + CHUNK - 1)
            for raw in cast("list[bytes]", chunk):
                if needle in raw and (source := source_of(raw, event_id)) is not None:
                    return Fate(source, event_id, pool, None, "waiting", None, [])
    return None


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
