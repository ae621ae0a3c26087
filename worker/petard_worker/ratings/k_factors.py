"""K factors: how many points a whole surprise is worth to a player, and by which rule.

Every rule says its K together with a sentence for people. The rules of US Chess are missing here: they are a
whole formula and no K alone (uscf.py).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from petard_worker.ratings import dwz, egf, fide
from petard_worker.ratings.system import PlayerState


class KFactor(NamedTuple):
    """A K in rating points, and the rule that gives it, in words."""

    k: float
    why: str


class Results(NamedTuple):
    """The results that are rated together: how many, and the sums of expected and actual scores."""

    n: int
    expected: float
    actual: float


FIDE_NEW = KFactor(40, "K 40: fewer than 30 games (FIDE B.02, 8.3.3)")
FIDE_YOUNG = KFactor(40, "K 40: to the end of the year of the 18th birthday, below 2300 (FIDE B.02, 8.3.3)")
FIDE_USUAL = KFactor(20, "K 20: 30 games or more, never rated 2400 (FIDE B.02, 8.3.3)")
FIDE_MASTER = KFactor(10, "K 10: rated 2400 or more, now or at any time before (FIDE B.02, 8.3.3)")

NOT_FIDE = "(what many online calculators use; not FIDE's rule)"
CALCULATOR_BANDS = (
    (2400.0, KFactor(10, f"K 10: rated 2400 or more {NOT_FIDE}")),
    (2100.0, KFactor(20, f"K 20: rated 2100 or more, below 2400 {NOT_FIDE}")),
    (-math.inf, KFactor(40, f"K 40: rated below 2100 {NOT_FIDE}")),
)
"""The lowest rating of a band, and its K."""


def fide_rule(player: PlayerState, results: Results) -> KFactor:
    """Return K by FIDE's 8.3.3, with its limit for many games in one period."""
    peak = player.rating if player.peak is None else player.peak
    k = fide.k_factor(player.rating, player.games, peak, player.age)
    limited = fide.limited_k(k, results.n)
    if limited < k:
        why = f"{results.n} games in one period, and K times games is at most 700 (FIDE B.02, 8.3.3)"
        return KFactor(limited, f"K {limited:g} instead of {k}: {why}")
    if k == FIDE_MASTER.k:
        return FIDE_MASTER
    if k == FIDE_USUAL.k:
        return FIDE_USUAL
    return FIDE_NEW if player.games < 30 else FIDE_YOUNG


def calculator_rule(player: PlayerState, results: Results) -> KFactor:
    """Return K by the bands of many online calculators: 10 from 2400, 20 from 2100, else 40."""
    return next(k_factor for lowest, k_factor in CALCULATOR_BANDS if player.rating >= lowest)


def egf_rule(player: PlayerState, results: Results) -> KFactor:
    """Return `con` of the European Go Federation, as it was until 2021."""
    k = egf.k_factor(player.rating)
    return KFactor(k, f"K {k:g}: con for a rating of {player.rating:g} (EGF, until 2021)")


def dwz_rule(player: PlayerState, results: Results) -> KFactor:
    """Return 800 / (E + n) of the German DWZ, E being the development coefficient."""
    n, expected, actual = results
    k = dwz.k_factor(player.rating, player.age, player.games, n, actual, expected)
    age = "unknown age" if player.age is None else f"age {player.age:g}"
    return KFactor(k, f"K {k:g}: 800 / (E + n) for n = {n}, rating {player.rating:g}, {age} (DWZ)")


KRule = Callable[[PlayerState, Results], KFactor]
"""The K of a player, given as before the games, for results that are rated together."""

K_RULES: dict[str, KRule] = {
    "fide": fide_rule,
    "calculator": calculator_rule,
    "egf": egf_rule,
    "dwz": dwz_rule,
}
