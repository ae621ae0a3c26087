"""How much a player is expected to score against another.

Two readings of the same difference of ratings: the logistic curve of Elo's book in its usual form,
E = 1 / (1 + 10^(-D / 400)), and FIDE's table 8.1.2, which is close to a normal curve and up to 0.018 away.
An expected score is no chance of winning: draws count half, so 0.75 is 75 wins and 25 losses in a hundred
games as well as 50 wins and 50 draws.
"""

from enum import StrEnum
from typing import NamedTuple

from petard_worker.ratings import elo, fide
from petard_worker.ratings.calculator.accepted import check_rating

LOGISTIC_FORMULA = "E = 1 / (1 + 10^(-D / 400))"
TABLE_FORMULA = "FIDE table 8.1.2"
SCALE = 400
"""Points of difference that make the odds ten to one."""


class Odds(StrEnum):
    """What an expected score is called; the bounds are ours."""

    EVEN = "even"
    SLIGHT_FAVOURITE = "slight favourite"
    FAVOURITE = "favourite"
    STRONG_FAVOURITE = "strong favourite"
    OVERWHELMING_FAVOURITE = "overwhelming favourite"
    SLIGHT_UNDERDOG = "slight underdog"
    UNDERDOG = "underdog"
    STRONG_UNDERDOG = "strong underdog"
    OVERWHELMING_UNDERDOG = "overwhelming underdog"


class Bound(NamedTuple):
    """From which expected score of the better player on, which words are used for the two."""

    lowest: float
    better: Odds
    worse: Odds


BOUNDS = (
    Bound(0.95, Odds.OVERWHELMING_FAVOURITE, Odds.OVERWHELMING_UNDERDOG),
    Bound(0.80, Odds.STRONG_FAVOURITE, Odds.STRONG_UNDERDOG),
    Bound(0.65, Odds.FAVOURITE, Odds.UNDERDOG),
    Bound(0.55, Odds.SLIGHT_FAVOURITE, Odds.SLIGHT_UNDERDOG),
    Bound(0.50, Odds.EVEN, Odds.EVEN),
)
"""The first bound that is reached counts."""


class PlayerExpectation(NamedTuple):
    """What one of the two is expected to score, 0 to 1."""

    rating: float
    difference: float
    """The player's rating less the opponent's."""
    logistic: float
    table: float
    """By FIDE's table, for the difference as it is."""
    counted: float
    """By FIDE's table, for the difference that FIDE counts: at most 400 for players rated below 2650."""
    odds: Odds
    """By the logistic expected score."""
    cap_matters: bool
    """Whether FIDE rates the game by another expected score than that of its table."""


class Expectation(NamedTuple):
    """What both are expected to score."""

    player: PlayerExpectation
    opponent: PlayerExpectation


def expectation(rating: float, opponent: float) -> Expectation:
    """Return the expected scores of two ratings. Raises CalculatorInputError where one is out of range."""
    check_rating(rating)
    check_rating(opponent, "the opponent's rating")
    return Expectation(one_sided(rating, opponent), one_sided(opponent, rating))


def one_sided(rating: float, opponent: float) -> PlayerExpectation:
    """Return what the first is expected to score."""
    D = rating - opponent
    table, counted = fide.expected_score(D), counted_score(rating, opponent)
    return PlayerExpectation(rating, D, logistic(D), table, counted, odds(D), counted != table)


def logistic(D: float) -> float:
    """Return the expected score for a difference of ratings, R - R_opponent, by the logistic curve."""
    return elo.logistic(D, SCALE)


def counted_score(rating: float, opponent: float) -> float:
    """Return the expected score that FIDE rates a standard game by: 8.3.1 and table 8.1.2."""
    return fide.expected_score(counted_difference(rating, opponent))


def counted_difference(rating: float, opponent: float) -> float:
    """Return the difference of ratings that FIDE counts in a standard game: 8.3.1."""
    return fide.capped(rating - opponent, rating, fide.DIFFERENCE_CAP, fide.UNCAPPED_FROM)


def odds(D: float) -> Odds:
    """Return the words for a difference of ratings."""
    E = logistic(abs(D))
    bound = next(bound for bound in BOUNDS if bound.lowest <= E)
    return bound.better if D >= 0 else bound.worse
