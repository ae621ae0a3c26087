"""The dead_letter table: events that could not be accepted, byte by byte, with the reason."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, cast

from petard_schema import EventRefused, read_identity
from petard_worker.postgres.columns import Kinds, byteas, columns, int4s, texts
from petard_worker.postgres.connect import Connection

MAX_TEXT = 1_000
MAX_BODY = 64 * 1024
"""Four times what an event may have; of a larger body the start and the digest are kept."""


class DeadLetter(NamedTuple):
    """An event to bury."""

    digest: bytes
    body: bytes
    source: str | None
    event_id: str | None
    game: str | None
    reason: str
    detail: str


LETTER: Kinds = {
    "digest": byteas,
    "body": byteas,
    "source": texts,
    "event_id": texts,
    "game": texts,
    "reason": texts,
    "detail": texts,
}


def dead_letter(raw: bytes, refused: EventRefused) -> DeadLetter:
    """Return the dead letter of an event that was refused."""
    identity = read_identity(raw)
    cut = f"; kept are the first {MAX_BODY} bytes" if len(raw) > MAX_BODY else ""
    return DeadLetter(
        hashlib.sha256(raw).digest(),
        raw[:MAX_BODY],
        identity.source,
        identity.id,
        identity.game,
        storable(refused.reason),
        storable(refused.detail) + cut,
    )


def storable(text: str) -> str:
    """Return the text without what Postgres cannot store, and not too long."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "?")[:MAX_TEXT]


def bury(connection: Connection, pool: str, letters: Sequence[DeadLetter]) -> None:
    """Write dead letters; the same bytes again count as another attempt of the same letter."""
    sql = """
        INSERT INTO petard.dead_letter AS letter
            (pool, digest, body, source, event_id, game, reason, detail, attempts)
        SELECT %(pool)s, digest, body, source, event_id, game, reason, detail, attempts
        FROM unnest(
            %(digest)b::bytea[], %(body)b::bytea[], %(source)b::text[], %(event_id)b::text[],
            %(game)b::text[], %(reason)b::text[], %(detail)b::text[], %(attempts)b::integer[]
        ) AS entry (digest, body, source, event_id, game, reason, detail, attempts)
        ON CONFLICT (pool, digest) DO UPDATE SET
            reason = excluded.reason, detail = excluded.detail, last_seen = excluded.last_seen,
            attempts = letter.attempts + excluded.attempts, state = 'open', actor = NULL
    """
    attempts: dict[bytes, int] = {}
    latest: dict[bytes, DeadLetter] = {}
    for letter in letters:
        attempts[letter.digest] = attempts.get(letter.digest, 0) + 1
        latest[letter.digest] = letter
    counts = int4s(attempts[digest] for digest in latest)
    values = {"pool": pool, "attempts": counts, **columns(LETTER, list(latest.values()))}
    connection.execute(sql, values)


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


class OpenLetter(NamedTuple):
    """What a replay needs of a dead letter."""

    pool: str
    id: int
    attempts: int
    body: bytes


class LetterFilter(NamedTuple):
    """Which dead letters are meant; what is None does not restrict."""

    pool: str | None = None
    reason: str | None = None
    state: str | None = None
    ids: Sequence[int] | None = None


def find_ids(connection: Connection, wanted: LetterFilter, limit: int | None = None) -> list[int]:
    """Return the ids of the dead letters that are wanted, oldest first, `limit` of them or all.

    A reason without a path means all paths: `bad_field` finds `bad_field:time` too.
    """
    sql = """
        SELECT id FROM petard.dead_letter
        WHERE (%(pool)s::text IS NULL OR pool = %(pool)s)
          AND (%(reason)s::text IS NULL OR reason = %(reason)s OR split_part(reason, ':', 1) = %(reason)s)
          AND (%(state)s::text IS NULL OR state = %(state)s)
          AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s))
        ORDER BY id LIMIT %(limit)s::bigint
    """
    ids = None if wanted.ids is None else list(wanted.ids)
    rows = connection.execute(sql, {**wanted._asdict(), "ids": ids, "limit": limit}, binary=True)
    return [cast("int", row[0]) for row in rows]


