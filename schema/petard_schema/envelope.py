"""The CloudEvents 1.0 envelope. `source` and `id` together are the identity of an event."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from petard_schema.names import MAX_ID, EventId, EventSource
from petard_schema.times import Time

MAX_EVENT_BYTES = 16 * 1024
MAX_SAFE_INTEGER = 2**53 - 1
"""Beyond it JSON readers of other languages lose digits (RFC 7493)."""


class Message(BaseModel):
    """What every part of a message has in common: strict types, no change after parsing, the rest ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", allow_inf_nan=False)


class Envelope(Message):
    """What every event says about itself."""

    specversion: Literal["1.0"] = "1.0"
    id: EventId
    source: EventSource
    time: Time
    traceparent: str | None = Field(default=None, max_length=MAX_ID)
    """W3C trace context; carried on to the rating-changed event."""

    def to_json(self) -> bytes:
        """Return the message as the compact JSON that goes onto the wire."""
        return self.model_dump_json(exclude_none=True).encode()
