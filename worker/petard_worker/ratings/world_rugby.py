"""The rankings of World Rugby for national teams: whatever one side gains, the other loses.

Source: World Rugby, "Rankings explained" (world.rugby/tournaments/rankings), the points exchange system. A
union is one player. Ranks say who won, points only by how much: a win by kicks after a draw has no margin.
Ours are the limits of the ratings, and the 30 of a new union, for which we found no published text.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from petard_worker.ratings.duel import duel, importance
from petard_worker.ratings.margins import winning_margin
from petard_worker.ratings.parameters import number
from petard_worker.ratings.system import Game, GameSide, PlayerState, Rated, score

BIG_WIN_WEIGHT = 1.5
WORLD_CUP = 2.0
"""The importance of a match of a World Cup; that of every other one is 1."""
HIGHEST_IMPORTANCE = 1000.0


@dataclass(frozen=True, slots=True)
class WorldRugby:
    """World Rugby's points exchange after every match. All in rating points, except the margin."""

    name: ClassVar[str] = "world_rugby"
    citation: ClassVar[str] = (
        "World Rugby (n.d.). Rankings explained: the points exchange system."
        " https://www.world.rugby/tournaments/rankings/mru"
    )

    period: ClassVar[int] = 0
    season_month: ClassVar[int] = 0
    provisional_games: ClassVar[int] = 0

    rating: float = number(30, -10_000, 10_000, "rating of a union that has played nothing")
    rating_min: float = number(0, -10_000, 10_000, "lowest rating")
    rating_max: float = number(200, -10_000, 10_000, "highest rating")
    home_advantage: float = number(3, 0, 1_000, "what the home side is counted better than its rating")
    clamp: float = number(10, 0.001, 10_000, "largest gap of ratings that counts: a favourite gains nothing")
    big_win: float = number(15, 0, 1_000, "margin in points above which a win counts 1.5 times")
    importance: float = number(
        1, 0.001, HIGHEST_IMPORTANCE, f"weight of a match that names none; of a World Cup it is {WORLD_CUP:g}"
    )

    def contradiction(self) -> str | None:
        """Return how the parameters contradict each other: they cannot."""
        return None

    def initial(self) -> PlayerState:
        """Return the state of a union that has played nothing."""
        return PlayerState(self.rating, 0.0)

    def lowest(self) -> PlayerState:
        """Return a union of the pool's lowest rating."""
        return PlayerState(self.rating_min, 0.0)

    def expected(self, player: PlayerState, opponent: PlayerState) -> float:
        """Return the score with which nothing is exchanged on neutral ground: 0.5 + d / 20, 0 to 1."""
        return self.expected_score(self.gap(player.rating, opponent.rating))

    def elo_point(self) -> float:
        """Return 2 clamp ln(10) / 1600: the slope of E = 0.5 + d / (2 clamp) is 1 / (2 clamp)."""
        return 2 * self.clamp * math.log(10) / 1600

    def gap(self, rating: float, other: float) -> float:
        """Return d, by how much a side is the better one, home advantage included: -10 to 10."""
        return min(max(rating - other, -self.clamp), self.clamp)

    def expected_score(self, d: float) -> float:
        """Return E for a gap of d; a match of weight 1 changes a rating by 2 (s - E), s = 1, 0.5, 0."""
        return 0.5 + d / (2 * self.clamp)

    def rate(self, game: Game) -> list[Rated]:
        """Return both unions after the match; raises GameUnsupportedError for other than two unions.

        Also for a match without points, unless it was forfeited: then there is no margin.
        """
        a, b = duel(game, self.name)
        weight = importance(game, self.importance, HIGHEST_IMPORTANCE) * self.margin_weight(a, b, game)
        return [self.rate_side(side, other, weight) for side, other in ((a, b), (b, a))]

    def margin_weight(self, a: GameSide, b: GameSide, game: Game) -> float:
        """Return 1.5 for a win by more than `big_win` points, else 1."""
        if game.decided_by == "forfeit":
            return 1.0
        return BIG_WIN_WEIGHT if winning_margin(a, b, self.name) > self.big_win else 1.0

    def rate_side(self, side: GameSide, other: GameSide, weight: float) -> Rated:
        """Return one union after the match."""
        (player,) = side.players
        d = self.gap(self.counted(side), self.counted(other))
        s = score(side.rank, other.rank)
        # 2 (s - E), in the order of operations that gives both sides the same bits with opposite signs.
        change = weight * ((2 * s - 1) - d / self.clamp)
        rating = min(max(player.rating + change, self.rating_min), self.rating_max)
        return Rated(rating, 0.0, player.volatility, self.expected_score(d), s, 0.0)

    def counted(self, side: GameSide) -> float:
        """Return the rating that the side is counted with."""
        return side.players[0].rating + (self.home_advantage if side.home else 0.0)
