"""What game servers say: a game was finished, a game was abandoned."""

from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from petard_schema.envelope import MAX_SAFE_INTEGER, Envelope, Message
from petard_schema.names import GameName, PlayerName, PoolName
from petard_schema.times import Time

MAX_PLAYERS = 64
MAX_IMPORTANCE = 1_000_000
FINISHED: Final = "petard.game.finished.v1"
ABANDONED: Final = "petard.game.abandoned.v1"

Rank = Annotated[
    int,
    Field(
        ge=1,
        le=MAX_SAFE_INTEGER,
        description="1 is best, equal ranks are a draw; written without fraction and exponent.",
    ),
]
Points = Annotated[
    float,
    Field(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER, description="The score, where the game has one."),
]
Home = Annotated[
    bool, Field(description="Whether the side had the advantage, of its home field or of the first move.")
]
Importance = Annotated[
    float,
    Field(ge=0, le=MAX_IMPORTANCE, description="How much the game counts, for systems that weigh games."),
]
Knockout = Annotated[
    bool,
    Field(description="A knock-out round of a final competition, for systems in which it costs no points."),
]
Weight = Annotated[float, Field(ge=0, le=1)]
Weights = Annotated[
    tuple[Weight, ...],
    Field(
        strict=False,
        fail_fast=True,
        min_length=1,
        description="How much of the game each player took part in, 0 to 1, one per player in their order,"
        " not all of them 0; for systems that weigh players. Left out: all of it.",
        json_schema_extra={"maxItems": MAX_PLAYERS - 1, "contains": {"exclusiveMinimum": 0}},
    ),
]
Meta = Annotated[
    dict[str, JsonValue],
    Field(
        description="Kept with the event and never read. I-JSON like the rest: integers within ±(2^53 - 1)."
    ),
]
Rated = Annotated[bool, Field(description="False: the event goes into the ledger and changes nothing.")]
# fail_fast: a text with thousands of wrong elements costs no more than its first one.
Players = Annotated[
    tuple[PlayerName, ...],
    Field(
        min_length=1,
        strict=False,
        fail_fast=True,
        json_schema_extra={"maxItems": MAX_PLAYERS - 1, "uniqueItems": True},
    ),
]
# One side alone, or too many players, are refused with reasons of their own: the model lets them through.
Sides = Field(
    min_length=1,
    strict=False,
    fail_fast=True,
    description=f"At most {MAX_PLAYERS} players altogether; nobody stands on two sides.",
    json_schema_extra={"minItems": 2, "maxItems": MAX_PLAYERS},
)


class Side(Message):
    """A player or a team and where it ended."""

    players: Players
    rank: Rank
    points: Points | None = None
    home: Home | None = None
    weights: Weights | None = None


class UnrankedSide(Message):
    """A side of a game that may have ended without a result."""

    players: Players
    rank: Rank | None = None
    points: Points | None = None
    home: Home | None = None
    weights: Weights | None = None


class GameData(Message):
    """What finished and abandoned games have in common."""

    pool: PoolName
    game: GameName
    started: Time | None = None
    importance: Importance | None = None
    meta: Meta | None = None


class FinishedGame(GameData):
    """A contest that was played to its end."""

    sides: Annotated[tuple[Side, ...], Sides]
    rated: Rated = True
    decided_by: Literal["play", "shootout", "forfeit"] = "play"
    knockout: Knockout = False


class AbandonedGame(GameData):
    """A contest that somebody left."""

    sides: Annotated[tuple[UnrankedSide, ...], Sides]
    abandoned_by: Annotated[Players, Field(description="Who left: each of them stands on a side.")]
    rated: Rated = True
    fault: Annotated[
        Literal["player", "server"], Field(description="`server`: nobody's fault, no bomb and no penalty.")
    ] = "player"


class GameFinished(Envelope):
    """A game was finished: it rates the game and takes a bomb step off everybody in it."""

    type: Literal["petard.game.finished.v1"] = "petard.game.finished.v1"
    data: FinishedGame


class GameAbandoned(Envelope):
    """A game was abandoned: it adds to the bombs of those who left."""

    type: Literal["petard.game.abandoned.v1"] = "petard.game.abandoned.v1"
    data: AbandonedGame


GameEvent = GameFinished | GameAbandoned