def read_letters(connection: Connection, ids: Sequence[int]) -> list[KeptLetter]:
    """Return dead letters by their ids, oldest first."""
    sql = """
        SELECT id, pool, reason, detail, attempts, first_seen, last_seen, state, actor, source, event_id, game
        FROM petard.dead_letter WHERE id = ANY(%(ids)s) ORDER BY id
    """
    rows = connection.execute(sql, {"ids": list(ids)}, binary=True)
    return [KeptLetter(*cast("KeptLetter", row)) for row in rows]


def read_body(connection: Connection, letter: KeptLetter) -> bytes:
    """Return the bytes of a dead letter as they came."""
    sql = "SELECT body FROM petard.dead_letter WHERE pool = %(pool)s AND id = %(id)s"
    row = connection.execute(sql, {"pool": letter.pool, "id": letter.id}, binary=True).fetchone()
    assert row is not None, "dead letters are never deleted"
    return cast("bytes", row[0])


def read_open(connection: Connection, ids: Sequence[int]) -> list[OpenLetter]:
    """Return those of the dead letters that are open, with their bodies, oldest first."""
    sql = """
        SELECT pool, id, attempts, body FROM petard.dead_letter
        WHERE id = ANY(%(ids)s) AND state = 'open' ORDER BY id
    """
    rows = connection.execute(sql, {"ids": list(ids)}, binary=True)
    return [OpenLetter(*cast("OpenLetter", row)) for row in rows]


def count_letters(connection: Connection, state: str) -> dict[str, dict[str, int]]:
    """Return how many dead letters of a state there are, by pool and reason (without its path)."""
    sql = """
        SELECT pool, split_part(reason, ':', 1), count(*) FROM petard.dead_letter
        WHERE state = %(state)s GROUP BY 1, 2 ORDER BY 1, 2
    """
    counts: dict[str, dict[str, int]] = {}
    for pool, reason, count in connection.execute(sql, {"state": state}):
        counts.setdefault(cast("str", pool), {})[cast("str", reason)] = cast("int", count)
    return counts


def mark_replayed(connection: Connection, letters: Sequence[OpenLetter], actor: str) -> int:
    """Mark letters as replayed and return how many; one that came back meanwhile stays open.

    A letter that is being buried again right now is locked, and skipped: it is to stay open.
    """
    sql = """
        WITH sent AS (
            SELECT letter.pool, letter.id
            FROM unnest(%(ids)s::bigint[], %(attempts)s::integer[]) AS sent (id, attempts)
            JOIN petard.dead_letter AS letter ON letter.id = sent.id AND letter.attempts = sent.attempts
            WHERE letter.id = ANY(%(ids)s) AND letter.state = 'open'
            FOR NO KEY UPDATE OF letter SKIP LOCKED
        )
        UPDATE petard.dead_letter AS letter SET state = 'replayed', actor = %(actor)s
        FROM sent WHERE letter.pool = sent.pool AND letter.id = sent.id
    """
    ids = [letter.id for letter in letters]
    attempts = [letter.attempts for letter in letters]
    return connection.execute(sql, {"ids": ids, "attempts": attempts, "actor": actor}).rowcount


def discard_letters(connection: Connection, ids: Sequence[int], actor: str) -> int:
    """Mark those of the letters that are open as done with, and return how many.

    As above, one that is being buried again right now is skipped.
    """
    sql = """
        WITH chosen AS (
            SELECT pool, id FROM petard.dead_letter
            WHERE id = ANY(%(ids)s) AND state = 'open'
            FOR NO KEY UPDATE SKIP LOCKED
        )
        UPDATE petard.dead_letter AS letter SET state = 'discarded', actor = %(actor)s
        FROM chosen WHERE letter.pool = chosen.pool AND letter.id = chosen.id
    """
    return connection.execute(sql, {"ids": list(ids), "actor": actor}).rowcount
