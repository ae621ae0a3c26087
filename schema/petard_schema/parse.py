"""The only door: from bytes to a typed event, or to a reason why not.

The checks run from cheap to dear and never trust the input: size before text, depth before JSON, JSON before
types, types before sense. JSON is read as I-JSON (RFC 7493): UTF-8, no duplicate names, no lone surrogates,
integers within +-(2^53 - 1), floats that a double can hold. NUL is refused too: Postgres cannot store it.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from petard_schema.envelope import MAX_EVENT_BYTES, MAX_SAFE_INTEGER
from petard_schema.game_events import (
    MAX_PLAYERS,
    AbandonedGame,
    FinishedGame,
    GameAbandoned,
    GameEvent,
    GameFinished,
    Side,
    UnrankedSide,
)
from petard_schema.reasons import DeadReason, EventRefused

MAX_DEPTH = 16
MAX_NUMBER_LENGTH = 64

EVENT_TYPES: dict[str, type[GameFinished] | type[GameAbandoned]] = {
    "petard.game.finished.v1": GameFinished,
    "petard.game.abandoned.v1": GameAbandoned,
}
Model = TypeVar("Model", bound=BaseModel)
ENVELOPE_FIELDS = ("specversion", "id", "source", "type")

PLAIN_WORDS = {
    "dict_type": "is not an object",
    "missing": "is missing",
    "model_type": "is not an object",
    "too_short": "is empty",
    "tuple_type": "is not an array",
}
"""What is said instead of pydantic's words, which name types of Python to people who write game servers."""


class Identity(NamedTuple):
    """As much of an event's identity as could be read; for dead letters."""

    source: str | None
    id: str | None
    game: str | None


def parse_event(raw: bytes) -> GameEvent:
    """Return the event in `raw`, or raise EventRefused with a reason from the closed list."""
    document = read_json(raw)
    if not isinstance(document, dict):
        raise EventRefused(DeadReason.NOT_AN_EVENT, f"is not a JSON object; it is {shorten(document)}")
    for field in ENVELOPE_FIELDS:
        if field not in document:
            raise EventRefused(DeadReason.NOT_AN_EVENT, f"no {field!r}: not a CloudEvents envelope")
    if document["specversion"] != "1.0":
        raise EventRefused(
            DeadReason.NOT_AN_EVENT, f"specversion is {shorten(document['specversion'])}, not '1.0'"
        )
    kind = document["type"]
    model = EVENT_TYPES.get(kind) if isinstance(kind, str) else None
    if model is None:
        known = ", ".join(EVENT_TYPES)
        raise EventRefused(DeadReason.UNKNOWN_TYPE, f"type is {shorten(kind)}, known are {known}")
    try:
        event = model.model_validate(document)
    except ValidationError as error:
        raise bad_field(error) from None
    check_sense(event)
    return event


def read_counted(body: str) -> GameEvent:
    """Return an event that has been accepted before; it is taken as it stands, its times as text.

    It is not judged again: which characters are printable depends on the version of Python.
    """
    document = json.loads(body)
    model = EVENT_TYPES[document["type"]]
    data_model, side_model = (FinishedGame, Side) if model is GameFinished else (AbandonedGame, UnrankedSide)
    data = _without_strangers(document["data"], knockout=lambda value: isinstance(value, bool))
    sides = tuple(
        _as_it_stands(side_model, _without_strangers(side, weights=partial(_are_weights, side["players"])))
        for side in data["sides"]
    )
    return _as_it_stands(model, {**document, "data": _as_it_stands(data_model, {**data, "sides": sides})})


def _without_strangers(values: Mapping[str, Any], **known: Callable[[object], bool]) -> dict[str, Any]:
    """Return the fields without those that came before they meant anything, when they could be anything."""
    return {name: value for name, value in values.items() if name not in known or known[name](value)}


def _are_weights(players: Sequence[str], value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == len(players)
        and all(type(weight) in {int, float} and 0 <= weight <= 1 for weight in value)
    )


def _as_it_stands(model: type[Model], values: Mapping[str, object]) -> Model:
    return model.model_construct(
        None, **{name: values[name] for name in model.model_fields if name in values}
    )


def read_json(raw: bytes) -> object:
    """Return the JSON value in `raw`, read as I-JSON, or raise EventRefused."""
    if len(raw) > MAX_EVENT_BYTES:
        raise EventRefused(DeadReason.TOO_LARGE, f"{len(raw)} bytes, the limit is {MAX_EVENT_BYTES}")
    # A text with few brackets cannot be deep, and one without escapes cannot hide a surrogate or a NUL: the
    # usual event is never walked.
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH:
        check_depth(raw)
    try:
        value: object = _decoder.decode(raw.decode())
    except UnicodeDecodeError as error:
        raise EventRefused(
            DeadReason.NOT_JSON, f"is not UTF-8: {error.reason} at byte {error.start}"
        ) from None
    except ValueError as error:  # JSONDecodeError, and those that are raised at the end of this file
        raise EventRefused(DeadReason.NOT_JSON, str(error)) from None
    if b"\\u" in raw:
        check_storable(value)
    return value


