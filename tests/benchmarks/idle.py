"""What a fleet costs that has nothing to do: CPU of all its processes, with one pool and with many."""

import time
from collections.abc import Sequence

from benchmarks.cpu import difference
from benchmarks.lines import Line, Measured, at_most
from benchmarks.pipeline import make_pools, wait_for_publisher, wait_for_workers
from benchmarks.plan import Plan
from benchmarks.processes import cpu_seconds
from benchmarks.roles import start
from benchmarks.servers import Servers

POOLS = (1, 1_000)
SETTLE_SECONDS = 3.0
"""Until what a start brings with it is over: streams looked at, boards built, statements prepared."""
SHARE = "of a core"


def lines(_plan: Plan) -> Sequence[Line]:
    return [
        Line(key(pools), f"idle worker, publisher, servers, pools: {pools:,}", SHARE, at_most(0.01))
        for pools in POOLS
    ]


def key(pools: int) -> str:
    return f"idle_{pools}"


def measure(servers: Servers, plan: Plan) -> Measured:
    """Yield the share of a core that a worker, a publisher and both servers need while nothing comes."""
    for pools in POOLS:
        yield key(pools), share_of_core(servers, pools, plan.idle_seconds)


def share_of_core(servers: Servers, pools: int, seconds: float) -> float | None:
    """Return the CPU seconds per second of an idle fleet, None where the system does not tell."""
    with servers.place() as place:
        make_pools(place.database_url, *(f"pool-{number}" for number in range(pools)))
        with start(place, "worker") as worker, start(place, "publisher") as publisher:
            wait_for_workers(place, worker)
            wait_for_publisher(place, publisher)
            time.sleep(SETTLE_SECONDS)
            pids = (worker.pid, publisher.pid, servers.postgres_pid, servers.redis_pid)
            started, before = time.monotonic(), [cpu_seconds(pid) for pid in pids]
            time.sleep(seconds)
            took, after = time.monotonic() - started, [cpu_seconds(pid) for pid in pids]
            worker.check()
            publisher.check()
    return share(before, after, seconds=took)


def share(before: Sequence[float | None], after: Sequence[float | None], *, seconds: float) -> float | None:
    """Return the CPU seconds of all processes per second, None where one does not tell."""
    spent = [difference(*both) for both in zip(before, after, strict=True)]
    told = [one for one in spent if one is not None]
    return sum(told) / seconds if len(told) == len(spent) else None
