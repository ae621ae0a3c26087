"""What happened to a dead letter: earlier attempts, replays, and what became of its event since."""

from datetime import datetime
from typing import NamedTuple, cast

from petard_worker.postgres.connect import Connection
from petard_worker.postgres.letter_finds import KeptLetter


class Attempt(NamedTuple):
    """One attempt of a letter: how it ended, and what was done with the letter before it came back."""

    attempt: int
    at: datetime
    reason: str
    detail: str
    traceback_hash: str | None
    version: str | None
    worker: str | None
    state: str
    actor: str | None
    closed: datetime | None
    discard_reason: str | None


class LetterReplay(NamedTuple):
    """A replay that had the letter among its own."""

    run: int
    actor: str
    state: str
    at: datetime | None


class Counted(NamedTuple):
    """A ledger entry: of the letter's event, or the one by which its game counts."""

    seq: int
    source: str
    event_id: str
    outcome: str
    reason: str | None
    received: datetime


class LaterLetter(NamedTuple):
    """Another dead letter of the same event."""

    id: int
    pool: str
    reason: str
    state: str
    last_seen: datetime


class Since(NamedTuple):
    """What became of a letter's event and game."""

    event: Counted | None
    game: Counted | None
    letters: list[LaterLetter]


def read_attempts(connection: Connection, letter: KeptLetter) -> list[Attempt]:
    """Return what is kept of the letter's attempts, oldest first; the last one is how the letter stands.

    Of more than 21 the first ten are kept and the last eleven: the numbers of the attempts show the gap.
    """
    sql = """
        SELECT attempt, at, reason, detail, traceback_hash, version, worker, state, actor, closed,
               discard_reason
        FROM petard.dead_letter_attempt WHERE pool = %(pool)s AND letter = %(id)s ORDER BY attempt
    """
    rows = connection.execute(sql, {"pool": letter.pool, "id": letter.id}, binary=True)
    newest = Attempt(
        letter.attempts,
        letter.last_seen,
        *(letter.reason, letter.detail, letter.traceback_hash, letter.version, letter.worker),
        *(letter.state, letter.actor, letter.closed, letter.discard_reason),
    )
    return [*(Attempt(*cast("Attempt", row)) for row in rows), newest]


def read_replays(connection: Connection, letter: KeptLetter) -> list[LetterReplay]:
    """Return the replays that had this letter, oldest first."""
    sql = """
        SELECT run, actor, state, at
        FROM petard.replay_letter JOIN petard.replay_run USING (pool, run)
        WHERE pool = %(pool)s AND letter = %(id)s ORDER BY run
    """
    rows = connection.execute(sql, {"pool": letter.pool, "id": letter.id}, binary=True)
    return [LetterReplay(*cast("LetterReplay", row)) for row in rows]


def read_since(connection: Connection, letter: KeptLetter) -> Since:
    """Return whether the letter's event or game has counted, and which other letters its event has."""
    return Since(
        counted_event(connection, letter), counted_game(connection, letter), other_letters(connection, letter)
    )


def counted_event(connection: Connection, letter: KeptLetter) -> Counted | None:
    """Return the ledger entry of the letter's event, if its identity is known and has counted."""
    sql = """
        SELECT seq, source, event_id, outcome, reason, received FROM petard.ledger
        WHERE pool = %(pool)s AND event_id = %(event_id)s AND source = %(source)s
    """
    row = connection.execute(sql, letter._asdict(), binary=True).fetchone()
    return None if row is None else Counted(*cast("Counted", row))


def counted_game(connection: Connection, letter: KeptLetter) -> Counted | None:
    """Return the ledger entry by which the letter's game counts."""
    sql = """
        SELECT seq, source, event_id, outcome, reason, received FROM petard.ledger
        WHERE pool = %(pool)s AND game = %(game)s AND counts
    """
    row = connection.execute(sql, letter._asdict(), binary=True).fetchone()
    return None if row is None else Counted(*cast("Counted", row))


def other_letters(connection: Connection, letter: KeptLetter) -> list[LaterLetter]:
    """Return the other dead letters of the same event, in any pool, oldest first; at most a hundred."""
    sql = """
        SELECT id, pool, reason, state, last_seen FROM petard.dead_letter
        WHERE event_id = %(event_id)s AND source = %(source)s AND id <> %(id)s ORDER BY id LIMIT 100
    """
    rows = connection.execute(sql, letter._asdict(), binary=True)
    return [LaterLetter(*cast("LaterLetter", row)) for row in rows]
