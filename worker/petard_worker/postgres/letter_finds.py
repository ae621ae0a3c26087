"""Which dead letters are there? Found by what is known of them, one by one or in groups."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString, NamedTuple, cast

from petard_worker.postgres.connect import Connection


class KeptLetter(NamedTuple):
    """A dead letter as it is kept, without its body: that may be large."""

    id: int
    pool: str
    reason: str
    detail: str
    attempts: int
    first_seen: datetime
    last_seen: datetime
    state: str
    actor: str | None
    source: str | None
    event_id: str | None
    game: str | None
    traceback_hash: str | None
    version: str | None
    worker: str | None
    closed: datetime | None
    discard_reason: str | None
    edited_by: str | None
    edited_at: datetime | None


class LetterText(NamedTuple):
    """The bytes of a dead letter as they came and as they were edited, and a traceback of ours."""

    body: bytes
    edited: bytes | None
    traceback: str | None


class LetterGroup(NamedTuple):
    """Dead letters that were refused for the same reason, or by the same exception of ours."""

    pool: str
    reason: str
    traceback_hash: str | None
    letters: int
    oldest: datetime
    newest: datetime


FITS: LiteralString = """
        WHERE (%(pool)s::text IS NULL OR pool = %(pool)s)
          AND (%(reason)s::text IS NULL OR reason = %(reason)s OR split_part(reason, ':', 1) = %(reason)s)
          AND (%(state)s::text IS NULL OR state = %(state)s)
          AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s))
          AND (%(source)s::text IS NULL OR source = %(source)s)
          AND (%(traceback_hash)s::text IS NULL OR traceback_hash = %(traceback_hash)s)
          AND (%(since)s::timestamptz IS NULL OR last_seen >= %(since)s)
          AND (%(until)s::timestamptz IS NULL OR last_seen < %(until)s)
"""
"""The condition of every statement that takes a LetterFilter.

A reason without a path means all paths: `bad_field` finds `bad_field:time` too.
"""


class LetterFilter(NamedTuple):
    """Which dead letters are meant; what is None does not restrict.

    `since` and `until` go by when a letter was seen last: from the one on, and before the other.
    """

    pool: str | None = None
    reason: str | None = None
    state: str | None = None
    ids: Sequence[int] | None = None
    source: str | None = None
    traceback_hash: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def values(self) -> dict[str, object]:
        """Return the parameters of the statements that filter."""
        return {**self._asdict(), "ids": None if self.ids is None else list(self.ids)}


def find_ids(connection: Connection, wanted: LetterFilter, limit: int | None = None) -> list[int]:
    """Return the ids of the dead letters that are wanted, oldest first, `limit` of them or all."""
    start: LiteralString = "SELECT id FROM petard.dead_letter"
    sql = start + FITS + "ORDER BY id LIMIT %(limit)s::bigint"
    rows = connection.execute(sql, {**wanted.values(), "limit": limit}, binary=True)
    return [cast("int", row[0]) for row in rows]


def group_letters(connection: Connection, wanted: LetterFilter) -> list[LetterGroup]:
    """Return how many of the wanted letters there are of each kind, the largest groups first.

    With `state` open, and nothing but pool, reason, traceback and times to restrict, no letter is read: the
    counts come from one index.
    """
    start: LiteralString = """
        SELECT pool, reason, traceback_hash, count(*), min(first_seen), max(last_seen) FROM petard.dead_letter
    """
    sql = start + FITS + "GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2, 3"
    rows = connection.execute(sql, wanted.values(), binary=True, prepare=False)
    return [LetterGroup(*cast("LetterGroup", row)) for row in rows]


def read_letters(connection: Connection, ids: Sequence[int]) -> list[KeptLetter]:
    """Return dead letters by their ids, oldest first."""
    sql = """
        SELECT id, pool, reason, detail, attempts, first_seen, last_seen, state, actor, source, event_id,
               game, traceback_hash, version, worker, closed, discard_reason, edited_by, edited_at
        FROM petard.dead_letter WHERE id = ANY(%(ids)s) ORDER BY id
    """
    rows = connection.execute(sql, {"ids": list(ids)}, binary=True)
    return [KeptLetter(*cast("KeptLetter", row)) for row in rows]


def read_texts(connection: Connection, ids: Sequence[int]) -> dict[int, LetterText]:
    """Return the bytes of dead letters by their ids; those that were purged meanwhile are missing."""
    sql = "SELECT id, body, edited_body, traceback FROM petard.dead_letter WHERE id = ANY(%(ids)s)"
    rows = connection.execute(sql, {"ids": list(ids)}, binary=True)
    return {cast("int", row[0]): LetterText(*cast("LetterText", row[1:])) for row in rows}
