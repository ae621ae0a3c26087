"""K factors: how many points a whole surprise is worth to a player, and by which rule.

Every rule says its K together with its reason, as a key: the words for it are found where people read it. The
rules of US Chess are missing here: they are a whole formula and no K alone (uscf.py).
"""

import math
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from petard_worker.ratings import dwz, egf, fide
from petard_worker.ratings.system import PlayerState


class KReason(StrEnum):
    """Why K is what it is."""

    GIVEN = "given"
    """It was given as a number."""
    FIDE_NEW = "fide_new"
    """Fewer than 30 games: FIDE's 8.3.3, as the next three."""
    FIDE_YOUNG = "fide_young"
    """To the end of the year of the 18th birthday, below 2300."""
    FIDE_USUAL = "fide_usual"
    """30 games or more, never rated 2400."""
    FIDE_MASTER = "fide_master"
    """Rated 2400 or more, now or at any time before."""
    CALCULATOR_MASTER = "calculator_master"
    """From 2400 on: what many online calculators use, as the next two."""
    CALCULATOR_STRONG = "calculator_strong"
    """From 2100 on, below 2400."""
    CALCULATOR_USUAL = "calculator_usual"
    """Below 2100."""
    EGF = "egf"
    """`con` for the rating."""
    DWZ = "dwz"
    """800 / (E + n)."""


class KFactor(NamedTuple):
    """A K in rating points, and why it is what it is."""

    k: float
    reason: KReason
    unlimited: float | None = None
    """K for a single game, where FIDE's limit for many games of one period (8.3.3) lowered it."""
    together: int = 1
    """How many games are rated together, where the limit lowered it."""


class Results(NamedTuple):
    """The results that are rated together: how many, and the sums of expected and actual scores."""

    n: int
    expected: float
    actual: float


CALCULATOR_BANDS = (
    (2400.0, KFactor(10, KReason.CALCULATOR_MASTER)),
    (2100.0, KFactor(20, KReason.CALCULATOR_STRONG)),
    (-math.inf, KFactor(40, KReason.CALCULATOR_USUAL)),
)
"""The lowest rating of a band, and its K."""


def limited(factor: KFactor, n: int) -> KFactor:
    """Return K within FIDE's limit for n games of one period, whatever rule it comes from."""
    k = fide.limited_k(factor.k, n)
    return factor if k == factor.k else factor._replace(k=k, unlimited=factor.k, together=n)


def fide_rule(player: PlayerState, results: Results) -> KFactor:
    """Return K by FIDE's 8.3.3, with its limit for many games in one period."""
    peak = player.rating if player.peak is None else player.peak
    k = fide.k_factor(player.rating, player.games, peak, player.age)
    return limited(KFactor(k, fide_reason(k, player)), results.n)


def fide_reason(k: int, player: PlayerState) -> KReason:
    """Return which part of 8.3.3 gave this K."""
    if k == 10:
        return KReason.FIDE_MASTER
    if k == 20:
        return KReason.FIDE_USUAL
    return KReason.FIDE_NEW if player.games < 30 else KReason.FIDE_YOUNG


def calculator_rule(player: PlayerState, results: Results) -> KFactor:
    """Return K by the bands of many online calculators: 10 from 2400, 20 from 2100, else 40."""
    return next(k_factor for lowest, k_factor in CALCULATOR_BANDS if player.rating >= lowest)


def egf_rule(player: PlayerState, results: Results) -> KFactor:
    """Return `con` of the European Go Federation, as it was until 2021."""
    return KFactor(egf.k_factor(player.rating), KReason.EGF)


def dwz_rule(player: PlayerState, results: Results) -> KFactor:
    """Return 800 / (E + n) of the German DWZ, E being the development coefficient."""
    n, expected, actual = results
    return KFactor(dwz.k_factor(player.rating, player.age, player.games, n, actual, expected), KReason.DWZ)


KRule = Callable[[PlayerState, Results], KFactor]
"""The K of a player, given as before the games, for results that are rated together."""

K_RULES: dict[str, KRule] = {
    "fide": fide_rule,
    "calculator": calculator_rule,
    "egf_until_2021": egf_rule,
    "dwz": dwz_rule,
}
