"""The dead_letter table: events that could not be accepted, byte by byte, with the reason."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, cast

from petard_schema import EventRefused, read_identity
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.ledger import transpose

MAX_TEXT = 1_000


class DeadLetter(NamedTuple):
    """An event to bury."""

    digest: bytes
    body: bytes
    source: str | None
    event_id: str | None
    game: str | None
    reason: str
    detail: str


def dead_letter(raw: bytes, refused: EventRefused) -> DeadLetter:
    """Return the dead letter of an event that was refused."""
    identity = read_identity(raw)
    return DeadLetter(
        hashlib.sha256(raw).digest(),
        raw,
        identity.source,
        identity.id,
        identity.game,
        storable(refused.reason),
        storable(refused.detail),
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
    columns = dict(zip(DeadLetter._fields, transpose(latest.values(), len(DeadLetter._fields)), strict=True))
    counts = [attempts[digest] for digest in latest]
    connection.execute(sql, {"pool": pool, "attempts": counts, **columns})


class KeptLetter(NamedTuple):
    """A dead letter as it is kept."""

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
    body: bytes


class LetterFilter(NamedTuple):
    """Which dead letters are meant; what is None does not restrict."""

    pool: str | None = None
    reason: str | None = None
    state: str | None = None
    ids: Sequence[int] | None = None


def list_letters(connection: Connection, wanted: LetterFilter, limit: int) -> list[KeptLetter]:
    """Return the dead letters that are wanted, oldest first.

    A reason without a path means all paths: `bad_field` finds `bad_field:time` too.
    """
    sql = """
        SELECT id, pool, reason, detail, attempts, first_seen, last_seen, state, actor,
               source, event_id, game, body
        FROM petard.dead_letter
        WHERE (%(pool)s::text IS NULL OR pool = %(pool)s)
          AND (%(reason)s::text IS NULL OR reason = %(reason)s OR split_part(reason, ':', 1) = %(reason)s)
          AND (%(state)s::text IS NULL OR state = %(state)s)
          AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s))
        ORDER BY id LIMIT %(limit)s
    """
    ids = None if wanted.ids is None else list(wanted.ids)
    values = {**wanted._asdict(), "ids": ids, "limit": limit}
    rows = connection.execute(sql, values, binary=True)
    return [KeptLetter(*cast("KeptLetter", row)) for row in rows]


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


def mark_letter(connection: Connection, letter: KeptLetter, state: str, actor: str) -> bool:
    """Mark the letter as replayed or discarded; False when it came back meanwhile and stays open."""
    sql = """
        UPDATE petard.dead_letter SET state = %(state)s, actor = %(actor)s
        WHERE pool = %(pool)s AND id = %(id)s AND attempts = %(attempts)s
    """
    values = {
        "pool": letter.pool,
        "id": letter.id,
        "attempts": letter.attempts,
        "state": state,
        "actor": actor,
    }
    return connection.execute(sql, values).rowcount == 1
