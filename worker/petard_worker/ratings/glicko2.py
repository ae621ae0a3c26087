"""Glicko-2, applied after every game or after a period of simultaneous games.

Source: Mark E. Glickman, "Dynamic paired comparison models with stochastic variances", Journal of Applied
Statistics 28 (2001), 673-689, and its "Example of the Glicko-2 system" (glicko.net/glicko/glicko2.pdf): its
steps, its symbols. mu is never written: only differences of ratings matter, so 1500 cancels out.

Four choices are ours. Periods may be fractions, as in liglicko2: of the n periods since a player's last rated
event the last one (or as much of it as has passed) is step 6, with the new volatility; those before it were
idle and age the player, for the opponents too, with the old one. Without the parameter `period` every game is
rated at once and n is the time that has passed, be it 0; a closed period counts as one at least. A game of
teams or of many sides is a period in which every pair of sides has one result. Rating, deviation and
volatility are kept within the pool's limits, the volatility before step 6 uses it: in the formulas alone an
upset of 40 games multiplies it by 35, and the deviation and the rating follow.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, sqrt
from typing import ClassVar

from petard_worker.ratings.citations import apa
from petard_worker.ratings.parameters import integer, number
from petard_worker.ratings.system import Game, GameSide, PlayerState, Rated, Terms, score, sum_terms

SCALE = 173.7178
"""Rating points per unit of mu and phi: step 2, as rounded by the paper; 400 / ln 10 gives other digits."""
THREE_PI2 = 3 / math.pi**2
CONVERGENCE = 0.000001
"""epsilon of step 5.1: how near ln sigma^2 has to be."""
ILLINOIS_ROUNDS = 60
"""After so many rounds of step 5.4 the bracket is halved instead.

Players of 0 to 3000 need at most 40; between players 10,000 points apart f(A) and f(B) differ by so many
powers of ten that halving the larger one until they meet would take hundreds.
"""

Bracket = tuple[float, float, float, float]
"""Where the search for ln sigma'^2 starts: A, B, f(A), f(B) of steps 5.2 and 5.3."""


def aged_rd(RD: float, sigma: float, n: float, ceiling: float) -> float:
    """Return RD after n periods without a game: `sqrt(phi^2 + n sigma^2)` in rating points, capped."""
    growth = SCALE * sigma
    grown = sqrt(RD * RD + n * (growth * growth))
    if grown > ceiling:
        return ceiling
    return grown


def g(phi: float) -> float:
    """Return how much a result against an opponent of this deviation is worth, 0 to 1; step 3."""
    return 1 / sqrt(1 + THREE_PI2 * phi * phi)


def result(g_j: float, ahead: float, s: float) -> Terms:
    """Return what one result adds to 1/v, to the gain, and to both scores: g^2 E (1 - E), g (s - E), E, s.

    `ahead` is mu - mu_j. E (1 - E) is written x E^2, which is not 0 where E rounds to 1.
    """
    x = exp(-g_j * ahead)
    E = 1 / (1 + x)
    return (g_j * g_j * x * E * E, g_j * (s - E), E, s)


def clamp(value: float, low: float, high: float) -> float:
    """Return the value, or the end of the range that it is beyond; faster than min of max."""
    if value < low:
        return low
    if value > high:
        return high
    return value


def f(x: float, a: float, excess: float, spread: float, tau2: float) -> float:
    """Return what step 5.1 calls f: it is 0 where x is ln sigma'^2.

    excess is Delta^2 - phi^2 - v, spread is phi^2 + v, tau2 is tau^2.
    """
    e_x = exp(x)
    total = spread + e_x
    return e_x * (excess - e_x) / (2 * total * total) - (x - a) / tau2


def bracket(a: float, excess: float, spread: float, tau: float) -> Bracket:
    """Return two numbers between which f has a root: steps 5.2 and 5.3.

    The search for B ends: the first term of f is never below -1/2, and every round adds 1/tau to the rest.
    """
    tau2 = tau * tau
    fA = f(a, a, excess, spread, tau2)
    if excess > 0:
        B = math.log(excess)
        return a, B, fA, f(B, a, excess, spread, tau2)
    B = a - tau
    while (fB := f(B, a, excess, spread, tau2)) < 0:
        B -= tau
    return a, B, fA, fB


