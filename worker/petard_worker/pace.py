"""So many a second and no more."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

MOST_CAUGHT_UP_SECONDS = 0.25


@dataclass
class Pace:
    """Lets things pass at a rate that is kept exactly: it counts from the first, not from one to the next.

    After a delay it catches up with what it missed in the last quarter of a second, not with more: a server
    that was away is not flooded when it comes back.
    """

    rate: float
    """A second."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _due: float | None = field(default=None, init=False)

    def wait(self, count: int) -> None:
        """Wait until `count` more may pass."""
        now = self.clock()
        due = now if self._due is None else max(self._due, now - MOST_CAUGHT_UP_SECONDS)
        self._due = due + count / self.rate
        if self._due > now:
            self.sleep(self._due - now)

    def give_back(self, count: int) -> None:
        """Let `count` of those that were waited for pass later: they were not needed."""
        if self._due is not None:
            self._due -= count / self.rate
