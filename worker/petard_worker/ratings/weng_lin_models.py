"""The five models of Weng and Lin: what a game says of the strength of every side.

Source: Ruby C. Weng and Chih-Jen Lin, "A Bayesian approximation method for online ranking", Journal of
Machine Learning Research 12 (2011), 267-300; their symbols, Algorithms 1 to 4, with gamma_q = sigma_i / c_iq.
Omega and Delta stand here without their factor sigma_i^2, which the paper multiplies in for a team and
divides out again for its players.

The paper's partial-pair models compare neighbours only; how many, that their sum is a mean, and that the
Thurstone-Mosteller one doubles c_iq, is as in the library openskill 6.2. That library takes tied sides in the
order they are named; here sides are neighbours when they are in any order of the tied ones.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from petard_worker.ratings.system import score

FAR = 30.0
"""How many deviations out the normal tail is taken from its continued fraction: erfc ends at 38."""
HUGE = 1e3
"""How far out W~ is 1 to six digits and its formula has none left."""
TINY = 1e-3
"""How narrow a draw margin is taken from the series of V~ and W~: they agree to eleven digits there."""
SQRT_2 = math.sqrt(2)
SQRT_2_PI = math.sqrt(2 * math.pi)


class Team(NamedTuple):
    """A side: the sum of its players' mu, the sum of their sigma^2, its rank."""

    mu: float
    sigma2: float
    rank: int


class Constants(NamedTuple):
    """What of the parameters the models read."""

    two_beta2: float
    """Twice beta^2."""
    epsilon: float
    window: int


class Step(NamedTuple):
    """Omega_i / sigma_i^2 and Delta_i / sigma_i^2: the slope of the log-likelihood, and its curvature."""

    omega: float
    delta: float


Pair = Callable[[Team, Team, Constants], Step]
Model = Callable[[Sequence[Team], Constants], list[Step]]


# --- Chances ------------------------------------------------------------------------------------------------


def logistic(x: float) -> float:
    """Return 1 / (1 + e^-x) for any x."""
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    odds = math.exp(x)
    return odds / (1 + odds)


def Phi(x: float) -> float:
    """Return the cumulative distribution function of the standard normal, exact in both tails."""
    return 0.5 * math.erfc(-x / SQRT_2)


def phi(x: float) -> float:
    """Return the density of the standard normal."""
    return math.exp(-0.5 * x * x) / SQRT_2_PI


# --- Bradley-Terry ------------------------------------------------------------------------------------------


def bradley_terry(i: Team, q: Team, constants: Constants) -> Step:
    """Return what side i learns of its result against side q: Algorithm 1, step 3."""
    c2 = i.sigma2 + q.sigma2 + constants.two_beta2
    c = math.sqrt(c2)
    p = logistic((i.mu - q.mu) / c)
    gamma = math.sqrt(i.sigma2) / c
    return Step((score(i.rank, q.rank) - p) / c, gamma / c2 * (p * (1 - p)))


# --- Thurstone-Mosteller ------------------------------------------------------------------------------------


def tail_excess(z: float) -> float:
    """Return phi(z) / Phi(-z) - z for z of FAR and more, by the continued fraction of Laplace."""
    return 1 / (z + 2 / (z + 3 / (z + 4 / (z + 5 / z))))


def V_W(x: float) -> tuple[float, float]:
    """Return V(x, 0) and W(x, 0): by how much a win of x deviations moves and narrows the difference."""
    if x < -FAR:
        excess = tail_excess(-x)
        return excess - x, (excess - x) * excess
    v = phi(x) / Phi(x)
    return v, v * (v + x)


def V_W_draw(x: float, t: float) -> tuple[float, float]:
    """Return V~(x, t) and W~(x, t): by how much a draw with margin t moves and narrows the difference.

    A margin of 0 is taken as the limit: the two performed alike.
    """
    if x < 0:
        v, w = V_W_draw(-x, t)
        return -v, w
    if t * max(x, 1) < TINY:
        return x * (t * t / 3) - x, 1 - t * t / 3
    near, far = x - t, x + t
    if near < FAR:
        chance = Phi(-near) - Phi(-far)
        v = (phi(far) - phi(near)) / chance
        return v, v * v + (far * phi(far) - near * phi(near)) / chance
    # The same divided by phi(near), which has underflowed.
    ratio = math.exp(-2 * x * t)
    chance = 1 / (near + tail_excess(near)) - ratio / (far + tail_excess(far))
    v = math.expm1(-2 * x * t) / chance
    return v, 1.0 if near > HUGE else v * v + (far * ratio - near) / chance


def thurstone_mosteller(i: Team, q: Team, constants: Constants) -> Step:
    """Return what side i learns of its result against side q: Algorithm 3, step 3."""
    return thurstone_mosteller_at(i, q, math.sqrt(i.sigma2 + q.sigma2 + constants.two_beta2), constants)


