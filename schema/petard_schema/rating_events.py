"""What Petard says: every ledger entry, as a rating-changed event."""

from functools import lru_cache
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from petard_schema.envelope import Envelope, Message
from petard_schema.names import MAX_ID, MAX_NAME, MAX_SOURCE, POOL_PATTERN
from petard_schema.times import Time, parse_time

_parse_known_time = lru_cache(maxsize=64)(parse_time)


def parse_told_time(value: object) -> object:
    """Return the time of a text; entries of one batch tell the same one, and come one after the other."""
    return _parse_known_time(value) if isinstance(value, str) else value


# Which characters may stand in a name depends on the version of Unicode, hence of Python. What was accepted
# is told as it is: a follower's Python may be older than the worker's.
ToldName = Annotated[str, Field(min_length=1, max_length=MAX_NAME, description="As it was accepted.")]
ToldId = Annotated[str, Field(min_length=1, max_length=MAX_ID, description="As it was accepted.")]
ToldSource = Annotated[str, Field(min_length=1, max_length=MAX_SOURCE, description="As it was accepted.")]
ToldPool = Annotated[str, Field(pattern=POOL_PATTERN)]
ToldTime = Annotated[Time, BeforeValidator(parse_told_time)]


class Standing(Message):
    """Where a player stands in a pool: unrounded, in rating points of the pool."""

    rating: float
    rd: Annotated[float, Field(description="Rating deviation: how uncertain the rating is.")]
    volatility: Annotated[float, Field(description="Only in systems that have one.")] | None = None
    bomb: Annotated[int, Field(description="The abandonment counter.")]
    games: int


class Explanation(Message):
    """Why the rating moved: scores of this player, summed over the opponents of this one game."""

    expected: float | None = None
    actual: float | None = None
    rd_aged: Annotated[float, Field(description="Rating deviation after ageing, before the game.")] | None = (
        None
    )
    penalty: Annotated[bool, Field(description="The abandonment was punished.")] = False
    late: Annotated[
        bool,
        Field(
            description="The event's time was before the player's last one: nothing aged, or, in a pool with"
            " rating periods, it counted in the open one."
        ),
    ] = False


class Change(Message):
    """One player's before and after."""

    player: ToldName
    player_seq: Annotated[int, Field(description="Counts the changes of this player: 1, 2, 3, …")]
    before: Standing
    after: Standing
    explanation: Explanation


class Cause(Message):
    """The event that caused a ledger entry."""

    id: ToldId
    source: ToldSource
    type: str
    game: ToldName | None = None


class LedgerEntry(Message):
    """One entry of the ledger of a pool, ignored ones included, so that seq has no gaps."""

    pool: ToldPool
    epoch: Annotated[int, Field(ge=1, description="Goes up when the stream had to be corrected.")]
    seq: Annotated[int, Field(ge=1, description="Counts the entries of the pool's ledger: 1, 2, 3, …")]
    cause: Cause
    outcome: Literal["rated", "ignored"]
    reason: Annotated[str, Field(description="Why it was ignored.")] | None = None
    changes: Annotated[
        tuple[Change, ...], Field(strict=False, description="One per player concerned; empty when ignored.")
    ]


class RatingChanged(Envelope):
    """An entry of the ledger: `subject` is the pool, `id` is `<pool>/<epoch>-<seq>`."""

    # Names of fields come again with every entry, values hardly: to remember them costs more than it saves.
    model_config = ConfigDict(cache_strings="keys")

    id: Annotated[str, Field(min_length=1, max_length=MAX_ID)]
    source: Annotated[str, Field(min_length=1, max_length=MAX_SOURCE)]
    time: ToldTime
    type: Literal["petard.rating.changed.v1"] = "petard.rating.changed.v1"
    subject: ToldPool
    data: LedgerEntry
