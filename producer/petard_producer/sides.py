"""Short ways to say who played: the sides of the most frequent games.

They only arrange names. What is wrong with a name is said when the game is pushed, with the same
EventRefused as for every other part of it.
"""

from petard_schema import Side, UnrankedSide


def duel(*, winner: str, loser: str) -> tuple[Side, Side]:
    """Return the sides of a game of two that one of them won."""
    return _side(winner, 1), _side(loser, 2)


def draw(*players: str) -> tuple[Side, ...]:
    """Return the sides of a game that nobody won."""
    return tuple(_side(player, 1) for player in players)


def finish_order(*players: str) -> tuple[Side, ...]:
    """Return the sides of a game of each against all, the best player first."""
    return tuple(_side(player, rank) for rank, player in enumerate(players, start=1))


def without_result(*players: str) -> tuple[UnrankedSide, ...]:
    """Return the sides of a game that was abandoned before it had a result."""
    return tuple(UnrankedSide.model_construct(players=(player,)) for player in players)


def _side(player: str, rank: int) -> Side:
    # Unchecked on purpose: Side(...) would raise pydantic's error here instead of EventRefused at the push.
    return Side.model_construct(players=(player,), rank=rank)
