"""Whatever happens to publishers and to what Redis remembers, followers see every entry once and in order."""

import shutil

import pytest

from faults.audit import Pushed
from faults.fleet import Fleet, wait_until
from faults.holding_proxy import HoldingProxy, script_call
from faults.seasons import rated, raws, season
from petard_worker.board import PLACE_BOARD
from petard_worker.change_stream import APPEND

APPEND_CALL = script_call(APPEND)


@pytest.fixture
def events() -> Pushed:
    return season(1_200)


@pytest.fixture
def applied(fleet: Fleet, events: Pushed) -> int:
    """How many entries wait to be published."""
    fleet.push(raws(events))
    fleet.apply_all()
    return rated(events)


@pytest.mark.parametrize("hold", ["hold_request", "hold_reply"])
def test_publisher_killed_around_its_append_is_replaced(
    fleet: Fleet, proxy: HoldingProxy, events: Pushed, applied: int, hold: str
) -> None:
    getattr(proxy, hold)(APPEND_CALL)
    victim = fleet.publisher(proxy.url)
    assert proxy.held.wait(10)
    fleet.publisher()

    victim.kill()
    proxy.drop()
    fleet.wait_until_published(applied, seconds=5)

    fleet.audit(events)


def test_append_that_arrives_after_another_publisher_took_over_is_refused(
    fleet: Fleet, proxy: HoldingProxy, events: Pushed, applied: int
) -> None:
    proxy.hold_request(APPEND_CALL)
    zombie = fleet.publisher(proxy.url)
    assert proxy.held.wait(10)
    fleet.publisher()
    assert fleet.end_sessions("petard publisher") == 2
    fleet.wait_until_published(applied)

    proxy.let_go()
    wait_until(lambda: zombie.logged("append_refused"), "the late append to be refused")

    fleet.audit(events)
    assert zombie.alive


def test_frozen_publisher_whose_session_is_ended_is_replaced_and_does_no_harm_later(
    fleet: Fleet, events: Pushed, applied: int
) -> None:
    later = season(300, seed=2)
    zombie = fleet.publisher()
    fleet.wait_until_published(applied)
    standby = fleet.publisher()
    zombie.freeze()
    fleet.push(raws(later))
    fleet.apply_all()

    fleet.end_sessions("petard publisher")
    wait_until(lambda: standby.logged("publisher_active"), "the standby to take over", 5)
    fleet.wait_until_published(applied + rated(later), seconds=5)
    zombie.thaw()
    wait_until(lambda: zombie.logged("publishing_interrupted"), "the zombie to see that it was replaced")

    fleet.audit(events, later)
    assert zombie.alive


def test_frozen_publisher_loses_the_lock_without_anybody_doing_anything(
    fleet: Fleet, events: Pushed, applied: int
) -> None:
    later = season(300, seed=2)
    zombie = fleet.publisher()
    fleet.wait_until_published(applied)
    standby = fleet.publisher()

    zombie.freeze()
    fleet.push(raws(later))
    fleet.apply_all()
    wait_until(lambda: standby.logged("publisher_active"), "the standby to take over", 10)
    fleet.wait_until_published(applied + rated(later), seconds=5)
    zombie.thaw()
    wait_until(lambda: zombie.logged("publishing_interrupted"), "the zombie to see that it was replaced")

    fleet.audit(events, later)
    assert zombie.alive


@pytest.mark.parametrize(
    ("words", "end"),
    [(b"\r\nZADD\r\n", "publishing_interrupted"), (script_call(PLACE_BOARD), "board_refused")],
    ids=["begun", "complete"],
)
def test_board_put_in_place_after_another_publisher_took_over_is_not_kept(
    fleet: Fleet, proxy: HoldingProxy, events: Pushed, applied: int, words: bytes, end: str
) -> None:
    later = season(300, seed=2)
    proxy.hold_request(words)
    zombie = fleet.publisher(proxy.url)
    assert proxy.held.wait(10)
    fleet.end_sessions("petard publisher")
    fleet.publisher()
    fleet.push(raws(later))
    fleet.apply_all()
    fleet.wait_until_published(applied + rated(later))

    proxy.let_go()
    wait_until(lambda: zombie.logged(end), "the end of the late board")

    fleet.audit(events, later)


def test_emptied_redis_is_refilled_while_the_work_goes_on(fleet: Fleet, events: Pushed, applied: int) -> None:
    later = season(300, seed=2)
    fleet.worker()
    fleet.publisher()
    fleet.wait_until_published(applied)

    with fleet.client as client:
        client.flushall()
    fleet.push(raws(later))
    fleet.wait_until_applied(applied + rated(later))
    fleet.wait_until_published(applied + rated(later), seconds=5)

    fleet.audit(events, later)


def test_redis_that_starts_empty_is_refilled_without_anything_new(
    fleet: Fleet, events: Pushed, applied: int
) -> None:
    publisher = fleet.publisher()
    fleet.wait_until_published(applied)

    fleet.redis.kill()
    shutil.rmtree(fleet.redis.folder / "appendonlydir")
    fleet.start_redis()
    fleet.wait_until_published(applied, seconds=5)

    fleet.audit(events)
    assert publisher.alive


def test_redis_killed_while_publishing_costs_nothing(fleet: Fleet, events: Pushed, applied: int) -> None:
    fleet.publisher()
    wait_until(lambda: fleet.published() > 0, "the first entries in the stream")

    fleet.redis.kill()
    fleet.start_redis()
    fleet.wait_until_published(applied, seconds=5)

    fleet.audit(events)
