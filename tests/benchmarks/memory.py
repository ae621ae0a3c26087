"""What a waiting event costs in Redis, and whether the worker's memory stays as it is."""

from collections.abc import Sequence

from benchmarks.games import POOL, season
from benchmarks.lines import Line, Measured, at_most
from benchmarks.pipeline import applied_count, draining, producing, wait_for_applied
from benchmarks.plan import Plan
from benchmarks.processes import resident_mb
from benchmarks.servers import Place, Servers
from petard_schema import Keys
from petard_worker.redis_client import connect_redis

WAITING = 10_000
SETTLED = 50_000
"""After so many events a worker holds what it will ever hold."""
SETTLED_SHARE = 0.05
"""Of a backlog that is shorter than a million."""

LINES = (
    Line("waiting_bytes", "Redis per waiting event, by MEMORY USAGE", "bytes beyond its text", at_most(50)),
    Line("waiting_bytes_by_info", "Redis per waiting event, by INFO", "bytes beyond its text", at_most(50)),
    Line("worker_early_mb", "worker, early in the backlog", "MB"),
    Line("worker_late_mb", "worker, at the end of the backlog", "MB"),
    Line("worker_growth", "worker, at the end / early", "", at_most(1.1)),
)


def lines(_plan: Plan) -> Sequence[Line]:
    return LINES


def measure(servers: Servers, plan: Plan) -> Measured:
    """Measure Redis first, then the worker."""
    with servers.place() as place:
        yield from measure_waiting(place, season(WAITING, plan.players))
    with servers.place() as place:
        yield from measure_worker(place, season(plan.events, plan.players))


def measure_waiting(place: Place, events: Sequence[bytes]) -> Measured:
    """Yield the bytes Redis needs per waiting event beyond its own text."""
    text = sum(map(len, events))
    with connect_redis(place.redis_url) as client, producing(place) as producer:
        client.ping()
        before = int(client.info("memory")["used_memory"])
        producer.push_many_json(events)
        after = int(client.info("memory")["used_memory"])
        usage = int(str(client.memory_usage(Keys().events(POOL), samples=0)))
    yield "waiting_bytes", (usage - text) / len(events)
    yield "waiting_bytes_by_info", (after - before - text) / len(events)


def measure_worker(place: Place, events: Sequence[bytes]) -> Measured:
    """Yield what the worker holds after the first events of a backlog and after the last one."""
    settled = min(SETTLED, int(SETTLED_SHARE * len(events)))
    with applied_count(place) as applied, draining(place, {POOL: events}) as (worker,):
        wait_for_applied(applied, settled, worker)
        early = resident_mb(worker.pid)
        wait_for_applied(applied, len(events), worker)
        late = resident_mb(worker.pid)
    yield "worker_early_mb", early
    yield "worker_late_mb", late
    yield "worker_growth", late / early if early and late else None
