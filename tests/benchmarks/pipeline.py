"""Petard itself: events are pushed, one `petard worker` applies them."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import psycopg
from roles import Place, Role, start, wait_until

from petard_producer import Producer
from petard_schema import Keys
from petard_worker.pool_settings import PoolSettings, as_given
from petard_worker.postgres.connect import Connection, connect_worker
from petard_worker.postgres.pools import create_pool
from petard_worker.ratings.pool_rules import pool_rules
from petard_worker.redis_client import connect_redis

POOL = "benchmark"
SOURCE = "/benchmark"


class Drained(NamedTuple):
    """How fast a backlog was applied, and what the worker needed for it."""

    events_per_second: float
    worker_peak_mb: float | None


def make_pool(url: str) -> None:
    """Create the pool that all games are played in."""
    with connect_worker(url, "benchmark") as connection:
        create_pool(
            connection, POOL, "glicko", pool_rules("glicko", {}).parameters(), as_given(PoolSettings())
        )


@contextmanager
def producing(place: Place) -> Iterator[Producer]:
    """Open a producer as a game server would."""
    with Producer.from_url(place.redis_url, source=SOURCE) as producer:
        yield producer


@contextmanager
def applied_count(place: Place) -> Iterator[Callable[[], int]]:
    """Yield a function that tells how many events have been applied."""
    with connect_worker(place.database_url, "benchmark") as connection:
        yield lambda: seq_of(connection)


def seq_of(connection: Connection) -> int:
    """Return the pool's newest seq."""
    row = connection.execute("SELECT seq FROM petard.pool WHERE name = %(pool)s", {"pool": POOL}).fetchone()
    assert row is not None
    return int(str(row[0]))


def drain_backlog(place: Place, events: Sequence[bytes]) -> Drained:
    """Push everything, then start a worker; the rate is taken from the ledger's own times."""
    make_pool(place.database_url)
    with producing(place) as producer:
        producer.push_many_json(events)
    with applied_count(place) as applied, start(place, "worker") as worker:
        wait_until(lambda: applied() == len(events), "the backlog to be applied", worker)
        peak = worker.peak_memory_mb()
    return Drained(ledger_rate(place), peak)


def ledger_rate(place: Place) -> float:
    """Return events per second from the first batch's begin to the last one's."""
    sql = """
        WITH last AS (SELECT min(received) AS first, max(received) AS last FROM petard.ledger)
        SELECT count(*), extract(epoch FROM last.last - last.first)
        FROM petard.ledger, last WHERE received < last.last GROUP BY last.last, last.first
    """
    with psycopg.connect(place.database_url) as connection:
        row = connection.execute(sql).fetchone()
    if row is None:
        raise ValueError("one batch took everything: more events are needed to measure a rate")
    return int(row[0]) / float(row[1])


def drain_while_pushing(place: Place, events: Sequence[bytes]) -> float:
    """Push to a worker that waits already; return events per second, first push to last commit."""
    make_pool(place.database_url)
    with applied_count(place) as applied, producing(place) as producer, start(place, "worker") as worker:
        wait_for_worker(place, worker)
        started = time.perf_counter()
        producer.push_many_json(events)
        wait_until(lambda: applied() == len(events), "all events to be applied", worker)
        took = time.perf_counter() - started
    return len(events) / took


def wait_for_worker(place: Place, worker: Role) -> None:
    """Wait until a worker is at work and its dispatcher listens."""
    keys = Keys()
    with connect_redis(place.redis_url) as client:
        wait_until(
            lambda: dict(client.pubsub_numsub(keys.pushed())).get(keys.pushed().encode()),
            "the dispatcher to listen",
            worker,
        )