def thurstone_mosteller_doubled(i: Team, q: Team, constants: Constants) -> Step:
    """Return the same with c_iq doubled."""
    return thurstone_mosteller_at(i, q, 2 * math.sqrt(i.sigma2 + q.sigma2 + constants.two_beta2), constants)


def thurstone_mosteller_at(i: Team, q: Team, c: float, constants: Constants) -> Step:
    """Return what side i learns of its result against side q, given c_iq."""
    x, t = (i.mu - q.mu) / c, constants.epsilon / c
    if i.rank == q.rank:
        v, w = V_W_draw(x, t)
    elif i.rank < q.rank:
        v, w = V_W(x - t)
    else:
        v, w = V_W(-x - t)
        v = -v
    gamma = math.sqrt(i.sigma2) / c
    return Step(v / c, gamma / (c * c) * w)


# --- Which pairs --------------------------------------------------------------------------------------------


def full(pair: Pair) -> Model:
    """Return the model that compares every side with every other one, and adds up."""

    def steps(teams: Sequence[Team], constants: Constants) -> list[Step]:
        return [
            summed([pair(i, q, constants) for n, q in enumerate(teams) if n != at])
            for at, i in enumerate(teams)
        ]

    return steps


def part(pair: Pair) -> Model:
    """Return the model that compares every side with its neighbours in the result, and takes the mean."""

    def steps(teams: Sequence[Team], constants: Constants) -> list[Step]:
        ranks = sorted(team.rank for team in teams)
        return [
            mean([pair(i, teams[n], constants) for n in neighbours(at, teams, ranks, constants.window)])
            for at, i in enumerate(teams)
        ]

    return steps


def neighbours(at: int, teams: Sequence[Team], ranks: Sequence[int], window: int) -> list[int]:
    """Return who ended within so many places of the side; of tied sides the nearest place counts."""
    first = bisect_left(ranks, teams[at].rank)
    last = bisect_right(ranks, teams[at].rank) - 1
    return [
        n
        for n, team in enumerate(teams)
        if n != at
        and bisect_left(ranks, team.rank) - last <= window
        and first - (bisect_right(ranks, team.rank) - 1) <= window
    ]


def summed(steps: Sequence[Step]) -> Step:
    """Return the sums, exactly rounded: the order of the opponents does not matter."""
    return Step(math.fsum([step.omega for step in steps]), math.fsum([step.delta for step in steps]))


def mean(steps: Sequence[Step]) -> Step:
    """Return the means; of nothing they are 0."""
    omega, delta = summed(steps)
    return Step(omega / max(len(steps), 1), delta / max(len(steps), 1))


# --- Plackett-Luce ------------------------------------------------------------------------------------------


def plackett_luce(teams: Sequence[Team], constants: Constants) -> list[Step]:
    """Return what every side learns of the whole order: Algorithm 4.

    Every distinct rank is a choice of its holders among those who ended there or lower. Of two sides this is
    Bradley-Terry bit for bit.
    """
    c2 = math.fsum([team.sigma2 for team in teams]) + len(teams) * (constants.two_beta2 / 2)
    c = math.sqrt(c2)
    omegas: list[list[float]] = [[] for _ in teams]
    deltas: list[list[float]] = [[] for _ in teams]
    for rank in {team.rank for team in teams}:
        C_q = [n for n, team in enumerate(teams) if team.rank >= rank]
        A_q = sum(team.rank == rank for team in teams)
        top = max(teams[n].mu for n in C_q)
        strengths = [math.exp((teams[n].mu - top) / c) for n in C_q]
        total = math.fsum(strengths)
        for n, strength in zip(C_q, strengths, strict=True):
            p = strength / total
            # The paper's A_q terms of the rank, each divided by A_q, in one.
            omegas[n].append((1 / A_q if teams[n].rank == rank else 0.0) - p)
            deltas[n].append(p * (1 - p))
    return [
        Step(math.fsum(omega) / c, math.sqrt(team.sigma2) / c / c2 * math.fsum(delta))
        for team, omega, delta in zip(teams, omegas, deltas, strict=True)
    ]


PAIRS: dict[str, Pair] = {
    "bradley_terry_full": bradley_terry,
    "bradley_terry_part": bradley_terry,
    "plackett_luce": bradley_terry,
    "thurstone_mosteller_full": thurstone_mosteller,
    "thurstone_mosteller_part": thurstone_mosteller_doubled,
}
"""What each model comes to for two sides."""
MODELS: dict[str, Model] = {
    "bradley_terry_full": full(bradley_terry),
    "bradley_terry_part": part(bradley_terry),
    "plackett_luce": plackett_luce,
    "thurstone_mosteller_full": full(thurstone_mosteller),
    "thurstone_mosteller_part": part(thurstone_mosteller_doubled),
}
