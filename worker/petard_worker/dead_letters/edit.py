"""A dead letter put right by hand: a replay then sends what it was edited into. The original is kept.

An edit repairs an event, it does not make another one: the identity stays, unless it is what was wrong.
"""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, cast

import psycopg
from pydantic import TypeAdapter, ValidationError

from petard_schema import DeadReason, EventRefused, read_identity
from petard_schema.names import EventId, EventSource
from petard_schema.parse import read_json
from petard_schema.signing import is_signed
from petard_worker.batch import check_arrival, read_arrival
from petard_worker.postgres import letter_changes
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.dead_letters import MAX_BODY
from petard_worker.postgres.letter_changes import Edit
from petard_worker.postgres.letter_finds import KeptLetter, LetterText

IDENTITY = TypeAdapter(tuple[EventSource, EventId])


class EditRefusedError(Exception):
    """The letter cannot be edited so; the message says why and what to do instead."""


class Setting(NamedTuple):
    """A member of the event to be set, or removed when there is no value."""

    path: str
    value: object = None
    remove: bool = False


def current_body(text: LetterText) -> bytes:
    """Return what a replay sends as things stand."""
    return text.body if text.edited is None else text.edited


def read_document(body: bytes) -> dict[str, object]:
    """Return the JSON object in a body, or raise EditRefusedError."""
    try:
        document = read_json(body)
    except EventRefused as refused:
        raise EditRefusedError(f"the body can be edited as text only: {refused}") from None
    if not isinstance(document, dict):
        raise EditRefusedError("the body can be edited as text only: it is no JSON object")
    return document


def write_document(document: dict[str, object]) -> bytes:
    """Return a JSON object as the body of an event."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def with_settings(body: bytes, settings: Sequence[Setting]) -> bytes:
    """Return the body with members set or removed; raises EditRefusedError where there is no such place."""
    refuse_signed(body)
    document = read_document(body)
    for setting in settings:
        put(document, setting)
    return write_document(document)


def put(document: dict[str, object], setting: Setting) -> None:
    """Set or remove one member: `data.sides.0.rank` is the rank of the first side."""
    *way, last = setting.path.split(".")
    place: object = document
    for step in way:
        if isinstance(place, dict) and step in place:
            place = place[step]
        elif isinstance(place, list) and is_place(step) and int(step) < len(place):
            place = place[int(step)]
        else:
            raise EditRefusedError(f"{setting.path!a}: the event has no {step!a} there")
    if isinstance(place, dict):
        if setting.remove:
            if last not in place:
                raise EditRefusedError(f"{setting.path!a}: the event has no {last!a} there")
            del place[last]
        else:
            place[last] = setting.value
    elif isinstance(place, list) and is_place(last) and int(last) < len(place) + (not setting.remove):
        place[int(last) : int(last) + 1] = [] if setting.remove else [setting.value]
    else:
        raise EditRefusedError(f"{setting.path!a}: the event has no {last!a} there")


def is_place(step: str) -> bool:
    """Return whether this could be the place of an element: not so long that it cannot even be read."""
    return step.isdecimal() and len(step) < 6


def refuse_signed(body: bytes) -> None:
    """Raise EditRefusedError for what its source has signed."""
    if is_signed(body):
        raise EditRefusedError(
            "it is signed, and an edit would break that: have its source sign a corrected event, and discard"
            " this letter"
        )


def still_wrong(letter: KeptLetter, body: bytes, now: datetime) -> EventRefused | None:
    """Return why this body would be refused in the letter's pool, as far as that can be known beforehand."""
    try:
        check_arrival(letter.pool, now, read_arrival(body))
    except EventRefused as refused:
        return refused
    return None


def save_edit(connection: Connection, letter: KeptLetter, text: LetterText, body: bytes, actor: str) -> None:
    """Let a replay of the letter send this body; the letter's own bytes take an edit back.

    Raises EditRefusedError when nothing changes, the letter is not open or not as it was read, the body is
    too large, another letter says the same, or it is another event.
    """
    if body == current_body(text):
        raise EditRefusedError("nothing was changed")
    if letter.state != "open":
        raise EditRefusedError(f"dead letter {letter.id} is {letter.state}: only open ones can be edited")
    refuse_signed(text.body)
    if len(body) > MAX_BODY:
        raise EditRefusedError(f"the body has {len(body)} bytes, the limit is {MAX_BODY}")
    check_identity(letter, text, body)
    edit = edit_of(text, body, actor)
    if body == text.body:
        saved = letter_changes.drop_edit(connection, letter, edit)
    else:
        refuse_repeat(connection, letter, edit.digest)
        try:
            saved = letter_changes.save_edit(connection, letter, edit)
        except psycopg.errors.UniqueViolation:
            refuse_repeat(connection, letter, edit.digest)
            raise
    if not saved:
        raise EditRefusedError(f"dead letter {letter.id} has changed meanwhile: look at it again")


def check_identity(letter: KeptLetter, text: LetterText, body: bytes) -> None:
    """Raise EditRefusedError if the body is another event than the one that came."""
    came, edited = read_identity(text.body), read_identity(body)
    before, after = (came.source, came.id), (edited.source, edited.id)
    if before == after or letter.reason == DeadReason.ID_REUSED:
        return
    try:
        IDENTITY.validate_python(before)
    except ValidationError:
        return
    raise EditRefusedError(
        f"with another source or id than {came.source!a} {came.id!a} it is another event:"
        f" 'petard push' that one, and discard letter {letter.id}"
    )


def edit_of(text: LetterText, body: bytes, actor: str) -> Edit:
    """Return the edit; what cannot be read of its identity is as it came."""
    came, edited = read_identity(text.body), read_identity(body)
    return Edit(
        body,
        hashlib.sha256(body).digest(),
        edited.source or came.source,
        edited.id or came.id,
        edited.game or came.game,
        actor,
    )


def refuse_repeat(connection: Connection, letter: KeptLetter, digest: bytes) -> None:
    """Raise EditRefusedError if another letter of the pool says the same already."""
    other = letter_changes.letter_that_says(connection, letter.pool, digest)
    if other is not None and other != letter.id:
        raise EditRefusedError(f"dead letter {other} says just that: replay it, and discard {letter.id}")


def value_of(text: str) -> object:
    """Return what stands on a command line as a JSON value; what is no JSON is a text."""
    try:
        return cast("object", json.loads(text, parse_constant=refuse_constant))
    except (ValueError, RecursionError):
        return text


def refuse_constant(name: str) -> object:
    """Take NaN and Infinity for texts: JSON has no such numbers."""
    raise ValueError(name)
