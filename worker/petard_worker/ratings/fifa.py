"""The world ranking of FIFA for men's national teams, "SUM", since August 2018.

Source: FIFA, "Revision of the FIFA / Coca-Cola World Ranking" (2018); its symbols. There is no home advantage
in it, and goals do not count. A national team is one player. Ours are the limits of the ratings, and the
rating that a team begins with.
"""

from dataclasses import dataclass
from typing import ClassVar

from petard_worker.ratings.duel import duel, importance
from petard_worker.ratings.parameters import number
from petard_worker.ratings.system import Game, GameSide, GameUnsupportedError, PlayerState, Rated, score

IMPORTANCE = {
    "friendly_outside_window": 5,
    "friendly_in_window": 10,
    "nations_league_group": 15,
    "nations_league_playoff_final": 25,
    "qualifier": 25,
    "confederation_final_to_QF": 35,
    "confederation_final_QF_on": 40,
    "world_cup_to_QF": 50,
    "world_cup_QF_on": 60,
}
"""I, the importance of a match; `to_QF` ends before the quarter-finals, `QF_on` begins with them."""
IMPORTANCES = ", ".join(f"{value} {match.replace('_', ' ')}" for match, value in IMPORTANCE.items())
HIGHEST_IMPORTANCE = 1000.0


def expected_result(dr: float, scale: float = 600) -> float:
    """Return We, the expected result for a difference of dr points to the opponent, 0 to 1."""
    return float(1 / (10 ** (-dr / scale) + 1))


def result(side: GameSide, other: GameSide, decided_by: str) -> float:
    """Return W: 1, 0.5 or 0; after a penalty shoot-out 0.75 for who won it, 0.5 for who lost it.

    Raises GameUnsupportedError for a shoot-out that nobody has won.
    """
    if decided_by != "shootout":
        return score(side.rank, other.rank)
    if side.rank == other.rank:
        raise GameUnsupportedError(
            f"the game was decided by a shoot-out, but both sides have rank {side.rank}:"
            " give the winner the better rank, or send a draw as decided by play"
        )
    return 0.75 if side.rank < other.rank else 0.5


@dataclass(frozen=True, slots=True)
class Fifa:
    """FIFA's SUM after every match: P = P_before + I (W - We). All in rating points."""

    name: ClassVar[str] = "fifa"
    citation: ClassVar[str] = (
        "FIFA (2018). Revision of the FIFA / Coca-Cola World Ranking. https://digitalhub.fifa.com/m/"
        "f99da4f73212220/original/edbm045h0udbwkqew35a-pdf.pdf"
    )

    period: ClassVar[int] = 0
    season_month: ClassVar[int] = 0
    provisional_games: ClassVar[int] = 0

    rating: float = number(1000, -10_000, 10_000, "rating of a team that has played nothing")
    rating_min: float = number(0, -10_000, 10_000, "lowest rating")
    rating_max: float = number(4000, -10_000, 10_000, "highest rating")
    scale: float = number(600, 100, 10_000, "difference of ratings for which the odds are 10 to 1")
    importance: float = number(
        10, 0.001, HIGHEST_IMPORTANCE, f"I of a match that names none; FIFA's are {IMPORTANCES}"
    )

    def contradiction(self) -> str | None:
        """Return how the parameters contradict each other: they cannot."""
        return None

    def initial(self) -> PlayerState:
        """Return the state of a team that has played nothing."""
        return PlayerState(self.rating, 0.0)

    def lowest(self) -> PlayerState:
        """Return a team of the pool's lowest rating."""
        return PlayerState(self.rating_min, 0.0)

    def expected(self, player: PlayerState, opponent: PlayerState) -> float:
        """Return We."""
        return expected_result(player.rating - opponent.rating, self.scale)

    def elo_point(self) -> float:
        """Return scale / 400: the slope of We = 1 / (10^(-dr / scale) + 1) at 0 is ln(10) / (4 scale)."""
        return self.scale / 400

    def rate(self, game: Game) -> list[Rated]:
        """Return both teams after the match; raises GameUnsupportedError for other than two teams."""
        a, b = duel(game, self.name)
        importance_of_match = importance(game, self.importance, HIGHEST_IMPORTANCE)
        return [self.rate_side(side, other, importance_of_match, game) for side, other in ((a, b), (b, a))]

    def rate_side(self, side: GameSide, other: GameSide, importance_of_match: float, game: Game) -> Rated:
        """Return one team after the match; in a knock-out round of a final competition it loses nothing."""
        (player,) = side.players
        We = self.expected(player, other.players[0])
        W = result(side, other, game.decided_by)
        change = importance_of_match * (W - We)
        if game.knockout:
            change = max(change, 0.0)
        P = min(max(player.rating + change, self.rating_min), self.rating_max)
        return Rated(P, 0.0, player.volatility, We, W, 0.0)
