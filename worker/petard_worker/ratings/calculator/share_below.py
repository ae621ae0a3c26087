"""Which share of players is rated lower.

Among ratings that are known: those that are lower, and of equal ones half, as on the board. Without them
there is only an estimate, from one published distribution that is named with it.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from petard_worker.ratings.calculator.accepted import (
    HIGHEST_RATING,
    LOWEST_RATING,
    CalculatorInputError,
    check_count,
    check_range,
    check_rating,
    is_number,
    shortened,
)

MOST_LISTED = 10**12


class Percentile(NamedTuple):
    """The share of the listed that is rated lower, ties counted half."""

    percentile: float
    """0 to 100."""
    lower: int
    equal: int
    listed: int


class Reference(NamedTuple):
    """A published distribution of ratings, taken as a normal one."""

    population: str
    mean: float
    deviation: float
    source: str
    url: str
    caveat: str


class Estimate(NamedTuple):
    """The share that would be rated lower if the reference held: an estimate, not a count."""

    percentile: float
    """0 to 100."""
    reference: Reference


GERMANY_2007 = Reference(
    population="about 120,000 players on the list of the German Chess Federation, April 2007",
    mean=1461.0,
    deviation=342.0,
    source=(
        "Bilalić, M., Smallbone, K., McLeod, P., & Gobet, F. (2009). Why are (the best) women so good at"
        " chess? Participation rates and gender differences in intellectual domains. Proceedings of the"
        " Royal Society B, 276(1659), 1161-1165 (figure 1: normal curve fitted to the list)"
    ),
    url="https://doi.org/10.1098/rspb.2008.1576",
    caveat=(
        "one national list of one year and a normal curve fitted to it: other lists lie elsewhere, and the"
        " curve promises stronger players at the very top than there were"
    ),
)


def percentile(rating: float, ratings: Iterable[float]) -> Percentile:
    """Return where the rating stands among ratings, its own included if it is one of them."""
    check_rating(rating)
    listed = [check_rating(other, "a listed rating") for other in ratings]
    lower = len([other for other in listed if other < rating])
    return percentile_of_counts(lower, listed.count(rating), len(listed))


def percentile_of_counts(lower: int, equal: int, listed: int) -> Percentile:
    """Return the percentile of a rating that so many of the listed are below, and so many equal to."""
    check_count(listed, 1, MOST_LISTED, "the number of listed players")
    check_count(lower, 0, listed, "the number of lower ratings")
    check_count(equal, 0, listed - lower, "the number of equal ratings")
    return Percentile(100 * (lower + equal / 2) / listed, lower, equal, listed)


def estimated_percentile(rating: float, reference: Reference = GERMANY_2007) -> Estimate:
    """Return the share of a normal distribution that lies below the rating."""
    check_rating(rating)
    check_range(reference.mean, LOWEST_RATING, HIGHEST_RATING, "the mean")
    if not (is_number(reference.deviation) and 0 < reference.deviation < math.inf):
        raise CalculatorInputError(
            f"the deviation is {shortened(reference.deviation)}, but must be a number above 0"
        )
    z = (rating - reference.mean) / reference.deviation
    return Estimate(50 * math.erfc(-z / math.sqrt(2)), reference)
