"""What the parser lets in, Postgres can store: asked of a real one, because its rules are its own."""

from dataclasses import dataclass, field

import psycopg
import pytest

from mutants import mutants
from petard_schema import EventRefused, GameEvent, parse_event, read_identity

MUTANTS = 20_000


@dataclass
class Batch:
    """Mutants as the parser left them."""

    taken: list[tuple[bytes, GameEvent]] = field(default_factory=list)
    refused: list[tuple[bytes, str]] = field(default_factory=list)


@pytest.fixture(scope="module")
def batch() -> Batch:
    batch = Batch()
    for raw in mutants(11, MUTANTS):
        try:
            batch.taken.append((raw, parse_event(raw)))
        except EventRefused as refusal:
            batch.refused.append((raw, f"{refusal.reason} {refusal.detail}"))
    return batch


def test_accepted_texts_are_json_to_postgres(batch: Batch, connection: psycopg.Connection) -> None:
    texts = [raw.decode() for raw, _ in batch.taken]
    sql = "SELECT text::json::text, (text::jsonb ->> 'id') FROM unnest(%(texts)s::text[]) AS text"

    rows = connection.execute(sql, {"texts": texts}).fetchall()

    assert len(rows) > MUTANTS / 20
    assert rows == [(raw.decode(), event.id) for raw, event in batch.taken]


def test_accepted_events_are_json_to_postgres_as_we_write_them(
    batch: Batch, connection: psycopg.Connection
) -> None:
    texts = [event.to_json().decode() for _, event in batch.taken]
    sql = "SELECT text::jsonb -> 'data' ->> 'game' FROM unnest(%(texts)s::text[]) AS text"

    rows = connection.execute(sql, {"texts": texts}).fetchall()

    assert rows == [(event.data.game,) for _, event in batch.taken]


def test_names_come_back_from_postgres_as_they_went(batch: Batch, connection: psycopg.Connection) -> None:
    names = sorted(
        {
            name
            for _, event in batch.taken
            for side in event.data.sides
            for name in (*side.players, event.data.game, event.data.pool, event.source, event.id)
        }
    )
    sql = 'SELECT name FROM unnest(%(names)s::text[]) AS name GROUP BY name ORDER BY name COLLATE "C"'

    rows = connection.execute(sql, {"names": names}).fetchall()

    assert rows == [(name,) for name in names]


def test_times_come_back_from_postgres_as_they_went(batch: Batch, connection: psycopg.Connection) -> None:
    times = sorted({event.time for _, event in batch.taken if event.time.year > 1})
    sql = "SELECT time FROM unnest(%(times)s::timestamptz[]) AS time"

    connection.execute("SET TIME ZONE 'UTC'")
    rows = connection.execute(sql, {"times": times}).fetchall()

    assert rows == [(time,) for time in times]


def test_what_a_dead_letter_tells_can_be_stored(batch: Batch, connection: psycopg.Connection) -> None:
    told = [reason for _, reason in batch.refused]
    identities = [text for raw, _ in batch.refused for text in read_identity(raw) if text is not None]
    sql = "SELECT count(*) FROM unnest(%(texts)s::text[]) AS text WHERE text IS NOT NULL"

    row = connection.execute(sql, {"texts": told + identities}).fetchone()

    assert row == (len(told) + len(identities),)
    assert len(identities) > 1000
