"""What a quiet pool suffers while another one is flooded, with one worker for both."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from benchmarks.games import POOL, season
from benchmarks.latency import push_steadily, sightings, summarise
from benchmarks.lines import Line, Measured, at_most
from benchmarks.pipeline import (
    bring_in,
    make_pools,
    producing,
    push_aside,
    wait_for_publisher,
    wait_for_workers,
)
from benchmarks.plan import Plan
from benchmarks.roles import Role, start, start_module
from benchmarks.servers import Place, Servers
from petard_schema import Keys
from petard_worker.redis_client import connect_redis

FLOODED = "flooded"
QUIET_RATE = 20.0
FEWEST, WARM_UP = 20, 20
MOST_A_SECOND = 20_000
"""The flood has so many events for every second: more than a worker applies beside everything else."""


def lines(_plan: Plan) -> Sequence[Line]:
    return [
        Line("fairness_alone", f"quiet pool, {QUIET_RATE:g} events/s, p99", "ms"),
        Line("fairness_flooded", "quiet pool beside a flooded one, p99", "ms"),
        Line("fairness", "beside a flooded one / alone", "", at_most(3)),
    ]


def measure(servers: Servers, plan: Plan) -> Measured:
    """Yield the p99 of the quiet pool alone, beside a flood on the same worker, and their ratio."""
    count = max(FEWEST, round(QUIET_RATE * plan.fairness_seconds))
    events = iter(season(WARM_UP + 2 * count, plan.players))
    flood = season(round(MOST_A_SECOND * count / QUIET_RATE), plan.players, FLOODED)
    steps = (WARM_UP, count, count)
    with servers.place() as place:
        make_pools(place.database_url, POOL, FLOODED)
        push_aside(place, {FLOODED: flood})
        with (
            start(place, "worker") as worker,
            start(place, "publisher") as publisher,
            start_module(place, "benchmarks.follow", *map(str, steps)) as follower,
            producing(place) as producer,
        ):
            wait_for_workers(place, worker)
            wait_for_publisher(place, publisher)
            slowest = []
            for step, number in enumerate(steps):
                with flooding(place, worker) if step == len(steps) - 1 else nullcontext():
                    pushed = push_steadily(producer, [next(events) for _ in range(number)], QUIET_RATE)
                    seen = sightings(follower, step, worker, publisher)
                waits = [saw - push for push, saw in zip(pushed, seen, strict=True)]
                slowest.append(summarise(waits).p99)
    yield from compared(alone=slowest[1], flooded=slowest[2])


def compared(*, alone: float, flooded: float) -> Measured:
    """Yield the two p99s and their ratio."""
    yield "fairness_alone", alone
    yield "fairness_flooded", flooded
    yield "fairness", flooded / alone


@contextmanager
def flooding(place: Place, worker: Role) -> Iterator[None]:
    """Let the worker see the flood; raise ValueError if it has an end before the measurement."""
    with connect_redis(place.redis_url) as client:
        bring_in(place, {FLOODED: ()})
        flood = client.llen(Keys().events(FLOODED))
        yield
        worker.check()
        left = client.llen(Keys().events(FLOODED))
    if not 0 < left < flood:
        raise ValueError(
            f"of a flood of {flood} events {left} are left: the worker was to be busy all the time"
        )
