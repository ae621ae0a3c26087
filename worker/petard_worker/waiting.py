"""Where an event is: counted or dead in Postgres, still waiting in a list, or nowhere."""

from collections.abc import Iterator
from typing import cast

from redis import Redis

from petard_schema import EventRefused, Keys, event_json, read_event
from petard_worker.event_lists import event_lists
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.fates import Fate, find_fates

CHUNK = 1_000


def trace(connection: Connection, redis: Redis, keys: Keys, event_id: str) -> list[Fate]:
    """Return what became of the events with this id, at least one: `unknown` when nobody has seen any."""
    if found := find_fates(connection, event_id):
        return found
    if waiting := find_waiting(redis, keys, event_id):
        return [waiting]
    # An event that has left its list since Postgres was asked has been committed before.
    return find_fates(connection, event_id) or [unknown(event_id)]


def find_waiting(redis: Redis, keys: Keys, event_id: str) -> Fate | None:
    """Return the fate of an event that waits in any list, that of a pool which does not exist included."""
    needle = event_id.encode()
    for key, pool in event_lists(redis, keys).items():
        for raw in newest_first(redis, key):
            # An escape in the JSON may hide the id from a search of its bytes.
            if (needle in raw or b"\\" in raw) and (source := source_of(raw, event_id)) is not None:
                return Fate(source, event_id, pool, None, "waiting", None, [])
    return None


def newest_first(redis: Redis, key: bytes) -> Iterator[bytes]:
    """Yield what waits in a list.

    From its tail: what is trimmed from the head meanwhile moves nothing, and what is pushed meanwhile makes
    some come twice but leaves none out.
    """
    last = -1
    while chunk := cast("list[bytes]", redis.lrange(key, last - CHUNK + 1, last)):
        yield from reversed(chunk)
        last -= CHUNK


def unknown(event_id: str) -> Fate:
    """Return the fate of an event nobody has seen."""
    return Fate(None, event_id, None, None, "unknown", None, [])


def source_of(raw: bytes, event_id: str) -> str | None:
    """Return the source of the event in `raw` if it has this id."""
    try:
        parsed = read_event(event_json(raw))
    except EventRefused:
        return None
    return parsed.source if parsed.id == event_id else None
