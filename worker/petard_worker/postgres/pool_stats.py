"""What a pool's ratings did over time, and where they are now: counted in Postgres, in one pass each.

Where a player stood at some time is what `boards.find_past_standing` says: before the first applied event
whose time is later. So no later game is in it, and a late event takes effect only when it was applied: a
change begins to hold at the latest time of the player's entries up to it, the running maximum below.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import LiteralString, cast

from petard_worker.postgres.boards import LISTED, Listing
from petard_worker.postgres.columns import timestamps
from petard_worker.postgres.connect import Connection

# Where everybody stood at each of some ascending times, as named queries to begin a statement with. A change
# held at the times numbered `passed` + 1 to `ended`, counted from 1: the first `passed` lie before it.
# Times are compared by their place among the given ones, so one pass does for any number of them.
STANDING: LiteralString = """
    WITH history AS (
        SELECT change.player, change.player_seq, change.rating_after AS rating,
               (%(highest_rd)s::float8 IS NULL OR change.rd_after <= %(highest_rd)s::float8)
               AND change.games_after >= %(fewest_games)s AS established,
               change.games_after > change.games_before OR change.penalty AS rated,
               bool_or(change.games_after > 0 OR change.penalty) OVER chain AS played,
               max(width_bucket(ledger.time - interval '1 microsecond', %(times)b::timestamptz[]))
               OVER chain AS passed
        FROM petard.change AS change
        JOIN petard.ledger AS ledger ON ledger.pool = change.pool AND ledger.seq = change.seq
        WHERE change.pool = %(pool)s AND ledger.pool = %(pool)s AND change.seq <= %(seq)s
        WINDOW chain AS (PARTITION BY change.player ORDER BY change.player_seq)
    ), standing AS (
        SELECT player, rating, established AND played AS established, rated, played, passed,
               lead(passed, 1, cardinality(%(times)b::timestamptz[]))
               OVER (PARTITION BY player ORDER BY player_seq) AS ended
        FROM history
    )
"""


@dataclass(frozen=True, slots=True)
class Established:
    """Who is established: those who have played, with a deviation and a number of games within these."""

    highest_rd: float | None
    """As stored after the last event, like the board's provisional mark; None where a system has none."""
    fewest_games: int


@dataclass(frozen=True, slots=True)
class History:
    """The part of a pool's history that is looked at: up to a ledger entry, so that it stands still."""

    pool: str
    seq: int
    highest_rd: float | None
    fewest_games: int


@dataclass(frozen=True, slots=True)
class WindowCounts:
    """How many players were established when a window began, and how many of them stayed as they were."""

    established: int
    stayed: int
    active: int
    """Of the established, those who had a rated event in the window."""
    active_stayed: int


@dataclass(frozen=True, slots=True)
class RatingsAt:
    """The ratings at one time: of all who had played by then, and of the established among them."""

    time: datetime
    players: int
    mean: float | None
    median: float | None
    established: int
    established_mean: float | None
    established_median: float | None


@dataclass(frozen=True, slots=True)
class ListedRatings:
    """The ratings of all who are listed, in no order, and how many of them are provisional."""

    ratings: Sequence[float]
    provisional: int


@dataclass(frozen=True, slots=True)
class ScoreCounts:
    """How many players are listed, how many of them with a lower score, how many with this very one."""

    players: int
    lower: int
    equal: int


@contextmanager
def patience(connection: Connection) -> Iterator[None]:
    """Let each statement inside take ten minutes: through millions of changes it can take one."""
    with connection.transaction():
        connection.execute("SET LOCAL statement_timeout = '10min'")
        # Compiling them takes longer than a small pool does, and is not noticed in a large one.
        connection.execute("SET LOCAL jit = off")
        yield


