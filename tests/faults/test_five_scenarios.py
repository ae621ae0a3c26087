"""Five bad moments after which most queues on Postgres never come back to the rate they had.

Postgres restarts, its sessions are ended, strangers use its connections up, a worker is killed, workers are
killed again and again. Each under a steady load below saturation, where the rate is what game servers
offer; and, by hand, with a backlog that keeps the workers saturated:

    PETARD_BACKLOG=200000 pytest tests/faults/test_five_scenarios.py -s
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest

from faults.fleet import Fleet, Role, read_seq, wait_until
from faults.producer import Producer
from faults.seasons import raws, season

OFFERED = float(os.environ.get("PETARD_OFFERED", "200"))
"""Events a second of the steady load."""
BACKLOG = int(os.environ.get("PETARD_BACKLOG", "0"))
"""Events of the backlog; 0: that part is left out."""
WINDOW = float(os.environ.get("PETARD_WINDOW", "2"))
"""Seconds over which a rate is measured."""
SECONDS_TO_RECOVER = 10.0
SHARE = 0.95
LOOK_SECONDS = 0.05
REPEATED_KILLS = 5

Fault = Callable[[Fleet], None]


def restart_postgres(fleet: Fleet) -> None:
    fleet.postgres.stop_immediately()
    fleet.postgres.start()


def end_sessions(fleet: Fleet) -> None:
    assert fleet.end_sessions() > 0


def use_up_connections(fleet: Fleet) -> None:
    """Leave no connection for ours until they were told so; then go away."""
    where = "FROM pg_stat_activity WHERE application_name LIKE 'petard %'"
    before = sum(map(refused, fleet.roles))
    with ExitStack() as strangers, fleet.owner() as admin:

        def ours_are_refused() -> bool:
            # Again each time: one of ours that was just connecting has no name yet and keeps its place.
            admin.execute(f"SELECT pg_terminate_backend(pid) {where}")
            with contextlib.suppress(psycopg.OperationalError):
                while True:
                    strangers.enter_context(psycopg.connect(fleet.postgres.url, application_name="stranger"))
            nobody = admin.execute(f"SELECT count(*) {where}").fetchone() == (0,)
            return nobody and sum(map(refused, fleet.roles)) > before

        wait_until(ours_are_refused, "strangers to have every connection", 60)


def refused(role: Role) -> int:
    """Return how often a role was told that there are too many clients."""
    return role.log.count("too many clients") + role.log.count("remaining connection slots")


def kill_the_busy_worker(fleet: Fleet) -> None:
    """Kill the one that works, and start another as a supervisor would."""
    alive = [role for role in fleet.roles if role.alive and role.kind == "worker"]
    max(alive, key=lambda role: role.log_file.stat().st_mtime).kill()
    fleet.start_worker()


def kill_busy_workers_repeatedly(fleet: Fleet) -> None:
    for _ in range(REPEATED_KILLS):
        kill_the_busy_worker(fleet)
        before = fleet.applied()
        wait_until(lambda before=before: fleet.applied() > before, "work to go on", 20)


FIVE = [
    restart_postgres,
    end_sessions,
    use_up_connections,
    kill_the_busy_worker,
    kill_busy_workers_repeatedly,
]


@contextmanager
def steady_load(fleet: Fleet) -> Iterator[None]:
    events = season(int(OFFERED * 120), repeat_share=0.0)
    with Producer(fleet.redis.url, fleet.keys, events, per_second=OFFERED, backlog=1 << 40):
        yield


@contextmanager
def backlog(fleet: Fleet) -> Iterator[None]:
    if BACKLOG == 0:
        pytest.skip("set PETARD_BACKLOG to measure saturated workers")
    fleet.push(raws(season(BACKLOG, players=2_000)))
    yield


def rate_of(fleet: Fleet, seconds: float) -> float:
    """Return how many entries a second the ledger gains."""
    began, before = time.monotonic(), fleet.applied()
    wait_until(lambda: time.monotonic() > began + seconds, "the window to pass", seconds + 60)
    return (fleet.applied() - before) / (time.monotonic() - began)


def seconds_until_rate(fleet: Fleet, wanted: float) -> float:
    """Return how long it takes until entries come at that rate over a window that begins now or later."""
    began = time.monotonic()
    seen: list[tuple[float, int]] = []

    def reached() -> bool:
        if seen and time.monotonic() - seen[-1][0] < LOOK_SECONDS:
            return False
        seen.append((time.monotonic(), read_seq(connection)))
        now, applied = seen[-1]
        windows = [(now - then, applied - before) for then, before in seen if now - then >= WINDOW]
        return bool(windows) and windows[-1][1] / windows[-1][0] >= wanted

    with fleet.owner() as connection:
        wait_until(reached, f"{wanted:.0f} entries a second", 60)
    return time.monotonic() - began


@pytest.mark.parametrize("load", [steady_load, backlog])
@pytest.mark.parametrize("fault", FIVE)
def test_rate_is_back_within_seconds(
    fleet: Fleet, fault: Fault, load: Callable[[Fleet], contextlib.AbstractContextManager[None]]
) -> None:
    workers = [fleet.start_worker(), fleet.start_worker()]
    wait_until(lambda: all(role.logged("worker_started") for role in workers), "the workers", 100)
    with load(fleet):
        wait_until(fleet.applied, "the first batch", 60)
        earlier = rate_of(fleet, WINDOW)

        fault(fleet)
        seconds = seconds_until_rate(fleet, SHARE * earlier)

    print(f"{fault.__name__}, {load.__name__}: {earlier:.0f}/s, back after {seconds:.1f} s")  # noqa: T201
    assert seconds <= SECONDS_TO_RECOVER
