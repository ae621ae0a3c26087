"""Where an entry stands in the change stream of a pool, and which entry must come next."""

import re
from dataclasses import dataclass
from typing import Self

from petard_schema import RatingChanged

_form = re.compile(r"(0|[1-9][0-9]{0,18})-(0|[1-9][0-9]{0,18})\Z")


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """The place of an entry, written `<epoch>-<seq>`; before the first entry of epoch 1 is `1-0`.

    For example:

        position = Position.parse("1-41")
        assert position == Position(epoch=1, seq=41)
        assert str(position) == "1-41"
        assert position < Position(1, 42) < Position(2, 1)

        for change in follower.follow(after=position):
            show(change)
            remember(str(Position.of(change)))
    """

    epoch: int
    seq: int

    def __post_init__(self) -> None:
        if self.epoch < 1 or self.seq < 0:
            raise ValueError(f"{self} is no position: epochs start at 1, and seq is not negative")

    def __str__(self) -> str:
        return f"{self.epoch}-{self.seq}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the position that `text` names, or raise ValueError."""
        match = _form.match(text)
        if match is None:
            raise ValueError(f"{text[:60]!r} is no position, such as '1-41'")
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def of(cls, change: RatingChanged) -> Self:
        """Return where a change stands."""
        return cls(change.data.epoch, change.data.seq)

    def next(self) -> Self:
        """Return the position that must follow in the same epoch."""
        return type(self)(self.epoch, self.seq + 1)

    def before(self) -> Self:
        """Return the position after which this one comes; that of the first entry is no entry's."""
        return type(self)(self.epoch, max(0, self.seq - 1))


class SnapshotNeeded(Exception):  # noqa: N818 - a turn in the story, not a mistake of anybody
    """The stream cannot carry on where we are: take a snapshot, then follow from there.

    Whatever snapshot is taken after this was raised holds all that happened up to `go_on_from`, be it the
    follower's own or all ratings read elsewhere: `follow(after=go_on_from)` then misses nothing.
    `Follower.snapshot()` knows a later place to go on from.

    For example:

        while True:
            snapshot = follower.snapshot()
            show_board(snapshot.scores)
            try:
                for change in follower.follow(after=snapshot.position):
                    show(change)
            except SnapshotNeeded as reason:
                log.warning("starting over: %s", reason)
    """

    go_on_from: Position
    """The position before the first entry that the stream still has for us."""


class GapFound(SnapshotNeeded):
    """The next entry of the stream is not the next one of the ledger: what lay between was trimmed away.

    For example:

        try:
            for change in follower.follow(after=Position(1, 41)):
                show(change)
        except GapFound as gap:
            print(f"needed {gap.expected}, the stream goes on with {gap.got}")
    """

    def __init__(self, expected: Position, got: Position) -> None:
        super().__init__(expected, got)
        self.expected = expected
        self.got = got
        self.go_on_from = got.before()

    def __str__(self) -> str:
        return (
            f"expected entry {self.expected}, the stream goes on with {self.got}:"
            f" take a snapshot, then follow after {self.go_on_from}"
        )


class EpochChanged(SnapshotNeeded):
    """The ledger lost entries that had been published and goes on in a new epoch: what we saw may be void.

    For example:

        try:
            for change in follower.follow(after=Position(1, 41)):
                show(change)
        except EpochChanged as change_of_epoch:
            print(f"forget what came up to {change_of_epoch.old}, now at {change_of_epoch.new}")
    """

    def __init__(self, old: Position, new: Position) -> None:
        super().__init__(old, new)
        self.old = old
        self.new = new
        self.go_on_from = new.before()

    def __str__(self) -> str:
        return (
            f"epoch {self.old.epoch} ended at {self.old}, the stream goes on with {self.new}:"
            f" take a snapshot, then follow after {self.go_on_from}"
        )


def check_successor(last: Position | None, got: Position) -> None:
    """Raise GapFound or EpochChanged unless `got` comes right after `last`; None is before all entries."""
    if last is None:
        if got.seq != 1:
            raise GapFound(Position(got.epoch, 1), got)
        return
    if got.epoch > last.epoch:
        raise EpochChanged(last, got)
    if got.seq != last.seq + 1 or got.epoch != last.epoch:
        raise GapFound(last.next(), got)
