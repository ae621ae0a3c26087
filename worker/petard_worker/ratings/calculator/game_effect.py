"""What one game does to a rating, by two formulas side by side.

plain: R + K (S - E) with the logistic E. FIDE, for standard games: the difference of ratings counts at most
400 unless the player is rated 2650 or more (8.3.1), E is that of table 8.1.2, and the change of a period,
here of one game, is rounded to whole points, halves away from zero (8.3.4).
"""

from typing import NamedTuple

from petard_worker.ratings import fide
from petard_worker.ratings.calculator.accepted import PlayedGame, check_rating, check_score
from petard_worker.ratings.calculator.expected import counted_score, logistic
from petard_worker.ratings.calculator.performance_rating import Performance, performance
from petard_worker.ratings.calculator.which_k import Assumption, KChoice, check_choice, found_k
from petard_worker.ratings.k_factors import KFactor

PLAIN_FORMULA = "R + K (S - E)"
FIDE_CHANGE_FORMULA = "FIDE B.02, 8.3, standard games: difference at most 400 below 2650, table 8.1.2"


class Move(NamedTuple):
    """What becomes of one player by one formula."""

    expected: float
    """0 to 1."""
    change: float
    """Unrounded, in rating points."""
    new: float
    """The new rating, unrounded."""
    rounded: float
    """The new rating as it is published: plain in whole points, FIDE by the rounded change."""


class Moves(NamedTuple):
    """What becomes of one player by both formulas, with the K of both."""

    rating: float
    score: float
    k: KFactor
    assumed: Assumption | None
    """What had to be assumed to find K, if anything had to be."""
    plain: Move
    fide: Move


class GameEffect(NamedTuple):
    """What one game does."""

    player: Moves
    opponent_rating: float
    performance: Performance
    """Of this one game."""
    opponent: Moves | None
    """None where the opponent's K is not known: only with the same K does one lose what the other wins."""


def change(
    rating: float,
    opponent: float,
    score: float,
    choice: KChoice | float,
    opponent_choice: KChoice | float | None = None,
) -> GameEffect:
    """Return what a game does to the rating: score is 1, 0.5 or 0, a number as choice is K itself.

    Raises CalculatorInputError.
    """
    check_rating(rating)
    check_rating(opponent, "the opponent's rating")
    S = check_score(score)
    return GameEffect(
        moves(rating, opponent, S, check_choice(choice)),
        opponent,
        performance([PlayedGame(opponent, S)]),
        None if opponent_choice is None else moves(opponent, rating, 1 - S, check_choice(opponent_choice)),
    )


def moves(rating: float, opponent: float, score: float, choice: KChoice) -> Moves:
    """Return what becomes of one of the two by both formulas."""
    k = found_k(choice, rating)
    return Moves(
        rating,
        score,
        k,
        choice.assumed,
        plain_move(rating, opponent, score, k.k),
        fide_move(rating, opponent, score, k.k),
    )


def plain_move(R: float, opponent: float, S: float, K: float) -> Move:
    """Return R + K (S - E)."""
    E = logistic(R - opponent)
    change = K * (S - E)
    return Move(E, change, R + change, float(fide.rounded(R + change)))


def fide_move(R: float, opponent: float, S: float, K: float) -> Move:
    """Return the change by FIDE's rules, as if the game were the whole period."""
    PD = counted_score(R, opponent)
    change = K * (S - PD)
    return Move(PD, change, R + change, R + fide.rounded(change))
