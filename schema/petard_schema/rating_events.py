"""What Petard says: every ledger entry, as a rating-changed event."""

from typing import Annotated, Literal

from pydantic import Field

from petard_schema.envelope import Envelope, Message
from petard_schema.names import EventId, EventSource, GameName, PlayerName, PoolName


class Standing(Message):
    """Where a player stands in a pool: unrounded, in rating points of the pool."""

    rating: float
    rd: float
    volatility: float | None = None
    bomb: int
    games: int


class Explanation(Message):
    """Why the rating moved: scores of this player, summed over the opponents of this one game."""

    expected: float | None = None
    actual: float | None = None
    rd_aged: float | None = None
    """Rating deviation after ageing, before the game."""
    penalty: bool = False
    late: bool = False
    """The event's time was before the player's last one, so nothing aged."""


class Change(Message):
    """One player's before and after."""

    player: PlayerName
    player_seq: int
    before: Standing
    after: Standing
    explanation: Explanation


class Cause(Message):
    """The event that caused a ledger entry."""

    id: EventId
    source: EventSource
    type: str
    game: GameName | None = None


class LedgerEntry(Message):
    """One entry of the ledger of a pool, ignored ones included, so that seq has no gaps."""

    pool: PoolName
    epoch: Annotated[int, Field(ge=1)]
    seq: Annotated[int, Field(ge=1)]
    cause: Cause
    outcome: Literal["rated", "ignored"]
    reason: str | None = None
    changes: Annotated[tuple[Change, ...], Field(strict=False)]


class RatingChanged(Envelope):
    """An entry of the ledger: `subject` is the pool, `id` is `<pool>/<epoch>-<seq>`."""

    type: Literal["petard.rating.changed.v1"] = "petard.rating.changed.v1"
    subject: PoolName
    data: LedgerEntry
