"""Copies of the events that were trimmed last: what to offer again when Postgres has lost commits.

For a while every trimmed batch stays in the list `petard:recent:<pool>`, put there by the trim itself
(`intake.TRIM`): its label, its events, and its label once more, so that both ends of the list can be read. A
label is six numbers,

    at  after  events  place  before  size

`at` is when the batch was trimmed and `after` when the one before it was, in milliseconds by Redis' clock and
never going back; `place` counts the elements of the list and `before` the bytes of all batches before this
one, dropped ones too; `size` are its own bytes, with what the list needs for them.

So the copies are complete from the first label's `after` on. Where a pool has none, because nothing was
trimmed for so long that they expired, `petard:recent` says since when copies are made at all, and for how
long they stay: without it nobody could tell a quiet pool from a Redis that was wiped.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import structlog
from redis import Redis

from petard_schema import Keys
from petard_worker.event_lists import SCAN_COUNT, glob_escape, readable

log = structlog.get_logger()

SECONDS = 3_600
MEGABYTES = 64
ELEMENTS_AT_ONCE = 1_000
LABELS = 2
"""In front of the events of a batch and behind them."""


@dataclass
class RecentLimits:
    """How long and how much is kept of a pool, 0 seconds keep nothing; and which pools have no copies now."""

    seconds: int = SECONDS
    megabytes: int = MEGABYTES
    _without: set[str] = field(default_factory=set, repr=False, compare=False)

    def note(self, pool: str, *, kept: bool) -> None:
        """Log when a pool's events begin to leave without a copy, and when they have copies again."""
        if kept and pool in self._without:
            self._without.discard(pool)
            log.info("recent_kept_again", pool=pool)
        elif not kept and pool not in self._without:
            self._without.add(pool)
            log.warning(
                "recent_gave_way",
                pool=pool,
                reason="Redis is nearly full, or its user may not ask (INFO): copies go first",
            )


class Label(NamedTuple):
    """What is known of one batch."""

    at: int
    """When it was trimmed, in ms by Redis' clock."""
    after: int
    """When the batch before it was."""
    events: int
    place: int
    """How many elements the list has ever had before it."""
    before: int
    size: int

    @property
    def end(self) -> int:
        """The place of the batch behind it."""
        return self.place + self.events + LABELS

    @classmethod
    def parse(cls, text: bytes) -> "Label":
        """Return the label in `text`, or raise ValueError."""
        at, after, events, place, before, size = map(int, text.split())
        return cls(at, after, events, place, before, size)


class Copy(NamedTuple):
    """One batch that was trimmed."""

    label: Label
    events: list[bytes]


class Window(NamedTuple):
    """Which copies there are of one pool."""

    complete_from: int
    """Everything that was trimmed later is here; in ms by Redis' clock."""
    size: int
    place: int
    """Of the first batch; equal to `end` when there is none."""
    end: int
    """Where the next batch will be."""


def redis_now(redis: Redis) -> int:
    """Return the time by Redis' clock, in ms."""
    seconds, microseconds = redis.time()
    return seconds * 1000 + microseconds // 1000


def find_window(redis: Redis, keys: Keys, pool: str) -> Window | None:
    """Return what there is of the pool; None when nobody can say what was trimmed and is not there."""
    with redis.pipeline() as pipe:
        pipe.lindex(keys.recent(pool), 0)
        pipe.lindex(keys.recent(pool), -1)
        pipe.get(keys.recent_since())
        oldest, newest, since = cast("list[bytes | None]", pipe.execute())
    if oldest is not None and newest is not None:
        first, last = Label.parse(oldest), Label.parse(newest)
        return Window(first.after, last.before + last.size - first.before, first.place, last.end)
    if since is None:
        return None
    began, window = map(int, since.split())
    return Window(max(began, redis_now(redis) - window), 0, 0, 0)


def read_copies(redis: Redis, keys: Keys, pool: str, window: Window) -> Iterator[Copy]:
    """Yield the batches of the window, oldest first; one that was dropped meanwhile is missing."""
    place = window.place
    while place < window.end and (copies := read_from(redis, keys, pool, place)):
        yield from (copy for copy in copies if copy.label.place < window.end)
        place = copies[-1].label.end


def read_from(redis: Redis, keys: Keys, pool: str, place: int) -> list[Copy]:
    """Return a few batches from that place on, or from the first that is left; none behind the last."""
    key = keys.recent(pool)
    while (oldest := redis.lindex(key, 0)) is not None:
        first = Label.parse(cast("bytes", oldest)).place
        start = max(0, place - first)
        try:
            found = read_batches(redis, key, start)
        except ValueError:  # no label stands there: the front has moved between the two looks
            if redis.lindex(key, 0) == oldest:
                raise
            continue
        # Else the front has moved between the two looks.
        if not found or found[0].label.place == max(place, first):
            return found
    return []


def read_batches(redis: Redis, key: str, start: int) -> list[Copy]:
    """Return the batches in the next elements, at least one if there is any."""
    elements = cast("list[bytes]", redis.lrange(key, start, start + ELEMENTS_AT_ONCE - 1))
    if not elements:
        return []
    needed = Label.parse(elements[0]).events + LABELS
    if needed > len(elements):
        elements = cast("list[bytes]", redis.lrange(key, start, start + needed - 1))
    copies, index = [], 0
    while index < len(elements):
        label = Label.parse(elements[index])
        end = index + label.events + LABELS
        if end > len(elements):
            break
        copies.append(Copy(label, elements[index + 1 : end - 1]))
        index = end
    return copies


def drop_copies(redis: Redis, keys: Keys) -> int:
    """Drop the copies of all pools and return how many pools had some: Redis needs the room."""
    start = keys.recent("")
    found = cast("Iterator[bytes]", redis.scan_iter(glob_escape(start) + "*", count=SCAN_COUNT))
    dropped = sum(redis.unlink(key) for key in found)
    redis.unlink(keys.recent_since())
    return dropped


def copied_pools(redis: Redis, keys: Keys) -> set[str]:
    """Return the names of the pools that have copies."""
    start = keys.recent("")
    found = cast("Iterator[bytes]", redis.scan_iter(glob_escape(start) + "*", count=SCAN_COUNT))
    return {readable(key.removeprefix(start.encode())) for key in found}
