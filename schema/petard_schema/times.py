"""Times in events: RFC 3339 text outside, aware UTC datetimes inside."""

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_rfc3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII)


def parse_time(value: object) -> datetime:
    """Return the UTC time of an RFC 3339 text (or of an aware datetime), cut to microseconds."""
    if isinstance(value, str):
        if not _rfc3339.match(value):
            raise ValueError("is not an RFC 3339 time with a zone, such as 2026-11-30T12:00:00Z")
        value = datetime.fromisoformat(value)
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
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
