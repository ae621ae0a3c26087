"""Replays of dead letters as they are kept: which letters a run has, how far it is, and who may work on it.

A run has its letters from the start on: one row for each letter and one for each pool. Whoever works on it
holds the lock of every pool of the run on their session, so the locks die with the process.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, LiteralString, NamedTuple, cast
from uuid import UUID

from petard_worker.postgres.connect import Connection
from petard_worker.postgres.dead_letters import MAX_BODY
from petard_worker.postgres.letter_finds import FITS, LetterFilter

REPLAY_LOCKS = 0x7065_7461_7266
"""Seeds the hash of a pool's name, so that the lock is not one that means something else."""

Done = Literal["sent", "closed", "cut"]


class ReplayRun(NamedTuple):
    """One pool of a run, and how far it is."""

    run: int
    pool: str
    actor: str
    chosen: str
    rate: int
    letters: int
    token: UUID
    started: datetime
    finished: datetime | None
    locked: bool
    """Somebody is working on it, or on the pool's next run."""
    sent: int
    waiting: int


class NextLetter(NamedTuple):
    """A letter whose turn it is: attempts and digest as at its first turn, state and body as they are now."""

    id: int
    pool: str
    attempts: int | None
    digest: bytes | None
    state: str | None
    body: bytes | None
    cut: bool | None


class DoneLetter(NamedTuple):
    """What became of a letter in its turn."""

    letter: NextLetter
    done: Done


def try_lock_pool(connection: Connection, pool: str) -> bool:
    """Return whether this session alone replays letters of the pool now; the lock dies with the session."""
    sql = "SELECT pg_try_advisory_lock(hashtextextended(%(pool)s, %(seed)s))"
    return connection.execute(sql, {"pool": pool, "seed": REPLAY_LOCKS}).fetchone() == (True,)


def unlock_pool(connection: Connection, pool: str) -> None:
    """Let others replay letters of the pool."""
    sql = "SELECT pg_advisory_unlock(hashtextextended(%(pool)s, %(seed)s))"
    connection.execute(sql, {"pool": pool, "seed": REPLAY_LOCKS})


def next_run_number(connection: Connection) -> int:
    """Return the number of a new run."""
    row = connection.execute("SELECT nextval('petard.replay_run_number')").fetchone()
    assert row is not None
    return cast("int", row[0])


def choose_letters(connection: Connection, run: int, pools: Sequence[str], wanted: LetterFilter) -> int:
    """Fix the letters of a run: those in these pools that are wanted now. Return how many they are."""
    start: LiteralString = """
        INSERT INTO petard.replay_letter (pool, letter, run)
        SELECT pool, id, %(run)s FROM petard.dead_letter
    """
    sql = start + FITS + "AND pool = ANY(%(pools)s)"
    return connection.execute(sql, {**wanted.values(), "run": run, "pools": list(pools)}).rowcount


class NewRun(NamedTuple):
    """What is written down of a run at its start."""

    run: int
    token: UUID
    actor: str
    chosen: str
    rate: int


def insert_run(connection: Connection, new: NewRun) -> None:
    """Write down a run whose letters are fixed; raises UniqueViolation if a pool has an unfinished one."""
    sql = """
        INSERT INTO petard.replay_run (pool, run, actor, chosen, rate, letters, token)
        SELECT pool, %(run)s, %(actor)s, %(chosen)s, %(rate)s, count(*), %(token)s
        FROM petard.replay_letter WHERE run = %(run)s GROUP BY pool
    """
    connection.execute(sql, new._asdict())


def read_runs(connection: Connection, *, unfinished: bool, limit: int = 100) -> list[ReplayRun]:
    """Return the newest runs, all or the unfinished ones, newest first, one row for each of their pools."""
    sql = """
        SELECT found.run, found.pool, actor, chosen, rate, letters, token, started, finished,
               EXISTS (
                   SELECT FROM pg_locks
                   WHERE locktype = 'advisory' AND granted AND objsubid = 1
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                     AND (classid::bigint << 32) | objid::bigint = hashtextextended(found.pool, %(seed)s)
               ),
               progress.sent, progress.waiting
        FROM (
            SELECT * FROM petard.replay_run
            WHERE finished IS NULL OR NOT %(unfinished)s ORDER BY run DESC, pool LIMIT %(limit)s
        ) AS found
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE state = 'sent') AS sent,
                   count(*) FILTER (WHERE state = 'waiting') AS waiting
            FROM petard.replay_letter WHERE run = found.run AND pool = found.pool
        ) AS progress
        ORDER BY found.run DESC, found.pool
    """
    values = {"seed": REPLAY_LOCKS, "unfinished": unfinished, "limit": limit}
    rows = connection.execute(sql, values, binary=True)
    return [ReplayRun(*cast("ReplayRun", row)) for row in rows]


