"""What the dispatcher's thread and the drain of the same process know of each other."""

import time
from dataclasses import dataclass, field
from threading import Event


@dataclass
class AtWork:
    """The pool that the drain of this process answers for now, and what ends its lingering."""

    pool: str | None = None
    """Set while the drain holds the bell, and no longer when it lets go of it for its last look."""
    until: float = 0.0
    """By the monotonic clock: when the bell is over that a stuck drain does not renew."""
    hears_pokes: bool = False
    """Whether the dispatcher of this process hears the pokes of producers."""
    news: Event = field(default_factory=Event)
    """Set when events may have come for that pool, or another drain may be waiting for this worker."""

    others: bool = False
    """Whether another drain has been queued since the drain here has looked."""

    def tell_of_another(self) -> None:
        """Let the drain look whether another one waits for this worker."""
        self.others = True
        self.news.set()

    def answer_for(self, pool: str | None, seconds: float = 0.0) -> None:
        """Note that the drain answers for this pool for so long, unless it says so again; None: for none."""
        self.pool, self.until = pool, time.monotonic() + seconds

    def answers_for(self, pool: str) -> bool:
        """Tell the drain of news if it answers for the pool, and return whether it does.

        What was pushed before this was asked is seen by its last look at the latest.
        """
        if self.pool != pool or time.monotonic() >= self.until:
            return False
        self.news.set()
        return True
