"""The rating and change tables: where players stand, and how they came there."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from petard_worker.fold import PlayerChange, PlayerRecord
from petard_worker.postgres.columns import (
    Kinds,
    booleans,
    columns,
    float8s,
    int4s,
    int8s,
    texts,
    timestamps,
)
from petard_worker.postgres.connect import Connection

NumberedChange = tuple[int, PlayerChange]
"""A change and the seq of the ledger entry that caused it."""


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
    # Binary results: a float8 comes back as the very bits that went in.
    rows = connection.execute(sql, {"pool": pool, "players": texts(players)}, binary=True)
    return lambda: {cast("str", row[0]): PlayerRecord(*cast("PlayerRecord", row[1:])) for row in rows}


def save_records(connection: Connection, pool: str, records: Mapping[str, PlayerRecord], cap: int) -> None:
    """Write the records, new players included; `cap` is the bomb cap in force."""
    sql = """
        INSERT INTO petard.rating AS rating
            (pool, bomb_cap, player, rating, rd, volatility, bomb, abandons, penalties, games, wins, draws,
             losses, peak, last_played, player_seq)
        SELECT %(pool)s, %(cap)s, entry.*
        FROM unnest(
            %(player)b::text[], %(rating)b::float8[], %(rd)b::float8[], %(volatility)b::float8[],
            %(bomb)b::integer[], %(abandons)b::integer[], %(penalties)b::integer[], %(games)b::integer[],
            %(wins)b::integer[], %(draws)b::integer[], %(losses)b::integer[], %(peak)b::float8[],
            %(last_played)b::timestamptz[], %(player_seq)b::bigint[]
        ) AS entry
        ON CONFLICT (pool, player) DO UPDATE SET
            rating = excluded.rating, rd = excluded.rd, volatility = excluded.volatility,
            bomb = excluded.bomb, bomb_cap = excluded.bomb_cap, abandons = excluded.abandons,
            penalties = excluded.penalties, games = excluded.games, wins = excluded.wins,
            draws = excluded.draws, losses = excluded.losses, peak = excluded.peak,
            last_played = excluded.last_played, player_seq = excluded.player_seq
    """
    values = {"pool": pool, "cap": cap, "player": texts(records)}
    # The open period comes last in a record, and stands in a table of its own.
    rows = [record[: len(RECORD_COLUMNS)] for record in records.values()]
    connection.execute(sql, values | columns(RECORD_COLUMNS, rows))


def append_changes(connection: Connection, pool: str, changes: Sequence[NumberedChange]) -> None:
    """Append what ledger entries did to players."""
    sql = """
        INSERT INTO petard.change
            (pool, player, player_seq, seq, rating_before, rating_after, rd_before, rd_after,
             volatility_before, volatility_after, bomb_before, bomb_after, games_before, games_after,
             expected, actual, rd_aged, penalty, late)
        SELECT %(pool)s, entry.*
        FROM unnest(
            %(player)b::text[], %(player_seq)b::bigint[], %(seq)b::bigint[],
            %(rating_before)b::float8[], %(rating_after)b::float8[],
            %(rd_before)b::float8[], %(rd_after)b::float8[],
            %(volatility_before)b::float8[], %(volatility_after)b::float8[],
            %(bomb_before)b::integer[], %(bomb_after)b::integer[],
            %(games_before)b::integer[], %(games_after)b::integer[],
            %(expected)b::float8[], %(actual)b::float8[], %(rd_aged)b::float8[],
            %(penalty)b::boolean[], %(late)b::boolean[]
        ) AS entry
    """
    rows = [change_row(seq, change) for seq, change in changes]
    connection.execute(sql, {"pool": pool, **columns(CHANGE_COLUMNS, rows)})


def change_row(seq: int, change: PlayerChange) -> tuple[object, ...]:
    """Return a change as it is stored, in the order of CHANGE_COLUMNS."""
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


RECORD_COLUMNS: Kinds = {
    "rating": float8s,
    "rd": float8s,
    "volatility": float8s,
    "bomb": int4s,
    "abandons": int4s,
    "penalties": int4s,
    "games": int4s,
    "wins": int4s,
    "draws": int4s,
    "losses": int4s,
    "peak": float8s,
    "last_played": timestamps,
    "player_seq": int8s,
}
CHANGE_COLUMNS: Kinds = {
    "player": texts,
    "player_seq": int8s,
    "seq": int8s,
    "rating_before": float8s,
    "rating_after": float8s,
    "rd_before": float8s,
    "rd_after": float8s,
    "volatility_before": float8s,
    "volatility_after": float8s,
    "bomb_before": int4s,
    "bomb_after": int4s,
    "games_before": int4s,
    "games_after": int4s,
    "expected": float8s,
    "actual": float8s,
    "rd_aged": float8s,
    "penalty": booleans,
    "late": booleans,
}
