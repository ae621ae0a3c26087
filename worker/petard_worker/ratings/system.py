"""The seam between a pool and its rating system.

A system gets a game, with the state of every player as it was before the game, and returns what became of
every player together with the reasons. It is pure: the same numbers in, the same bits out; no clock, no
settings, no I/O. All systems are frozen dataclasses whose fields are their parameters (see parameters.py).
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Protocol


class PlayerState(NamedTuple):
    """What a system knows of a player before a game; ratings and deviations in rating points."""

    rating: float
    rd: float
    volatility: float | None = None
    games: int = 0
    peak: float | None = None
    days: float = 0.0
    """Days since the player's last rated event; 0 for the first one and for a late one."""


class GameSide(NamedTuple):
    """A player or a team, and where it ended: rank 1 is best, equal ranks are a draw."""

    players: Sequence[PlayerState]
    rank: int
    points: float | None = None
    home: bool | None = None


class Game(NamedTuple):
    """One contest, ready to be rated."""

    sides: Sequence[GameSide]
    importance: float | None = None
    decided_by: str = "play"


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


def score(rank: int, other: int) -> float:
    """Return 1 for a better rank than the other, 0.5 for an equal one, 0 for a worse one."""
    if rank < other:
        return 1.0
    return 0.5 if rank == other else 0.0