def new_volatility(phi: float, sigma: float, v: float, delta: float, tau: float) -> float:
    """Return sigma' after results of variance v and improvement Delta: step 5.

    It ends, for any finite numbers: a bracket is never wider than some hundreds, so 40 halvings do.
    """
    spread = phi * phi + v
    excess = delta * delta - spread
    tau2 = tau * tau
    a = math.log(sigma * sigma)
    A, B, fA, fB = bracket(a, excess, spread, tau)
    for _ in range(ILLINOIS_ROUNDS):
        if abs(B - A) <= CONVERGENCE:
            break
        C = A + (A - B) * fA / (fB - fA)
        fC = f(C, a, excess, spread, tau2)
        if fC * fB <= 0:  # older editions have < 0, which goes on for ever where f(C) is 0
            A, fA = B, fB
        else:
            fA /= 2
        B, fB = C, fC
    while abs(B - A) > CONVERGENCE:
        C = (A + B) / 2
        fC = f(C, a, excess, spread, tau2)
        if fC * fB <= 0:
            A = B
        B, fB = C, fC
    return exp(A / 2)


@dataclass(frozen=True, slots=True)
class Glicko2:
    """Glicko-2 after every game. All ratings and deviations are in rating points."""

    name: ClassVar[str] = "glicko2"
    citation: ClassVar[str] = apa("glicko2")

    season_month: ClassVar[int] = 0
    provisional_games: ClassVar[int] = 0

    rating: float = number(1500, -10_000, 10_000, "rating of a player who has played nothing")
    rd: float = number(350, 1, 1_000, "deviation of a player who has played nothing; also the highest")
    volatility: float = number(0.06, 0.0001, 10, "volatility of a player who has played nothing")
    tau: float = number(0.5, 0.05, 3, "how freely the volatility changes; 0.2 to 1.2 is usual")
    periods_per_day: float = number(0.21436, 0, 1_000, "rating periods per day, where every game is one")
    rd_floor: float = number(30, 1, 1_000, "lowest deviation")
    volatility_min: float = number(0.01, 0.0001, 10, "lowest volatility")
    volatility_max: float = number(0.15, 0.0001, 10, "highest volatility")
    rating_min: float = number(0, -10_000, 10_000, "lowest rating")
    rating_max: float = number(3000, -10_000, 10_000, "highest rating")
    home_advantage: float = number(0, -1_000, 1_000, "points that a side at home is ahead by")
    period: int = integer(0, 0, 366, "days of a rating period, whose games are simultaneous; 0: every game")

    def contradiction(self) -> str | None:
        """Return how the parameters contradict each other, if they do."""
        if self.rd_floor > self.rd:
            return f"rd_floor {self.rd_floor:g} is above rd {self.rd:g}"
        if not self.volatility_min <= self.volatility <= self.volatility_max:
            return (
                f"volatility {self.volatility:g} is not between volatility_min {self.volatility_min:g}"
                f" and volatility_max {self.volatility_max:g}"
            )
        return None

    def initial(self) -> PlayerState:
        """Return the state of a player who has played nothing."""
        return PlayerState(self.rating, self.rd, self.volatility)

    def lowest(self) -> PlayerState:
        """Return the pool's lowest rating, held with the least doubt."""
        return PlayerState(self.rating_min, self.rd_floor, self.volatility)

    def expected(self, player: PlayerState, opponent: PlayerState) -> float:
        """Return the predicted score of the player on neutral ground, both deviations aged and counted."""
        elapsed = self.elapsed_in_period if self.period else self.elapsed
        phi, phi_j = (
            aged_rd(each.rd, self.sigma(each), elapsed(each), self.rd) / SCALE for each in (player, opponent)
        )
        return 1 / (1 + exp(-g(math.hypot(phi, phi_j)) * ((player.rating - opponent.rating) / SCALE)))

    def elo_point(self) -> float:
        """Return 1: without deviations E is Elo's, its 400 / ln(10) rounded to SCALE."""
        return 1.0

    def sigma(self, player: PlayerState) -> float:
        """Return the player's volatility; who comes from a system without one has the initial one."""
        return player.volatility or self.volatility

    def elapsed(self, player: PlayerState) -> float:
        """Return n, the periods since the player's last rated event, where every game is rated at once."""
        return player.days * self.periods_per_day

    def elapsed_in_period(self, player: PlayerState) -> float:
        """Return n where games are simultaneous: a period passes, however short ago the last event was."""
        return max(player.days / self.period if self.period else self.elapsed(player), 1.0)

    def idle_rd(self, player: PlayerState, n: float) -> float:
        """Return the deviation at the start of the last of n periods, in points."""
        if n <= 1:
            return min(player.rd, self.rd)
        return aged_rd(player.rd, self.sigma(player), n - 1, self.rd)

    def advantage(self, side: GameSide, other: GameSide) -> float:
        """Return by how many points a side is ahead because it is at home and the other is not."""
        return self.home_advantage * ((side.home is True) - (other.home is True))

    def rate(self, game: Game) -> list[Rated]:
        """Return every player after the game, all computed from the aged states before it."""
        sides = game.sides
        if len(sides) == 2 and len(sides[0].players) == len(sides[1].players) == 1:
            return self.rate_duel(sides[0], sides[1])
        return self.rate_field(sides)

    def rate_duel(self, side: GameSide, other: GameSide) -> list[Rated]:
        """Return both players of a game of one against one.

        The usual case, and `rate_field` written out: the tests hold the two to the same bits.
        """
        a, b = side.players[0], other.players[0]
        n_a, n_b = self.elapsed(a), self.elapsed(b)
        RD_a, RD_b = self.idle_rd(a, n_a), self.idle_rd(b, n_b)
        ahead = (a.rating - b.rating + self.advantage(side, other)) / SCALE
        s = score(side.rank, other.rank)
        return [
            self.rated(a, RD_a, n_a, result(g(RD_b / SCALE), ahead, s)),
            self.rated(b, RD_b, n_b, result(g(RD_a / SCALE), -ahead, 1 - s)),
        ]

    def rate_field(self, sides: Sequence[GameSide]) -> list[Rated]:
        """Return every player of a game of teams, or of more than two sides."""
        players = [player for side in sides for player in side.players]
        results = self.results_after(sides, self.elapsed)
        return [
            self.rated(player, self.idle_rd(player, n), n, sum_terms(terms))
            for player, n, terms in zip(players, map(self.elapsed, players), results, strict=True)
        ]

    def results(self, game: Game) -> list[list[Terms]]:
        """Return for every player of a period the terms of the results against every other side."""
        return self.results_after(game.sides, self.elapsed_in_period)

    def results_after(
        self, sides: Sequence[GameSide], elapsed: Callable[[PlayerState], float]
    ) -> list[list[Terms]]:
        """Return the terms of every player, whose idle periods are told by `elapsed`.

        A team is seen by the others as the mean of its ratings and the root of its mean square deviation.
        """
        idle = [[self.idle_rd(player, elapsed(player)) for player in side.players] for side in sides]
        ratings = [math.fsum(player.rating for player in side.players) / len(side.players) for side in sides]
        g_of = [g(sqrt(math.fsum(RD * RD for RD in team) / len(team)) / SCALE) for team in idle]
        return [
            [
                result(
                    g_of[j],
                    (player.rating - ratings[j] + self.advantage(side, other)) / SCALE,
                    score(side.rank, other.rank),
                )
                for j, other in enumerate(sides)
                if j != i
            ]
            for i, side in enumerate(sides)
            for player in side.players
        ]

    def scores(self, sums: Sequence[float]) -> tuple[float, float]:
        """Return the expected and the actual score, which are among the terms."""
        return sums[2], sums[3]

    def rate_period(self, player: PlayerState, sums: Sequence[float]) -> Rated:
        """Return the player after the results of one period."""
        n = self.elapsed_in_period(player)
        return self.rated(player, self.idle_rd(player, n), n, sums)

    def rated(self, player: PlayerState, RD: float, n: float, sums: Sequence[float]) -> Rated:
        """Return the player after results that came after n periods: steps 4 to 8.

        RD is the deviation at the start of the last of the periods. Without any result only time passes.
        """
        information, gain, expected, actual = sums
        sigma, phi = self.sigma(player), RD / SCALE
        sigma_new = sigma
        if information > 0:
            v = 1 / information
            sigma_new = new_volatility(phi, sigma, v, v * gain, self.tau)
        sigma_new = clamp(sigma_new, self.volatility_min, self.volatility_max)
        phi_star2 = phi * phi + (n if n < 1 else 1.0) * (sigma_new * sigma_new)
        phi_new2 = 1 / (1 / phi_star2 + information)
        return Rated(
            clamp(player.rating + SCALE * (phi_new2 * gain), self.rating_min, self.rating_max),
            clamp(SCALE * sqrt(phi_new2), self.rd_floor, self.rd),
            sigma_new,
            expected,
            actual,
            aged_rd(player.rd, sigma, n, self.rd),
        )
