"""Margin multipliers: how much more than its bare result a game counts, by the points of both sides.

Source: FiveThirtyEight's NFL Elo (https://github.com/fivethirtyeight/nfl-elo-game, forecast.py, MIT) and NBA
Elo ("How We Calculate NBA Elo Ratings", https://fivethirtyeight.com/features/how-we-calculate-nba-elo-ratings/).
Both divide by a term that grows with the winner's advantage in rating: favourites win more often and also
win by more, and without it their ratings would drift upwards.

One choice is ours: for absurd differences the divisor would reach zero and turn negative, so it is never
taken as less than a tenth of what it is between equals. That is reached when a side wins that was 1980 points
behind (NFL) or 1125 points behind (NBA).
"""

import math
from collections.abc import Callable

from petard_worker.ratings.system import GameSide, GameUnsupportedError

LEAST_SHARE = 0.1
"""The divisor is at least this share of what it is between equals."""
Multiplier = Callable[[float, float | None], float]
"""What the multiplier is for: by how many points the sides differ, and the winner's advantage in rating
points, home advantage included; None for the advantage when nobody won."""


def winning_margin(a: GameSide, b: GameSide, system: str) -> float:
    """Return by how many points the winner is ahead; 0 or more, and 0 for a tie.

    Raises GameUnsupportedError without the points of both, and where they contradict the ranks.
    """
    if a.points is None or b.points is None:
        raise GameUnsupportedError(
            f"{system} needs the points of both sides, which are {a.points} and {b.points};"
            " only a game that was decided by forfeit has none"
        )
    ahead = (a.points - b.points) * ((a.rank < b.rank) - (a.rank > b.rank))
    if ahead < 0 or (a.rank == b.rank and a.points != b.points):
        raise GameUnsupportedError(
            f"the points {a.points:g} and {b.points:g} contradict the ranks {a.rank} and {b.rank}:"
            f" {system} takes more points for better"
        )
    return ahead


def fivethirtyeight_nfl(margin: float, advantage: float | None) -> float:
    """Return ln(max(margin, 1) + 1) * 2.2 / (0.001 advantage + 2.2); a tie divides by 1 and not by 2.2."""
    divisor = 1.0 if advantage is None else bounded(0.001 * advantage + 2.2, 2.2)
    return math.log(max(margin, 1.0) + 1) * (2.2 / divisor)


def fivethirtyeight_nba(margin: float, advantage: float | None) -> float:
    """Return (margin + 3)^0.8 / (7.5 + 0.006 advantage).

    Basketball knows no tie; one is taken for a win of a side without an advantage.
    """
    divisor = 7.5 if advantage is None else bounded(7.5 + 0.006 * advantage, 7.5)
    return float((margin + 3) ** 0.8 / divisor)


def bounded(divisor: float, between_equals: float) -> float:
    """Return the divisor, or its least share of that between equals."""
    return max(divisor, LEAST_SHARE * between_equals)


MULTIPLIERS: dict[str, Multiplier] = {
    "fivethirtyeight_nfl": fivethirtyeight_nfl,
    "fivethirtyeight_nba": fivethirtyeight_nba,
}
