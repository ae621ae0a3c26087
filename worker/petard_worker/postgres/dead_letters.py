"""The dead_letter table: events that could not be accepted, byte by byte, with the reason."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

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
