"""From what a row of somebody's file says to an event with a stable identity.

A game without a name of its own is named after who played, when, and how many such games stood before it in
the file: not after its line, which moves, and not after its result, which gets corrected. The id of the event
is made of everything it says. So a file imported twice counts once, and a game whose result was corrected in
between is noticed as the same game with another outcome.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import TypeVar

from pydantic import ValidationError

from petard_schema import GameAbandoned, GameFinished
from petard_schema.names import MAX_SOURCE, check_pool, check_printable
from petard_schema.parse import bad_field, check_sense
from petard_schema.times import format_time
from petard_worker.import_games.meetings import Meetings

FIRST_WON = (1, 2)
SECOND_WON = (2, 1)
DRAWN = (1, 1)

Ranks = tuple[int, int]
Event = TypeVar("Event", GameFinished, GameAbandoned)


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that makes no game: where it stands, counted from 1, and why."""

    line: int
    reason: str


class RowRefused(ValueError):  # noqa: N818 - being refused is an outcome, not a failure
    """The row makes no game; the message says why."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Who met and when: the game without its outcome."""

    first: str
    second: str
    time: datetime
    name: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended; the pairs are those of the first and the second player."""

    ranks: Ranks
    points: tuple[float, float] | None = None
    home: tuple[bool, bool] | None = None


@dataclass(slots=True)
class GameRows:
    """The rows of one file on their way into a pool."""

    pool: str
    source: str
    _met: Meetings = field(default_factory=Meetings)

    def __post_init__(self) -> None:
        """Raise ValueError for a pool or a source that no event could carry."""
        check_pool(self.pool)
        check_printable(self.source)
        if not 1 <= len(self.source) <= MAX_SOURCE:
            raise ValueError(f"source has 1 to {MAX_SOURCE} characters")

    def pairing(self, first: str, second: str, time: datetime, *marks: str) -> Pairing:
        """Return the next such meeting in the file; marks tell apart what players and time do not."""
        identity = digest(self.source, first, second, format_time(time), *marks)
        return Pairing(first, second, time, digest(identity, self._met.count(identity)))

    def finished(self, pairing: Pairing, outcome: Outcome) -> GameFinished:
        """Return the event, or raise EventRefused as the parser would."""
        data = self._data(pairing, outcome)
        event = build(GameFinished, self._envelope(pairing, data))
        check_sense(event)
        return event

    def abandoned(self, pairing: Pairing, outcome: Outcome, leaver: str) -> GameAbandoned:
        """Return the event, or raise EventRefused as the parser would."""
        data = self._data(pairing, outcome) | {"abandoned_by": [leaver]}
        event = build(GameAbandoned, self._envelope(pairing, data))
        check_sense(event)
        return event

    def _data(self, pairing: Pairing, outcome: Outcome) -> dict[str, object]:
        points = outcome.points or (None, None)
        home = outcome.home or (None, None)
        sides = [
            {"players": [player], "rank": outcome.ranks[side], "points": points[side], "home": home[side]}
            for side, player in enumerate((pairing.first, pairing.second))
        ]
        return {"pool": self.pool, "game": pairing.name, "sides": sides}

    def _envelope(self, pairing: Pairing, data: dict[str, object]) -> dict[str, object]:
        event_id = digest(self.source, format_time(pairing.time), data)
        return {"id": event_id, "source": self.source, "time": pairing.time, "data": data}


def build(model: type[Event], values: dict[str, object]) -> Event:
    """Return the event, or raise EventRefused for its first bad field."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise bad_field(error) from None


def digest(*parts: object) -> str:
    """Return a short name that the same parts get everywhere and always."""
    return blake2b(json.dumps(parts).encode(), digest_size=12).hexdigest()


def without_bom(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines without the byte order mark that spreadsheets put before the first."""
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix("\ufeff")
