"""A replay that dies at any of its statements and commands, one after the other, and is resumed.

At each of them the process dies before it, dies after it, or the server does it and the answer is lost.
Whatever happens, the letters that are good count once, and those that fail again are touched once by the run.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from faults.fleet import Fleet, wait_until
from integration.arena import apply_all, finished, make_pool
from integration.letters import EVERY
from petard_schema import Keys
from petard_worker.pace import Pace
from petard_worker.postgres.connect import BY_KEY, WORKER_LIMITS, connect_worker
from petard_worker.replay import replay, resume_replay, start_replay

GOOD, BAD = [finished(number) for number in range(1, 5)], [b"junk 1", b"junk 2"]
LETTERS = [GOOD[0], BAD[0], *GOOD[1:3], BAD[1], GOOD[3]]
RATE = 20
"""Two letters a chunk: three chunks."""
PACE = Pace(RATE, sleep=lambda _: None)
MODES = ("dies before", "dies after", "answer lost")


class KilledError(BaseException):
    """The process is dead: nothing catches this, and nothing more is sent."""


@dataclass
class Fate:
    """At which message to the servers it happens, and what."""

    mode: str
    at: int
    said: int = 0
    armed: bool = False
    dead: bool = False
    happened: bool = False

    def due(self) -> bool:
        """Count a message; True when it is the one."""
        if self.dead:
            raise KilledError
        if not self.armed:
            return False
        self.said += 1
        return self.said == self.at and not self.happened

    def strike(self, lost: Exception) -> None:
        """Be dead from now on, or lose the answer."""
        self.happened = True
        if self.mode == "answer lost":
            raise lost
        self.dead = True
        raise KilledError


class MortalConnection(psycopg.Connection[Any]):
    """A session of a process that dies: everything it says to Postgres goes through `wait`."""

    fate: Fate

    def wait(self, *arguments: Any, **options: Any) -> Any:
        due = self.fate.due()
        if due and self.fate.mode == "dies before":
            self.fate.strike(psycopg.OperationalError())
        answer = super().wait(*arguments, **options)
        if due:
            self.pgconn.finish()
            self.fate.strike(psycopg.OperationalError("the answer was lost"))
        return answer


def mortal_redis_connection(fate: Fate) -> type[redis.Connection]:
    """Return connections to Redis of a process that dies."""

    class MortalRedisConnection(redis.Connection):
        due = False

        def send_packed_command(self, *arguments: Any, **options: Any) -> None:
            self.due = fate.due()
            if self.due and fate.mode == "dies before":
                fate.strike(redis.ConnectionError())
            super().send_packed_command(*arguments, **options)

        def read_response(self, *arguments: Any, **options: Any) -> Any:
            answer = super().read_response(*arguments, **options)
            if self.due:
                self.due = False
                self.disconnect()
                fate.strike(redis.ConnectionError("the answer was lost"))
            return answer

    return MortalRedisConnection


@dataclass
class Process:
    """What an operator started: both connections, and what happens to them."""

    fleet: Fleet
    fate: Fate

    def run(self) -> None:
        """Replay everything, as far as it goes."""
        connection = MortalConnection.connect(
            self.fleet.postgres.url,
            autocommit=True,
            application_name="petard mortal",
            options=WORKER_LIMITS + BY_KEY,
        )
        connection.fate = self.fate
        pool = redis.ConnectionPool.from_url(
            self.fleet.redis.url,
            connection_class=mortal_redis_connection(self.fate),
            retry=Retry(NoBackoff(), 3),
        )
        client = redis.Redis(connection_pool=pool)
        try:
            connection.execute("SET ROLE petard_worker")
            client.ping()
            self.fate.armed = True
            run = start_replay(connection, EVERY, "all", "ann", RATE)
            for _ in replay(connection, client, self.fleet.keys, run, PACE):
                pass
        except (KilledError, psycopg.OperationalError, redis.ConnectionError):
            assert self.fate.happened
        finally:
            self.fate.armed = self.fate.dead = False
            connection.pgconn.finish()
            client.close()
            pool.disconnect()


@pytest.fixture
def letters(fleet: Fleet) -> Iterator[Callable[[], None]]:
    """Puts everything back to where a pool was made after its events had been refused."""
    fleet.keys = Keys("faults")
    with fleet.owner() as owner, fleet.client as client, connect_worker(fleet.postgres.url, "test") as worker:

        def reset() -> None:
            client.flushall()
            owner.execute("""
                TRUNCATE petard.pool, petard.pool_version, petard.ledger, petard.rating, petard.change,
                    petard.dead_letter, petard.dead_letter_attempt, petard.replay_run, petard.replay_letter
                    RESTART IDENTITY
            """)
            apply_all(worker, client, fleet.keys, LETTERS)
            make_pool(worker)

        yield reset


def recover(fleet: Fleet) -> None:
    """Do what an operator does: resume, or start again if nothing had been begun."""
    with fleet.owner() as owner:
        gone = "SELECT FROM pg_stat_activity WHERE application_name = 'petard mortal'"
        wait_until(lambda: owner.execute(gone).fetchone() is None, "the dead process's session to end")
        begun = owner.execute("SELECT FROM petard.replay_run").fetchone()
    with connect_worker(fleet.postgres.url, "test") as worker, fleet.client as client:
        run = resume_replay(worker)
        if run is None and begun is None:
            run = start_replay(worker, EVERY, "all", "ann", RATE)
        if run is not None:
            list(replay(worker, client, fleet.keys, run, PACE))


def drain(fleet: Fleet) -> None:
    with connect_worker(fleet.postgres.url, "test") as worker, fleet.client as client:
        apply_all(worker, client, fleet.keys)


def found(fleet: Fleet) -> tuple[object, ...]:
    """Return the ledger, every letter, every turn, and whether the run is finished."""
    with fleet.owner() as owner:
        ledger = owner.execute("SELECT event_id FROM petard.ledger ORDER BY seq").fetchall()
        kept = owner.execute("SELECT state, attempts FROM petard.dead_letter ORDER BY id").fetchall()
        turns = owner.execute("SELECT state FROM petard.replay_letter ORDER BY run, letter").fetchall()
        runs = owner.execute("SELECT finished IS NOT NULL FROM petard.replay_run").fetchall()
    return ledger, kept, turns, runs


DUE = (
    [(f"e-{number}",) for number in range(1, 5)],
    [("open", 2) if raw in BAD else ("replayed", 1) for raw in LETTERS],
    [("sent",)] * len(LETTERS),
    [(True,)],
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("drained_first", [True, False], ids=["drained before the resume", "drained after"])
@pytest.mark.parametrize("mode", MODES)
def test_replay_that_dies_anywhere_and_is_resumed_touches_each_letter_once(
    fleet: Fleet, letters: Callable[[], None], mode: str, drained_first: bool
) -> None:
    for at in count(1):
        letters()
        fate = Fate(mode, at)
        Process(fleet, fate).run()
        if drained_first:
            drain(fleet)

        recover(fleet)
        drain(fleet)

        assert found(fleet) == DUE, f"{mode} at message {at}"
        if not fate.happened:
            break
    # start 6, chunks 3 × 4, finish 3: fewer would mean that something is not seen.
    assert at > 20
