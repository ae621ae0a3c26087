"""FIDE's rating regulations: the tables and the rules that need nothing but them.

Source: FIDE Handbook B.02, "FIDE Rating Regulations effective from 1 March 2024", with the amendment of
1 October 2025 (https://handbook.fide.com/chapter/B022024); numbers of rules are its own. Table 8.1.2 is no
logistic curve and no exact normal distribution either: it is used as it stands.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence

# fmt: off
UPPER_D = (
    3, 10, 17, 25, 32, 39, 46, 53, 61, 68, 76, 83, 91, 98, 106, 113, 121, 129, 137, 145, 153, 162, 170, 179,
    188, 197, 206, 215, 225, 235, 245, 256, 267, 278, 290, 302, 315, 328, 344, 357, 374, 391, 411, 432, 456,
    484, 517, 559, 619, 735,
)
"""Table 8.1.2: the largest difference for which the higher rated player expects .50, .51, ... .99."""

DP = (
    0, 7, 14, 21, 29, 36, 43, 50, 57, 65, 72, 80, 87, 95, 102, 110, 117, 125, 133, 141, 149, 158, 166, 175,
    184, 193, 202, 211, 220, 230, 240, 251, 262, 273, 284, 296, 309, 322, 336, 351, 366, 383, 401, 422, 444,
    470, 501, 538, 589, 677, 800,
)
"""Table 8.1.1: the difference dp of ratings that a fractional score p of .50, .51, ... 1.00 stands for."""
# fmt: on

DIFFERENCE_CAP = 400
"""8.3.1: a larger difference of ratings is counted as this one."""
UNCAPPED_FROM = 2650
"""8.3.1 since 1 October 2025: for players rated so high the difference counts as it is."""
MOST_K_N = 700
"""8.3.3: K times the number of games of a period is no more than this."""
RATING_FLOOR = 1400
"""7.2.1: who falls below it is unrated."""
CONTROLS = ("standard", "rapid", "blitz")
"""The time controls, each with a list of ratings of its own."""
UNRATED_GAP = 600
"""Rapid and blitz 7.3.1: so large a difference is not rated when one player is above UNRATED_ABOVE."""
UNRATED_ABOVE = 2600


def expected_score(difference: float) -> float:
    """Return PD, the expected score for R - R_opponent, by table 8.1.2: 0 to 1 in hundredths.

    The table knows whole differences; others are rounded to the nearest one, halves up.
    """
    D = math.floor(abs(difference) + 0.5)
    higher = min(50 + bisect_left(UPPER_D, D), 100)
    return (higher if difference >= 0 else 100 - higher) / 100


def performance_difference(p: float) -> int:
    """Return dp for a fractional score p from 0 to 1, by table 8.1.1.

    The table knows hundredths; p is rounded to the nearest one, halves away from .50, so that dp of 1 - p is
    always -dp of p.
    """
    from_even = hundredths(p) - 50
    return DP[from_even] if from_even >= 0 else -DP[-from_even]


def hundredths(p: float) -> int:
    """Return a fractional score as table 8.1.1 is read: in hundredths, halves away from .50."""
    higher = math.floor(round(max(p, 1 - p) * 100, 9) + 0.5)
    return higher if p >= 0.5 else 100 - higher


def capped(difference: float, rating: float, cap: float, uncapped_from: float) -> float:
    """Return the difference that counts for a player of this rating: 8.3.1. A cap of 0 is none."""
    if not cap or rating >= uncapped_from:
        return difference
    return max(-cap, min(cap, difference))


def k_factor(rating: float, games: int, peak: float, age: float | None) -> int:
    """Return K by 8.3.3, without its limit for many games (`limited_k`).

    games: rated so far; peak: the highest rating so far, since K = 10 is for ever once 2400 was reached; age:
    in years at the end of the calendar year, None where it is not known, which is taken for a grown-up.
    """
    if max(peak, rating) >= 2400:
        return 10
    young = age is not None and age <= 18 and rating < 2300
    return 40 if games < 30 or young else 20


def limited_k(k: float, games: int) -> float:
    """Return K for this many games in one period: 8.3.3, K * n is at most 700."""
    return k if k * games <= MOST_K_N else MOST_K_N // games


def rounded(change: float) -> int:
    """Return the change of a period as a whole number, .5 away from zero: 8.3.4."""
    # An error of the last bits must not decide a half: 10 * (0.5 - 0.45) is a little less than one.
    return int(math.copysign(math.floor(abs(round(change, 9)) + 0.5), change))


def rating_change(
    rating: float, games: Sequence[tuple[float, float]], k: float, control: str = "standard"
) -> int:
    """Return the change of a period of games, each the opponent's rating and the score against it: 8.3.

    Rapid and blitz have regulations of their own: no 2650 rule, and games that are not rated at all.
    """
    if control not in CONTROLS:
        raise ValueError(f"control is {control!r}, but must be one of {', '.join(CONTROLS)}")
    standard = control == "standard"
    uncapped_from = UNCAPPED_FROM if standard else math.inf
    rated = [game for game in games if standard or not too_uneven(rating, game[0])]
    gains = [
        actual - expected_score(capped(rating - opponent, rating, DIFFERENCE_CAP, uncapped_from))
        for opponent, actual in rated
    ]
    return rounded(limited_k(k, len(rated)) * math.fsum(gains))


def too_uneven(rating: float, opponent: float) -> bool:
    """Return whether a rapid or blitz game is not rated: since 1 December 2024, their rule 7.3.1."""
    return abs(rating - opponent) >= UNRATED_GAP and max(rating, opponent) > UNRATED_ABOVE


def performance(games: Sequence[tuple[float, float]]) -> int:
    """Return Rp = Ra + dp of games, each the opponent's rating and the score against it: 8.1.1.

    Raises ValueError without games.
    """
    if not games:
        raise ValueError("a performance rating needs at least one game")
    R_a = math.fsum(opponent for opponent, _ in games) / len(games)
    p = math.fsum(actual for _, actual in games) / len(games)
    return rounded(R_a + performance_difference(p))
