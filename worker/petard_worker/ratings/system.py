"""The seam between a pool and its rating system.

A system gets a game, with the state of every player as it was before the game, and returns what became of
every player together with the reasons. It is pure: the same numbers in, the same bits out; no clock, no
settings, no I/O. All systems are frozen dataclasses whose fields are their parameters (see parameters.py).
"""

import math
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable


class PlayerState(NamedTuple):
    """What a system knows of a player before a game; ratings and deviations in rating points."""

    rating: float
    rd: float
    volatility: float | None = None
    games: int = 0
    peak: float | None = None
    days: float = 0.0
    """Days since the player's last rated event; 0 for the first one and for a late one."""
    wins: int = 0
    draws: int = 0
    new_season: bool = False
    """A season has started since the player's last rated event."""
    age: float | None = None
    """Age in years at the end of the calendar year; pools do not know it."""


class GameSide(NamedTuple):
    """A player or a team, and where it ended: rank 1 is best, equal ranks are a draw."""

    players: Sequence[PlayerState]
    rank: int
    points: float | None = None
    home: bool | None = None
    weights: Sequence[float] | None = None
    """How much of the game each player took part in, 0 to 1, in the order of the players; None: all of it."""


class Game(NamedTuple):
    """One contest, ready to be rated."""

    sides: Sequence[GameSide]
    importance: float | None = None
    decided_by: str = "play"
    knockout: bool = False
    """A knock-out round of a final competition."""


Terms = tuple[float, ...]
"""What one result adds to the sums of a rating period; what they are is the system's own business."""


class Rated(NamedTuple):
    """A player after the game, and why: scores are summed over the opponents, 1 for each that was beaten."""

    rating: float
    rd: float
    volatility: float | None
    expected: float
    actual: float
    rd_aged: float


class GameUnsupportedError(ValueError):
    """The system cannot rate a game of this shape; the message says which shapes it can."""


class RatingSystem(Protocol):
    """What every rating system offers."""

    name: ClassVar[str]
    citation: ClassVar[str]
    """Whose formulas these are, and where they are published."""

    @property
    def rating(self) -> float:
        """Return the rating of a player who has played nothing."""
        ...

    @property
    def rating_min(self) -> float:
        """Return the lowest rating of the pool."""
        ...

    @property
    def rating_max(self) -> float:
        """Return the highest rating of the pool."""
        ...

    @property
    def period(self) -> int:
        """Return how many days a rating period lasts; 0: every game is a period of its own."""
        ...

    @property
    def season_month(self) -> int:
        """Return the month on whose first day a season starts; 0: there are no seasons."""
        ...

    @property
    def provisional_games(self) -> int:
        """Return after how many games a highest rating counts; until then the peak is the rating itself."""
        ...

    def contradiction(self) -> str | None:
        """Return where parameters are in range each but contradict each other, if they do."""
        ...

    def initial(self) -> PlayerState:
        """Return the state of a player who has played nothing."""
        ...

    def lowest(self) -> PlayerState:
        """Return the lowest possible opponent: who a punished abandon is lost against."""
        ...

    def rate(self, game: Game) -> list[Rated]:
        """Return every player after the game, side by side in the order of the game.

        Raises GameUnsupportedError where the shape of the game is not one the system knows.
        """
        ...

    def expected(self, player: PlayerState, opponent: PlayerState) -> float:
        """Return the predicted score of the player against the opponent, 0 to 1."""
        ...

    def elo_point(self) -> float:
        """Return how many points of this system weigh as much as one point of Elo, between equals; above 0.

        Elo's E = 1 / (1 + 10^(-D / 400)) has the slope ln(10) / 1600 at D = 0. The slope of `expected` where
        two players of no deviation are equal, times so many points, is the same.
        """
        ...


RateByRank = Callable[[PlayerState, PlayerState, float], list[Rated]]
"""From two players, as they were before their game, and the score of the first, 0 to 1: both after it."""


@runtime_checkable
class RankSystem(RatingSystem, Protocol):
    """A system that looks at nothing of a game of one against one but who won: no points, no home."""

    @property
    def rate_by_rank(self) -> RateByRank:
        """Return what rates such a game to the same bits as `rate` does."""
        ...


@runtime_checkable
class PeriodSystem(RatingSystem, Protocol):
    """A system whose games can be simultaneous: all of a period are rated from the states at its start."""

    def results(self, game: Game) -> list[list[Terms]]:
        """Return the terms of every result of every player, side by side in the order of the game.

        The players are given as they were at the start of the period. Raises GameUnsupportedError.
        """
        ...

    def scores(self, sums: Sequence[float]) -> tuple[float, float]:
        """Return the expected and the actual score that are among the sums."""
        ...

    def rate_period(self, player: PlayerState, sums: Sequence[float]) -> Rated:
        """Return the player after a period: the start of it, and the exact sum of each term."""
        ...


def score(rank: int, other: int) -> float:
    """Return 1 for a better rank than the other, 0.5 for an equal one, 0 for a worse one."""
    if rank < other:
        return 1.0
    return 0.5 if rank == other else 0.0


def sum_terms(results: Sequence[Terms]) -> Terms:
    """Return the sum of each term, exactly rounded: the order of the results does not matter.

    `fsum` and not `sum`, whose bits Python 3.12 has changed.
    """
    return tuple(math.fsum(column) for column in zip(*results, strict=True))
