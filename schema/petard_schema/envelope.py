"""The CloudEvents 1.0 envelope. `source` and `id` together are the identity of an event."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from petard_schema.names import EventId, EventSource
from petard_schema.times import Time

MAX_EVENT_BYTES = 16 * 1024
MAX_SAFE_INTEGER = 2**53 - 1
"""Beyond it JSON readers of other languages lose digits (RFC 7493)."""

TRACEPARENT_PATTERN = r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"
_traceparent = re.compile(TRACEPARENT_PATTERN[:-1] + r"\Z")


def read_traceparent(value: object) -> str | None:
    """Return the W3C trace context, or None for anything else: a broken tracer must not cost a game."""
    return value if isinstance(value, str) and _traceparent.match(value) else None


Traceparent = Annotated[
    Annotated[str, Field(json_schema_extra={"pattern": TRACEPARENT_PATTERN})] | None,
    BeforeValidator(read_traceparent, json_schema_input_type=JsonValue),
    Field(
        description="W3C trace context, carried on to the rating-changed event;"
        " anything else is ignored, as W3C asks."
    ),
]


class Message(BaseModel):
    """What every part of a message has in common: strict types, no change after parsing, the rest ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", allow_inf_nan=False)


class Envelope(Message):
    """What every event says about itself."""

    specversion: Literal["1.0"] = "1.0"
    id: EventId
    source: EventSource
    time: Time
    traceparent: Traceparent = None

    def to_json(self) -> bytes:
        """Return the message as the compact JSON that goes onto the wire.

        It can be longer than the text that was parsed: defaults are written out and 1e15 becomes
        1000000000000000.0. Only what is pushed is held to MAX_EVENT_BYTES.
        """
        # Not model_dump_json: it makes text of the bytes that are wanted here.
        return self.__pydantic_serializer__.to_json(self, exclude_none=True)
