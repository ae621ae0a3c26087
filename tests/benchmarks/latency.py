"""How long a game takes from its push to a follower of the change stream, at several rates."""

import json
import math
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from benchmarks.games import POOL, season
from benchmarks.lines import Line, Measured, Target, at_most
from benchmarks.pipeline import make_pools, producing, wait_for_publisher, wait_for_workers
from benchmarks.plan import Plan
from benchmarks.roles import Role, start, start_module, wait_until
from benchmarks.servers import Servers
from petard_producer import Producer

WARM_UP, WARM_UP_RATE = 100, 200.0
FEWEST = 20
"""Events of one rate, however low it is."""
TARGETS = {(200, "p50"): at_most(10), (200, "p99"): at_most(50)}
HOT = "latency_hot_p50_ms"
HOT_COUNT, HOT_RATE = 100, 50.0
"""Each event comes after the one before it was applied, and while its drain still lingers."""


class Latency(NamedTuple):
    """Milliseconds from before the push until the follower has the change in hand."""

    p50: float
    p95: float
    p99: float
    max: float


def lines(plan: Plan) -> Sequence[Line]:
    return [
        Line(key(rate, name), f"push to follower, {rate:g} events/s, {name}", "ms", target(rate, name))
        for rate in plan.latency_rates
        for name in Latency._fields
    ] + [Line(HOT, "push to follower, a drain lingers, p50", "ms", at_most(5))]


def key(rate: float, name: str) -> str:
    return f"latency_{rate:g}_{name}_ms"


def target(rate: float, name: str) -> Target | None:
    return TARGETS.get((int(rate), name)) if rate == int(rate) else None


def measure(servers: Servers, plan: Plan) -> Measured:
    """Push events one by one at steady rates; the first ones warm everything up and do not count."""
    measured = [(count(plan, rate), rate) for rate in plan.latency_rates]
    steps = [(WARM_UP, WARM_UP_RATE), *measured, (HOT_COUNT, HOT_RATE)]
    events = iter(season(sum(number for number, _ in steps), plan.players))
    with servers.place() as place:
        make_pools(place.database_url, POOL)
        with (
            start(place, "worker") as worker,
            start(place, "publisher") as publisher,
            start_module(place, "benchmarks.follow", *(str(number) for number, _ in steps)) as follower,
            producing(place) as producer,
        ):
            wait_for_workers(place, worker)
            wait_for_publisher(place, publisher)
            for step, (number, rate) in enumerate(steps):
                pushed = push_steadily(producer, [next(events) for _ in range(number)], rate)
                seen = sightings(follower, step, worker, publisher)
                # One producer and one pool: changes come in the order in which events were pushed.
                waits = [saw - push for push, saw in zip(pushed, seen, strict=True)]
                if step == len(steps) - 1:
                    yield HOT, summarise(waits).p50
                elif step:
                    for name, value in summarise(waits)._asdict().items():
                        yield key(rate, name), value


def count(plan: Plan, rate: float) -> int:
    """Return how many events are pushed at a rate."""
    return max(FEWEST, round(rate * plan.latency_seconds))


def push_steadily(producer: Producer, events: Iterable[bytes], rate: float) -> list[float]:
    """Push each event when its time has come and return when that was."""
    pushed = []
    started = time.monotonic()
    for number, event in enumerate(events):
        time.sleep(max(0.0, started + number / rate - time.monotonic()))
        pushed.append(time.monotonic())
        producer.push_json(event)
    return pushed


def sightings(follower: Role, step: int, *others: Role) -> list[float]:
    """Return when the follower saw the changes of a step, by the clock that all processes share."""

    def told() -> list[str]:
        return follower.log().split("\n")[:-1]

    wait_until(lambda: len(told()) > step, "all changes", follower, *others)
    return [float(moment) for moment in json.loads(told()[step])]


def summarise(waits: Sequence[float]) -> Latency:
    """Return the percentiles of some waits in seconds, in milliseconds."""
    ordered = sorted(wait * 1000 for wait in waits)
    return Latency(*(percentile(ordered, share) for share in (0.50, 0.95, 0.99)), ordered[-1])


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that is above or equal to this share of all (the nearest rank)."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
