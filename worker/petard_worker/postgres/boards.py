"""Ranks and percentiles: who stands where, computed from the ratings at the moment of asking.

Only players with a rated event are listed. Equal scores share a rank (1, 2, 2, 4) and stand by name. The
percentile is the share of listed players with a lower score, ties (and the player) counted half.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import LiteralString, NamedTuple, cast

from petard_worker.fold import PlayerRecord
from petard_worker.pool_settings import PoolSettings
from petard_worker.postgres.columns import texts
from petard_worker.postgres.connect import Connection

AROUND = 5

# The one rule of all boards, as a named query to begin a statement with; its parameters are a Listing.
# Not materialized: a statement that names it twice would copy the whole board to look one player up in it.
LISTED: LiteralString = """
    WITH listed AS NOT MATERIALIZED (
        SELECT player, rating, rd, bomb, games,
               CASE WHEN %(conservative)s THEN rating - 2 * rd ELSE rating END AS score
        FROM petard.rating
        WHERE pool = %(pool)s AND last_played IS NOT NULL AND rd <= %(highest_rd)s
          AND (%(oldest)s::timestamptz IS NULL OR last_played >= %(oldest)s::timestamptz)
    )
"""


class Listing(NamedTuple):
    """Who is listed in a pool, and by what score."""

    pool: str
    conservative: bool
    """Whether the score is rating - 2 RD and not the rating."""
    highest_rd: float
    oldest: datetime | None
    """Who has not played since is left out."""


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
    """Where a player stood after one of their events, which happened at `time`."""

    time: datetime
    player_seq: int
    rating: float
    rd: float
    volatility: float | None
    bomb: int
    games: int


def list_by(pool: str, settings: PoolSettings, now: datetime) -> Listing:
    """Return who is listed in the pool at this time."""
    days = settings.hide_inactive_days
    return Listing(
        pool,
        conservative=settings.ranked_by == "conservative",
        highest_rd=settings.provisional_rd if settings.hide_provisional else float("inf"),
        oldest=now - timedelta(days=days) if days else None,
    )


def board_top(connection: Connection, listing: Listing, count: int) -> list[BoardLine]:
    """Return the first `count` lines."""
    # Cut off before the ranks are counted: Postgres keeps `count` players in hand and sorts nobody else.
    sql: LiteralString = """
        , top AS (
            SELECT score, player, rating, rd, bomb, games
            FROM listed ORDER BY score DESC, player COLLATE "C" LIMIT %(count)s
        )
        SELECT rank() OVER (ORDER BY score DESC), player, rating, rd, bomb, games
        FROM top ORDER BY score DESC, player COLLATE "C"
    """
    rows = connection.execute(LISTED + sql, {"count": count, **listing._asdict()}, binary=True)
    return [BoardLine(*cast("BoardLine", row)) for row in rows]


def board_around(connection: Connection, listing: Listing, player: str) -> list[BoardLine]:
    """Return the lines around a player, or none when the player is not listed."""
    # Of a score that begins above the lines shown nobody has counted how many have it: `equal` of them do.
    sql: LiteralString = """
        , own AS MATERIALIZED (
            SELECT score, player COLLATE "C" AS name FROM listed WHERE player = %(player)s
        ), above AS (
            SELECT listed.* FROM listed CROSS JOIN own
            WHERE listed.score > own.score
               OR (listed.score = own.score AND listed.player COLLATE "C" < own.name)
            ORDER BY listed.score, listed.player COLLATE "C" DESC LIMIT %(around)s
        ), below AS (
            SELECT listed.* FROM listed CROSS JOIN own
            WHERE listed.score < own.score
               OR (listed.score = own.score AND listed.player COLLATE "C" >= own.name)
            ORDER BY listed.score DESC, listed.player COLLATE "C" LIMIT %(around)s + 1
        ), shown AS MATERIALIZED (
            SELECT * FROM above UNION ALL SELECT * FROM below
        ), first AS MATERIALIZED (
            SELECT score, player COLLATE "C" AS name FROM shown ORDER BY score DESC, name LIMIT 1
        ), before AS (
            SELECT count(*) FILTER (WHERE listed.score > first.score) AS higher,
                   count(*) FILTER (WHERE listed.score = first.score) AS equal
            FROM listed CROSS JOIN first
            WHERE listed.score > first.score
               OR (listed.score = first.score AND listed.player COLLATE "C" < first.name)
        )
        SELECT rank() OVER (ORDER BY shown.score DESC) + higher
               + CASE WHEN shown.score < first.score THEN equal ELSE 0 END,
               player, rating, rd, bomb, games
        FROM shown CROSS JOIN first CROSS JOIN before
        ORDER BY shown.score DESC, player COLLATE "C"
    """
    values = {"player": player, "around": AROUND, **listing._asdict()}
    rows = connection.execute(LISTED + sql, values, binary=True)
    return [BoardLine(*cast("BoardLine", row)) for row in rows]


def find_place(connection: Connection, listing: Listing, player: str) -> Place | None:
    """Return where the player stands, or None when the player is not listed."""
    sql: LiteralString = """
        , own AS (SELECT score FROM listed WHERE player = %(player)s)
        SELECT 1 + count(*) FILTER (WHERE listed.score > own.score),
               100.0::float8 * (
                   count(*) FILTER (WHERE listed.score < own.score)
                   + 0.5::float8 * count(*) FILTER (WHERE listed.score = own.score)
               ) / count(*)
        FROM own CROSS JOIN listed
        HAVING count(*) > 0
    """
    row = connection.execute(LISTED + sql, {"player": player, **listing._asdict()}).fetchone()
    return None if row is None else Place(*cast("Place", row))


def read_scores(connection: Connection, listing: Listing, players: Iterable[str]) -> dict[str, float]:
    """Return the scores of those of these players who are listed."""
    sql: LiteralString = """
        SELECT found.player, found.score
        FROM unnest(%(players)b::text[]) AS asked (name)
        CROSS JOIN LATERAL (SELECT player, score FROM listed WHERE player = asked.name OFFSET 0) AS found
    """
    values = {"players": texts(players), **listing._asdict()}
    return dict(cast("Iterable[tuple[str, float]]", connection.execute(LISTED + sql, values, binary=True)))


def read_board(connection: Connection, listing: Listing, size: int) -> Iterator[dict[str, float]]:
    """Yield the scores of all who are listed, `size` players at a time, as they were at one moment.

    Call it in a transaction: the rows stay in Postgres until they are asked for.
    """
    sql: LiteralString = """
        SELECT player, score FROM listed
    """
    # The one statement of a publisher that is no look-up by key.
    connection.execute("SET LOCAL enable_seqscan = on")
    with connection.cursor("board") as cursor:
        cursor.execute(LISTED + sql, listing._asdict(), binary=True)
        while rows := cursor.fetchmany(size):
            yield dict(cast("list[tuple[str, float]]", rows))


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
    """Return where the player stood before the first applied event whose time is after `time`.

    So no game after `time` is in it. A late game is missing if games after `time` were applied before.
    """
    sql = """
        SELECT ledger.time, change.player_seq, change.rating_after, change.rd_after, change.volatility_after,
               change.bomb_after, change.games_after
        FROM petard.change AS change
        JOIN petard.ledger AS ledger ON ledger.pool = change.pool AND ledger.seq = change.seq
        WHERE change.pool = %(pool)s AND change.player = %(player)s
          AND change.player_seq < coalesce((
              SELECT newer.player_seq
              FROM petard.change AS newer
              JOIN petard.ledger AS cause ON cause.pool = newer.pool AND cause.seq = newer.seq
              WHERE newer.pool = %(pool)s AND newer.player = %(player)s
                AND newer.player_seq > %(passed)s AND cause.time > %(time)s
              ORDER BY newer.player_seq LIMIT 1
          ), 9223372036854775807)
        ORDER BY change.player_seq DESC LIMIT 1
    """
    passed = find_passed(connection, pool, player, time)
    values = {"pool": pool, "player": player, "time": time, "passed": passed}
    row = connection.execute(sql, values, binary=True).fetchone()
    return None if row is None else PastStanding(*cast("PastStanding", row))


def find_passed(connection: Connection, pool: str, player: str, time: datetime) -> int:
    """Return a change of the player up to which no event has a time after `time`: the last one in order.

    Entries that are not late have ascending times, so they are halved until one is left; a late one has an
    earlier time than one before it. Through thousands of games that takes a dozen steps.
    """
    sql = """
        WITH RECURSIVE halving AS (
            SELECT 0::bigint AS passed, (
                SELECT player_seq + 1 FROM petard.rating WHERE pool = %(pool)s AND player = %(player)s
            ) AS beyond
            UNION ALL
            SELECT CASE WHEN found.time <= %(time)s THEN found.player_seq ELSE passed END,
                   CASE WHEN found.time <= %(time)s THEN beyond ELSE middle END
            FROM halving
            CROSS JOIN LATERAL (SELECT (passed + beyond) / 2 AS middle) AS half
            LEFT JOIN LATERAL (
                SELECT change.player_seq, ledger.time
                FROM petard.change AS change
                JOIN petard.ledger AS ledger ON ledger.pool = change.pool AND ledger.seq = change.seq
                WHERE change.pool = %(pool)s AND change.player = %(player)s
                  AND change.player_seq >= middle AND change.player_seq < beyond AND NOT ledger.late
                ORDER BY change.player_seq LIMIT 1
            ) AS found ON true
            WHERE beyond - passed > 1
        )
        SELECT max(passed) FROM halving
    """
    row = connection.execute(sql, {"pool": pool, "player": player, "time": time}, binary=True).fetchone()
    assert row is not None
    return cast("int", row[0])
