"""Games of one against one: for systems that rate nothing else, national teams above all."""

from petard_worker.ratings.system import Game, GameSide, GameUnsupportedError


def duel(game: Game, system: str) -> tuple[GameSide, GameSide]:
    """Return the two sides of the game, or raise GameUnsupportedError unless each is one player."""
    sizes = [len(side.players) for side in game.sides]
    if sizes == [1, 1]:
        return game.sides[0], game.sides[1]
    raise GameUnsupportedError(
        f"the game has sides of {', '.join(map(str, sizes)) or 'no'} players, but {system} rates two sides of"
        " one player each; a team that stays together is one player"
    )


def importance(game: Game, otherwise: float, most: float) -> float:
    """Return the importance of the game, or what counts otherwise; above 0, or GameUnsupportedError."""
    if game.importance is None:
        return otherwise
    if 0 < game.importance <= most:
        return game.importance
    raise GameUnsupportedError(
        f"importance is {game.importance:g}, but must be above 0 and at most {most:g};"
        f" without one the game counts {otherwise:g}"
    )
