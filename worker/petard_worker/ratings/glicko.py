"""Glicko, applied after every game.

Source: Mark E. Glickman, "The Glicko system" (1995, glicko.net/glicko/glicko.pdf) and "Parameter estimation
in large dynamic paired comparison experiments", Applied Statistics 48 (1999), 377-394; their symbols.
Two choices are ours: deviations age with elapsed time in days instead of rating periods, and a game of teams
or of many sides is a rating period in which every pair of sides has one result. Without the parameter
`period` every game is a rating period of its own; with it the games of so many days are one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from petard_worker.ratings.citations import apa
from petard_worker.ratings.named_tuples import maker
from petard_worker.ratings.parameters import integer, number
from petard_worker.ratings.system import Game, GameSide, PlayerState, Rated, Terms, score, sum_terms

q = math.log(10) / 400
"""Step 1 of the paper: turns rating points into natural logarithms of odds."""
THREE_Q2_PI2 = 3 * q**2 / math.pi**2


_rated = maker(Rated)


class Result(NamedTuple):
    """One opponent of a rating period: g(RD_j), E(s | r, r_j, RD_j), s_j."""

    g: float
    E: float
    s: float

    def terms(self) -> Terms:
        """Return what the result adds to 1/d^2 (without q^2), to the gain, and to both scores."""
        g, E, s = self
        return (g * g * E * (1 - E), g * (s - E), E, s)


def aged_rd(RD: float, c: float, days: float, ceiling: float) -> float:
    """Return RD after `days` without a game: step 1, `min(sqrt(RD^2 + c^2 t), 350)`."""
    return min(math.sqrt(RD * RD + c * c * days), ceiling)


def g(RD: float) -> float:
    """Return how much a result against an opponent of this deviation is worth, 0 to 1."""
    return 1 / math.sqrt(1 + THREE_Q2_PI2 * RD * RD)


def E(r: float, r_j: float, g_j: float) -> float:
    """Return the expected score of r against r_j, 0 to 1; only the opponent's deviation counts."""
    return float(1 / (1 + 10 ** (-g_j * (r - r_j) / 400)))


def predict(r: float, RD: float, r_j: float, RD_j: float) -> float:
    """Return the predicted score before a game, with the uncertainty of both: g(sqrt(RD^2 + RD_j^2))."""
    return E(r, r_j, g(math.hypot(RD, RD_j)))


def update(r: float, RD: float, results: Sequence[Result]) -> tuple[float, float]:
    """Return r' and RD' after the results of one period: step 2.

    RD is the deviation after ageing. Neither clamp nor floor is applied here.
    """
    information, gain, _, _ = sum_terms([result.terms() for result in results])
    return move(r, RD, q * q * information, gain)


def move(r: float, RD: float, inverse_d2: float, gain: float) -> tuple[float, float]:
    """Return r' and RD' from 1/d^2 and the sum of g (s - E)."""
    precision = 1 / (RD * RD) + inverse_d2
    return r + q / precision * gain, math.sqrt(1 / precision)