def check_depth(raw: bytes) -> None:
    """Raise EventRefused where brackets are nested too deep.

    The decoder is not asked: how deep it goes depends on the version of Python and on the caller's stack, and
    Python 3.13 crashes in a thread with a small one.
    """
    brackets = _texts.sub(b"", raw).translate(None, delete=_NO_BRACKETS)
    depths = accumulate(1 if bracket in b"[{" else -1 for bracket in brackets)
    if any(depth > MAX_DEPTH for depth in depths):
        raise EventRefused(DeadReason.TOO_DEEP, f"nested deeper than {MAX_DEPTH} levels")


def check_storable(value: object) -> None:
    """Raise EventRefused where a text holds what Postgres cannot store."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, str) and (bad := _unstorable.search(item)):
            raise EventRefused(DeadReason.NOT_JSON, f"a text holds U+{ord(bad.group()):04X}")


def read_identity(raw: bytes) -> Identity:
    """Return what can be read of an event's identity, however broken the rest of it is."""
    try:
        document = read_json(raw)
    except EventRefused:
        return Identity(None, None, None)
    if not isinstance(document, dict):
        return Identity(None, None, None)
    data = document.get("data")
    game = data.get("game") if isinstance(data, dict) else None
    return Identity(_text(document.get("source")), _text(document.get("id")), _text(game))


def check_sense(event: GameEvent) -> None:
    """Raise EventRefused where well-formed sides make no game."""
    sides: Sequence[Side | UnrankedSide] = event.data.sides
    if len(sides) < 2:
        raise EventRefused(DeadReason.ONE_SIDE, "a game has at least two sides")
    count = sum(len(side.players) for side in sides)
    if count > MAX_PLAYERS:
        raise EventRefused(DeadReason.TOO_MANY_PLAYERS, f"{count} players, the limit is {MAX_PLAYERS}")
    for number, side in enumerate(sides):
        if side.weights is not None and len(side.weights) != len(side.players):
            detail = f"{len(side.weights)} weights for {len(side.players)} players"
            raise EventRefused(DeadReason.BAD_FIELD, detail, f"data.sides.{number}.weights")
    names = {player for side in sides for player in side.players}
    if len(names) < count:
        refuse_repeats(sides)
    if isinstance(event, GameAbandoned):
        leavers = event.data.abandoned_by
        for player in leavers:
            if player not in names:
                raise EventRefused(DeadReason.ABANDONER_NOT_IN_GAME, f"{player!r} is on no side")
        if len(set(leavers)) < len(leavers):
            raise EventRefused(DeadReason.PLAYER_TWICE, "abandoned_by names a player twice")


def refuse_repeats(sides: Sequence[Side | UnrankedSide]) -> NoReturn:
    """Raise the reason that fits a game in which some player stands more than once."""
    if len({side.players for side in sides}) == 1 and len(sides[0].players) == 1:
        raise EventRefused(DeadReason.SELF_MATCH, f"{sides[0].players[0]!r} plays against themselves")
    for side in sides:
        if len(set(side.players)) < len(side.players):
            raise EventRefused(DeadReason.PLAYER_TWICE, "a side names a player twice")
    raise EventRefused(DeadReason.PLAYER_ON_TWO_SIDES, "a player stands on two sides")


def bad_field(error: ValidationError) -> EventRefused:
    """Return the refusal for the first field that pydantic complains about."""
    first = error.errors(include_url=False, include_context=False)[0]
    parts = [str(part) for part in first["loc"]]
    if "meta" in parts:  # what follows are names that a user chose: no reason for a closed list
        parts = parts[: parts.index("meta") + 1]
    detail = PLAIN_WORDS.get(first["type"]) or first["msg"].removeprefix("Value error, ")
    if first["type"] != "missing":
        detail = f"{detail}; it is {shorten(first['input'])}"
    return EventRefused(DeadReason.BAD_FIELD, detail, ".".join(parts))


def shorten(value: object) -> str:
    """Return a printable ASCII form of any value that is short enough for a log line."""
    text = ascii(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and len(value) <= 256 else None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError(f"an object names {shorten(_repeated(pairs))} twice")
    return result


def _repeated(pairs: list[tuple[str, object]]) -> str:
    names = sorted(name for name, _ in pairs)
    return next(name for name, following in pairwise(names) if name == following)


def _int(digits: str) -> int:
    if len(digits) < 16:  # the usual one; below 10^15 whatever its sign
        return int(digits)
    if len(digits) <= 17 and -MAX_SAFE_INTEGER <= (value := int(digits)) <= MAX_SAFE_INTEGER:
        return value
    raise ValueError(f"the integer {shorten(digits)} is beyond 2^53 - 1")


def _float(digits: str) -> float:
    if len(digits) <= MAX_NUMBER_LENGTH and math.isfinite(value := float(digits)):
        if value or _zero.match(digits):
            return value
        raise ValueError(f"the number {shorten(digits)} is too small")
    raise ValueError(f"the number {shorten(digits)} is too large or too long")


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_texts = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # the last one may be cut off
_unstorable = re.compile("[\x00\ud800-\udfff]")
_zero = re.compile(r"-?0(\.0+)?([eE][+-]?[0-9]{1,3})?\Z")  # 0e-99999 is zero too, but not to Postgres
_decoder = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_int, parse_float=_float, parse_constant=_constant
)
