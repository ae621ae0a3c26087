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

# The one rule of all boards, as named queries to begin a statement with; their parameters are a Listing.
# Not materialized: a statement that names one twice would copy the whole board to look one player up in it.
# Conditions that a listing does not set are gone from the plan, and nobody is asked for them.
LISTED: LiteralString = """
    WITH known AS NOT MATERIALIZED (
        SELECT player, rating, rd, bomb, games,
               CASE WHEN %(conservative)s THEN rating - 2 * rd ELSE rating END AS score,
               last_played IS NOT NULL
               AND (%(highest_rd)s::float8 = 'Infinity' OR rd <= %(highest_rd)s::float8)
               AND (%(oldest)s::timestamptz IS NULL OR last_played >= %(oldest)s::timestamptz) AS is_listed
        FROM petard.rating
        WHERE pool = %(pool)s
    ), listed AS NOT MATERIALIZED (
        SELECT player, rating, rd, bomb, games, score FROM known WHERE is_listed
    )
"""

# Those listed among a thousand, whichever: with them in hand most of the others need not be sorted.
SAMPLE: LiteralString = """
    , sample AS MATERIALIZED (
        SELECT score, player COLLATE "C" AS name
        FROM (SELECT player, score, is_listed FROM known ORDER BY player LIMIT 1000) AS asked
        WHERE is_listed
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
    # Cut off before the ranks are counted: Postgres keeps `count` players in hand and sorts nobody else. Nor
    # does it look closer at whom so many of the sample are ahead of.
    sql: LiteralString = """
        , top AS (
            SELECT score, player, rating, rd, bomb, games
            FROM listed
            WHERE score >= coalesce(
                (SELECT score FROM sample ORDER BY score DESC OFFSET %(count)s - 1 LIMIT 1), '-Infinity'
            )
            ORDER BY score DESC, player COLLATE "C" LIMIT %(count)s
        )
        SELECT rank() OVER (ORDER BY score DESC), player, rating, rd, bomb, games
        FROM top ORDER BY score DESC, player COLLATE "C"
    """
    rows = connection.execute(LISTED + SAMPLE + sql, {"count": count, **listing._asdict()}, binary=True)
    return [BoardLine(*cast("BoardLine", row)) for row in rows]


def board_around(connection: Connection, listing: Listing, player: str) -> list[BoardLine]:
    """Return the lines around a player, or none when the player is not listed."""
    # The board is gone through once, and sorted nowhere but near the player: between two of the sample that
    # are at least as far away as the last ones shown. Of those above the upper one some may have its score.
    sql: LiteralString = """
        , own AS MATERIALIZED (
            SELECT score, player COLLATE "C" AS name FROM listed WHERE player = %(player)s
        ), edges AS MATERIALIZED (
            SELECT coalesce(upper.score, 'Infinity') AS high, upper.name AS high_name,
                   coalesce(lower.score, '-Infinity') AS low, lower.name AS low_name
            FROM own
            LEFT JOIN LATERAL (
                SELECT sample.score, sample.name FROM sample
                WHERE sample.score > own.score OR (sample.score = own.score AND sample.name < own.name)
                ORDER BY sample.score, sample.name DESC OFFSET %(around)s - 1 LIMIT 1
            ) AS upper ON true
            LEFT JOIN LATERAL (
                SELECT sample.score, sample.name FROM sample
                WHERE sample.score < own.score OR (sample.score = own.score AND sample.name > own.name)
                ORDER BY sample.score DESC, sample.name OFFSET %(around)s - 1 LIMIT 1
            ) AS lower ON true
        ), near AS (
            SELECT edges.high, counted.* FROM edges CROSS JOIN LATERAL (
                SELECT count(*) FILTER (WHERE score > edges.high) AS higher,
                       count(*) FILTER (WHERE score = edges.high AND player COLLATE "C" < edges.high_name)
                       AS equal,
                       array_agg(ROW(score, player, rating, rd, bomb, games)) FILTER (
                           WHERE score <= edges.high
                             AND (score < edges.high OR player COLLATE "C" >= edges.high_name)
                             AND (score > edges.low OR player COLLATE "C" <= edges.low_name)
                       ) AS lines
                FROM listed WHERE score >= edges.low
            ) AS counted
        ), placed AS MATERIALIZED (
            SELECT line.*,
                   row_number() OVER (ORDER BY score DESC, player COLLATE "C") AS place,
                   rank() OVER (ORDER BY score DESC) + higher + CASE WHEN score < high THEN equal ELSE 0 END
                   AS rank
            FROM near CROSS JOIN LATERAL unnest(lines) AS line (
                score float8, player text, rating float8, rd float8, bomb integer, games integer
            )
        )
        SELECT rank, player, rating, rd, bomb, games
        FROM placed
        WHERE abs(place - (SELECT place FROM placed WHERE player = %(player)s)) <= %(around)s
        ORDER BY place
    """
    values = {"player": player, "around": AROUND, **listing._asdict()}
    rows = connection.execute(LISTED + SAMPLE + sql, values, binary=True)
    return [BoardLine(*cast("BoardLine", row)) for row in rows]


def find_place(connection: Connection, listing: Listing, player: str) -> Place | None:
    """Return where the player stands, or None when the player is not listed."""
    sql: LiteralString = """
        , own AS (SELECT score FROM listed WHERE player = %(player)s)
        SELECT 1 + higher, 100.0::float8 * (players - higher - equal + 0.5::float8 * equal) / players
        FROM own CROSS JOIN LATERAL (
            SELECT count(*) AS players,
                   count(*) FILTER (WHERE listed.score > own.score) AS higher,
                   count(*) FILTER (WHERE listed.score = own.score) AS equal
            FROM listed
        ) AS counted
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
    rows = connection.execute(LISTED + sql, values, binary=True).fetchall()
    return dict(cast("list[tuple[str, float]]", rows))


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
