"""SIGTERM and SIGINT are no failures: the batch in hand is finished, and the next worker goes on at once."""

import os
import signal
from collections import deque
from collections.abc import Iterator

import pytest

from faults.fleet import Fleet, Role, wait_until
from faults.producer import Producer
from faults.seasons import rated, raws, season

RESTARTS = int(os.environ.get("PETARD_RESTARTS", "30"))
AHEAD = 2


def started_ahead(fleet: Fleet, count: int) -> Iterator[Role]:
    """Yield running workers; some give up their turn early, and the next ones are starting meanwhile."""
    starting: deque[Role] = deque()
    for number in range(count):
        starting.append(fleet.start_worker(slice_seconds=("5", "0.2")[number % 2]))
        if number >= AHEAD:
            yield ready(starting.popleft())
    yield from map(ready, starting)


def ready(worker: Role) -> Role:
    wait_until(lambda: worker.logged("worker_started"), "the worker to start")
    return worker


@pytest.mark.timeout(120 + RESTARTS * 10)
def test_rolling_restarts_under_load_strand_nothing(fleet: Fleet) -> None:
    events = season(60_000)
    with Producer(fleet.redis.url, fleet.keys, events, per_second=600) as producer:
        workers = started_ahead(fleet, RESTARTS + 1)
        retiring = next(workers)
        for successor in workers:
            before = fleet.applied()
            wait_until(lambda before=before: fleet.applied() > before, "the load to be worked on", 5)

            retiring.send(signal.SIGTERM)
            code = retiring.exit_code()
            left = fleet.applied()
            wait_until(lambda left=left: fleet.applied() > left, "the next worker to go on", 2)

            assert code == 0, retiring.log
            retiring = successor
    fleet.wait_until_applied(producer.rated)
    wait_until(lambda: fleet.stranded_jobs() == (0, 0), "RQ's lists to be empty")

    fleet.publish_rest()
    fleet.audit(producer.pushed)
    assert fleet.failed_jobs() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_worker_told_to_stop_twice_finishes_its_batch_and_nothing_else(
    fleet: Fleet, number: signal.Signals
) -> None:
    events = season(900)
    worker = fleet.worker(batch_size="100")
    with fleet.pool_locked():
        fleet.push(raws(events))
        fleet.wait_until_blocked()

        worker.send(number)
        wait_until(lambda: worker.logged("stop_requested"), "the worker to hear it")
        worker.send(number)

    assert worker.exit_code() == 0
    assert fleet.waiting() == len(events) - 100
    assert fleet.applied() == rated(events[:100])
    assert fleet.stranded_jobs() == (0, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("start", [Fleet.worker, Fleet.publisher])
def test_idle_roles_leave_at_once(fleet: Fleet, start: object, number: signal.Signals) -> None:
    assert callable(start)
    role = start(fleet)
    assert isinstance(role, Role)

    role.send(number)

    assert role.exit_code(3) == 0


@pytest.mark.parametrize("start", [Fleet.worker, Fleet.publisher])
def test_roles_that_wait_for_postgres_leave_when_told(fleet: Fleet, start: object) -> None:
    assert callable(start)
    role = start(fleet)
    assert isinstance(role, Role)
    fleet.postgres.stop_immediately()
    fleet.push(raws(season(50)))
    wait_until(
        lambda: role.logged("postgres_unavailable") or role.logged("publishing_interrupted"),
        "the role to notice",
    )

    role.send(signal.SIGTERM)

    assert role.exit_code(5) == 0


@pytest.mark.parametrize("start", [Fleet.worker, Fleet.publisher])
def test_roles_that_wait_for_redis_leave_when_told(fleet: Fleet, start: object) -> None:
    assert callable(start)
    role = start(fleet)
    assert isinstance(role, Role)
    fleet.redis.kill()
    wait_until(
        lambda: role.logged("redis_lost") or role.logged("publishing_interrupted"), "the role to notice"
    )

    role.send(signal.SIGTERM)

    assert role.exit_code(5) == 0