def take_turns(connection: Connection, run: int, after: int, limit: int) -> list[NextLetter]:
    """Return the next letters of a run above the id `after`, in the order of their ids.

    How a letter stands in its first turn is written down before it is sent: whoever goes on with the run
    after a kill knows from it whether the letter has come back meanwhile, or was edited.
    """
    sql = """
        WITH next AS (
            SELECT pool, letter, run FROM petard.replay_letter
            WHERE run = %(run)s AND letter > %(after)s AND state = 'waiting' ORDER BY letter LIMIT %(limit)s
        ), noted AS (
            UPDATE petard.replay_letter AS turn SET
                attempts = coalesce(turn.attempts, letter.attempts),
                digest = coalesce(turn.digest, letter.edited_digest, letter.digest)
            FROM next JOIN petard.dead_letter AS letter ON letter.pool = next.pool AND letter.id = next.letter
            WHERE turn.pool = next.pool AND turn.letter = next.letter AND turn.run = next.run
            RETURNING turn.pool, turn.letter, turn.attempts, turn.digest
        )
        SELECT next.letter, next.pool, noted.attempts, noted.digest, letter.state,
               coalesce(letter.edited_body, letter.body),
               letter.edited_body IS NULL AND octet_length(letter.body) = %(most)s
                   AND sha256(letter.body) <> letter.digest
        FROM next
        LEFT JOIN noted ON noted.pool = next.pool AND noted.letter = next.letter
        LEFT JOIN petard.dead_letter AS letter ON letter.pool = next.pool AND letter.id = next.letter
        ORDER BY next.letter
    """
    values = {"run": run, "after": after, "limit": limit, "most": MAX_BODY}
    rows = connection.execute(sql, values, binary=True)
    return [NextLetter(*cast("NextLetter", row)) for row in rows]


def end_turns(connection: Connection, run: int, actor: str, letters: Sequence[DoneLetter]) -> None:
    """Write down what became of letters in their turn, and mark those that were sent as replayed.

    One that came back since, or was edited, stays open. So does one that is being buried again right now: it
    is locked, and skipped.
    """
    sql = """
        WITH turn AS (
            SELECT * FROM unnest(
                %(pools)s::text[], %(ids)s::bigint[], %(attempts)s::integer[], %(digests)s::bytea[],
                %(done)s::text[]
            ) AS turn (pool, id, attempts, digest, done)
        ), sent AS (
            SELECT letter.pool, letter.id
            FROM turn JOIN petard.dead_letter AS letter ON letter.pool = turn.pool AND letter.id = turn.id
            WHERE turn.done = 'sent' AND letter.state = 'open' AND letter.attempts = turn.attempts
              AND coalesce(letter.edited_digest, letter.digest) = turn.digest
            FOR NO KEY UPDATE OF letter SKIP LOCKED
        ), closed AS (
            UPDATE petard.dead_letter AS letter SET state = 'replayed', actor = %(actor)s, closed = now()
            FROM sent WHERE letter.pool = sent.pool AND letter.id = sent.id
        )
        UPDATE petard.replay_letter AS mine SET state = turn.done, at = clock_timestamp()
        FROM turn WHERE mine.pool = turn.pool AND mine.letter = turn.id AND mine.run = %(run)s
    """
    values = {
        "run": run,
        "actor": actor,
        "pools": [done.letter.pool for done in letters],
        "ids": [done.letter.id for done in letters],
        "attempts": [done.letter.attempts for done in letters],
        "digests": [done.letter.digest for done in letters],
        "done": [done.done for done in letters],
    }
    connection.execute(sql, values)


def finish_run(connection: Connection, run: int) -> None:
    """Let the pools of a run have another one; none of its letters may be waiting any more."""
    sql = "UPDATE petard.replay_run SET finished = now() WHERE run = %(run)s AND finished IS NULL"
    connection.execute(sql, {"run": run})


def drop_waiting(connection: Connection, run: int) -> int:
    """Take the letters that still wait out of a run, and return how many they were."""
    sql = """
        UPDATE petard.replay_letter SET state = 'dropped', at = clock_timestamp()
        WHERE run = %(run)s AND state = 'waiting'
    """
    return connection.execute(sql, {"run": run}).rowcount
