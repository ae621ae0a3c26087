"""Elo, with the options of those who use it.

Source: Arpad E. Elo, "The Rating of Chessplayers, Past and Present" (1978); his symbols and FIDE's: R a
rating, D a difference of ratings, W a score and W_e the expected one. What FIDE, US Chess, the EGF, the DWZ
and FiveThirtyEight made of it stands in modules of their own. Elo knows no deviation: rd is 0 everywhere.

A game has two sides. A team is seen by the other side as the mean of its ratings; each of its players expects
a score, and moves, by the own rating.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from petard_worker.ratings import egf, fide, uscf
from petard_worker.ratings.citations import apa
from petard_worker.ratings.k_factors import K_RULES, Results
from petard_worker.ratings.margins import MULTIPLIERS, winning_margin
from petard_worker.ratings.parameters import choice, integer, number
from petard_worker.ratings.system import (
    Game,
    GameSide,
    GameUnsupportedError,
    PlayerState,
    Rated,
    Terms,
    score,
)

LARGEST_EXPONENT = 300.0
"""10 to a higher power comes near the largest float; an expected score of 1e-300 is none already."""


def logistic(D: float, scale: float) -> float:
    """Return W_e = 1 / (1 + 10^(-D / scale)), the expected score of who is rated D points more."""
    return float(1 / (1 + 10 ** min(-D / scale, LARGEST_EXPONENT)))


@dataclass(frozen=True, slots=True)
class Elo:
    """Elo after every game, or after every period. All ratings are in rating points."""

    name: ClassVar[str] = "elo"
    citation: ClassVar[str] = apa("elo")

    rating: float = number(1500, -10_000, 10_000, "rating of a player who has played nothing")
    rating_min: float = number(0, -10_000, 10_000, "lowest rating")
    rating_max: float = number(4000, -10_000, 10_000, "highest rating")
    expectation: str = choice(
        "logistic", ("logistic", "fide_table", "egf_until_2021"), "what the expected score is computed with"
    )
    scale: float = number(400, 1, 10_000, "points that make the odds ten to one; only of logistic")
    egf_epsilon: float = number(
        egf.EPSILON, 0, 0.5, "what both expected scores together are short of 1; only of egf_until_2021"
    )
    difference_cap: float = number(
        0, 0, 20_000, "a larger difference of ratings is counted as this one (FIDE: 400); 0: none"
    )
    uncapped_from: float = number(
        fide.UNCAPPED_FROM, -10_000, 10_000, "the difference counts as it is for players rated so high"
    )
    k_rule: str = choice(
        "fixed", ("fixed", "fide", "calculator", "uscf", "egf_until_2021", "dwz"), "whose K counts"
    )
    k: float = number(32, 0.001, 1_000, "points that a whole surprise is worth; only of fixed")
    floor: str = choice("none", ("none", "uscf"), "whose personal floor no rating falls below")
    home_advantage: float = number(0, 0, 1_000, "points added to the side that alone is at home")
    margin: str = choice("none", ("none", *MULTIPLIERS), "whose multiplier makes a clear win count more")
    carry: float = number(1, 0, 1, "share of the distance to carry_mean that is kept at a new season")
    carry_mean: float = number(1505, -10_000, 10_000, "rating that all are drawn to at a new season")
    season_month: int = integer(0, 0, 12, "month on whose first day (UTC) a season starts; 0: no seasons")
    period: int = integer(0, 0, 366, "days of a rating period, whose games are simultaneous; 0: every game")

    @property
    def provisional_games(self) -> int:
        """Return after how many games a highest rating counts: US Chess protects established ones only."""
        return uscf.PROVISIONAL_GAMES if self.floor == "uscf" else 0

    def contradiction(self) -> str | None:
        """Return how the parameters contradict each other, if they do."""
        return next(self.contradictions(), None)

    def contradictions(self) -> Iterator[str]:
        """Yield what contradicts each other."""
        if self.margin != "none" and self.period:
            yield f"a margin multiplier rates game by game: period must be 0, not {self.period}"
        if self.margin != "none" and self.k_rule == "uscf":
            yield f"k_rule uscf rates the scores alone: margin must be none, not {self.margin}"
        if self.k_rule == "dwz" and self.period:
            yield f"k_rule dwz counts every game as a tournament: period must be 0, not {self.period}"
        if self.carry == 1:
            return
        if not self.season_month:
            yield f"carry {self.carry:g} needs season_month, the month in which a season starts (1 to 12)"
        if not self.rating_min <= self.carry_mean <= self.rating_max:
            limits = f"rating_min {self.rating_min:g} and rating_max {self.rating_max:g}"
            yield f"carry_mean {self.carry_mean:g} is not between {limits}"

    def initial(self) -> PlayerState:
        """Return the state of a player who has played nothing."""
        return PlayerState(self.rating, 0.0)

    def lowest(self) -> PlayerState:
        """Return the pool's lowest rating."""
        return PlayerState(self.rating_min, 0.0)

    def expected(self, player: PlayerState, opponent: PlayerState) -> float:
        """Return the predicted score of the player on neutral ground, in the season that is now."""
        W_e = self.W_e(self.carried(player).rating, 0.0, self.carried(opponent).rating)
        # The EGF's is up to epsilon/2 below 0, so that it may give points to who loses without a chance.
        return max(0.0, W_e)

    def elo_point(self) -> float:
        """Return scale / 400: the slope of 1 / (1 + 10^(-D / scale)) at 0 is ln(10) / (4 scale).

        1 for FIDE's table and the EGF's curve: the table is nearly Elo's curve, in steps that have no slope,
        and the slope of the EGF's depends on how strong the equals are.
        """
        return self.scale / 400 if self.expectation == "logistic" else 1.0

    def rate(self, game: Game) -> list[Rated]:
        """Return every player after the game, all computed from the ratings before it."""
        sides = game.sides
        if len(sides) == 2 and len(sides[0].players) == len(sides[1].players) == 1 and self.is_plain():
            return self.rate_duel(
                sides[0].players[0], sides[1].players[0], score(sides[0].rank, sides[1].rank)
            )
        players = (player for side in sides for player in side.players)
        return [
            self.rate_period(player, terms) for player, terms in zip(players, self.terms(game), strict=True)
        ]

    def is_plain(self) -> bool:
        """Return whether no option is in use, so that `rate_duel` is the whole rule."""
        return (
            self.expectation == "logistic"
            and self.k_rule == "fixed"
            and self.margin == "none"
            and self.floor == "none"
            and self.carry == 1
            and not self.home_advantage
            and not self.difference_cap
        )

    def rate_duel(self, a: PlayerState, b: PlayerState, W: float) -> list[Rated]:
        """Return both players of a plain game of one against one; W is the first one's score.

        The usual case, and `rate_period` written out: the tests hold the two to the same bits.
        """
        low, high, R_a, R_b = self.rating_min, self.rating_max, a.rating, b.rating
        W_a, W_b = logistic(R_a - R_b, self.scale), logistic(R_b - R_a, self.scale)
        new_a, new_b = R_a + self.k * (W - W_a), R_b + self.k * (1 - W - W_b)
        return [
            Rated(min(max(new_a, low), high), 0.0, a.volatility, W_a, W, 0.0),
            Rated(min(max(new_b, low), high), 0.0, b.volatility, W_b, 1 - W, 0.0),
        ]

    def results(self, game: Game) -> list[list[Terms]]:
        """Return for every player the terms of the one result, which is against the other side."""
        return [[terms] for terms in self.terms(game)]

    def terms(self, game: Game) -> Iterator[Terms]:
        """Yield for every player what the result adds to the sums of a period.

        They are the number of results, the gain in shares of K, W_e, W, the rating of the opponent, and wins
        minus losses.
        """
        if len(game.sides) != 2:
            raise GameUnsupportedError(f"elo rates games of two sides; this one has {len(game.sides)}")
        a, b = game.sides
        home_a, home_b = self.home_points(a, b), self.home_points(b, a)
        R_a, R_b = self.mean(a) + home_a, self.mean(b) + home_b
        weight = self.weight(game, R_a - R_b)
        W = score(a.rank, b.rank)
        for player in a.players:
            yield self.result(player, home_a, R_b, W, weight)
        for player in b.players:
            yield self.result(player, home_b, R_a, 1 - W, weight)

    def result(self, player: PlayerState, home: float, R_other: float, W: float, weight: float) -> Terms:
        """Return the terms of one result: `home` is what the own side's place adds."""
        W_e = self.W_e(self.carried(player).rating, home, R_other)
        return (1.0, weight * (W - W_e), W_e, W, R_other - home, 2 * W - 1)

    def scores(self, sums: Sequence[float]) -> tuple[float, float]:
        """Return W_e and W, which are among the terms."""
        return sums[2], sums[3]

    def rate_period(self, player: PlayerState, sums: Sequence[float]) -> Rated:
        """Return the player after the results of one period: R + K (W - W_e)."""
        n, gain, W_e, W, R_others, wins_minus_losses = sums
        player = self.carried(player)
        R = player.rating
        if self.k_rule == "fixed":
            R_new = R + self.k * gain
        elif self.k_rule == "uscf":
            R_new = uscf.rate(R, player.games, R_others / max(n, 1), W_e, W, int(n), wins_minus_losses)
        else:
            R_new = R + K_RULES[self.k_rule](player, Results(int(n), W_e, W)).k * gain
        return Rated(self.within_limits(player, R_new), 0.0, player.volatility, W_e, W, 0.0)

    def W_e(self, R: float, home: float, R_other: float) -> float:
        """Return the expected score of a player rated R, `home` points better at this place."""
        D = fide.capped(R + home - R_other, R, self.difference_cap, self.uncapped_from)
        if self.expectation == "logistic":
            return logistic(D, self.scale)
        if self.expectation == "fide_table":
            return fide.expected_score(D)
        return egf.expected_score(R + home, R + home - D, self.egf_epsilon)

    def weight(self, game: Game, D: float) -> float:
        """Return the multiplier for the margin; D is by how much the first side is better here."""
        # A forfeit has a winner and no margin.
        if self.margin == "none" or game.decided_by == "forfeit":
            return 1.0
        a, b = game.sides
        margin = winning_margin(a, b, f"elo with margin {self.margin}")
        advantage = None if a.rank == b.rank else D if a.rank < b.rank else -D
        return MULTIPLIERS[self.margin](margin, advantage)

    def home_points(self, side: GameSide, other: GameSide) -> float:
        """Return what its place adds to the side's ratings."""
        return self.home_advantage if side.home and not other.home else 0.0

    def mean(self, side: GameSide) -> float:
        """Return the rating that the other side meets."""
        ratings = [self.carried(player).rating for player in side.players]
        return ratings[0] if len(ratings) == 1 else math.fsum(ratings) / len(ratings)

    def carried(self, player: PlayerState) -> PlayerState:
        """Return the player as a new season starts, if one has: drawn to carry_mean."""
        if not player.new_season or self.carry == 1:
            return player
        return player._replace(rating=self.carry * player.rating + (1 - self.carry) * self.carry_mean)

    def within_limits(self, player: PlayerState, R: float) -> float:
        """Return the new rating within the pool's limits, and not below the personal floor."""
        if self.floor == "uscf":
            # A floor stops a fall; it lifts nobody who stands below it already.
            R = max(R, min(self.personal_floor(player), player.rating))
        return min(max(R, self.rating_min), self.rating_max)

    def personal_floor(self, player: PlayerState) -> float:
        """Return the rating that the player cannot fall below; only an established peak protects."""
        established = player.peak is not None and player.games > self.provisional_games
        return uscf.floor(player.peak if established and player.peak else 0.0, player.wins, player.draws)
