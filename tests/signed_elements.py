"""Keys for tests, and events signed with them."""

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from petard_schema import sign_event


def key(number: int) -> str:
    """Return a key that differs from those of other numbers."""
    return "whsec_" + base64.b64encode(bytes([number]) * 32).decode()


def signed(body: bytes, *keys: str, at: datetime | None = None, source: str | None = None) -> bytes:
    """Return the element of an event, signed now and by its own source unless told otherwise."""
    event = json.loads(body)
    return sign_event(
        body,
        event_id=event["id"],
        source=source or event["source"],
        keys=keys or (key(1),),
        at=at or datetime.now(UTC),
    )


def setting(keys: Mapping[str, Sequence[str]], **pools: Sequence[str]) -> str:
    """Return the setting that gives each source its keys."""
    entries = {source: {"keys": list(given), **pools} for source, given in keys.items()}
    return json.dumps(entries)
