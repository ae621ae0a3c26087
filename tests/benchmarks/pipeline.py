"""Petard itself: events are pushed, `petard worker` applies them."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import psycopg
from redis import Redis
from rq import Worker

from benchmarks.games import POOL
from benchmarks.roles import Role, start, wait_until
from benchmarks.servers import Place
from petard_producer import Producer
from petard_schema import Keys
from petard_worker.pool_settings import PoolSettings, as_given
from petard_worker.postgres.connect import connect_worker
from petard_worker.postgres.pools import create_pool
from petard_worker.ratings.pool_rules import pool_rules
from petard_worker.redis_client import connect_redis

SOURCE = "/benchmark"
PATIENCE_SECONDS = 3600
ASIDE = "aside"
"""A prefix under which no worker looks."""


def make_pools(url: str, *pools: str) -> None:
    """Create the pools that games are played in."""
    parameters, settings = pool_rules("glicko", {}).parameters(), as_given(PoolSettings())
    with connect_worker(url, "benchmark") as connection:
        for pool in pools:
            create_pool(connection, pool, "glicko", parameters, settings)


@contextmanager
def producing(place: Place) -> Iterator[Producer]:
    """Open a producer as a game server would."""
    with Producer.from_url(place.redis_url, source=SOURCE) as producer:
        yield producer


@contextmanager
def applied_count(place: Place) -> Iterator[Callable[[], int]]:
    """Yield a function that tells how many events have been applied, in all pools together."""
    sql = "SELECT sum(seq) FROM petard.pool"
    with connect_worker(place.database_url, "benchmark") as connection:

        def applied() -> int:
            row = connection.execute(sql).fetchone()
            assert row is not None
            return int(str(row[0]))

        yield applied


@contextmanager
def draining(place: Place, seasons: Mapping[str, Sequence[bytes]]) -> Iterator[tuple[Role, ...]]:
    """Let one worker per pool, all started before, see a whole backlog at once; yield them at work."""
    make_pools(place.database_url, *seasons)
    with ExitStack() as stack:
        workers = tuple(stack.enter_context(start(place, "worker")) for _ in seasons)
        wait_for_workers(place, *workers)
        push_aside(place, seasons)
        bring_in(place, seasons)
        yield workers


def push_aside(place: Place, seasons: Mapping[str, Sequence[bytes]]) -> None:
    """Push events to where no worker sees them."""
    with Producer.from_url(place.redis_url, source=SOURCE, prefix=ASIDE, poke=False) as producer:
        for events in seasons.values():
            producer.push_many_json(events)


def bring_in(place: Place, pools: Mapping[str, object]) -> None:
    """Let the workers see what was pushed aside, all of it in one step."""
    with connect_redis(place.redis_url) as client, client.pipeline(transaction=True) as step:
        for pool in pools:
            step.rename(Keys(ASIDE).events(pool), Keys().events(pool))
            step.publish(Keys().pushed(), pool)
        step.execute()


def rate_of_backlog(place: Place, seasons: Mapping[str, Sequence[bytes]]) -> float:
    """Return how many events a second one worker per pool applies, by the ledger's own times."""
    total = sum(map(len, seasons.values()))
    with applied_count(place) as applied, draining(place, seasons) as workers:
        wait_for_applied(applied, total, *workers)
    return ledger_rate(place)


def ledger_rate(place: Place) -> float:
    """Return events per second from the first batch's begin to the last one's, over all pools."""
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


def rate_while_pushing(place: Place, events: Sequence[bytes]) -> float:
    """Push to a worker that waits; return events per second, first push to last commit."""
    make_pools(place.database_url, POOL)
    with applied_count(place) as applied, producing(place) as producer, start(place, "worker") as worker:
        wait_for_workers(place, worker)
        started = time.perf_counter()
        producer.push_many_json(events)
        wait_for_applied(applied, len(events), worker)
        took = time.perf_counter() - started
    return len(events) / took


def wait_for_applied(applied: Callable[[], int], events: int, *workers: Role) -> None:
    """Wait until that many events have been applied."""
    wait_until(lambda: applied() >= events, f"{events} applied events", *workers, seconds=PATIENCE_SECONDS)


def wait_for_workers(place: Place, *workers: Role) -> None:
    """Wait until the workers are at work and a dispatcher listens."""
    with connect_redis(place.redis_url) as client:
        wait_until(lambda: listens(client, Keys().pushed()), "the dispatcher to listen", *workers)
        wait_until(lambda: Worker.count(client) == len(workers), "the workers", *workers)


def wait_for_publisher(place: Place, publisher: Role) -> None:
    """Wait until the publisher listens."""
    with connect_redis(place.redis_url) as client:
        wait_until(lambda: listens(client, Keys().committed()), "the publisher to listen", publisher)


def listens(client: Redis, channel: str) -> bool:
    """Return whether anybody listens to a channel."""
    return dict(client.pubsub_numsub(channel))[channel.encode()] > 0
