"""What an audit reads: all that a pool has, as it was at one moment, and a few rows of it at a time."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from typing import LiteralString, NamedTuple, cast

import psycopg

from petard_worker.fold import PlayerRecord
from petard_worker.postgres.boards import Listing
from petard_worker.postgres.columns import texts
from petard_worker.postgres.connect import Connection
from petard_worker.ratings.parameters import ParameterValue

CHUNK = 1_000
"""Rows that are fetched at a time."""


class PoolVersion(NamedTuple):
    """Parameters of a pool, and the first ledger entry that they can rate."""

    version: int
    system: str
    parameters: Mapping[str, ParameterValue]
    since_seq: int


class LedgerRow(NamedTuple):
    """An entry as it is stored."""

    seq: int
    source: str
    event_id: str
    type: str
    game: str | None
    time: datetime
    outcome: str
    reason: str | None
    counts: bool
    late: bool
    version: int
    body: str
    counted_before: str | None
    """Where the entry is no report that counts: the body by which its game had counted before, if it had."""


ChangeRow = tuple[object, ...]
"""A row of the change table in the order of NEW_CHANGE: player, player_seq, seq, and so on."""


class RatingRow(NamedTuple):
    """A row of the rating table."""

    player: str
    record: PlayerRecord
    bomb_cap: int


class PeriodRow(NamedTuple):
    """A row of the open_period table."""

    player: str
    player_seq: int
    period: str


class LetterRow(NamedTuple):
    """What a dead letter says of its event."""

    id: int
    digest: bytes
    body: bytes
    source: str | None
    event_id: str | None
    game: str | None
    reason: str
    detail: str
    edited: bytes | None


class Repeat(NamedTuple):
    """Something that counts more often than once, and the seqs of the first and the last time."""

    what: str
    of: str
    times: int
    first: int
    last: int


class Score(NamedTuple):
    """A score that a player had after one of their changes; None while the player was not listed."""

    player: str
    score: float | None


@contextmanager
def one_snapshot(connection: Connection) -> Iterator[None]:
    """Let everything that is read inside be of one moment, while others go on writing.

    Nobody waits for it. For as long as it lasts Postgres keeps the old versions of rows that are updated.
    """
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    try:
        with connection.transaction():
            connection.execute("SET LOCAL statement_timeout = 0")  # some read a whole ledger
            yield
    finally:
        if not connection.closed:
            connection.isolation_level = None


def read_versions(connection: Connection, pool: str) -> list[PoolVersion]:
    """Return all parameters the pool has had, oldest first."""
    sql = """
        SELECT version, system, parameters, since_seq FROM petard.pool_version
        WHERE pool = %(pool)s ORDER BY version
    """
    return [PoolVersion(*cast("PoolVersion", row)) for row in connection.execute(sql, {"pool": pool})]


def read_ledger(connection: Connection, pool: str) -> Iterator[list[LedgerRow]]:
    """Yield the entries in the order of their seq; they stay in Postgres until they are asked for."""
    sql: LiteralString = """
        SELECT seq, source, event_id, type, game, time, outcome, reason, counts, late, version, body::text,
               CASE WHEN NOT counts AND game IS NOT NULL THEN (
                   SELECT earlier.body::text FROM petard.ledger AS earlier
                   WHERE earlier.pool = entry.pool AND earlier.game = entry.game AND earlier.counts
                     AND earlier.seq < entry.seq
                   ORDER BY earlier.seq LIMIT 1
               ) END
        FROM petard.ledger AS entry WHERE pool = %(pool)s ORDER BY seq
    """
    for rows in chunks_of(connection, "ledger", sql, pool):
        yield [LedgerRow(*cast("LedgerRow", row)) for row in rows]


def read_changes(connection: Connection, pool: str) -> Iterable[ChangeRow]:
    """Return the changes in the order of the entries that made them."""
    sql: LiteralString = """
        SELECT player, player_seq, seq, rating_before, rating_after, rd_before, rd_after,
               volatility_before, volatility_after, bomb_before, bomb_after, games_before, games_after,
               expected, actual, rd_aged, penalty, late
        FROM petard.change WHERE pool = %(pool)s ORDER BY seq, player
    """
    return chain.from_iterable(chunks_of(connection, "changes", sql, pool))


def read_ratings(connection: Connection, pool: str) -> Iterator[RatingRow]:
    """Yield where everybody stands, in no order."""
    sql: LiteralString = """
        SELECT player, bomb_cap, rating, rd, volatility, bomb, abandons, penalties, games, wins, draws,
               losses, peak, last_played, player_seq
        FROM petard.rating WHERE pool = %(pool)s
    """
    for rows in chunks_of(connection, "ratings", sql, pool):
        for player, bomb_cap, *record in rows:
            yield RatingRow(cast("str", player), PlayerRecord(*record), cast("int", bomb_cap))  # type: ignore[arg-type]  # the columns are selected in the order of the fields


def read_open_periods(connection: Connection, pool: str) -> Iterator[PeriodRow]:
    """Yield what is stored of open rating periods, in no order."""
    sql: LiteralString = """
        SELECT player, player_seq, period::text FROM petard.open_period WHERE pool = %(pool)s
    """
    for rows in chunks_of(connection, "open_periods", sql, pool):
        yield from (PeriodRow(*cast("PeriodRow", row)) for row in rows)


def read_letters(connection: Connection, pool: str) -> Iterator[LetterRow]:
    """Yield the dead letters of a pool, oldest first."""
    sql: LiteralString = """
        SELECT id, digest, body, source, event_id, game, reason, detail, edited_body
        FROM petard.dead_letter WHERE pool = %(pool)s ORDER BY id
    """
    # Bodies are large: fewer at a time.
    for rows in chunks_of(connection, "letters", sql, pool, CHUNK // 10):
        yield from (LetterRow(*cast("LetterRow", row)) for row in rows)


def find_repeats(connection: Connection, pool: str, limit: int) -> list[Repeat]:
    """Return events and games that count more often than once, up to `limit` of each.

    There are none while the ledger's unique indexes are whole.
    """
    sql: LiteralString = """
        (SELECT 'event', source || ' ' || event_id, count(*), min(seq), max(seq)
         FROM petard.ledger WHERE pool = %(pool)s
         GROUP BY event_id, source HAVING count(*) > 1 LIMIT %(limit)s)
        UNION ALL
        (SELECT 'game', game, count(*), min(seq), max(seq)
         FROM petard.ledger WHERE pool = %(pool)s AND counts
         GROUP BY game HAVING count(*) > 1 LIMIT %(limit)s)
        ORDER BY 4, 1
    """
    rows = connection.execute(sql, {"pool": pool, "limit": limit}, binary=True)
    return [Repeat(*cast("Repeat", row)) for row in rows]


def find_scores_since(
    connection: Connection, listing: Listing, players: Iterable[str], seq: int
) -> set[Score]:
    """Return every score these players had from entry `seq` on, the one they had at `seq` included.

    As a rated event is what has an expected score, a player is listed from the first such change on.
    """
    sql: LiteralString = """
        WITH asked AS (
            SELECT name,
                   (SELECT player_seq FROM petard.change
                    WHERE pool = %(pool)s AND player = name AND seq <= %(seq)s
                    ORDER BY player_seq DESC LIMIT 1) AS standing,
                   (SELECT player_seq FROM petard.change
                    WHERE pool = %(pool)s AND player = name AND expected IS NOT NULL
                    ORDER BY player_seq LIMIT 1) AS listed_from
            FROM unnest(%(players)b::text[]) AS names (name)
        )
        SELECT name,
               CASE WHEN player_seq >= listed_from AND rd_after <= %(highest_rd)s THEN
                   CASE WHEN %(conservative)s THEN rating_after - 2 * rd_after ELSE rating_after END
               END
        FROM asked JOIN petard.change
          ON pool = %(pool)s AND player = name AND player_seq >= coalesce(standing, 1)
        UNION
        SELECT name, NULL FROM asked WHERE standing IS NULL
    """
    values = {"players": texts(players), "seq": seq, **listing._asdict()}
    return {Score(*cast("Score", row)) for row in connection.execute(sql, values, binary=True)}


def chunks_of(
    connection: Connection, name: str, sql: LiteralString, pool: str, size: int = CHUNK
) -> Iterator[list[tuple[object, ...]]]:
    """Yield the rows of a statement, `size` at a time; inside a transaction."""
    # Binary results: a float8 comes back as the very bits that went in.
    with connection.cursor(name) as cursor:
        cursor.execute(sql, {"pool": pool}, binary=True)
        while rows := cursor.fetchmany(size):
            yield rows
