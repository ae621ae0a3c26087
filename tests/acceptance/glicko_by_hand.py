"""Glicko after every game, written from the formulas in one thread: what the pipeline is measured against.

Mark E. Glickman, "The Glicko system": q, g(RD), E, d² and the two updates. Deviations age by the days since a
player's last game; a game that is earlier than that ages nothing. Nothing of Petard is imported here.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

Q = math.log(10) / 400
START, CEILING, FLOOR, LOWEST, HIGHEST = 1500.0, 350.0, 30.0, 0.0, 3000.0
C = 4.826
SECONDS_PER_DAY = 86_400


@dataclass
class Player:
    rating: float = START
    rd: float = CEILING
    last: datetime | None = None
    games: int = 0


@dataclass(frozen=True)
class Game:
    """A game of two; `score` is the first one's: 1, 0.5 or 0."""

    first: str
    second: str
    score: float
    time: datetime


def fold(games: Iterable[Game]) -> dict[str, Player]:
    """Return where everybody stands after the games in the order in which they are given."""
    players: dict[str, Player] = {}
    for game in games:
        a = players.setdefault(game.first, Player())
        b = players.setdefault(game.second, Player())
        before = (a.rating, aged(a, game.time)), (b.rating, aged(b, game.time))
        a.rating, a.rd = after(*before[0], *before[1], game.score)
        b.rating, b.rd = after(*before[1], *before[0], 1 - game.score)
        for player in (a, b):
            player.last = game.time if player.last is None else max(player.last, game.time)
            player.games += 1
    return players


def aged(player: Player, time: datetime) -> float:
    """Return RD at the time of a game: min(√(RD² + c²·t), 350)."""
    days = max(0.0, (time - player.last).total_seconds() / SECONDS_PER_DAY) if player.last else 0.0
    return min(math.sqrt(player.rd**2 + C**2 * days), CEILING)


def after(r: float, rd: float, r_j: float, rd_j: float, s: float) -> tuple[float, float]:
    """Return r' and RD' of one player after one game against r_j, RD_j."""
    g = 1 / math.sqrt(1 + 3 * Q**2 * rd_j**2 / math.pi**2)
    e = 1 / (1 + 10 ** (-g * (r - r_j) / 400))
    d2 = 1 / (Q**2 * g**2 * e * (1 - e))
    denominator = 1 / rd**2 + 1 / d2
    rating = r + Q / denominator * g * (s - e)
    return min(max(rating, LOWEST), HIGHEST), max(math.sqrt(1 / denominator), FLOOR)
