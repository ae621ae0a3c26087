"""A worker that is killed or frozen costs a few seconds: no event, no order, and nothing counts twice."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from faults.audit import Pushed
from faults.fleet import MAIN, Fleet, wait_until
from faults.holding_proxy import HoldingProxy, script_call
from faults.seasons import rated, raws, season
from petard_worker.intake import TRIM

TRIM_CALL = script_call(TRIM)
FIRST_GAMES = 40
Locked = Callable[[Fleet], AbstractContextManager[None]]


@pytest.fixture
def events() -> Pushed:
    return season(1_500)


@pytest.mark.parametrize(
    "locked",
    [
        pytest.param(Fleet.pool_locked, id="before-anything-is-written"),
        pytest.param(Fleet.ratings_locked, id="when-the-ledger-is-written"),
    ],
)
def test_worker_killed_inside_its_transaction_is_replaced(
    fleet: Fleet, events: Pushed, locked: Locked
) -> None:
    workers = [fleet.start_worker(), fleet.start_worker()]
    wait_until(lambda: all(worker.logged("worker_started") for worker in workers), "both workers")
    first, rest = events[:FIRST_GAMES], events[FIRST_GAMES:]
    fleet.push(raws(first))
    fleet.wait_until_applied(rated(first))

    with locked(fleet):
        fleet.push(raws(rest))
        fleet.wait_until_blocked().kill()
    wait_until(lambda: fleet.applied() > rated(first), "the other worker to go on", 5)

    fleet.wait_until_applied(rated(events))
    fleet.publish_rest()
    fleet.audit(events)


@pytest.mark.parametrize("hold", ["hold_request", "hold_reply"])
def test_worker_killed_between_commit_and_trim_is_replaced(
    fleet: Fleet, proxy: HoldingProxy, events: Pushed, hold: str
) -> None:
    victim = fleet.worker(proxy.url)
    getattr(proxy, hold)(TRIM_CALL)
    fleet.push(raws(events))
    assert proxy.held.wait(10)
    committed = fleet.applied()
    fleet.worker()

    victim.kill()
    proxy.drop()
    wait_until(lambda: fleet.applied() > committed, "the other worker to go on", 5)

    assert committed > 0
    fleet.wait_until_applied(rated(events))
    fleet.publish_rest()
    fleet.audit(events)


def test_worker_that_trims_after_others_went_on_removes_nothing(
    fleet: Fleet, proxy: HoldingProxy, events: Pushed
) -> None:
    zombie = fleet.worker(proxy.url)
    first, rest = events[:FIRST_GAMES], events[FIRST_GAMES:]
    proxy.hold_request(TRIM_CALL)
    fleet.push(raws(first))
    assert proxy.held.wait(10)
    other = fleet.worker()
    wait_until(lambda: fleet.waiting() == 0, "the other worker to trim what is in the ledger")
    with fleet.pool_locked():
        fleet.push(raws(rest))
        fleet.wait_until_blocked()
        waiting = fleet.waiting()

        proxy.let_go()
        wait_until(lambda: zombie.logged("trim_refused"), "the late trim to be refused")

        assert fleet.waiting() == waiting
    fleet.wait_until_applied(rated(events))
    fleet.publish_rest()
    fleet.audit(events)
    assert other.alive
    assert zombie.alive


def stuck_while(flag: Path) -> str:
    """Return a worker that stands still before its COMMIT as long as the file is there."""
    return f"""
import os, time
from pathlib import Path
from petard_worker import apply
finish_batch = apply.finish_batch
def stuck(*arguments):
    while Path({str(flag)!r}).exists():
        Path({str(pid_file(flag))!r}).write_text(str(os.getpid()))
        time.sleep(0.02)
    finish_batch(*arguments)
apply.finish_batch = stuck
{MAIN}
"""


def pid_file(flag: Path) -> Path:
    """Return the file in which the worker that stands still writes its pid."""
    return flag.with_suffix(".pid")


def test_worker_frozen_inside_its_transaction_loses_the_pool_and_does_no_harm_later(
    fleet: Fleet, events: Pushed, tmp_path: Path
) -> None:
    flag = tmp_path / "stuck"
    for _ in range(2):
        fleet.start_worker(program=stuck_while(flag))
    wait_until(lambda: all(worker.logged("worker_started") for worker in fleet.roles), "both workers")
    first, second, third = events[:FIRST_GAMES], events[FIRST_GAMES:800], events[800:]
    fleet.push(raws(first))
    fleet.wait_until_applied(rated(first))

    flag.touch()
    fleet.push(raws(second))
    wait_until(lambda: pid_file(flag).exists() and pid_file(flag).read_text(), "a worker to stand still")
    (zombie,) = [role for role in fleet.roles if role.process.pid == int(pid_file(flag).read_text())]
    zombie.freeze()
    flag.unlink()
    fleet.wait_until_applied(rated(first + second))
    zombie.thaw()
    wait_until(lambda: zombie.logged("postgres_unavailable"), "the zombie to see that its session is gone")
    fleet.push(raws(third))

    fleet.wait_until_applied(rated(events))
    fleet.publish_rest()
    fleet.audit(events)
    assert zombie.alive


def test_what_a_worker_has_sent_with_its_commit_counts_without_it(fleet: Fleet, events: Pushed) -> None:
    for _ in range(2):
        fleet.start_worker()
    wait_until(lambda: all(worker.logged("worker_started") for worker in fleet.roles), "both workers")
    first, second, third = events[:FIRST_GAMES], events[FIRST_GAMES:800], events[800:]
    fleet.push(raws(first))
    fleet.wait_until_applied(rated(first))

    with fleet.ratings_locked():
        fleet.push(raws(second))
        zombie = fleet.wait_until_blocked()
        zombie.freeze()
    fleet.wait_until_applied(rated(first + second))
    zombie.thaw()
    fleet.push(raws(third))

    fleet.wait_until_applied(rated(events))
    fleet.publish_rest()
    fleet.audit(events)
    assert zombie.alive
