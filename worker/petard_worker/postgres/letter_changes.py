"""What an operator does with dead letters: edit, discard, purge. In short steps, so that no drain waits."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, cast

from petard_worker.postgres.connect import Connection
from petard_worker.postgres.letter_finds import KeptLetter


class Edit(NamedTuple):
    """What a letter is edited into, by whom, and the identity that the event has then."""

    body: bytes
    digest: bytes
    source: str | None
    event_id: str | None
    game: str | None
    actor: str


def save_edit(connection: Connection, letter: KeptLetter, edit: Edit) -> bool:
    """Keep what the letter was edited into beside its body; False if it is no longer as it was read.

    Raises psycopg.errors.UniqueViolation when another letter of the pool was edited into the same.
    """
    sql = """
        UPDATE petard.dead_letter SET
            edited_body = %(body)s, edited_digest = %(digest)s, edited_by = %(actor)s, edited_at = now(),
            source = %(source)s, event_id = %(event_id)s, game = %(game)s
        WHERE pool = %(pool)s AND id = %(id)s AND state = 'open' AND attempts = %(attempts)s
          AND edited_at IS NOT DISTINCT FROM %(seen)s::timestamptz
    """
    return connection.execute(sql, {**edit._asdict(), **as_read(letter)}).rowcount == 1


def drop_edit(connection: Connection, letter: KeptLetter, edit: Edit) -> bool:
    """Let the letter be as it came again; False if it is no longer as it was read."""
    sql = """
        UPDATE petard.dead_letter SET
            edited_body = NULL, edited_digest = NULL, edited_by = NULL, edited_at = NULL,
            source = %(source)s, event_id = %(event_id)s, game = %(game)s
        WHERE pool = %(pool)s AND id = %(id)s AND state = 'open' AND attempts = %(attempts)s
          AND edited_at IS NOT DISTINCT FROM %(seen)s::timestamptz
    """
    return connection.execute(sql, {**edit._asdict(), **as_read(letter)}).rowcount == 1


def as_read(letter: KeptLetter) -> dict[str, object]:
    """Return what tells whether the letter has changed since it was read."""
    return {"pool": letter.pool, "id": letter.id, "attempts": letter.attempts, "seen": letter.edited_at}


def letter_that_says(connection: Connection, pool: str, digest: bytes) -> int | None:
    """Return the id of the letter with these bytes, as they came or edited into them."""
    sql = """
        SELECT id FROM petard.dead_letter WHERE pool = %(pool)s AND digest = %(digest)s
        UNION ALL
        SELECT id FROM petard.dead_letter WHERE pool = %(pool)s AND edited_digest = %(digest)s
        LIMIT 1
    """
    row = connection.execute(sql, {"pool": pool, "digest": digest}).fetchone()
    return None if row is None else cast("int", row[0])


def discard_letters(connection: Connection, ids: Sequence[int], actor: str, reason: str) -> int:
    """Mark those of the letters that are open as done with, and return how many.

    One that is being buried again right now is locked, and skipped: it is to stay open.
    """
    sql = """
        WITH chosen AS (
            SELECT pool, id FROM petard.dead_letter
            WHERE id = ANY(%(ids)s) AND state = 'open'
            FOR NO KEY UPDATE SKIP LOCKED
        )
        UPDATE petard.dead_letter AS letter
        SET state = 'discarded', actor = %(actor)s, discard_reason = %(reason)s, closed = now()
        FROM chosen WHERE letter.pool = chosen.pool AND letter.id = chosen.id
    """
    return connection.execute(sql, {"ids": list(ids), "actor": actor, "reason": reason}).rowcount


class ClosedFilter(NamedTuple):
    """Which closed letters are meant: those closed before a time, of a pool or a state if one is named."""

    before: datetime
    pool: str | None = None
    state: str | None = None


def find_closed(connection: Connection, wanted: ClosedFilter, after: int, limit: int) -> list[int]:
    """Return up to `limit` ids above `after` of letters that are closed, oldest first.

    A letter that was closed when nobody wrote down when goes by when it was seen last.
    """
    sql = """
        SELECT id FROM petard.dead_letter
        WHERE id > %(after)s AND state <> 'open' AND coalesce(closed, last_seen) < %(before)s
          AND (%(pool)s::text IS NULL OR pool = %(pool)s)
          AND (%(state)s::text IS NULL OR state = %(state)s)
        ORDER BY id LIMIT %(limit)s
    """
    rows = connection.execute(sql, {**wanted._asdict(), "after": after, "limit": limit}, binary=True)
    return [cast("int", row[0]) for row in rows]


def count_closed(connection: Connection, wanted: ClosedFilter) -> int:
    """Return how many letters `find_closed` finds in all."""
    sql = """
        SELECT count(*) FROM petard.dead_letter
        WHERE state <> 'open' AND coalesce(closed, last_seen) < %(before)s
          AND (%(pool)s::text IS NULL OR pool = %(pool)s)
          AND (%(state)s::text IS NULL OR state = %(state)s)
    """
    row = connection.execute(sql, wanted._asdict()).fetchone()
    return cast("int", row[0]) if row else 0


def purge_letters(connection: Connection, letters: Sequence[KeptLetter]) -> int:
    """Delete letters that are closed and still have as many attempts; return how many.

    The database does it by a function of the owner's: a worker itself may delete nothing.
    """
    sql = "SELECT petard.purge_dead_letters(%(pools)s::text[], %(ids)s::bigint[], %(attempts)s::integer[])"
    values = {
        "pools": [letter.pool for letter in letters],
        "ids": [letter.id for letter in letters],
        "attempts": [letter.attempts for letter in letters],
    }
    row = connection.execute(sql, values).fetchone()
    return cast("int", row[0]) if row else 0