@dataclass(frozen=True, slots=True)
class Glicko:
    """Glicko after every game. All ratings and deviations are in rating points."""

    name: ClassVar[str] = "glicko"
    citation: ClassVar[str] = apa("glicko")

    season_month: ClassVar[int] = 0
    provisional_games: ClassVar[int] = 0

    rating: float = number(1500, -10_000, 10_000, "rating of a player who has played nothing")
    rd: float = number(350, 1, 1_000, "deviation of a player who has played nothing; also the highest")
    c: float = number(4.826, 0, 1_000, "growth of the deviation, in points per square root of a day")
    rd_floor: float = number(30, 1, 1_000, "lowest deviation")
    rating_min: float = number(0, -10_000, 10_000, "lowest rating")
    rating_max: float = number(3000, -10_000, 10_000, "highest rating")
    period: int = integer(0, 0, 366, "days of a rating period, whose games are simultaneous; 0: every game")

    def contradiction(self) -> str | None:
        """Return how the parameters contradict each other, if they do."""
        return f"rd_floor {self.rd_floor:g} is above rd {self.rd:g}" if self.rd_floor > self.rd else None

    def initial(self) -> PlayerState:
        """Return the state of a player who has played nothing."""
        return PlayerState(self.rating, self.rd)

    def lowest(self) -> PlayerState:
        """Return the pool's lowest rating, held with the least doubt."""
        return PlayerState(self.rating_min, self.rd_floor)

    def expected(self, player: PlayerState, opponent: PlayerState) -> float:
        """Return the predicted score of the player, both deviations aged and counted."""
        return predict(player.rating, self.aged(player), opponent.rating, self.aged(opponent))

    def elo_point(self) -> float:
        """Return 1: where nobody has a deviation, g is 1 and E is Elo's."""
        return 1.0

    def aged(self, player: PlayerState) -> float:
        """Return the player's deviation at the time of the game."""
        return aged_rd(player.rd, self.c, player.days, self.rd)

    def rate(self, game: Game) -> list[Rated]:
        """Return every player after the game, all computed from the aged states before it."""
        sides = game.sides
        if len(sides) == 2 and len(sides[0].players) == len(sides[1].players) == 1:
            return self.rate_by_rank(
                sides[0].players[0], sides[1].players[0], score(sides[0].rank, sides[1].rank)
            )
        return self.rate_field(sides)

    def rate_by_rank(self, a: PlayerState, b: PlayerState, s: float) -> list[Rated]:
        """Return both players of a game of one against one; s is the first one's score.

        The usual case, and `rate_field` written out: the tests hold the two to the same bits.
        """
        RD_a, RD_b = aged_rd(a.rd, self.c, a.days, self.rd), aged_rd(b.rd, self.c, b.days, self.rd)
        g_a, g_b = g(RD_a), g(RD_b)
        E_a, E_b = E(a.rating, b.rating, g_b), E(b.rating, a.rating, g_a)
        return [
            self.rate_result(a, RD_a, g_b, E_a, s),
            self.rate_result(b, RD_b, g_a, E_b, 1 - s),
        ]

    def rate_result(self, player: PlayerState, RD: float, g: float, E: float, s: float) -> Rated:
        """Return the player after a period of one result: `move` and the limits in one go, for speed."""
        precision = 1 / (RD * RD) + q * q * (g * g * E * (1 - E))
        r = player.rating + q / precision * (g * (s - E))
        RD_new = math.sqrt(1 / precision)
        if r < self.rating_min:
            r = self.rating_min
        elif r > self.rating_max:
            r = self.rating_max
        if RD_new < self.rd_floor:
            RD_new = self.rd_floor
        elif RD_new > self.rd:
            RD_new = self.rd
        return _rated((r, RD_new, player.volatility, E, s, RD))

    def rate_field(self, sides: Sequence[GameSide]) -> list[Rated]:
        """Return every player of a game of teams, or of more than two sides."""
        players = [player for side in sides for player in side.players]
        results = self.results(Game(sides))
        return [
            self.rate_period(player, sum_terms(terms)) for player, terms in zip(players, results, strict=True)
        ]

    def results(self, game: Game) -> list[list[Terms]]:
        """Return for every player the terms of the results against every other side.

        A team is seen by the others as the mean of its ratings and the root of its mean square deviation.
        """
        sides = game.sides
        deviations = [[self.aged(player) for player in side.players] for side in sides]
        ratings = [math.fsum(player.rating for player in side.players) / len(side.players) for side in sides]
        g_of = [g(math.sqrt(math.fsum(RD * RD for RD in team) / len(team))) for team in deviations]
        return [
            [
                Result(g_of[j], E(player.rating, ratings[j], g_of[j]), score(side.rank, other.rank)).terms()
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
        information, gain, expected, actual = sums
        RD = self.aged(player)
        return self.rated(player, RD, move(player.rating, RD, q * q * information, gain), expected, actual)

    def rated(
        self, player: PlayerState, RD: float, new: tuple[float, float], expected: float, actual: float
    ) -> Rated:
        """Return the player with the new rating and deviation brought within the pool's limits."""
        r_new, RD_new = new
        rating = min(max(r_new, self.rating_min), self.rating_max)
        rd = min(max(RD_new, self.rd_floor), self.rd)
        return Rated(rating, rd, player.volatility, expected, actual, RD)
