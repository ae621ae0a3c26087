"""The only door: from bytes to a typed event, or to a reason why not.

The checks run from cheap to dear and never trust the input: size before text, depth before JSON, JSON before
types, types before sense.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from petard_schema.envelope import MAX_EVENT_BYTES
from petard_schema.game_events import (
    ABANDONED,
    FINISHED,
    MAX_PLAYERS,
    AbandonedGame,
    FinishedGame,
    GameAbandoned,
    GameEvent,
    GameFinished,
    Side,
    UnrankedSide,
)
from petard_schema.ijson import NotIJsonError, TooDeepError, decode, shorten
from petard_schema.reasons import DeadReason, EventRefused
from petard_schema.signing import bad_signature, event_json, is_signed, split_element
from petard_schema.usual_event import AnyGameEvent, AnySide, read_usual

EVENT_TYPES: dict[str, type[GameFinished] | type[GameAbandoned]] = {
    FINISHED: GameFinished,
    ABANDONED: GameAbandoned,
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
    return _as_model(read_event(raw), raw)


def read_event(raw: bytes) -> AnyGameEvent:
    """Return the event in `raw` for those who only look at its fields, or raise EventRefused.

    parse_event gives a model, at three times the price.
    """
    event = read_usual(raw) or read_closely(raw)
    check_sense(event)
    return event


def _as_model(event: AnyGameEvent, raw: bytes) -> GameEvent:
    """Return the model of an event that was read from this text."""
    if isinstance(event, GameFinished | GameAbandoned):
        return event
    # Nothing that pydantic alone would let through is in a usual text: usual_event.py has counted.
    return EVENT_TYPES[event.type].model_validate_json(raw)


def read_closely(raw: bytes) -> GameEvent:
    """Return the event in `raw`, its sense still to be checked, or raise EventRefused."""
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
        return model.model_validate(document)
    except ValidationError as error:
        raise bad_field(error) from None


def parse_element(raw: bytes) -> GameEvent:
    """Return the event in an element of a list, signed or not, or raise EventRefused; nothing is verified.

    For those who push: whatever is wrong with its form a worker would refuse, too.
    """
    return _as_model(read_element(raw), event_json(raw))


def read_element(raw: bytes) -> AnyGameEvent:
    """Return the event in an element for those who only look at its fields; parse_element gives a model."""
    if not is_signed(raw):
        return read_event(raw)
    signed = split_element(raw)
    event = read_event(signed.body)
    if event.source != signed.source:
        raise bad_signature(
            f"petard-source is {shorten(signed.source)}, the event's source {shorten(event.source)}"
        )
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
    try:
        return decode(raw)
    except UnicodeDecodeError as error:
        raise EventRefused(
            DeadReason.NOT_JSON, f"is not UTF-8: {error.reason} at byte {error.start}"
        ) from None
    except TooDeepError as error:
        raise EventRefused(DeadReason.TOO_DEEP, str(error)) from None
    except NotIJsonError as error:
        raise EventRefused(DeadReason.NOT_JSON, str(error)) from None


def read_identity(raw: bytes) -> Identity:
    """Return what can be read of an event's identity, signed or not, however broken the rest of it is."""
    try:
        document = read_json(event_json(raw))
    except EventRefused:
        return Identity(None, None, None)
    if not isinstance(document, dict):
        return Identity(None, None, None)
    data = document.get("data")
    game = data.get("game") if isinstance(data, dict) else None
    return Identity(_text(document.get("source")), _text(document.get("id")), _text(game))


def check_sense(event: AnyGameEvent) -> None:
    """Raise EventRefused where well-formed sides make no game."""
    sides: Sequence[AnySide] = event.data.sides
    if event.type == FINISHED and is_plain_duel(sides):
        return
    if len(sides) < 2:
        raise EventRefused(DeadReason.ONE_SIDE, "a game has at least two sides")
    count = sum(len(side.players) for side in sides)
    if count > MAX_PLAYERS:
        raise EventRefused(DeadReason.TOO_MANY_PLAYERS, f"{count} players, the limit is {MAX_PLAYERS}")
    for number, side in enumerate(sides):
        if side.weights is not None and (wrong := wrong_weights(side.players, side.weights)):
            raise EventRefused(DeadReason.BAD_FIELD, wrong, f"data.sides.{number}.weights")
    names = {player for side in sides for player in side.players}
    if len(names) < count:
        refuse_repeats(sides)
    if event.type == ABANDONED:
        leavers = event.data.abandoned_by
        for player in leavers:
            if player not in names:
                raise EventRefused(DeadReason.ABANDONER_NOT_IN_GAME, f"{shorten(player)} is on no side")
        if len(set(leavers)) < len(leavers):
            raise EventRefused(DeadReason.PLAYER_TWICE, "abandoned_by names a player twice")


def is_plain_duel(sides: Sequence[AnySide]) -> bool:
    """Return whether these are two different players, each a side: the usual game."""
    if len(sides) != 2:
        return False
    one, other = sides
    return (
        len(one.players) == len(other.players) == 1
        and one.players != other.players
        and not (one.weights or other.weights)
    )


def wrong_weights(players: Sequence[str], weights: Sequence[float]) -> str | None:
    """Return why the weights cannot be those of the players, if they cannot."""
    if len(weights) != len(players):
        return f"{len(weights)} weights for {len(players)} players"
    return None if any(weights) else "all are 0: nobody took part in the game"


def refuse_repeats(sides: Sequence[AnySide]) -> NoReturn:
    """Raise the reason that fits a game in which some player stands more than once."""
    if len({side.players for side in sides}) == 1 and len(sides[0].players) == 1:
        raise EventRefused(DeadReason.SELF_MATCH, f"{shorten(sides[0].players[0])} plays against themselves")
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


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and len(value) <= 256 else None
