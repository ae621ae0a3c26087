"""What must hold for any bytes whatever: the parser against a second, slow reader of the same rules.

The second reader shares no line with the first: it walks brackets byte by byte, reads numbers as decimals and
looks at every text. Both must say the same of every text, value by value.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import NamedTuple, NoReturn

from pydantic import BaseModel

from petard_schema import (
    MAX_EVENT_BYTES,
    DeadReason,
    EventRefused,
    GameAbandoned,
    GameEvent,
    GameFinished,
    Identity,
    parse_event,
    read_counted,
    read_identity,
)
from petard_schema.parse import read_closely, read_json
from petard_schema.usual_event import read_usual
from petard_worker.fold import outcome_of

MAX_DEPTH = 16
MAX_SAFE = 2**53 - 1
LARGEST_DOUBLE = Decimal(2**1024 - 2**970)
"""From here on a number is nearer to infinity than to the largest double."""
SMALLEST_DOUBLE = Decimal(f"{5**1075}e-1075")
"""Up to here it is as near to zero as to the smallest one."""

FIELD = re.compile(
    r"bad_field:(id|source|time|data"
    r"|data\.(pool|game|started|importance|knockout|meta|rated|decided_by|fault|sides|abandoned_by)"
    r"|data\.abandoned_by\.\d+|data\.sides\.\d+(\.((players|weights)(\.\d+)?|rank|points|home))?)"
)


class Refused(NamedTuple):
    """What the second reader says of a text that is none to it."""

    reason: str


def outcome(raw: bytes) -> GameEvent | str:
    """Return the event or the reason, having checked what holds for each."""
    check_identity(raw)
    check_json(raw)
    check_usual(raw)
    try:
        event = parse_event(raw)
    except EventRefused as refusal:
        check_refusal(refusal)
        return refusal.reason
    check_event(raw, event)
    return event


def check_refusal(refusal: EventRefused) -> None:
    """A reason from the closed list, and a detail that any terminal, log and table can hold."""
    closed = set(DeadReason) - {"bad_field"}
    assert refusal.reason in closed or FIELD.fullmatch(refusal.reason), refusal.reason
    assert refusal.detail.isascii(), refusal.detail
    assert refusal.detail.isprintable(), refusal.detail
    assert 0 < len(refusal.detail) <= 400, refusal.detail


def check_event(raw: bytes, event: GameEvent) -> None:
    """An event can be stored, says the same when it is read back, and the same as it stands in the ledger."""
    assert isinstance(event, GameFinished | GameAbandoned)
    text = event.to_json()
    assert b"\0" not in raw
    assert b"\0" not in text
    text.decode()
    if len(text) <= MAX_EVENT_BYTES:  # defaults that are written out can take it over the limit
        assert parse_event(text) == event
    counted = read_counted(raw.decode())
    assert type(counted) is type(event)
    assert outcome_of(counted) == outcome_of(event)
    assert (counted.id, counted.source, counted.data.game) == (event.id, event.source, event.data.game)


def check_usual(raw: bytes) -> None:
    """Fail where a text that was taken for a usual one is something else when it is looked at closely."""
    usual = read_usual(raw)
    if usual is not None:
        closely = read_closely(raw)
        model = type(closely).model_validate_json(raw)
        assert fields_of(usual, closely) == fields_of(closely, closely)
        assert (model, model.to_json()) == (closely, closely.to_json())


def fields_of(part: object, model: BaseModel) -> Mapping[str, object]:
    """Return what a part says in the fields of the model, to the bit: 1 is not True, and -0.0 is not 0."""
    return {name: told(getattr(part, name), getattr(model, name)) for name in type(model).model_fields}


def told(value: object, like: object) -> object:
    if isinstance(like, BaseModel):
        return fields_of(value, like)
    if isinstance(like, tuple) and isinstance(value, tuple) and len(value) == len(like):
        return tuple(map(told, value, like))
    return repr(value)


def check_identity(raw: bytes) -> None:
    """What can be read of an identity can be stored."""
    identity = read_identity(raw)
    assert isinstance(identity, Identity)
    for text in identity:
        assert text is None or b"\0" not in text.encode()  # encode raises for a lone surrogate


def check_json(raw: bytes) -> None:
    """Both readers say the same."""
    second = read_slowly(raw)
    first: object
    try:
        first = read_json(raw)
    except EventRefused as refusal:
        check_refusal(refusal)
        first = Refused(refusal.reason)
    # repr: 1 is not True, and -0.0 is not 0.
    assert repr(first) == repr(second)


def read_slowly(raw: bytes) -> object:
    """Return the JSON value in the bytes by the rules of the README, or the reason why not."""
    if len(raw) > MAX_EVENT_BYTES:
        return Refused("too_large")
    if depth_of(raw) > MAX_DEPTH:
        return Refused("too_deep")
    try:
        value: object = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=unique,
            parse_int=small,
            parse_float=finite,
            parse_constant=no_constant,
        )
        check_texts(value)
    except ValueError:
        return Refused("not_json")
    return value


def depth_of(raw: bytes) -> int:
    """Return how deep brackets are nested outside of texts."""
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return 0  # deep enough to be refused it cannot be
    depth = deepest = 0
    inside = escaped = False
    for byte in raw:
        if escaped:
            escaped = False
        elif byte == 0x22:
            inside = not inside
        elif inside:
            escaped = byte == 0x5C
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    counts = Counter(name for name, _ in pairs)
    if any(count > 1 for count in counts.values()):
        raise ValueError("twice")
    return dict(pairs)


def small(digits: str) -> int:
    value = Decimal(digits)
    if value.copy_abs() > MAX_SAFE:
        raise ValueError("too large")
    return int(value)


def finite(digits: str) -> float:
    if len(digits) > 64:
        raise ValueError("too long")
    try:
        value = Decimal(digits)
    except InvalidOperation:  # an exponent of twenty digits
        raise ValueError("far too large or too small") from None
    size = value.copy_abs()  # abs() would round
    if size >= LARGEST_DOUBLE:
        raise ValueError("too large")
    if value and size <= SMALLEST_DOUBLE:
        raise ValueError("too small")
    if not value and len(digits.lower().partition("e")[2].lstrip("+-")) > 3:
        raise ValueError("a zero that Postgres does not read")
    return float(digits)


def no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def check_texts(value: object) -> None:
    """Raise ValueError where a text holds NUL or half a character."""
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("NUL")
        value.encode()  # UnicodeEncodeError is a ValueError
    elif isinstance(value, list):
        for member in value:
            check_texts(member)
    elif isinstance(value, dict):
        for name, member in value.items():
            check_texts(name)
            check_texts(member)
