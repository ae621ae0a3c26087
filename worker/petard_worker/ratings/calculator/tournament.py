"""What the games of a tournament, or of several, do to a rating.

plain: the rating moves after every game by R + K (S - E), and the next game is expected, and K found, from
the rating it has moved to. fide, for standard games: rating and K hold for a whole period; the changes of its
games, by the difference that counts (8.3.1) and table 8.1.2, are added up, K times games is at most 700
(8.3.3), and the sum is rounded to whole points, halves away from zero (8.3.4); the next period starts from
the rounded rating, also where that is below 1400 and FIDE would call the player unrated (7.2.1).
"""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from petard_worker.ratings import fide
from petard_worker.ratings.calculator.accepted import (
    CalculatorInputError,
    PlayedGame,
    check_game,
    check_rating,
    check_results,
    shortened,
)
from petard_worker.ratings.calculator.expected import counted_score
from petard_worker.ratings.calculator.game_effect import plain_move
from petard_worker.ratings.calculator.performance_rating import Performance, Record, count, performance
from petard_worker.ratings.calculator.which_k import Assumption, KChoice, check_choice, found_k
from petard_worker.ratings.k_factors import KFactor


class PeriodGame(NamedTuple):
    """A game and the period it is rated in; games of one period follow each other."""

    result: PlayedGame
    period: str = ""


AnyGame = PeriodGame | PlayedGame | tuple[float, float]
"""A plain pair is the opponent's rating and the score."""


class GameLine(NamedTuple):
    """What one game did."""

    number: int
    period: str
    opponent: float
    score: float
    rated_as: float
    """The rating that the expected score is of: plain the one before the game, FIDE that of the period."""
    k: KFactor
    expected: float
    change: float
    after: float
    """The rating after the game; within a FIDE period a preview of it, not rounded yet."""


class PeriodLine(NamedTuple):
    """What one FIDE period did."""

    period: str
    games: int
    start: float
    k: KFactor
    change: float
    """Unrounded."""
    rounded: int
    """The change that counts."""
    end: float
    below_floor: bool
    """Whether FIDE calls a player of the new rating unrated: 7.2.1."""


class Tournament(NamedTuple):
    """What all games did."""

    start: float
    final: float
    net: float
    """final - start."""
    games: tuple[GameLine, ...]
    periods: tuple[PeriodLine, ...]
    """Empty where ratings move game by game."""
    record: Record
    performance: Performance
    assumed: Assumption | None
    """What had to be assumed to find K, if anything had to be."""
    ratings: tuple[float, ...]
    """From the start to after the last game."""


def plain_tournament(start: float, games: Iterable[AnyGame], choice: KChoice | float) -> Tournament:
    """Return what the games do when the rating moves after every one. Raises CalculatorInputError."""
    played, chosen = check(start, games, choice)
    lines: list[GameLine] = []
    R, peak = start, start if chosen.peak is None else chosen.peak
    for number, (result, period) in enumerate(played, 1):
        peak = max(peak, R)
        factor = found_k(chosen._replace(peak=peak), R, since=number - 1)
        move = plain_move(R, result.opponent, result.score, factor.k)
        lines.append(GameLine(number, period, *result, R, factor, move.expected, move.change, move.new))
        R = move.new
    return summary(start, R, lines, (), chosen)


def fide_tournament(start: float, games: Iterable[AnyGame], choice: KChoice | float) -> Tournament:
    """Return what the games do by FIDE's rules, period by period. Raises CalculatorInputError."""
    played, chosen = check(start, games, choice)
    check_periods([game.period for game in played])
    lines: list[GameLine] = []
    periods: list[PeriodLine] = []
    R, peak = start, start if chosen.peak is None else chosen.peak
    for label, group in groupby(played, key=lambda game: game.period):
        results = [game.result for game in group]
        peak = max(peak, R)
        factor = found_k(chosen._replace(peak=peak), R, together=len(results), since=len(lines))
        period = rate_period(label, R, factor, results, len(lines))
        lines += period
        change = factor.k * math.fsum(line.score - line.expected for line in period)
        counted = fide.rounded(change)
        end = R + counted
        below_floor = end < fide.RATING_FLOOR
        periods.append(PeriodLine(label, len(results), R, factor, change, counted, end, below_floor))
        R = end
    return summary(start, R, lines, tuple(periods), chosen)


def rate_period(
    label: str, R: float, k: KFactor, results: Sequence[PlayedGame], before: int
) -> list[GameLine]:
    """Return the games of one period; `before` games were played in earlier ones."""
    lines: list[GameLine] = []
    gains: list[float] = []
    for number, result in enumerate(results, before + 1):
        PD = counted_score(R, result.opponent)
        gains.append(result.score - PD)
        after = R + k.k * math.fsum(gains)
        lines.append(GameLine(number, label, *result, R, k, PD, k.k * gains[-1], after))
    return lines


def check(
    start: float, games: Iterable[AnyGame], choice: KChoice | float
) -> tuple[Sequence[PeriodGame], KChoice]:
    """Return the games and how K is found, or refuse what cannot be calculated with."""
    check_rating(start, "the starting rating")
    if not isinstance(games, Iterable):
        raise CalculatorInputError(f"the games are {shortened(games)}, but must be a list of them")
    played = [check_period_game(game) for game in games]
    check_results([game.result for game in played])
    return played, check_choice(choice)


def check_period_game(game: AnyGame) -> PeriodGame:
    """Return the game if it can have been played; one without a period is of the only one."""
    if not isinstance(game, PeriodGame):
        return PeriodGame(check_game(game))
    if not isinstance(game.period, str):
        raise CalculatorInputError(f"period is {shortened(game.period)}, but must be a text")
    return PeriodGame(check_game(game.result), game.period)


def check_periods(labels: Iterable[str]) -> None:
    """Refuse periods that are taken up again after another one: each is rated as a whole."""
    ended: set[str] = set()
    for label, _ in groupby(labels):
        if label in ended:
            raise CalculatorInputError(
                f"period {shortened(label)} is taken up again after another one:"
                " the games of a period must follow each other"
            )
        ended.add(label)


def summary(
    start: float, final: float, lines: Sequence[GameLine], periods: tuple[PeriodLine, ...], choice: KChoice
) -> Tournament:
    """Return everything that follows from the games."""
    results = [PlayedGame(line.opponent, line.score) for line in lines]
    return Tournament(
        start,
        final,
        final - start,
        tuple(lines),
        periods,
        count(results),
        performance(results),
        choice.assumed,
        (start, *(line.after for line in lines)),
    )
