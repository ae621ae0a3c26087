"""Seeded chaos on the way out: publishers, both servers and what Redis holds are lost as the ledger grows."""

import random

import pytest

from faults.chaos import (
    EVENTS,
    FAULTS,
    SEED,
    Chaos,
    end_publisher_sessions,
    freeze_a_publisher,
    kill_a_publisher,
    kill_redis,
    stop_postgres,
    wipe_redis,
)
from faults.fleet import Fleet
from faults.producer import InsistentProducer
from faults.seasons import rated, season

GAMES = EVENTS // 4
"""Every wipe has the whole stream published again, so fewer events make as many appends."""
SECONDS = 120 + EVENTS / 500 + FAULTS * 10
CAUGHT_UP_SECONDS = 5 + GAMES / 5_000

PUBLISH_FAULTS = {
    kill_a_publisher: 8,
    wipe_redis: 6,
    kill_redis: 3,
    end_publisher_sessions: 4,
    freeze_a_publisher: 3,
    stop_postgres: 2,
}


@pytest.mark.timeout(SECONDS)
def test_publish_chaos_leaves_streams_equal_to_the_ledger(fleet: Fleet) -> None:
    chaos = Chaos(fleet, random.Random(SEED), workers=1)
    events = season(GAMES, players=500)
    chaos.supervise()

    with InsistentProducer(fleet, events) as producer:
        for number in range(FAULTS):
            chaos.let_work(lambda: producer.applied, rated(events) * number // FAULTS)
            chaos.strike(PUBLISH_FAULTS)
        chaos.calm()
        chaos.wait_for(lambda: producer.finished, SECONDS)

    fleet.wait_until_published(rated(events), seconds=CAUGHT_UP_SECONDS)
    fleet.audit(events)
    print(rated(events), "entries,", chaos.counts)  # noqa: T201
    assert not chaos.unexpected_ends()
