"""Weng-Lin: teams and fields of any number, with one mean and one deviation per player.

Source: Ruby C. Weng and Chih-Jen Lin, "A Bayesian approximation method for online ranking", Journal of
Machine Learning Research 12 (2011), 267-300; their symbols; the models are in weng_lin_models.py. What the
paper leaves open, above all the growth of the deviation before every game, is as in the library openskill.

Of two sides both Bradley-Terry models and Plackett-Luce are the same. Of more, full pairing moves everybody
by a sum over all opponents, too far in large fields: of 64 newcomers the first would gain 166 points. So
Plackett-Luce is the default, although ties are odd in it: of five newcomers who end 1, 1, 3, 4, 5 the third
gains more than the first two. Bradley-Terry in pairs of neighbours has neither fault, and learns more slowly.

Partial play is ours. A side performs as the sum of its players' performances, each times the player's weight,
so a weight w multiplies mu, and w^2 multiplies sigma^2, in the side; the slope of the likelihood reaches the
player times w and its curvature times w^2. Weights are not normalised: 1 is the whole game in any team, and a
player of weight 0 is as if not in the game. (openskill's weights are not parts of a game but merits: within
every team they are stretched to 1 to 2, then multiply what is won and divide what is lost.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from petard_worker.ratings.citations import apa
from petard_worker.ratings.parameters import choice, integer, number
from petard_worker.ratings.system import Game, GameSide, PlayerState, Rated, score
from petard_worker.ratings.weng_lin_models import MODELS, PAIRS, Constants, Phi, Step, Team, logistic


@dataclass(frozen=True, slots=True)
class WengLin:
    """Weng-Lin after every game. Ratings are mu, deviations are sigma, both in points of the same scale.

    Days do not age anybody: every game played adds tau^2 to sigma^2 before it is rated.
    """

    name: ClassVar[str] = "weng_lin"
    citation: ClassVar[str] = apa("weng_lin")

    period: ClassVar[int] = 0
    season_month: ClassVar[int] = 0
    provisional_games: ClassVar[int] = 0

    rating: float = number(25, -10_000, 10_000, "rating (mu) of a player who has played nothing")
    rd: float = number(
        25 / 3, 0.001, 10_000, "deviation (sigma) of a player who has played nothing; also the highest"
    )
    model: str = choice("plackett_luce", tuple(MODELS), "which model of the paper explains a result")
    beta: float = number(25 / 6, 0.001, 10_000, "deviation of a side's performance from its strength")
    kappa: float = number(0.0001, 1e-9, 1, "least factor by which one game can multiply a player's variance")
    tau: float = number(25 / 300, 0, 10_000, "growth of the deviation by a game: sigma^2 grows by tau^2")
    epsilon: float = number(
        0.1, 0, 10_000, "draw margin of the Thurstone-Mosteller models; the others know none"
    )
    window: int = integer(4, 1, 64, "up to how many places away the partial models compare sides")
    rd_floor: float = number(0.1, 0.001, 10_000, "lowest deviation")
    rating_min: float = number(-25, -10_000, 10_000, "lowest rating")
    rating_max: float = number(75, -10_000, 10_000, "highest rating")

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
        """Return the predicted score of the player, both deviations grown by tau and counted."""
        return self.chance(self.team(GameSide((player,), 1)), self.team(GameSide((opponent,), 1)))

    def elo_point(self) -> float:
        """Return sqrt(2) beta ln(10) / 400, or for Thurstone-Mosteller 2 sqrt(pi) beta ln(10) / 1600.

        At x = (mu_i - mu_q) / (sqrt(2) beta) = 0 the logistic has the slope 1/4, Phi has 1 / sqrt(2 pi).
        Neither sigma nor tau is in it: of players who are not known that well the true slope is smaller.
        """
        slope = 1 / math.sqrt(2 * math.pi) if self.is_normal() else 1 / 4
        return math.sqrt(2) * self.beta / slope * math.log(10) / 1600

    def is_normal(self) -> bool:
        """Return whether performances are normal, and not logistic."""
        return self.model.startswith("thurstone")

    def chance(self, i: Team, q: Team) -> float:
        """Return the chance of side i against side q, 0 to 1; a draw is half of one.

        Logistic for Bradley-Terry and Plackett-Luce, normal for Thurstone-Mosteller, without doubling c_iq.
        """
        x = (i.mu - q.mu) / math.sqrt(i.sigma2 + q.sigma2 + 2 * self.beta * self.beta)
        return Phi(x) if self.is_normal() else logistic(x)

    def rate(self, game: Game) -> list[Rated]:
        """Return every player after the game, all computed from the states before it."""
        sides = game.sides
        if len(sides) == 2 and all(len(side.players) == 1 and side.weights is None for side in sides):
            return self.rate_duel(sides[0].players[0], sides[0].rank, sides[1].players[0], sides[1].rank)
        return self.rate_field(sides)

    def rate_duel(self, a: PlayerState, rank_a: int, b: PlayerState, rank_b: int) -> list[Rated]:
        """Return both players of a game of one against one.

        The usual case, and `rate_field` written out: the tests hold the two to the same bits.
        """
        i, q = Team(a.rating, self.aged2(a, 1), rank_a), Team(b.rating, self.aged2(b, 1), rank_b)
        pair, constants = PAIRS[self.model], self.constants()
        return [
            self.rated(a, 1, pair(i, q, constants), self.chance(i, q), score(rank_a, rank_b)),
            self.rated(b, 1, pair(q, i, constants), self.chance(q, i), score(rank_b, rank_a)),
        ]

    def rate_field(self, sides: Sequence[GameSide]) -> list[Rated]:
        """Return every player of a game of teams, or of more than two sides, or of parts of games."""
        teams = [self.team(side) for side in sides]
        steps = MODELS[self.model](teams, self.constants())
        scores = [self.scores(at, teams) for at in range(len(teams))]
        return [
            self.rated(player, w, step, expected, actual)
            for side, step, (expected, actual) in zip(sides, steps, scores, strict=True)
            for player, w in zip(side.players, weights_of(side), strict=True)
        ]

    def constants(self) -> Constants:
        """Return what the models need to know."""
        return Constants(2 * self.beta * self.beta, self.epsilon, self.window)

    def team(self, side: GameSide) -> Team:
        """Return the side as the others see it."""
        parts = list(zip(side.players, weights_of(side), strict=True))
        mu = math.fsum([w * player.rating for player, w in parts])
        return Team(mu, math.fsum([w * w * self.aged2(player, w) for player, w in parts]), side.rank)

    def aged2(self, player: PlayerState, w: float) -> float:
        """Return the player's variance at the time of the game; who takes no part does not age."""
        return player.rd * player.rd + (self.tau * self.tau if w else 0.0)

    def scores(self, at: int, teams: Sequence[Team]) -> tuple[float, float]:
        """Return the expected and the actual score of a side, summed over all the others."""
        i = teams[at]
        others = [team for n, team in enumerate(teams) if n != at]
        expected = math.fsum([self.chance(i, q) for q in others])
        return expected, math.fsum([score(i.rank, q.rank) for q in others])

    def rated(self, player: PlayerState, w: float, step: Step, expected: float, actual: float) -> Rated:
        """Return the player after the game, within the limits: the last step of all the algorithms."""
        sigma2 = self.aged2(player, w)
        mu = player.rating + w * sigma2 * step.omega
        sigma = math.sqrt(sigma2 * max(1 - w * w * sigma2 * step.delta, self.kappa))
        rating = min(max(mu, self.rating_min), self.rating_max)
        rd = min(max(sigma, self.rd_floor), self.rd)
        return Rated(rating, rd, player.volatility, expected, actual, math.sqrt(sigma2))


def weights_of(side: GameSide) -> Sequence[float]:
    """Return how much of the game each player took part in, 0 to 1."""
    return (1.0,) * len(side.players) if side.weights is None else side.weights
