"""How the service is doing: backlog, head age, workers, outbox lag, dead letters."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, cast

from redis import Redis
from redis.exceptions import ResponseError

from petard_schema import EventRefused, Keys, event_json, read_event
from petard_worker.change_stream import StreamId, last_stream_id
from petard_worker.event_lists import event_lists
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.dead_letters import count_letters
from petard_worker.postgres.pools import list_pools
from petard_worker.recent import find_window, redis_now


class Stop(NamedTuple):
    """Why nothing is applied (the breaker's message, say), since when, and how often that has been so."""

    stopped: str | None
    stopped_at: datetime | None
    stops: int
    """A counter, for alerts."""


class PoolStatus(NamedTuple):
    """One pool: how many events wait, how long ago the first of them happened, what is applied and published.

    `head_age_s` goes by the event's own time: old games that were just imported are old from the start.
    """

    pool: str
    backlog: int
    head_age_s: float | None
    seq: int
    published_seq: int
    stopped: str | None
    stopped_at: datetime | None
    stops: int
    dead_letters: Mapping[str, int]
    recent_age_s: float | None
    """How far back the copies of trimmed events are complete; None when nobody can say, or none are made."""
    recent_bytes: int


class Status(NamedTuple):
    """All pools, and how many workers are alive."""

    pools: list[PoolStatus]
    workers: int


def read_status(connection: Connection, redis: Redis, keys: Keys, now: datetime) -> Status:
    """Return how the service is doing; reads only, and no clean-up as a side effect."""
    dead = count_letters(connection, "open")
    redis_ms = redis_now(redis)

    def look(name: str, seq: int, published_seq: int, stop: Stop) -> PoolStatus:
        window = find_window(redis, keys, name)
        return PoolStatus(
            name,
            redis.llen(keys.events(name)),
            head_age(redis, keys, name, now),
            seq,
            published_seq,
            *stop,
            dead.get(name, {}),
            None if window is None else max(0, redis_ms - window.complete_from) / 1000,
            0 if window is None else window.size,
        )

    known = [
        look(
            pool.name,
            pool.seq,
            published(last_stream_id(redis, keys, pool.name), pool.epoch),
            Stop(pool.stopped, pool.stopped_at, pool.stops),
        )
        for pool in list_pools(connection)
    ]
    missing = {*dead, *event_lists(redis, keys).values()} - {pool.pool for pool in known}
    orphans = [look(name, 0, 0, Stop("no such pool", None, 0)) for name in sorted(missing)]
    return Status(known + orphans, count_workers(redis, keys))


def head_age(redis: Redis, keys: Keys, pool: str, now: datetime) -> float | None:
    """Return how many seconds ago the first waiting event happened; None when nothing readable waits."""
    raw = cast("bytes | None", redis.lindex(keys.events(pool), 0))
    if raw is None:
        return None
    try:
        return max(0.0, (now - read_event(event_json(raw)).time).total_seconds())
    except EventRefused:
        return None


def published(last: StreamId, epoch: int) -> int:
    """Return how far the pool is published; a stream of another epoch is not published at all."""
    return last.seq if last.epoch == epoch else 0


def count_workers(redis: Redis, keys: Keys) -> int:
    """Return how many workers have reported within their time to live."""
    names = cast("set[bytes]", redis.smembers(f"rq:workers:{keys.prefix}"))
    try:
        return sum(redis.exists(name) for name in names)
    except ResponseError:
        return 0
