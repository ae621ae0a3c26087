"""Times in events: RFC 3339 text outside, aware UTC datetimes inside."""

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

# Hours and offsets are bounded here because datetime's own bounds differ between versions of Python: 24:00
# and +00:99 must not depend on who reads them. Leap seconds, which datetime cannot hold, it refuses itself.
TIME_PATTERN = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-9]{2}(\.[0-9]{1,9})?"
    r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
_rfc3339 = re.compile(TIME_PATTERN[:-1] + r"\Z")


def parse_time(value: object) -> datetime:
    """Return the UTC time of an RFC 3339 text (or of an aware datetime), cut to microseconds."""
    if isinstance(value, str):
        if not _rfc3339.match(value):
            raise ValueError("is not an RFC 3339 time with a zone, such as 2026-11-30T12:00:00Z")
        if value.endswith("Z"):  # the usual one is in UTC already
            return datetime.fromisoformat(value)
        value = datetime.fromisoformat(value.upper())
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError("is not an RFC 3339 text with a zone")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("is outside the years 1 to 9999") from None


def format_time(value: datetime) -> str:
    """Return RFC 3339 with Z, without a fraction where there is none."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


Time = Annotated[
    datetime,
    BeforeValidator(parse_time),
    PlainSerializer(format_time, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "format": "date-time",
            "pattern": TIME_PATTERN,
            "description": "RFC 3339 with a zone, in the years 1 to 9999 of UTC; no leap seconds."
            " Digits after the microsecond are cut off.",
        }
    ),
]
