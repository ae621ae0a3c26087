"""As many hostile texts as good events through one worker: it lives, and each ends where it belongs.

`PETARD_HOSTILE_EVENTS` says how many hostile texts there are; there are as many good events. Everything is
made, pushed and checked a little at a time: a million of each need no more memory than a thousand.
"""

import hashlib
import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import psycopg
import pytest

from faults.audit import CHUNK, Audit, Evidence, read_changes, read_ledger, read_ratings
from faults.fleet import POOL, RULES, Fleet, Role, wait_until
from hostile.payloads import NAMES, hostile
from petard_worker.simulate import Expected, Season, simulate_with_labels

EVENTS = int(os.environ.get("PETARD_HOSTILE_EVENTS", "4000"))
SEED = int(os.environ.get("PETARD_HOSTILE_SEED", "1"))
SECONDS = 300 + EVENTS / 20
PATIENCE = 300
STEP = 200
MOST_WAITING = 10_000
FIRST = min(5_000, EVENTS // 2)
"""After so many the worker has seen every class many times, and its memory is looked at first."""
MOST_GROWTH_KB = 50 * 1024
STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class GoodEvents:
    """What an honest game server pushes, made anew whenever somebody goes through it."""

    count: int

    def __iter__(self) -> Iterator[tuple[bytes, Expected]]:
        plan = Season(
            pool=POOL,
            seed=SEED,
            players=2_000,
            games=self.count,
            repeat_share=0,
            hostile_share=0,
            source="/servers/1",
        )
        return simulate_with_labels(plan)


@dataclass
class Mix:
    """Pushes hostile texts and good events, and writes down what must become of the hostile ones."""

    fleet: Fleet
    due: Path
    pushed: int = 0

    def push(self, upto: int) -> Iterator[int]:
        """Push in steps, until so many of each have been, and never far ahead of the worker."""
        with self.fleet.client as client, self.due.open("w") as due:
            key = self.fleet.keys.events(POOL)
            draw = random.Random(SEED)
            good = iter(GoodEvents(upto))
            bad = hostile(SEED, upto)
            while step := list(islice(good, STEP)):
                texts = []
                for one in islice(bad, len(step)):
                    texts.append(one.raw)
                    due.write(f"{hashlib.sha256(one.raw).hexdigest()} {one.reason}\n")
                client.rpush(key, *mixed(draw, texts, [raw for raw, _ in step]))
                self.pushed += len(step)
                wait_until(lambda: client.llen(key) < MOST_WAITING, "the worker to catch up", PATIENCE)
                yield self.pushed


def mixed(draw: random.Random, one: list[bytes], other: list[bytes]) -> list[bytes]:
    """Return both, each in its order, by chance one or the other next."""
    from_one = [True] * len(one) + [False] * len(other)
    draw.shuffle(from_one)
    first, second = iter(one), iter(other)
    return [next(first) if turn else next(second) for turn in from_one]


def resident_kb(role: Role) -> int:
    status = Path(f"/proc/{role.process.pid}/status")
    found = re.search(r"^VmRSS:\s+(\d+) kB$", status.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def check_letters(connection: psycopg.Connection, due: Path) -> Counter[str]:
    """Check that the dead letters are the hostile texts, each once and in order, and return their reasons."""
    sql = "SELECT encode(digest, 'hex'), reason, attempts FROM petard.dead_letter WHERE pool = %s ORDER BY id"
    changed = """
        SELECT count(*) FROM petard.dead_letter
        WHERE octet_length(body) < 65536 AND sha256(body) <> digest OR state <> 'open' OR detail = ''
    """
    reasons: Counter[str] = Counter()
    with due.open() as lines, connection.cursor("letters") as cursor:
        cursor.itersize = CHUNK
        for number, row in enumerate(cursor.execute(sql, (POOL,))):
            digest, reason = next(lines, "none none").split()
            assert row == (digest, reason, 1), (
                f"text {number} ({NAMES[number % len(NAMES)]}): {reason} is due"
            )
            reasons[reason.partition(":")[0]] += 1
        assert next(lines, None) is None, "hostile texts without a dead letter"
    assert connection.execute(changed).fetchone() == (0,)
    return reasons


@pytest.mark.timeout(SECONDS)
@pytest.mark.skipif(not STATUS.exists(), reason="the memory of a process is read from /proc")
def test_hostile_texts_cost_neither_the_worker_nor_a_good_event(fleet: Fleet, tmp_path: Path) -> None:
    worker = fleet.start_worker()
    wait_until(lambda: worker.logged("worker_started"), "the worker to start", PATIENCE)
    mix = Mix(fleet, tmp_path / "due")
    first = 0

    for pushed in mix.push(EVENTS):
        if not first and pushed >= FIRST:
            wait_until(lambda: fleet.waiting() == 0, "the first texts to be worked on", PATIENCE)
            first = resident_kb(worker)
    fleet.wait_until_applied(EVENTS, PATIENCE)
    last = resident_kb(worker)

    assert worker.alive
    assert last - first < MOST_GROWTH_KB
    with psycopg.connect(fleet.postgres.url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reasons = check_letters(connection, mix.due)
        check_good_events(connection)
    assert sum(reasons.values()) == EVENTS
    assert fleet.failed_jobs() == 0
    check_log(worker)
    print(EVENTS, "hostile texts,", first, "kB at first,", last, "kB at last,", dict(reasons))  # noqa: T201


def check_good_events(connection: psycopg.Connection) -> None:
    """Check that the ledger is the good events, all of them in order and nothing else, and what it made."""
    ledger, changes = read_ledger(connection, POOL), read_changes(connection, POOL)
    evidence = Evidence(EVENTS, 0, ledger, changes, read_ratings(connection, POOL), {}, None, None)
    audit = Audit(RULES, evidence, [GoodEvents(EVENTS)])
    for row in evidence.ledger:
        audit.take(row)
    audit.finish()


def check_log(worker: Role) -> None:
    """Check that every line is an event of ours, and that none of them speaks of a failure."""
    with worker.log_file.open() as lines:
        levels = Counter(json.loads(line)["level"] for line in lines)
    assert levels.keys() <= {"info", "debug", "warning"}
    assert levels["warning"] < 10
