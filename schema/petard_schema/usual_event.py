"""The usual event, read in one go: what is unremarkable needs no close look at its text.

`parse.py` reads JSON into objects of Python, with an eye on everything that I-JSON forbids, and has those
checked. A text that may be anything needs that; most are not. Here pydantic reads the text itself, and a few
counts prove that nothing was in it but the fields that it found:

- The name of a field ends in a quote and a colon. Where there are no more of them than fields were found, no
  name came twice and none is unknown: the text is no deeper than an event.
- Without a backslash there are no escapes, so no lone surrogates and no NUL.
- Two fields may hold anything, `meta` and a `traceparent` that is none; with them a text is not usual.
- Numbers other than ranks are looked at: long ones, and those with an exponent, are not usual.

Whatever is wrong or only remarkable is left to `parse.py`, and so are the words about it.
"""

import re

from pydantic import ValidationError

from petard_schema.envelope import MAX_EVENT_BYTES
from petard_schema.game_events import GameAbandoned, GameEvent, GameFinished

_FINISHED = b'"petard.game.finished.v1"'
_NEEDED = {"specversion", "type"}
"""What has a default in the model, but must stand in the text."""
_read_finished = GameFinished.__pydantic_validator__.validate_json
_read_abandoned = GameAbandoned.__pydantic_validator__.validate_json
"""What `model_validate_json` calls, without what it looks at before."""
_unusual_number = re.compile(rb"[0-9.]{16}|[0-9][eE]")


def read_usual(raw: bytes) -> GameEvent | None:
    """Return the event in `raw`, its sense still to be checked, or None where that needs a closer look."""
    if len(raw) > MAX_EVENT_BYTES or b"\\" in raw or has_spaced_colon(raw):
        return None
    read = _read_finished if _FINISHED in raw else _read_abandoned
    try:
        event: GameEvent = read(raw)
    except ValidationError:
        return None
    given, data = event.model_fields_set, event.data
    fields = len(given) + len(data.model_fields_set)
    numbers = data.importance is not None
    for side in data.sides:
        fields += len(side.model_fields_set)
        numbers = numbers or side.points is not None or side.weights is not None
    if data.meta is not None or fields != raw.count(b'":') or not given >= _NEEDED:
        return None
    if event.traceparent is None and "traceparent" in given:
        return None
    return None if numbers and _unusual_number.search(raw) else event


def has_spaced_colon(raw: bytes) -> bool:
    """Return whether white space stands before a colon: it would hide a name from the count."""
    # A single byte is found many times faster than two, and the usual text has no white space at all.
    return (
        (b" " in raw and b" :" in raw)
        or (b"\n" in raw and b"\n:" in raw)
        or (b"\t" in raw and b"\t:" in raw)
        or (b"\r" in raw and b"\r:" in raw)
    )
