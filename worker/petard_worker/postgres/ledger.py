"""The ledger: every accepted event of a pool in the order it was applied. Append only.

Lookups of many keys are LATERAL with OFFSET 0, which Postgres plans as one index lookup a key. As a plain
join it reads the whole pool while the table has no statistics, and a new pool grows faster than they come.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from petard_schema import PERIOD_CLOSED
from petard_worker.batch import Entry, EventKey
from petard_worker.postgres.columns import BOOL, INT8, TIMESTAMPTZ, microseconds, texts
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.row_arrays import Row, RowType, known_text_field, text_field

NEW_ENTRY = RowType(
    "petard.new_entry",
    {
        "source": known_text_field,
        "event_id": text_field,
        "type": known_text_field,
        "game": text_field,
        "reason": known_text_field,
        "body": text_field,
        "seq": INT8,
        "time": TIMESTAMPTZ,
        "late": BOOL,
    },
)


def ask_events(
    connection: Connection, pool: str, keys: Iterable[EventKey]
) -> Callable[[], dict[EventKey, str]]:
    """Ask for the bodies of those events that the ledger holds already; call the answer to wait for it."""
    asked = list(keys)
    sql = """
        SELECT asked.event_id, asked.source, found.body
        FROM unnest(%(ids)b::text[], %(sources)b::text[]) AS asked (event_id, source)
        CROSS JOIN LATERAL (
            SELECT body::text FROM petard.ledger
            WHERE pool = %(pool)s AND event_id = asked.event_id AND source = asked.source OFFSET 0
        ) AS found
    """
    ids = texts(key.event_id for key in asked)
    sources = texts(key.source for key in asked)
    rows = connection.execute(sql, {"pool": pool, "ids": ids, "sources": sources})
    return lambda: {EventKey(*cast("EventKey", row[:2])): cast("str", row[2]) for row in rows}


def ask_games(connection: Connection, pool: str, games: Iterable[str]) -> Callable[[], dict[str, str]]:
    """Ask for the bodies of the events by which those games have counted; call the answer to wait for it."""
    sql = """
        SELECT asked.game, found.body
        FROM unnest(%(games)b::text[]) AS asked (game)
        CROSS JOIN LATERAL (
            SELECT body::text FROM petard.ledger
            WHERE pool = %(pool)s AND game = asked.game AND counts OFFSET 0
        ) AS found
    """
    rows = connection.execute(sql, {"pool": pool, "games": texts(games)})
    return lambda: {cast("str", game): cast("str", body) for game, body in rows}


def append_entries(connection: Connection, pool: str, version: int, entries: Sequence[Entry]) -> None:
    """Append entries rated by this version; raises psycopg.errors.UniqueViolation if one counted before."""
    sql = """
        INSERT INTO petard.ledger
            (pool, version, seq, source, event_id, type, game, time, outcome, reason, counts, late, body)
        SELECT %(pool)s, %(version)s, seq, source, event_id, type, game, time,
               CASE WHEN reason IS NULL THEN 'rated' ELSE 'ignored' END, reason,
               reason IS NULL AND game IS NOT NULL, late,
               body::json
        FROM unnest(%(entries)b::petard.new_entry[])
    """
    rows = NEW_ENTRY.array(connection, map(entry_row, entries))
    connection.execute(sql, {"pool": pool, "version": version, "entries": rows})


def entry_row(entry: Entry) -> Row:
    """Return an entry as it is sent."""
    event = entry.event
    return (
        event.source,
        event.id,
        event.type,
        game_of(entry),
        entry.verdict.ignored,
        entry.body,
        entry.seq,
        microseconds(event.time),
        entry.late,
    )


def game_of(entry: Entry) -> str | None:
    """Return the game that the entry reports; the end of a period reports none."""
    event = entry.event
    return None if event.type == PERIOD_CLOSED else event.data.game
