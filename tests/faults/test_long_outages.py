"""Postgres away for long under load: events wait in Redis, nothing fails or grows, all is caught up after."""

import os
from pathlib import Path

import pytest

from faults.fleet import Fleet, Role, wait_until
from faults.producer import Producer
from faults.seasons import season

SECONDS = float(os.environ.get("PETARD_OUTAGE_SECONDS", "15"))
PER_SECOND = 500
AGREED = 0.8
"""A producer on a busy machine reaches this much of its rate at least."""
WARM_UP_EVENTS = 2_000
MOST_GROWTH_KB = 20_000
CATCH_UP_PER_SECOND = 1_000


def memory_kb(role: Role) -> int:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{role.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


@pytest.mark.timeout(SECONDS * 3 + 120)
def test_postgres_away_for_long_leaves_a_backlog_and_nothing_else(fleet: Fleet) -> None:
    roles = [fleet.worker(), fleet.worker(), fleet.publisher()]
    events = season(int(PER_SECOND * SECONDS) + WARM_UP_EVENTS, players=1_000)
    with Producer(fleet.redis.url, fleet.keys, events, per_second=PER_SECOND, backlog=1 << 60) as producer:
        wait_until(lambda: fleet.applied() >= WARM_UP_EVENTS, "the work to begin", 60)
        before = [memory_kb(role) for role in roles]
        fleet.postgres.stop_immediately()
        first = producer.count

        wait_until(
            lambda: producer.finished or producer.count - first >= PER_SECOND * SECONDS * AGREED,
            "the outage to last",
            SECONDS * 3,
        )

        backlog = fleet.waiting()
        growth = [memory_kb(role) - was for role, was in zip(roles, before, strict=True)]
        alive = [role.alive for role in roles]
        fleet.postgres.start()
        wait_until(lambda: producer.finished, "the producer to push the rest", SECONDS * 3)
    fleet.wait_until_applied(producer.rated, seconds=15 + backlog / CATCH_UP_PER_SECOND)
    fleet.wait_until_published(producer.rated, seconds=15)
    fleet.audit(producer.pushed)
    print(f"{SECONDS:.0f} s, backlog {backlog}, growth {growth} kB")  # noqa: T201
    assert alive == [True, True, True]
    assert backlog >= PER_SECOND * SECONDS * AGREED * 0.9
    assert max(growth) < MOST_GROWTH_KB
    assert fleet.failed_jobs() == 0
    assert fleet.stranded_jobs()[1] == 0
