"""The rating and change tables: where players stand, and how they came there."""

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from petard_worker.batch import Entry
from petard_worker.fold import PlayerChange, PlayerRecord
from petard_worker.postgres.columns import BOOL, FLOAT8, INT4, INT8, TIMESTAMPTZ, microseconds, texts
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.row_arrays import Row, RowType, known_text_field

NEW_RATING = RowType(
    "petard.new_rating",
    {
        "player": known_text_field,
        "rating": FLOAT8,
        "rd": FLOAT8,
        "volatility": FLOAT8,
        "bomb": INT4,
        "abandons": INT4,
        "penalties": INT4,
        "games": INT4,
        "wins": INT4,
        "draws": INT4,
        "losses": INT4,
        "peak": FLOAT8,
        "last_played": TIMESTAMPTZ,
        "player_seq": INT8,
    },
    nullable=("volatility", "last_played"),
)
NEW_CHANGE = RowType(
    "petard.new_change",
    {
        "player": known_text_field,
        "player_seq": INT8,
        "seq": INT8,
        "rating_before": FLOAT8,
        "rating_after": FLOAT8,
        "rd_before": FLOAT8,
        "rd_after": FLOAT8,
        "volatility_before": FLOAT8,
        "volatility_after": FLOAT8,
        "bomb_before": INT4,
        "bomb_after": INT4,
        "games_before": INT4,
        "games_after": INT4,
        "expected": FLOAT8,
        "actual": FLOAT8,
        "rd_aged": FLOAT8,
        "penalty": BOOL,
        "late": BOOL,
    },
    nullable=("volatility_before", "volatility_after", "expected", "actual", "rd_aged"),
)

SENT_AS_THEY_ARE = PlayerRecord._fields.index("last_played")
"""So many fields of a record come first."""


def ask_records(
    connection: Connection, pool: str, players: Iterable[str]
) -> Callable[[], dict[str, PlayerRecord]]:
    """Ask for the records of those players who have one; call the answer to wait for it.

    Only under the pool's lock.
    """
    sql = """
        SELECT found.*
        FROM unnest(%(players)b::text[]) AS asked (name)
        CROSS JOIN LATERAL (
            SELECT player, rating, rd, volatility, bomb, abandons, penalties, games, wins, draws, losses,
                   peak, last_played, player_seq
            FROM petard.rating WHERE pool = %(pool)s AND player = asked.name OFFSET 0
        ) AS found
    """
    asked = list(players)
    if not asked:
        return dict
    # Binary results: a float8 comes back as the very bits that went in.
    rows = connection.execute(sql, {"pool": pool, "players": texts(asked)}, binary=True)
    return lambda: {cast("str", row[0]): PlayerRecord(*cast("PlayerRecord", row[1:])) for row in rows}


def save_records(connection: Connection, pool: str, records: Mapping[str, PlayerRecord], cap: int) -> None:
    """Write the records, new players included; `cap` is the bomb cap in force."""
    sql = """
        INSERT INTO petard.rating AS rating
            (pool, bomb_cap, player, rating, rd, volatility, bomb, abandons, penalties, games, wins, draws,
             losses, peak, last_played, player_seq)
        SELECT %(pool)s, %(cap)s, entry.*
        FROM unnest(%(ratings)b::petard.new_rating[]) AS entry
        ON CONFLICT (pool, player) DO UPDATE SET
            rating = excluded.rating, rd = excluded.rd, volatility = excluded.volatility,
            bomb = excluded.bomb, bomb_cap = excluded.bomb_cap, abandons = excluded.abandons,
            penalties = excluded.penalties, games = excluded.games, wins = excluded.wins,
            draws = excluded.draws, losses = excluded.losses, peak = excluded.peak,
            last_played = excluded.last_played, player_seq = excluded.player_seq
    """
    rows = NEW_RATING.array(connection, map(rating_row, records.items()))
    connection.execute(sql, {"pool": pool, "cap": cap, "ratings": rows})


def rating_row(standing: tuple[str, PlayerRecord]) -> Row:
    """Return a player's record as it is sent; the open period stands in a table of its own."""
    player, record = standing
    return (player, *record[:SENT_AS_THEY_ARE], microseconds(record.last_played), record.player_seq)


def append_changes(connection: Connection, pool: str, entries: Iterable[Entry]) -> None:
    """Append what ledger entries did to players."""
    sql = """
        INSERT INTO petard.change
            (pool, player, player_seq, seq, rating_before, rating_after, rd_before, rd_after,
             volatility_before, volatility_after, bomb_before, bomb_after, games_before, games_after,
             expected, actual, rd_aged, penalty, late)
        SELECT %(pool)s, entry.*
        FROM unnest(%(changes)b::petard.new_change[]) AS entry
    """
    rows = NEW_CHANGE.array(
        connection, [change_row(entry.seq, change) for entry in entries for change in entry.verdict.changes]
    )
    connection.execute(sql, {"pool": pool, "changes": rows})


def change_row(seq: int, change: PlayerChange) -> Row:
    """Return a change as it is stored."""
    before, after = change.before, change.after
    return (
        change.player,
        after.player_seq,
        seq,
        before.rating,
        after.rating,
        before.rd,
        after.rd,
        before.volatility,
        after.volatility,
        before.bomb,
        after.bomb,
        before.games,
        after.games,
        change.expected,
        change.actual,
        change.rd_aged,
        change.penalty,
        change.late,
    )
