"""The usual event, read in one go: what is unremarkable needs no close look at its text.

`parse.py` reads JSON into objects of Python, with an eye on everything that I-JSON forbids, and has those
checked by the models. A text that may be anything needs that; most are not. Here msgspec reads the text, by
types that are as strict as the models, and a count proves that nothing was in it but what it has found:

- Every name of a field and every text has two quotes. Where there are no more of them than the fields that
  were found need, no name came twice. Unknown names msgspec refuses, and with them all that is deeper.
- Without a backslash there are no escapes, so no lone surrogates, and every quote is one.
- `meta`, which may hold anything, and `weights` are not usual.
- Numbers other than ranks are looked at: long ones, and those with an exponent, are not usual.

A usual event has the fields of its model, under the same names, but it is none: to make the four objects of a
model takes twice as long as all that is done here. Whatever is wrong or only remarkable is left to
`parse.py`, and so are the words about it.
"""

import re
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, MsgspecError, Struct, UnsetType, field
from msgspec.json import Decoder
from msgspec.structs import force_setattr

from petard_schema.envelope import MAX_EVENT_BYTES, MAX_SAFE_INTEGER, read_traceparent
from petard_schema.game_events import (
    ABANDONED,
    FINISHED,
    MAX_IMPORTANCE,
    GameAbandoned,
    GameFinished,
    Side,
    UnrankedSide,
)
from petard_schema.names import (
    MAX_ID,
    MAX_NAME,
    MAX_SOURCE,
    check_known,
    check_pool,
    check_printable,
    check_source,
)
from petard_schema.times import parse_time

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Players = Annotated[tuple[Name, ...], Meta(min_length=1)]
Rank = Annotated[int, Meta(ge=1, le=MAX_SAFE_INTEGER)]
Points = Annotated[float, Meta(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]
Importance = Annotated[float, Meta(ge=0, le=MAX_IMPORTANCE)]


class _Part(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A part of a usual event.

    A field `given_…` tells what was left out from what was given as its default: the name of the latter
    stands in the text. A null counts as left out, so a text with one is not usual.
    """


class _Side(_Part, frozen=True, gc=False, kw_only=True):
    players: Players
    points: Points | None = None
    home: bool | None = None
    weights: ClassVar[None] = None


class UsualSide(_Side, frozen=True, gc=False, kw_only=True):
    """What `Side` says."""

    rank: Rank


class UsualUnrankedSide(_Side, frozen=True, gc=False, kw_only=True):
    """What `UnrankedSide` says."""

    rank: Rank | None = None


class _Data(_Part, frozen=True, gc=False, kw_only=True):
    pool: str
    game: Name
    started: Any = None
    """As `time` of the event."""
    importance: Importance | None = None
    given_rated: bool | UnsetType = field(default=UNSET, name="rated")
    meta: ClassVar[None] = None

    @property
    def rated(self) -> bool:
        return self.given_rated is not False


class UsualFinishedGame(_Data, frozen=True, gc=False, kw_only=True):
    """What `FinishedGame` says."""

    sides: Annotated[tuple[UsualSide, ...], Meta(min_length=1)]
    given_decided_by: Literal["play", "shootout", "forfeit"] | UnsetType = field(
        default=UNSET, name="decided_by"
    )
    given_knockout: bool | UnsetType = field(default=UNSET, name="knockout")

    @property
    def decided_by(self) -> Literal["play", "shootout", "forfeit"]:
        """Return how the game was decided."""
        return "play" if self.given_decided_by is UNSET else self.given_decided_by

    @property
    def knockout(self) -> bool:
        """Return whether it was a knock-out round."""
        return self.given_knockout is True


class UsualAbandonedGame(_Data, frozen=True, gc=False, kw_only=True):
    """What `AbandonedGame` says."""

    sides: Annotated[tuple[UsualUnrankedSide, ...], Meta(min_length=1)]
    abandoned_by: Players
    given_fault: Literal["player", "server"] | UnsetType = field(default=UNSET, name="fault")

    @property
    def fault(self) -> Literal["player", "server"]:
        """Return whose fault it was."""
        return "player" if self.given_fault is UNSET else self.given_fault


class _Event(_Part, frozen=True, gc=False, kw_only=True):
    specversion: Literal["1.0"]
    id: Annotated[str, Meta(min_length=1, max_length=MAX_ID)]
    source: Annotated[str, Meta(min_length=1, max_length=MAX_SOURCE)]
    time: Any
    """A text at first, then the time in it: `parse_time` alone knows which texts are times."""
    traceparent: Any = None
    """Anything at first: `read_traceparent` alone knows what is one."""


class UsualFinished(_Event, frozen=True, gc=False, kw_only=True, tag_field="type", tag=FINISHED):
    """What `GameFinished` says."""

    type: ClassVar[Literal["petard.game.finished.v1"]] = FINISHED
    data: UsualFinishedGame


class UsualAbandoned(_Event, frozen=True, gc=False, kw_only=True, tag_field="type", tag=ABANDONED):
    """What `GameAbandoned` says."""

    type: ClassVar[Literal["petard.game.abandoned.v1"]] = ABANDONED
    data: UsualAbandonedGame


UsualEvent = UsualFinished | UsualAbandoned
AnyFinished = GameFinished | UsualFinished
AnyAbandoned = GameAbandoned | UsualAbandoned
AnyGameEvent = AnyFinished | AnyAbandoned
"""An event, be it a model or a usual one. Ask for its `type`: its class does not tell what it reports."""
AnySide = Side | UnrankedSide | UsualSide | UsualUnrankedSide

ALWAYS = 6 + 5 + 3 + 2
"""Names and texts in every event: 6 and 5 of the envelope, 3 and 2 of the game."""
_decode = Decoder(UsualEvent).decode
_check_pool = lru_cache(maxsize=4_096)(check_pool)
_unusual_number = re.compile(rb"[0-9.]{16}|[0-9][eE]")
"""Also where it stands in a text: then a closer look is taken for nothing."""


def read_usual(raw: bytes) -> UsualEvent | None:
    """Return the event in `raw`, its sense still to be checked, or None where that needs a closer look."""
    if len(raw) > MAX_EVENT_BYTES or b"\\" in raw:
        return None
    try:
        event: UsualEvent = _decode(raw)
        counted, numbers = count(event)
        if raw.count(b'"') != 2 * counted or (numbers and _unusual_number.search(raw)):
            return None
        read_times(event)
        check_texts(event)
    except (MsgspecError, RecursionError, ValueError):
        return None
    return event


def count(event: UsualEvent) -> tuple[int, bool]:
    """Return how many names and texts the event has, and whether there are numbers besides ranks."""
    data = event.data
    counted, numbers = ALWAYS, data.importance is not None
    for side in data.sides:
        counted += 1 + len(side.players) + (side.rank is not None) + (side.home is not None)
        if side.points is not None:
            counted, numbers = counted + 1, True
    counted += data.importance is not None
    counted += data.given_rated is not UNSET
    counted += 2 * (event.traceparent is not None) + 2 * (data.started is not None)
    if isinstance(data, UsualFinishedGame):
        counted += 2 * (data.given_decided_by is not UNSET) + (data.given_knockout is not UNSET)
    else:
        counted += 1 + len(data.abandoned_by) + 2 * (data.given_fault is not UNSET)
    return counted, numbers


def read_times(event: UsualEvent) -> None:
    """Put times in place of the texts that say them; raise ValueError where they say none."""
    force_setattr(event, "time", parse_time(event.time))
    if event.data.started is not None:
        force_setattr(event.data, "started", parse_time(event.data.started))


def check_texts(event: UsualEvent) -> None:
    """Raise ValueError where a text is not what it should be."""
    data = event.data
    check_source(event.source)
    _check_pool(data.pool)
    check_printable(event.id)
    check_printable(data.game)
    for side in data.sides:
        for player in side.players:
            check_known(player)
    if isinstance(data, UsualAbandonedGame):
        for player in data.abandoned_by:
            check_known(player)
    if event.traceparent is not None and read_traceparent(event.traceparent) is None:
        raise ValueError("is no trace context")
