"""Fluctuation and drift of a pool: whether ratings hold still, and whether their level moves.

All numbers are in rating points as they are stored. Time ends at the pool's newest event, or at a time that
is asked for, and never at a clock: the history of an imported season can be looked at years later. Players
who have only left games unpunished have played nothing and are left out everywhere, as they are on the board.
"""

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import Field, dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from petard_worker.display import scale_of
from petard_worker.distribution import Distribution, distribution_of, share
from petard_worker.pool_settings import pool_settings
from petard_worker.postgres.boards import list_by
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.pool_stats import (
    Established,
    History,
    RatingsAt,
    count_window,
    find_beginning,
    patience,
    read_listed_ratings,
    read_ratings_at,
)
from petard_worker.postgres.pools import Pool
from petard_worker.ratings.parameters import (
    BadParameterError,
    ParameterValue,
    build,
    check,
    choice,
    integer,
    number,
)
from petard_worker.ratings.pool_rules import pool_rules

STEADY_PER_YEAR = 10.0
"""A mean that moves by no more than so many points of Elo a year is steady, by our own choice."""
USUAL_WIDTH = 150.0
"""How many points of Elo a rating may move and count as having stayed."""
NARROWEST = 0.001
SHORTEST_DRIFT = timedelta(days=30)
"""Over less time a change per year would be mostly noise, multiplied."""
FEWEST_PLAYERS = 20
"""The mean of fewer is moved by anybody: what it does is no drift of the pool."""
USUAL_GAMES = 20
"""How many games make a player established where the system knows no deviation."""
YEAR = timedelta(days=365.25)


@dataclass(frozen=True, slots=True)
class StatsQuestion:
    """What is asked of a pool; ratings and deviations in rating points."""

    days: float = number(90, 0.001, 100_000, "how many days the window of the fluctuation has")
    width: float = number(
        USUAL_WIDTH, NARROWEST, 1e6, "how far a rating may move in it and count as having stayed"
    )
    established: float = number(110, 0, 1_000, "a player with a larger deviation is not established")
    games: int = integer(0, 0, 100_000, "a player with fewer games is not established")
    points: int = integer(12, 2, 200, "at how many times the drift is measured")
    drift: str = choice("life", ("life", "window"), "measure the drift over the pool's life or the window")


@dataclass(frozen=True, slots=True)
class Fluctuation:
    """How many established players never moved further than `width` from where they stood at `since`."""

    since: datetime
    until: datetime
    width: float
    established: int
    stayed: int
    share: float | None
    """Of the established, 0 to 1; None where there are none."""
    active: int
    """Of the established, those with a rated event in the window: the others could not but stay."""
    active_stayed: int
    active_share: float | None


class Verdict(StrEnum):
    """What a change of the mean comes to."""

    INFLATION = "inflation"
    DEFLATION = "deflation"
    STEADY = "steady"


@dataclass(frozen=True, slots=True)
class Trend:
    """How the mean moves: by a straight line through the points (least squares).

    A point counts as much as it has players: a mean of the first two says little.
    """

    change_per_year: float | None
    """None where there are fewer than two points, or less than 30 days between the first and the last."""
    verdict: Verdict | None
    """None where there is no change per year, or fewer than 20 players at the end."""


@dataclass(frozen=True, slots=True)
class Drift:
    """The level of a pool over time. Who plays changes too: a mean moves also when weak players leave."""

    points: Sequence[RatingsAt]
    players: Trend
    established: Trend
    steady_per_year: float


@dataclass(frozen=True, slots=True)
class PoolStats:
    """All that is told about a pool; one in which nothing was rated yet has no fluctuation."""

    pool: str
    established: Established
    fluctuation: Fluctuation | None
    drift: Drift
    distribution: Distribution


def ask(pool: Pool, given: Mapping[str, ParameterValue], prefix: str = "") -> StatsQuestion:
    """Return the question, where not given with what is usual in the pool, or raise BadParameterError.

    The names of `given` have the prefix, so that an error names what a person has typed.
    """
    if prefix + "established" in given and not has_deviation(pool):
        raise BadParameterError(
            f"{prefix}established bounds the RD, but {pool.system} has none: give {prefix}games"
        )
    usual = usual_in(pool)
    for declared in fields(StatsQuestion):
        name = prefix + declared.name
        if name in given:
            # The default that an error names is the pool's own.
            check(name, with_default(declared, usual.get(declared.name)), given[name])
    return build(StatsQuestion, {**{prefix + name: value for name, value in usual.items()}, **given}, prefix)


def usual_in(pool: Pool) -> dict[str, ParameterValue]:
    """Return what is usual in the pool where that is not what is declared; widths go by points of Elo."""
    width = max(USUAL_WIDTH * elo_point(pool), NARROWEST)
    if has_deviation(pool):
        return {"width": width, "established": pool_settings(pool.settings).provisional_rd}
    return {"width": width, "games": USUAL_GAMES}


