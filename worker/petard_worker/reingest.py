"""Copies of trimmed events back into the queue: what a failover of Postgres has lost counts after all.

Safe whenever and however often: the ledger drops what it has. Killed in between, it is simply done again.
"""

import time
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

from redis import Redis

from petard_schema import Keys
from petard_worker.push import push_lines
from petard_worker.recent import Copy, Window, find_window, read_copies

MOST_WAITING = 20_000
"""More are not pushed while so many wait: live events keep their turn, and Redis its room."""
CHUNK = 500
LOOK_SECONDS = 0.05
PATIENCE_SECONDS = 60.0
"""After so long without a shorter list, nobody takes events off it."""


class Span(NamedTuple):
    """Which copies are meant, by when they were trimmed; in ms by Redis' clock, both ends included."""

    since: int
    until: int | None = None
    """None: all that was there when this began, also what a clock put back since has left in the future."""


class Offer(NamedTuple):
    """What there is of one pool in a span."""

    pool: str
    window: Window | None
    """None when nobody can say what was trimmed and is not there."""
    span: Span
    events: int

    @property
    def complete(self) -> bool:
        """Whether everything that was trimmed in the span is there."""
        return self.window is not None and self.window.complete_from < self.span.since


def find_offer(redis: Redis, keys: Keys, pool: str, span: Span) -> Offer:
    """Return what can be offered again of the pool; reads all of it, pushes nothing."""
    window = find_window(redis, keys, pool)
    events = 0 if window is None else sum(len(copy.events) for copy in meant(redis, keys, pool, window, span))
    return Offer(pool, window, span, events)


def reingest(redis: Redis, keys: Keys, offer: Offer) -> Iterator[int]:
    """Push the offered events to the tail of their pool's list, in order, chunk by chunk.

    Yields how many were pushed by each chunk, and 0 while it waits because many wait already. The sum is less
    than was offered when copies have grown too old meanwhile.
    """
    if offer.window is None:
        return
    for copy in meant(redis, keys, offer.pool, offer.window, offer.span):
        for start in range(0, len(copy.events), CHUNK):
            yield from wait_for_room(redis, keys.events(offer.pool), offer.pool)
            chunk = copy.events[start : start + CHUNK]
            push_lines(redis, keys, offer.pool, chunk)
            yield len(chunk)


class NobodyDrainsError(Exception):
    """A pool's list is full of events and does not get shorter; the message says which, and what to do."""


def wait_for_room(redis: Redis, key: str, pool: str) -> Iterator[int]:
    """Yield 0 again and again until not too many events wait; raise NobodyDrainsError when nothing moves."""
    shortest, moved = None, time.monotonic()
    while (waiting := redis.llen(key)) > MOST_WAITING:
        if shortest is None or waiting < shortest:
            shortest, moved = waiting, time.monotonic()
        elif time.monotonic() - moved > PATIENCE_SECONDS:
            raise NobodyDrainsError(
                f"{pool}: {waiting} events wait and nobody takes them ('petard status' says why); what was"
                " offered by then is in the queue: run this again when they are taken"
            )
        yield 0
        time.sleep(LOOK_SECONDS)


def meant(redis: Redis, keys: Keys, pool: str, window: Window, span: Span) -> Iterator[Copy]:
    """Yield the copies in the span.

    What is pushed again is trimmed and copied again, too: the window ends where it ended before.
    """
    seen: set[bytes] = set()
    for copy in read_copies(redis, keys, pool, window):
        if span.until is not None and copy.label.at > span.until:
            return
        if copy.label.at >= span.since:
            yield copy._replace(events=new_in(copy.events, seen))


def new_in(events: Iterable[bytes], seen: set[bytes]) -> list[bytes]:
    """Return the events not seen before: what an earlier reingest offered was copied once more."""
    digests = {sha256(event).digest(): event for event in events}
    new = [event for digest, event in digests.items() if digest not in seen]
    seen.update(digests)
    return new
