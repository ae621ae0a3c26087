"""What game servers say: a game was finished, a game was abandoned."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from petard_schema.envelope import MAX_SAFE_INTEGER, Envelope, Message
from petard_schema.names import GameName, PlayerName, PoolName
from petard_schema.times import Time

MAX_PLAYERS = 64

Rank = Annotated[int, Field(ge=1, le=MAX_SAFE_INTEGER)]
Points = Annotated[float, Field(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]
Players = Annotated[tuple[PlayerName, ...], Field(min_length=1, strict=False)]


class Side(Message):
    """A player or a team and where it ended; rank 1 is best, equal ranks are a draw."""

    players: Players
    rank: Rank
    points: Points | None = None
    home: bool | None = None


class UnrankedSide(Message):
    """A side of a game that may have ended without a result."""

    players: Players
    rank: Rank | None = None
    points: Points | None = None
    home: bool | None = None


class GameData(Message):
    """What finished and abandoned games have in common."""

    pool: PoolName
    game: GameName
    started: Time | None = None
    importance: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    meta: dict[str, JsonValue] | None = None
    """Kept with the event and never read."""


class FinishedGame(GameData):
    """A contest that was played to its end."""

    sides: Annotated[tuple[Side, ...], Field(min_length=1, strict=False)]
    rated: bool = True
    decided_by: Literal["play", "shootout", "forfeit"] = "play"


class AbandonedGame(GameData):
    """A contest that somebody left."""

    sides: Annotated[tuple[UnrankedSide, ...], Field(min_length=1, strict=False)]
    abandoned_by: Players
    rated: bool = True
    fault: Literal["player", "server"] = "player"


class GameFinished(Envelope):
    """A game was finished: it rates the game and takes a bomb step off everybody in it."""

    type: Literal["petard.game.finished.v1"] = "petard.game.finished.v1"
    data: FinishedGame


class GameAbandoned(Envelope):
    """A game was abandoned: it adds to the bombs of those who left."""

    type: Literal["petard.game.abandoned.v1"] = "petard.game.abandoned.v1"
    data: AbandonedGame


GameEvent = GameFinished | GameAbandoned
