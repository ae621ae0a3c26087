"""`petard dead replay --all`, killed again and again while traffic goes on: nothing lost, nothing twice.

Three in ten of the letters fail again, and each of them is touched once by the run, however often it is
resumed.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import psycopg
import pytest

from faults.fleet import MAIN, Fleet, chunks, wait_until
from integration.arena import finished
from petard_worker.apply import apply_batch
from petard_worker.breaker import Breaker
from petard_worker.intake import Intake
from petard_worker.pace import MOST_CAUGHT_UP_SECONDS
from petard_worker.postgres import pools
from petard_worker.postgres.connect import connect_worker
from petard_worker.ratings.pool_rules import pool_rules

LETTERS = int(os.environ.get("PETARD_REPLAY_LETTERS", "3000"))
RATE = int(os.environ.get("PETARD_REPLAY_RATE", "500"))
KILL_SECONDS = float(os.environ.get("PETARD_REPLAY_KILL_SECONDS", "2"))
LIVE_PER_SECOND = 100
WARM_UP = timedelta(seconds=0.5)
LATER = "later"
SECONDS = 120 + 4 * LETTERS / RATE + LETTERS / 200


def fails_again(number: int) -> bool:
    return number % 10 in {2, 5, 8}


def letter(number: int) -> bytes:
    return finished(number, f"p-{number % 97}", f"q-{number % 89}", pool=LATER)


def other_outcome(number: int) -> bytes:
    """Another report of the game, by which it counts before its letter is replayed."""
    return finished(number, f"q-{number % 89}", f"p-{number % 97}", pool=LATER).replace(b'"e-', b'"first-')


def live(number: int) -> bytes:
    return finished(number, f"p-{number % 97}", f"q-{number % 89}", pool=LATER).replace(b'"e-', b'"live-')


def apply_at_once(fleet: Fleet, events: list[bytes]) -> None:
    """Push events to the pool and apply them without a worker process."""
    with fleet.client as client, connect_worker(fleet.postgres.url, "test") as connection:
        for chunk in chunks(events, 500):
            client.rpush(fleet.keys.events(LATER), *chunk)
        intake, breaker = Intake(client, fleet.keys, LATER), Breaker()
        while apply_batch(connection, intake, breaker, 500).events:
            pass


@dataclass
class Traffic:
    """Games of the same pool that go on being played."""

    fleet: Fleet
    pushed: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        with self.fleet.client as client:
            while not self.stop.wait(1 / LIVE_PER_SECOND):
                client.rpush(self.fleet.keys.events(LATER), live(LETTERS + 1 + self.pushed))
                self.pushed += 1


@contextmanager
def traffic(fleet: Fleet) -> Iterator[Traffic]:
    played = Traffic(fleet)
    thread = threading.Thread(target=played.run)
    thread.start()
    try:
        yield played
    finally:
        played.stop.set()
        thread.join()


def start_replay(fleet: Fleet, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PETARD_")},
        "PETARD_DATABASE_URL": fleet.postgres.url,
        "PETARD_REDIS_URL": fleet.redis.url,
        "PETARD_KEY_PREFIX": fleet.keys.prefix,
    }
    command = [sys.executable, "-c", MAIN, "dead", "replay", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def sent(owner: psycopg.Connection) -> int:
    row = owner.execute("SELECT count(*) FROM petard.replay_letter WHERE state <> 'waiting'").fetchone()
    assert row is not None
    return int(row[0])


def replay_killed_again_and_again(fleet: Fleet, owner: psycopg.Connection) -> list[datetime]:
    """Replay all letters, killing whoever does it after some seconds; return the times of the kills."""
    kills: list[datetime] = []
    arguments = ["--all", "--yes", "--rate", str(RATE)]
    while True:
        process = start_replay(fleet, *arguments)
        wait_until_it_works(owner, process)
        try:
            code = process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            wait_until(lambda: no_command(owner), "the dead process's session to end")
            (now,) = owner.execute("SELECT clock_timestamp()").fetchone() or (None,)
            kills.append(now)
            if finished_run(owner):  # killed on its way out
                return kills
            arguments = ["--resume"]
            continue
        said = process.communicate()[1]
        assert code == 0, said
        return kills


def wait_until_it_works(owner: psycopg.Connection, process: subprocess.Popen[bytes]) -> None:
    before = sent(owner)
    wait_until(lambda: sent(owner) > before or process.poll() is not None, "the replay to begin", 60)


def finished_run(owner: psycopg.Connection) -> bool:
    return owner.execute("SELECT FROM petard.replay_run WHERE finished IS NULL").fetchone() is None


def no_command(owner: psycopg.Connection) -> bool:
    sql = "SELECT FROM pg_stat_activity WHERE application_name = 'petard command'"
    return owner.execute(sql).fetchone() is None


def measured_rate(owner: psycopg.Connection, kills: list[datetime]) -> float:
    """Return how many letters a second had their turn, from the first to the last turn of each process.

    The turns of a chunk have one time, so the first chunk only starts the clock; and not the very first one
    of a process, which is late by what it takes to begin, and caught up with.
    """
    rows = owner.execute("SELECT at, count(*) FROM petard.replay_letter GROUP BY 1 ORDER BY 1").fetchall()
    edges = [*kills, datetime.max.replace(tzinfo=rows[0][0].tzinfo)]
    letters, seconds = 0, 0.0
    for start, end in zip([rows[0][0], *kills], edges, strict=True):
        mine = [(at, count) for at, count in rows if start <= at < end]
        mine = [(at, count) for at, count in mine if at >= mine[0][0] + WARM_UP]
        if mine:
            letters += sum(count for _, count in mine[1:])
            seconds += (mine[-1][0] - mine[0][0]).total_seconds()
    return letters / seconds


@pytest.mark.timeout(SECONDS)
def test_replay_killed_again_and_again_loses_nothing_and_touches_each_letter_once(
    fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = range(1, LETTERS + 1)
    apply_at_once(fleet, [letter(number) for number in numbers])  # no such pool
    with connect_worker(fleet.postgres.url, "test") as connection:
        assert pools.create_pool(connection, LATER, "glicko", pool_rules("glicko", {}).parameters(), {})
    apply_at_once(fleet, [other_outcome(number) for number in numbers if fails_again(number)])
    for _ in range(2):
        fleet.start_worker()
    wait_until(lambda: all(role.logged("worker_started") for role in fleet.roles), "both workers", 120)

    started = time.monotonic()
    with fleet.owner() as owner, traffic(fleet) as played:
        kills = replay_killed_again_and_again(fleet, owner)
    took = time.monotonic() - started

    with fleet.owner() as owner, fleet.client as client:
        wait_until(lambda: not client.llen(fleet.keys.events(LATER)), "an empty list", 60)
        rate = measured_rate(owner, kills)
        report = f"{LETTERS} letters, {len(kills)} kills, {played.pushed} live events, {took:.1f} s,"
        with capsys.disabled():
            print(report, f"{rate:.1f}/s of {RATE}/s")  # noqa: T201
        check_letters(owner)
        check_ledger(owner, played.pushed)
    assert len(kills) >= 2
    # Each process may catch up with a moment that it missed; else none is faster than the cap. A machine that
    # is busy with other tests may be slower.
    caught_up = RATE * MOST_CAUGHT_UP_SECONDS * (len(kills) + 1)
    assert rate <= 1.05 * RATE + caught_up * RATE / LETTERS


def check_letters(owner: psycopg.Connection) -> None:
    """Check that each letter had one turn, and that exactly those that fail again are open."""
    rows = owner.execute("SELECT state, attempts FROM petard.dead_letter ORDER BY id").fetchall()
    due = [("open", 2) if fails_again(number) else ("replayed", 1) for number in range(1, LETTERS + 1)]
    wrong = {
        number: row for number, (row, right) in enumerate(zip(rows, due, strict=True), 1) if row != right
    }
    assert not wrong, f"{len(wrong)} letters: {list(wrong.items())[:5]}"
    runs = owner.execute("SELECT letters, finished IS NOT NULL FROM petard.replay_run").fetchall()
    turns = owner.execute("SELECT state, count(*) FROM petard.replay_letter GROUP BY 1").fetchall()
    assert (runs, turns) == ([(LETTERS, True)], [("sent", LETTERS)])


def check_ledger(owner: psycopg.Connection, played: int) -> None:
    """Check that every event that should has counted, once, in a ledger without a gap."""
    sql = "SELECT event_id, outcome FROM petard.ledger WHERE pool = %s ORDER BY seq"
    rows = owner.execute(sql, (LATER,)).fetchall()
    numbers = range(1, LETTERS + 1)
    due = {f"first-{number}" for number in numbers if fails_again(number)}
    due |= {f"e-{number}" for number in numbers if not fails_again(number)}
    due |= {f"live-{number}" for number in range(LETTERS + 1, LETTERS + 1 + played)}
    assert {event_id for event_id, _ in rows} == due
    assert len(rows) == len(due)
    assert {outcome for _, outcome in rows} == {"rated"}
    replayed = [event_id for event_id, _ in rows if event_id.startswith("e-")]
    assert replayed == sorted(replayed, key=lambda event_id: int(event_id[2:])), "not in the order of the ids"
    seq = owner.execute("SELECT seq FROM petard.pool WHERE name = %s", (LATER,)).fetchone()
    assert seq == (len(rows),)
