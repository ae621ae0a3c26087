"""The dead_letter table: events that could not be accepted, byte by byte, with the reason.

What the drains write. What operators ask and do stands beside this: `letter_finds.py`, `letter_history.py`,
`letter_changes.py`, `replay_runs.py`.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple, cast

from petard_schema import EventRefused, read_identity
from petard_schema.parse import Identity
from petard_worker.failures import CODE_VERSION, failure_of
from petard_worker.postgres.columns import Kinds, byteas, columns, int4s, texts
from petard_worker.postgres.connect import Connection

MAX_TEXT = 1_000
MAX_TRACEBACK = 10_000
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
    traceback_hash: str | None = None
    traceback: str | None = None


LETTER: Kinds = {
    "digest": byteas,
    "body": byteas,
    "source": texts,
    "event_id": texts,
    "game": texts,
    "reason": texts,
    "detail": texts,
    "traceback_hash": texts,
    "traceback": texts,
}


def dead_letter(raw: bytes, refused: EventRefused, ours: Exception | None = None) -> DeadLetter:
    """Return the dead letter of an event that was refused; `ours` is our own exception if that is why."""
    failure = None if ours is None else failure_of(ours)
    identity = identity_of(raw)
    cut = f"; kept are the first {MAX_BODY} bytes" if len(raw) > MAX_BODY else ""
    return DeadLetter(
        hashlib.sha256(raw).digest(),
        raw[:MAX_BODY],
        identity.source,
        identity.id,
        identity.game,
        storable(refused.reason),
        storable(refused.detail) + cut,
        None if failure is None else failure.hash,
        None if failure is None else storable(failure.traceback, MAX_TRACEBACK),
    )


def identity_of(raw: bytes) -> Identity:
    """Return what can be read of an event's identity: nothing where the parser fails by a bug of ours."""
    try:
        return read_identity(raw)
    except Exception:  # noqa: BLE001 - the letter must be kept all the same
        return Identity(None, None, None)


def storable(text: str, most: int = MAX_TEXT) -> str:
    """Return the text without what Postgres cannot store, and not too long."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "?")[:most]


def bury(connection: Connection, pool: str, letters: Sequence[DeadLetter]) -> None:
    """Write dead letters; the same bytes again count as another attempt of the same letter.

    Bytes that a letter was edited into are that letter's, too. What a letter said before goes into its log:
    the first ten attempts stay there, later ones take turns at ten places more.
    """
    sql = """
        WITH came AS (
            SELECT coalesce(edited.digest, entry.digest) AS digest, coalesce(edited.body, entry.body) AS body,
                   source, event_id, game, reason, detail, traceback_hash, traceback, attempts, place
            FROM unnest(
                %(digest)b::bytea[], %(body)b::bytea[], %(source)b::text[], %(event_id)b::text[],
                %(game)b::text[], %(reason)b::text[], %(detail)b::text[], %(traceback_hash)b::text[],
                %(traceback)b::text[], %(attempts)b::integer[]
            ) WITH ORDINALITY AS entry (digest, body, source, event_id, game, reason, detail, traceback_hash,
                                        traceback, attempts, place)
            LEFT JOIN LATERAL (
                SELECT digest, body FROM petard.dead_letter
                WHERE pool = %(pool)s AND edited_digest = entry.digest OFFSET 0
            ) AS edited ON true
        ), latest AS (
            SELECT DISTINCT ON (digest) *, sum(attempts) OVER (PARTITION BY digest)::integer AS more
            FROM came ORDER BY digest, place DESC
        ), log AS (
            INSERT INTO petard.dead_letter_attempt AS kept
                (pool, letter, slot, attempt, at, reason, detail, traceback_hash, version, worker, state,
                 actor, closed, discard_reason)
            SELECT %(pool)s, known.id,
                   CASE WHEN known.logged < 10 THEN known.logged + 1 ELSE 11 + known.logged %% 10 END,
                   known.attempts, known.last_seen, known.reason, known.detail, known.traceback_hash,
                   known.version, known.worker, known.state, known.actor, known.closed, known.discard_reason
            FROM latest CROSS JOIN LATERAL (
                SELECT * FROM petard.dead_letter WHERE pool = %(pool)s AND digest = latest.digest OFFSET 0
            ) AS known
            ON CONFLICT (pool, letter, slot) DO UPDATE SET
                attempt = excluded.attempt, at = excluded.at, reason = excluded.reason,
                detail = excluded.detail, traceback_hash = excluded.traceback_hash,
                version = excluded.version, worker = excluded.worker, state = excluded.state,
                actor = excluded.actor, closed = excluded.closed, discard_reason = excluded.discard_reason
        )
        INSERT INTO petard.dead_letter AS letter
            (pool, digest, body, source, event_id, game, reason, detail, traceback_hash, traceback,
             attempts, version, worker)
        SELECT %(pool)s, digest, body, source, event_id, game, reason, detail, traceback_hash, traceback,
               more, %(version)s, regexp_replace(current_setting('application_name'), '^petard ', '')
        FROM latest ORDER BY place
        ON CONFLICT (pool, digest) DO UPDATE SET
            reason = excluded.reason, detail = excluded.detail, last_seen = excluded.last_seen,
            traceback_hash = excluded.traceback_hash, traceback = excluded.traceback,
            version = excluded.version, worker = excluded.worker, logged = letter.logged + 1,
            attempts = letter.attempts + excluded.attempts,
            state = 'open', actor = NULL, closed = NULL, discard_reason = NULL
    """
    attempts: dict[bytes, int] = {}
    latest: dict[bytes, DeadLetter] = {}
    for letter in letters:
        attempts[letter.digest] = attempts.get(letter.digest, 0) + 1
        latest[letter.digest] = letter
    counts = int4s(attempts[digest] for digest in latest)
    values = {
        "pool": pool,
        "attempts": counts,
        "version": CODE_VERSION,
        **columns(LETTER, list(latest.values())),
    }
    connection.execute(sql, values)


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
