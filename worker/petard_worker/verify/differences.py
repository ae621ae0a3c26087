"""What differs: the place, what stands there, and what is due there."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from math import copysign

from petard_schema.times import format_time


class Where(StrEnum):
    """What a difference was found in."""

    POOL = "pool"
    LEDGER = "ledger"
    CHANGE = "change"
    RATING = "rating"
    OPEN_PERIOD = "open_period"
    DEAD_LETTER = "dead_letter"
    STREAM = "stream"
    BOARD = "board"


MOST_SHOWN = 300
MISSING = "missing"
"""In place of a value: the row, entry or player is not there, or should not be."""


@dataclass(frozen=True)
class Difference:
    """One value that is not what the ledger comes to."""

    pool: str
    where: Where
    what: str
    """The column, or what else is compared."""
    stored: object
    due: object
    seq: int | None = None
    player: str | None = None
    letter: int | None = None

    @property
    def kind(self) -> str:
        """Return what it is counted under."""
        return f"{self.where}.{self.what}"

    def __str__(self) -> str:
        of = [str(self.where)]
        if self.seq is not None:
            of.append(f"entry {self.seq}")
        if self.player is not None:
            of.append(repr(self.player))
        if self.letter is not None:
            of.append(str(self.letter))
        return f"{self.pool}: {' '.join(of)}: {self.what} is {shown(self.stored)}, due is {shown(self.due)}"


@dataclass
class Differences:
    """The differences found in one pool: all are counted, the first ones kept."""

    pool: str
    limit: int
    first: list[Difference] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(  # noqa: PLR0917 - the fields of a difference
        self,
        where: Where,
        what: str,
        stored: object,
        due: object,
        seq: int | None = None,
        player: str | None = None,
        letter: int | None = None,
    ) -> None:
        """Take note of a difference."""
        difference = Difference(self.pool, where, what, stored, due, seq, player, letter)
        self.counts[difference.kind] += 1
        if len(self.first) < self.limit:
            self.first.append(difference)

    def compare(  # noqa: PLR0917
        self,
        where: Where,
        names: Sequence[str],
        stored: Sequence[object],
        due: Sequence[object],
        seq: int | None = None,
        player: str | None = None,
    ) -> None:
        """Take note of every column whose value is not the one that is due, to the bit."""
        if stored == due and (not (signs := zeros(due)) or signs == zeros(stored)):
            return
        for name, one, other in zip(names, stored, due, strict=True):
            if one != other or zeros([one]) != zeros([other]):
                self.add(where, name, one, other, seq, player)

    @property
    def total(self) -> int:
        """Return how many there are."""
        return self.counts.total()


def zeros(values: Sequence[object]) -> list[float]:
    """Return the signs of the zeros: 0.0 equals -0.0, and they are not the same bits."""
    return [copysign(1, value) for value in values if not value and isinstance(value, float)]


def named(names: Sequence[str], values: Sequence[object]) -> Mapping[str, object]:
    """Return a row that is missing, or is not due, by its columns."""
    return dict(zip(names, values, strict=True))


def shown(value: object) -> str:
    """Return a value as it is told to people: every digit of it, and not pages of text."""
    if value is MISSING:
        return MISSING
    if isinstance(value, datetime):
        return format_time(value)
    text = repr(str(value)) if isinstance(value, StrEnum) else repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