def with_default(declared: Field[Any], default: ParameterValue | None) -> Field[Any]:
    """Return the declaration with another default; None keeps its own."""
    if default is None:
        return declared
    own = copy(declared)
    own.default = default
    return own


def elo_point(pool: Pool) -> float:
    """Return how many points of the pool weigh as much as one point of Elo."""
    return pool_rules(pool.system, pool.parameters).system.elo_point()


def has_deviation(pool: Pool) -> bool:
    """Return whether the pool's system knows how sure it is of a rating; where not, every RD is 0."""
    return pool_rules(pool.system, pool.parameters).system.initial().rd > 0


def find_stats(
    connection: Connection, pool: Pool, question: StatsQuestion, until: datetime | None, now: datetime
) -> PoolStats:
    """Return what there is to tell of the pool; `until` None means its newest event.

    The history is read up to the pool's ledger entry as given, however many are applied meanwhile. The
    distribution is that of the board at the time `now`. It goes through all changes of the pool, twice.
    """
    established = Established(question.established if has_deviation(pool) else None, question.games)
    history = History(pool.name, pool.seq, established.highest_rd, established.fewest_games)
    settings = pool_settings(pool.settings)
    end = until or pool.newest
    fluctuation, points = None, list[RatingsAt]()
    with patience(connection):
        listed = read_listed_ratings(connection, list_by(pool.name, settings, now), settings.provisional_rd)
        begun = find_beginning(connection, pool.name, pool.seq)
        if end is not None and begun is not None:
            since = days_before(end, question.days)
            fluctuation = find_fluctuation(connection, history, since, end, question.width)
            start = begun if question.drift == "life" else max(since, begun)
            times = spread_times(start, end, question.points)
            points = read_ratings_at(connection, history, times) if times else []
    return PoolStats(
        pool.name,
        established,
        fluctuation,
        drift_of(points, STEADY_PER_YEAR * elo_point(pool)),
        distribution_of(listed.ratings, listed.provisional, scale_of(pool)),
    )


def find_fluctuation(
    connection: Connection, history: History, since: datetime, until: datetime, width: float
) -> Fluctuation:
    """Return how many of the established players stayed near their rating."""
    counts = count_window(connection, history, since, until, width)
    return Fluctuation(
        since,
        until,
        width,
        counts.established,
        counts.stayed,
        share(counts.stayed, counts.established),
        counts.active,
        counts.active_stayed,
        share(counts.active_stayed, counts.active),
    )


def days_before(time: datetime, days: float) -> datetime:
    """Return the time so many days before, or the first there is."""
    earliest = datetime.min.replace(tzinfo=UTC)
    length = timedelta(days=days)
    return time - length if time - earliest > length else earliest


def spread_times(first: datetime, last: datetime, count: int) -> list[datetime]:
    """Return so many times at even distances, both ends included; one where they are the same, none after."""
    if first >= last:
        return [last] if first == last else []
    return [first + (last - first) * number / (count - 1) for number in range(count)]


def drift_of(points: Sequence[RatingsAt], steady: float) -> Drift:
    """Return the points and how the means move; up to `steady` rating points a year they do not."""
    everybody = trend_of([(point.time, point.players, point.mean) for point in points], steady)
    established = trend_of(
        [(point.time, point.established, point.established_mean) for point in points], steady
    )
    return Drift(points, everybody, established, steady)


def trend_of(means: Sequence[tuple[datetime, int, float | None]], steady: float) -> Trend:
    """Return how means of so many players move over time; those of nobody are left out."""
    known = [(time, players, mean) for time, players, mean in means if mean is not None]
    if len(known) < 2 or known[-1][0] - known[0][0] < SHORTEST_DRIFT:
        return Trend(None, None)
    slope = slope_of([((time - known[0][0]) / YEAR, mean, players) for time, players, mean in known])
    return Trend(slope, verdict_on(slope, steady) if known[-1][1] >= FEWEST_PLAYERS else None)


def slope_of(points: Sequence[tuple[float, float, float]]) -> float:
    """Return the slope of the line of least squares through points (x, y, weight), two or more xs."""
    weight = math.fsum(w for _, _, w in points)
    x_mean = math.fsum(w * x for x, _, w in points) / weight
    y_mean = math.fsum(w * y for _, y, w in points) / weight
    together = math.fsum(w * (x - x_mean) * (y - y_mean) for x, y, w in points)
    return together / math.fsum(w * (x - x_mean) ** 2 for x, _, w in points)


def verdict_on(change_per_year: float, steady: float) -> Verdict:
    """Return what such a change comes to; up to `steady` it is none."""
    if abs(change_per_year) <= steady:
        return Verdict.STEADY
    return Verdict.INFLATION if change_per_year > 0 else Verdict.DEFLATION
