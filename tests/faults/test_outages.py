"""Servers that die, hang up, freeze or are busy are waited for: nothing is lost, no failed jobs pile up."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from faults.fleet import MAIN, POOL, Fleet, wait_until
from faults.producer import Producer
from faults.seasons import rated, raws, season

Locked = Callable[[Fleet], AbstractContextManager[None]]
IMPATIENT = f"import petard_worker.redis_client as r; r.SOCKET_TIMEOUT_SECONDS = 0.2; {MAIN}"
"""A drain that gives Redis up after a second and not after twenty."""


def restart_postgres(fleet: Fleet) -> None:
    fleet.postgres.stop_immediately()
    fleet.postgres.start()


def restart_redis(fleet: Fleet) -> None:
    fleet.redis.kill()
    fleet.start_redis()


def end_all_sessions(fleet: Fleet) -> None:
    assert fleet.end_sessions() > 0


def restart_both(fleet: Fleet) -> None:
    fleet.postgres.stop_immediately()
    fleet.redis.kill()
    fleet.start_redis()
    fleet.postgres.start()


@pytest.mark.parametrize(
    ("outage", "times"),
    [(restart_postgres, 4), (restart_redis, 4), (end_all_sessions, 10), (restart_both, 2)],
)
def test_outages_under_load_lose_nothing(fleet: Fleet, outage: Callable[[Fleet], None], times: int) -> None:
    roles = [fleet.start_worker(), fleet.start_worker(), fleet.start_publisher()]
    wait_until(lambda: all("worker_started" in r.log or "publisher_active" in r.log for r in roles), "roles")
    with Producer(fleet.redis.url, fleet.keys, season(60_000), per_second=1_500) as producer:
        for _ in range(times):
            before = fleet.applied()
            wait_until(lambda before=before: fleet.applied() > before, "the load to be worked on", 5)
            outage(fleet)

    fleet.wait_until_applied(producer.rated, seconds=10)
    fleet.wait_until_published(producer.rated, seconds=5)
    fleet.audit(producer.pushed)
    assert all(role.alive for role in roles)
    assert fleet.failed_jobs() == 0


@pytest.mark.parametrize("locked", [Fleet.pool_locked, Fleet.ratings_locked])
def test_drain_waits_for_a_lock_that_is_held_longer_than_it_may_wait(fleet: Fleet, locked: Locked) -> None:
    events = season(300)
    worker = fleet.worker()
    fleet.push(raws(events[:100]))
    fleet.wait_until_applied(rated(events[:100]))

    with locked(fleet):
        fleet.push(raws(events[100:]))
        wait_until(lambda: worker.log.count("pool_busy") >= 2, "the second timeout", 10)

    fleet.wait_until_applied(rated(events), seconds=5)
    fleet.publish_rest()
    fleet.audit(events)
    assert fleet.failed_jobs() == 0


def test_drain_gives_up_on_a_frozen_redis_and_the_next_one_goes_on(fleet: Fleet) -> None:
    events = season(300)
    worker = fleet.worker(program=IMPATIENT)
    with fleet.pool_locked():
        fleet.push(raws(events))
        fleet.wait_until_blocked()

        fleet.redis.pause()
    wait_until(lambda: worker.logged("drain_interrupted"), "the drain to give up", 10)
    fleet.redis.resume()

    fleet.wait_until_applied(rated(events), seconds=8)
    fleet.publish_rest()
    fleet.audit(events)
    assert fleet.failed_jobs() == 0
    assert worker.alive


def test_frozen_postgres_is_waited_for(fleet: Fleet) -> None:
    events = season(300)
    worker = fleet.worker()
    fleet.push(raws(events[:100]))
    fleet.wait_until_applied(rated(events[:100]))

    fleet.postgres.pause()
    fleet.push(raws(events[100:]))
    with fleet.client as client:
        wait_until(lambda: client.exists(fleet.keys.bell(POOL)), "the bell to be rung")
    wait_until(lambda: fleet.stranded_jobs()[0] == 0, "the drain to begin")
    fleet.postgres.resume()

    fleet.wait_until_applied(rated(events), seconds=5)
    fleet.publish_rest()
    fleet.audit(events)
    assert worker.alive


def test_board_and_stream_stay_as_they_were_while_postgres_is_away(fleet: Fleet) -> None:
    fleet.start_worker()
    publisher = fleet.start_publisher()
    events = season(400)
    first, rest = events[:200], events[200:]
    fleet.push(raws(first))
    fleet.wait_until_applied(rated(first), 60)
    fleet.wait_until_published(rated(first), 60)
    board, stream = fleet.keys.leaderboard(POOL), fleet.keys.changes(POOL)
    with fleet.client as client:
        before = (client.zrange(board, 0, -1, withscores=True), client.xrange(stream))

        fleet.postgres.stop_immediately()
        fleet.push(raws(rest))
        wait_until(lambda: publisher.logged("publishing_interrupted"), "the publisher to notice")

        assert (client.zrange(board, 0, -1, withscores=True), client.xrange(stream)) == before
    fleet.postgres.start()
    fleet.wait_until_applied(rated(events), 60)
    fleet.wait_until_published(rated(events), 60)
    fleet.audit(events)
