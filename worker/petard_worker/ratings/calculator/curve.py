"""The S-curve of Elo as points of two lines: the expected score against the difference of two ratings.

The logistic curve is smooth, FIDE's table 8.1.2 goes in steps. They are not the same curve: up to .018 lie
between them. The table is taken as it stands, without the cap of 400 that 8.3.1 puts on the difference before
the table is read.
"""

from itertools import pairwise
from typing import NamedTuple

from petard_worker.ratings import fide
from petard_worker.ratings.calculator.expected import logistic

WIDEST = 800
"""Rating points on either side of the curve."""
SMOOTH_STEP = 10
"""Rating points; so many look smooth at any size of a page."""


class Point(NamedTuple):
    """A difference of ratings and the score that it lets expect."""

    difference: float
    score: float


def logistic_line() -> tuple[Point, ...]:
    """Return the logistic curve from -WIDEST to WIDEST."""
    return tuple(Point(D, logistic(D)) for D in range(-WIDEST, WIDEST + 1, SMOOTH_STEP))


def fide_line() -> tuple[Point, ...]:
    """Return the corners of table 8.1.2; a step lies half-way between two whole differences."""
    corners = [Point(-WIDEST, fide.expected_score(-WIDEST))]
    for before, after in pairwise(range(-WIDEST, WIDEST + 1)):
        low, high = fide.expected_score(before), fide.expected_score(after)
        if low != high:
            corners += [Point(after - 0.5, low), Point(after - 0.5, high)]
    return (*corners, Point(WIDEST, fide.expected_score(WIDEST)))
