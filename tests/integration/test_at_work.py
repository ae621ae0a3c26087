"""A drain and the dispatcher of its process: who is woken, and who makes room for others."""

import time
from collections.abc import Callable

import psycopg
import pytest
from redis import Redis

from integration.arena import counted, games, push, running
from petard_schema import Keys
from petard_worker import jobs
from petard_worker.at_work import AtWork
from petard_worker.batch_size import FIRST
from petard_worker.dispatch import Dispatcher
from petard_worker.jobs import DRAIN, Drain, Workshop
from petard_worker.rq_worker import JsonQueue, enqueue_job, open_queue


@pytest.fixture
def queue(client: Redis) -> JsonQueue:
    return open_queue(client, {})


@pytest.fixture
def dispatcher(
    workshop: Workshop, client: Redis, keys: Keys, queue: JsonQueue, monkeypatch: pytest.MonkeyPatch
) -> Dispatcher:
    """The dispatcher of a process whose drains look by themselves so seldom that only it can wake them."""
    monkeypatch.setattr(jobs, "LINGER_SECONDS", 60.0)
    monkeypatch.setattr(jobs, "POKED_LOOK_SECONDS", 60.0)
    workshop.queue, workshop.at_work = queue, AtWork(hears_pokes=True)
    return Dispatcher(client, keys, queue, "ours", workshop.at_work)


@pytest.mark.usefixtures("pool")
def test_a_poke_wakes_the_drain_of_the_same_process_and_rings_for_no_other(
    workshop: Workshop,
    client: Redis,
    keys: Keys,
    dispatcher: Dispatcher,
    owner: psycopg.Connection,
    wait_until: Callable[..., None],
) -> None:
    push(client, keys, games(1))

    with running(Drain(workshop, "p", "ours")):
        wait_until(lambda: counted(owner) == ["e-1"], "the first event")
        push(client, keys, games(1, first=2))
        rung = dispatcher.answer(["p"])
        wait_until(lambda: counted(owner) == ["e-1", "e-2"], "the second event")
        workshop.stop.set()
        workshop.at_work.news.set()

    assert rung == 0
    assert workshop.at_work.pool is None


def test_a_drain_that_is_queued_ends_the_lingering_of_another(
    workshop: Workshop,
    pool: str,
    client: Redis,
    keys: Keys,
    dispatcher: Dispatcher,
    wait_until: Callable[..., None],
) -> None:
    with running(Drain(workshop, pool, "ours")) as lingering:
        wait_until(lambda: workshop.at_work.pool == pool, "the drain to answer for its pool")
        push(client, keys, games(1), "other")
        assert dispatcher.answer(["other"]) == 1
        lingering.join(10)

        assert not lingering.is_alive()


@pytest.mark.usefixtures("pool")
def test_before_its_last_look_a_drain_answers_for_no_pool_any_more(
    workshop: Workshop, client: Redis, keys: Keys
) -> None:
    """Else a poke between that look and its end would wake nobody."""
    push(client, keys, games(1))
    drain = Drain(workshop, "p", "ours")
    waiting = drain.intake.waiting
    seen: list[str | None] = []

    def look() -> int:
        seen.append(workshop.at_work.pool)
        return waiting()

    drain.intake.waiting = look  # type: ignore[method-assign]

    drain.run()

    assert seen == [None]


@pytest.mark.usefixtures("pool")
def test_while_others_wait_now_and_then_a_drain_takes_fewer_events_at_a_time(
    workshop: Workshop, queue: JsonQueue, client: Redis, keys: Keys
) -> None:
    workshop.queue = queue
    push(client, keys, games(2))
    drain = Drain(workshop, "p", "ours")
    drain.applied = 1
    alone = drain.batch_size()
    enqueue_job(queue, DRAIN, "other", "theirs", job_id="theirs")

    assert drain.is_slice_over(1.0)

    assert (alone, drain.batch_size()) == (FIRST, jobs.SHARED_BATCH_SIZE)
    workshop.shared_until = time.monotonic()
    assert drain.batch_size() == alone


def test_a_drain_looks_at_once_whether_it_is_in_the_way_of_one_that_was_queued(
    workshop: Workshop, pool: str, queue: JsonQueue
) -> None:
    workshop.queue = queue
    push(workshop.redis, workshop.keys, games(1))
    drain = Drain(workshop, pool, "ours")
    drain.applied = 1
    moment = jobs.SHARED_SLICE_SECONDS
    nobody = drain.is_slice_over(moment)
    enqueue_job(queue, DRAIN, "other", "theirs", job_id="theirs")

    unaware = drain.is_slice_over(moment)
    workshop.at_work.tell_of_another()
    aware = drain.is_slice_over(moment)

    assert (nobody, unaware, aware) == (False, False, True)


def test_a_drain_that_is_stuck_answers_no_longer_than_its_bell() -> None:
    at_work = AtWork()
    at_work.answer_for("p", 60.0)
    assert at_work.answers_for("p")

    at_work.answer_for("p", 0.0)

    assert not at_work.answers_for("p")
