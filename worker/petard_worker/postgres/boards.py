"""Ranks and percentiles: who stands where, computed from the ratings at the moment of asking.

Only players with a rated event are listed. Equal scores share a rank (1, 2, 2, 4) and stand by name. The
percentile is the share of listed players with a lower score, ties (and the player) counted half.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, cast

from petard_worker.fold import PlayerRecord
from petard_worker.pool_settings import PoolSettings
from petard_worker.postgres.connect import Connection

AROUND = 5
FIRST_DAY = datetime.min.replace(tzinfo=UTC)


class BoardLine(NamedTuple):
    """One line of a leaderboard."""

    rank: int
    player: str
    rating: float
    rd: float
    bomb: int
    games: int


class Place(NamedTuple):
    """Where a listed player stands: rank from 1, percentile 0 to 100."""

    rank: int
    percentile: float


class PastStanding(NamedTuple):
    """Where a player stood after the last of their events up to some time."""

    time: datetime
    player_seq: int
    rating: float
    rd: float
    volatility: float | None
    bomb: int
    games: int


def board_top(connection: Connection, pool: str, settings: PoolSettings, count: int) -> list[BoardLine]:
    """Return the first `count` lines."""
    return board_lines(connection, pool, settings, 1, count)


def board_around(connection: Connection, pool: str, settings: PoolSettings, player: str) -> list[BoardLine]:
    """Return the lines around a player, or none when the player is not listed."""
    sql = """
        WITH listed AS (
            SELECT player, CASE WHEN %(conservative)s THEN rating - 2 * rd ELSE rating END AS score
            FROM petard.rating
            WHERE pool = %(pool)s AND last_played IS NOT NULL AND rd <= %(highest_rd)s
              AND last_played >= %(oldest)s
        ), own AS (SELECT score, player FROM listed WHERE player = %(player)s)
        SELECT 1 + count(*) FILTER (
            WHERE listed.score > own.score
               OR (listed.score = own.score AND listed.player COLLATE "C" < own.player COLLATE "C")
        )
        FROM own CROSS JOIN listed
        HAVING count(*) > 0
    """
    row = connection.execute(sql, {"pool": pool, "player": player, **conditions(settings)}).fetchone()
    if row is None:
        return []
    place = cast("int", row[0])
    return board_lines(connection, pool, settings, place - AROUND, place + AROUND)


def board_lines(
    connection: Connection, pool: str, settings: PoolSettings, first: int, last: int
) -> list[BoardLine]:
    """Return the lines from the `first` to the `last` place, counted from 1."""
    sql = """
        WITH listed AS (
            SELECT player, rating, rd, bomb, games,
                   CASE WHEN %(conservative)s THEN rating - 2 * rd ELSE rating END AS score
            FROM petard.rating
            WHERE pool = %(pool)s AND last_played IS NOT NULL AND rd <= %(highest_rd)s
              AND last_played >= %(oldest)s
        ), placed AS (
            SELECT rank() OVER (ORDER BY score DESC) AS rank,
                   row_number() OVER (ORDER BY score DESC, player COLLATE "C") AS place,
                   player, rating, rd, bomb, games
            FROM listed
        )
        SELECT rank, player, rating, rd, bomb, games
        FROM placed WHERE place BETWEEN %(first)s AND %(last)s ORDER BY place
    """
    values = {"pool": pool, "first": first, "last": last, **conditions(settings)}
    return [BoardLine(*cast("BoardLine", row)) for row in connection.execute(sql, values, binary=True)]


def find_place(connection: Connection, pool: str, settings: PoolSettings, player: str) -> Place | None:
    """Return where the player stands, or None when the player is not listed."""
    sql = """
        WITH listed AS (
            SELECT player, CASE WHEN %(conservative)s THEN rating - 2 * rd ELSE rating END AS score
            FROM petard.rating
            WHERE pool = %(pool)s AND last_played IS NOT NULL AND rd <= %(highest_rd)s
              AND last_played >= %(oldest)s
        ), own AS (SELECT score FROM listed WHERE player = %(player)s)
        SELECT 1 + count(*) FILTER (WHERE listed.score > own.score),
               100.0::float8 * (
                   count(*) FILTER (WHERE listed.score < own.score)
                   + 0.5::float8 * count(*) FILTER (WHERE listed.score = own.score)
               ) / count(*)
        FROM own CROSS JOIN listed
        HAVING count(*) > 0
    """
    row = connection.execute(sql, {"pool": pool, "player": player, **conditions(settings)}).fetchone()
    return None if row is None else Place(*cast("Place", row))


def conditions(settings: PoolSettings) -> Mapping[str, object]:
    """Return what decides who is listed, as parameters."""
    days = settings.hide_inactive_days
    return {
        "conservative": settings.ranked_by == "conservative",
        "highest_rd": settings.provisional_rd if settings.hide_provisional else float("inf"),
        "oldest": datetime.now().astimezone() - timedelta(days=days)
        if days
        else datetime(1, 1, 2).astimezone(),
    }


def find_record(connection: Connection, pool: str, player: str) -> PlayerRecord | None:
    """Return the player's record, or None when the pool does not know the player."""
    sql = """
        SELECT rating, rd, volatility, bomb, abandons, penalties, games, wins, draws, losses, peak,
               last_played, player_seq
        FROM petard.rating WHERE pool = %(pool)s AND player = %(player)s
    """
    row = connection.execute(sql, {"pool": pool, "player": player}, binary=True).fetchone()
    return None if row is None else PlayerRecord(*cast("PlayerRecord", row))


def find_past_standing(connection: Connection, pool: str, player: str, time: datetime) -> PastStanding | None:
    """Return where the player stood after the last applied event whose time is not after `time`."""
    sql = """
        SELECT ledger.time, change.player_seq, change.rating_after, change.rd_after, change.volatility_after,
               change.bomb_after, change.games_after
        FROM petard.change AS change
        JOIN petard.ledger AS ledger ON ledger.pool = change.pool AND ledger.seq = change.seq
        WHERE change.pool = %(pool)s AND change.player = %(player)s AND ledger.time <= %(time)s
        ORDER BY change.player_seq DESC LIMIT 1
    """
    values = {"pool": pool, "player": player, "time": time}
    row = connection.execute(sql, values, binary=True).fetchone()
    return None if row is None else PastStanding(*cast("PastStanding", row))
