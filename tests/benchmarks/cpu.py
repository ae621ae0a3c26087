"""How much CPU an event costs, and whose: everything is pushed, applied and published once."""

import time
from collections.abc import Mapping, Sequence

from benchmarks.games import POOL, season
from benchmarks.lines import Line, Measured
from benchmarks.pipeline import (
    PATIENCE_SECONDS,
    make_pools,
    producing,
    wait_for_publisher,
    wait_for_workers,
)
from benchmarks.plan import Plan
from benchmarks.processes import cpu_seconds
from benchmarks.roles import start, wait_until
from benchmarks.servers import Place, Servers
from petard_producer import Follower

UNIT = "s per 1,000 events"
LINES = (
    Line("cpu_worker", "worker", UNIT),
    Line("cpu_publisher", "publisher", UNIT),
    Line("cpu_producer", "producer", UNIT),
    Line("cpu_postgres", "Postgres, backends and writers together", UNIT),
    Line("cpu_redis", "Redis", UNIT),
)


def lines(_plan: Plan) -> Sequence[Line]:
    return LINES


def measure(servers: Servers, plan: Plan) -> Measured:
    """Yield the CPU seconds that a thousand events cost each process."""
    events = season(plan.events, plan.players)
    with servers.place() as place:
        spent = spend(servers, place, events)
    for key, seconds in spent.items():
        yield key, None if seconds is None else seconds * 1000 / len(events)


def spend(servers: Servers, place: Place, events: Sequence[bytes]) -> Mapping[str, float | None]:
    """Return the CPU seconds of each process from the first push until the last change is published."""
    make_pools(place.database_url, POOL)
    with (
        start(place, "worker") as worker,
        start(place, "publisher") as publisher,
        producing(place) as producer,
        Follower.from_url(place.redis_url, pool=POOL) as follower,
    ):
        wait_for_workers(place, worker)
        wait_for_publisher(place, publisher)
        pids = {
            "cpu_worker": worker.pid,
            "cpu_publisher": publisher.pid,
            "cpu_postgres": servers.postgres_pid,
            "cpu_redis": servers.redis_pid,
        }
        before = {key: cpu_seconds(pid) for key, pid in pids.items()}
        pushing = time.thread_time()
        producer.push_many_json(events)
        pushing = time.thread_time() - pushing

        def published() -> bool:
            newest = follower.newest()
            return newest is not None and newest.seq == len(events)

        wait_until(published, "everything to be published", worker, publisher, seconds=PATIENCE_SECONDS)
        after = {key: cpu_seconds(pid) for key, pid in pids.items()}
    return {key: difference(before[key], after[key]) for key in pids} | {"cpu_producer": pushing}


def difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before
