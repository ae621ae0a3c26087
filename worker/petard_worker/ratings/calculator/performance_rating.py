"""Which rating would be worth the results of some games? Three definitions that are in use.

linear: Ra + 400 (W - L) / N, the "rule of 400"; Ra is the mean rating of the opponents.
FIDE:   Ra + dp, with dp from table 8.1.1 for the fractional score p in hundredths.
exact:  the rating whose logistic expected score against these opponents equals the points scored. Where all
        games are won, or all are lost, there is none: every rating expects less than everything, more than
        nothing. Infinity is not a number to show, so it is None there, with the reason.
"""

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from petard_worker.ratings import fide
from petard_worker.ratings.calculator.accepted import PlayedGame, check_results
from petard_worker.ratings.calculator.expected import logistic

LINEAR_FORMULA = "Ra + 400 (W - L) / N"
FIDE_PERFORMANCE_FORMULA = "Ra + dp(p), table 8.1.1"
EXACT_FORMULA = "the R with sum of 1 / (1 + 10^((R_j - R) / 400)) = points"
EXACT_TO = 1e-9


class PerformanceNote(StrEnum):
    """What is to be said of a performance rating where all games were won, or all lost."""

    NOTIONAL = "notional"
    """Table 8.1.1 has no difference of its own for it: FIDE takes 800 notionally."""
    NO_EXACT = "no_exact"
    """No rating expects it exactly: the one that comes closest is infinite, no number."""


class Record(NamedTuple):
    """Wins, draws and losses."""

    wins: int
    draws: int
    losses: int
    games: int
    points: float
    """1 for a win, 0.5 for a draw."""


class Performance(NamedTuple):
    """Performance ratings by all three definitions, unrounded."""

    record: Record
    average_opponent: float
    """Ra."""
    linear: float
    p: float
    """The fractional score in hundredths, as table 8.1.1 is read."""
    dp: int
    fide: float
    fide_note: PerformanceNote | None
    """Why the FIDE one is notional, where it is."""
    exact: float | None
    exact_note: PerformanceNote | None
    """Why there is no exact one, where there is none."""


def performance(results: Iterable[PlayedGame | tuple[float, float]]) -> Performance:
    """Return the performance ratings of at least one game. Raises CalculatorInputError."""
    played = check_results(results)
    record = count(played)
    Ra = math.fsum(result.opponent for result in played) / len(played)
    share = record.points / record.games
    dp = fide.performance_difference(share)
    perfect = share in {0.0, 1.0}
    return Performance(
        record=record,
        average_opponent=Ra,
        linear=Ra + 400 * (record.wins - record.losses) / record.games,
        p=fide.hundredths(share) / 100,
        dp=dp,
        fide=Ra + dp,
        fide_note=PerformanceNote.NOTIONAL if perfect else None,
        exact=None if perfect else exact_performance(played),
        exact_note=PerformanceNote.NO_EXACT if perfect else None,
    )


def count(results: Iterable[PlayedGame]) -> Record:
    """Return how many games were won, drawn and lost."""
    scores = [result.score for result in results]
    wins, draws, losses = scores.count(1.0), scores.count(0.5), scores.count(0.0)
    return Record(wins, draws, losses, len(scores), wins + draws / 2)


def exact_performance(results: tuple[PlayedGame, ...]) -> float:
    """Return the rating that expects the points scored, within 1e-9, by halving the interval it lies in.

    The results must be neither all won nor all lost. Against opponents who all had the same rating R_j it is
    R_j + d with d = 400 log10(points / points lost); so here it lies between the lowest R_j + d and the
    highest.
    """
    points = math.fsum(result.score for result in results)
    d = 400 * math.log10(points / (len(results) - points))
    low = min(result.opponent for result in results) + d
    high = max(result.opponent for result in results) + d
    while high - low > EXACT_TO:
        R = (low + high) / 2
        if surplus(R, results) < 0:
            low = R
        else:
            high = R
    return (low + high) / 2


def surplus(R: float, results: tuple[PlayedGame, ...]) -> float:
    """Return by how much a rating expects more than was scored; the sign is right however small it is.

    Against weaker opponents the expected score is 1 less what they expect: far away that keeps the digits
    that 1 - 1e-20 would lose, and fsum adds without losing any.
    """
    terms = [-result.score for result in results]
    for result in results:
        D = R - result.opponent
        if D > 0:
            terms += (1.0, -logistic(-D))
        else:
            terms.append(logistic(D))
    return math.fsum(terms)
