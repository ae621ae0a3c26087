"""How ratings are spread: summary and histogram, pure."""

import itertools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from petard_worker.scale import Scale

FEWEST_BINS, MOST_BINS = 15, 25
NICE = (1.0, 2.0, 5.0, 2.5, 4.0, 3.0, 1.5, 7.5)
"""Widths of bins, times a power of ten, nicest first: neighbours are so close that one always fits."""


@dataclass(frozen=True, slots=True)
class Bin:
    """How many players are rated between `low` and `high`, of which the edge counts that is shown lower."""

    low: float
    high: float
    players: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The ratings of at least one player; quartiles as interpolated between neighbours."""

    mean: float
    sd: float
    """Of the whole pool, not of a sample of it: 0 for one player."""
    lowest: float
    lower_quartile: float
    median: float
    upper_quartile: float
    highest: float


@dataclass(frozen=True, slots=True)
class Distribution:
    """How the ratings of those on the board are spread now."""

    players: int
    provisional: int
    provisional_share: float | None
    summary: Summary | None
    bins: Sequence[Bin]


def distribution_of(listed: Sequence[float], provisional: int, scale: Scale) -> Distribution:
    """Return how the ratings are spread, in bins that are round where people see them: on the scale."""
    ratings = sorted(listed)
    return Distribution(
        len(ratings),
        provisional,
        share(provisional, len(ratings)),
        summary_of(ratings) if ratings else None,
        bins_of(ratings, scale) if ratings else [],
    )


def share(part: int, whole: int) -> float | None:
    """Return part of whole, 0 to 1, or None of nothing."""
    return part / whole if whole else None


def summary_of(ratings: Sequence[float]) -> Summary:
    """Return the summary of ratings in ascending order, of which there is at least one."""
    mean = math.fsum(ratings) / len(ratings)
    sd = math.sqrt(math.fsum((rating - mean) ** 2 for rating in ratings) / len(ratings))
    lower, median, upper = (quantile(ratings, part) for part in (0.25, 0.5, 0.75))
    return Summary(mean, sd, ratings[0], lower, median, upper, ratings[-1])


def quantile(ordered: Sequence[float], part: float) -> float:
    """Return what `part` of the values lie below, interpolated as percentile_cont of SQL does."""
    place = part * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def bins_of(ratings: Sequence[float], scale: Scale) -> list[Bin]:
    """Return the histogram of ratings, of which there is at least one, from the lowest on the scale up."""
    shown = [scale.shown(rating) for rating in ratings]
    edges = bin_edges(min(shown), max(shown))
    counts = Counter(bisect_right(edges, value) for value in shown)
    pairs = itertools.pairwise(scale.rating(edge) for edge in edges)
    # A scale may turn ratings round: then the edge shown as the lower one is the higher rating.
    return [Bin(min(pair), max(pair), counts[number]) for number, pair in enumerate(pairs, 1)]


def bin_edges(lowest: float, highest: float) -> list[float]:
    """Return edges at multiples of a round width, around all that is from lowest to highest.

    They make 15 to 25 bins where the values are that far apart: no bin is narrower than one point.
    """
    width = bin_width(lowest, highest)
    first, last = bin_of(lowest, width), bin_of(highest, width) + 1
    return [number * width for number in range(first, last + 1)]


def bin_width(lowest: float, highest: float) -> float:
    """Return the nicest width that makes 15 to 25 bins, or 1 where even that makes fewer than 15."""
    if bin_count(lowest, highest, 1.0) < FEWEST_BINS:
        return 1.0
    decade = math.floor(math.log10((highest - lowest) / FEWEST_BINS))
    widths = (nice * 10.0**power for nice in NICE for power in (decade - 1, decade, decade + 1))
    return next(w for w in widths if w >= 1 and FEWEST_BINS <= bin_count(lowest, highest, w) <= MOST_BINS)


def bin_count(lowest: float, highest: float, width: float) -> int:
    """Return how many bins of this width, edges at its multiples, hold the values from lowest to highest."""
    return bin_of(highest, width) - bin_of(lowest, width) + 1


def bin_of(value: float, width: float) -> int:
    """Return the number of the bin that holds the value; the one from 0 on is 0."""
    number = math.floor(value / width)
    return number - 1 if number * width > value else number  # so little below 0 that a division makes it 0