def find_beginning(connection: Connection, pool: str, seq: int) -> datetime | None:
    """Return the earliest time at which somebody stood anywhere, by the entries up to `seq`."""
    sql = """
        SELECT min(ledger.time)
        FROM petard.change AS change
        JOIN petard.ledger AS ledger ON ledger.pool = change.pool AND ledger.seq = change.seq
        WHERE change.pool = %(pool)s AND ledger.pool = %(pool)s AND change.player_seq = 1
          AND change.seq <= %(seq)s
    """
    row = connection.execute(sql, {"pool": pool, "seq": seq}, binary=True).fetchone()
    return None if row is None else cast("datetime | None", row[0])


def count_window(
    connection: Connection, history: History, since: datetime, until: datetime, width: float
) -> WindowCounts:
    """Count the players established at `since`, and those no further than `width` from it up to `until`."""
    sql: LiteralString = """
        , moves AS (
            SELECT bool_or(established) FILTER (WHERE passed = 0) AS established,
                   bool_or(rated) FILTER (WHERE passed = 1) AS active,
                   greatest(
                       max(rating) FILTER (WHERE passed = 1) - min(rating) FILTER (WHERE passed = 0),
                       min(rating) FILTER (WHERE passed = 0) - min(rating) FILTER (WHERE passed = 1),
                       0
                   ) AS furthest
            FROM standing WHERE (passed = 0 AND ended > 0) OR passed = 1
            GROUP BY player
        )
        SELECT count(*),
               count(*) FILTER (WHERE furthest <= %(width)s),
               count(*) FILTER (WHERE active),
               count(*) FILTER (WHERE active AND furthest <= %(width)s)
        FROM moves WHERE established
    """
    values = {"times": timestamps([since, until]), "width": width, **asdict(history)}
    row = connection.execute(STANDING + sql, values, binary=True).fetchone()
    return WindowCounts(*cast("tuple[int, int, int, int]", row))


def read_ratings_at(connection: Connection, history: History, times: Sequence[datetime]) -> list[RatingsAt]:
    """Return the ratings at each of these ascending times; a time by which nobody had played has none."""
    sql: LiteralString = """
        , counted AS (
            SELECT number,
                   count(*) AS players, avg(rating) AS mean,
                   percentile_cont(0.5) WITHIN GROUP (ORDER BY rating) AS median,
                   count(*) FILTER (WHERE established) AS established,
                   avg(rating) FILTER (WHERE established) AS established_mean,
                   percentile_cont(0.5) WITHIN GROUP (ORDER BY rating) FILTER (WHERE established)
                   AS established_median
            FROM standing CROSS JOIN generate_series(passed + 1, ended) AS number
            WHERE played AND passed < ended
            GROUP BY number
        )
        SELECT asked.time, coalesce(players, 0), mean, median, coalesce(established, 0), established_mean,
               established_median
        FROM unnest(%(times)b::timestamptz[]) WITH ORDINALITY AS asked (time, number)
        LEFT JOIN counted ON counted.number = asked.number
        ORDER BY asked.number
    """
    values = {"times": timestamps(times), **asdict(history)}
    rows = connection.execute(STANDING + sql, values, binary=True)
    return [RatingsAt(*cast("tuple[datetime, int, float, float, int, float, float]", row)) for row in rows]


def read_listed_ratings(connection: Connection, listing: Listing, provisional_rd: float) -> ListedRatings:
    """Return the ratings of all who are listed, as they were at one moment."""
    sql: LiteralString = """
        SELECT coalesce(array_agg(rating), '{}'), count(*) FILTER (WHERE rd > %(provisional_rd)s) FROM listed
    """
    values = {"provisional_rd": provisional_rd, **listing._asdict()}
    row = connection.execute(LISTED + sql, values, binary=True).fetchone()
    return ListedRatings(*cast("tuple[list[float], int]", row))


def count_scores(connection: Connection, listing: Listing, score: float) -> ScoreCounts:
    """Count the listed players below and at a score, which need be nobody's."""
    sql: LiteralString = """
        SELECT count(*), count(*) FILTER (WHERE score < %(asked)s), count(*) FILTER (WHERE score = %(asked)s)
        FROM listed
    """
    row = connection.execute(LISTED + sql, {"asked": score, **listing._asdict()}, binary=True).fetchone()
    return ScoreCounts(*cast("tuple[int, int, int]", row))
