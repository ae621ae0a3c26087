"""Seeded chaos on the way in: workers, both servers and their sessions die while game servers push."""

import random
from contextlib import ExitStack

import pytest

from faults.chaos import (
    EVENTS,
    FAULTS,
    SEED,
    Chaos,
    end_sessions,
    freeze_a_worker,
    kill_a_publisher,
    kill_a_worker,
    kill_redis,
    stop_postgres,
)
from faults.fleet import Fleet
from faults.producer import Producer
from faults.seasons import season

SOURCES = 2
PLAYERS = 2_000
REPEAT_SHARE = 0.03
PER_SECOND = 1.5 * EVENTS / FAULTS / SOURCES
SECONDS = 120 + EVENTS / 500 + FAULTS * 10

INTAKE_FAULTS = {
    kill_a_worker: 6,
    freeze_a_worker: 4,
    kill_redis: 5,
    stop_postgres: 4,
    end_sessions: 5,
    kill_a_publisher: 3,
}


@pytest.mark.timeout(SECONDS)
def test_intake_chaos_loses_nothing_and_counts_nothing_twice(fleet: Fleet) -> None:
    chaos = Chaos(fleet, random.Random(SEED))
    seasons = [
        season(EVENTS // SOURCES, seed=SEED + number, players=PLAYERS, repeat_share=REPEAT_SHARE)
        for number in range(SOURCES)
    ]
    chaos.supervise()

    with ExitStack() as stack:
        producers = [
            stack.enter_context(
                Producer(fleet.redis.url, fleet.keys, events, per_second=EVENTS / FAULTS / SOURCES)
            )
            for events in seasons
        ]
        for number in range(FAULTS):
            chaos.let_work(lambda: sum(producer.count for producer in producers), EVENTS * number // FAULTS)
            chaos.strike(INTAKE_FAULTS)
        under_load = not all(producer.finished for producer in producers)
        chaos.calm()
        chaos.wait_for(lambda: all(producer.finished for producer in producers), SECONDS)

    total = sum(producer.rated for producer in producers)
    fleet.wait_until_applied(total)
    fleet.wait_until_published(total)
    fleet.audit(*seasons)
    print(EVENTS, "events,", sum(p.sent_again for p in producers), "sent again,", chaos.counts)  # noqa: T201
    assert under_load
    assert not chaos.unexpected_ends()
    assert fleet.failed_jobs() == 0
