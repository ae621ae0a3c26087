"""The breaker: a bad deploy must not pour the queue into the dead letters.

It counts in the memory of one process: n workers that take turns at a pool bury up to n times 49 events
before one of them stops it for all.
"""

from collections import deque
from collections.abc import Sequence

WINDOW = 100
MOST_IN_WINDOW = 50
IN_A_ROW = 50


class BreakerTrippedError(Exception):
    """Too many events of a pool failed by our own exceptions; the message says how many."""


class Breaker:
    """Counts, per process and pool, the events that failed by our exceptions and not by their content.

    More than half of the last 100, or 50 in a row, are too many.
    """

    def __init__(self) -> None:
        self._recent: dict[str, deque[bool]] = {}

    def check(self, pool: str, failed: Sequence[bool]) -> None:
        """Raise BreakerTrippedError if these outcomes, in order, are more than the pool may take."""
        if not any(failed):
            return
        recent = deque(self._recent.get(pool, ()), WINDOW)
        in_a_row = trailing(recent)
        for failure in failed:
            recent.append(failure)
            in_a_row = in_a_row + 1 if failure else 0
            if in_a_row >= IN_A_ROW:
                raise self.trip(pool, f"{in_a_row} events in a row failed by exceptions of our own")
            if sum(recent) > MOST_IN_WINDOW:
                what = f"{sum(recent)} of the last {len(recent)} events failed by exceptions of our own"
                raise self.trip(pool, what)

    def trip(self, pool: str, what: str) -> BreakerTrippedError:
        """Forget the pool, so that it can go on when somebody resumes it, and return the error to raise."""
        self._recent.pop(pool, None)
        return BreakerTrippedError(what)

    def record(self, pool: str, failed: Sequence[bool]) -> None:
        """Remember outcomes that were committed; a pool without failures among the last ones is forgotten."""
        if not failed:
            return
        recent = self._recent.setdefault(pool, deque(maxlen=WINDOW))
        recent.extend(failed)
        if not any(recent):
            del self._recent[pool]


def trailing(recent: deque[bool]) -> int:
    """Return how many failures stand at the end."""
    count = 0
    for failure in reversed(recent):
        if not failure:
            break
        count += 1
    return count
