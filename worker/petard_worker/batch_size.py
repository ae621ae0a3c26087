"""How many events a batch may take, so that nobody waits for the lock of its pool for long."""

from dataclasses import dataclass

LOCK_SECONDS = 0.1
"""A batch is to hold the lock of its pool no longer than this."""
FIRST = 500
"""Events of a first batch: how fast they are applied is not known yet."""
FEWEST = 20
"""Smaller batches are mostly round trips, and say nothing of the cost of an event."""


@dataclass
class BatchSize:
    """How fast a drain applies its pool's events: games of many players take long."""

    seconds_per_event: float = LOCK_SECONDS / FIRST

    def learn(self, events: int, seconds: float) -> None:
        """Take over what a batch has shown; the one before it has half a say."""
        if events >= FEWEST:
            self.seconds_per_event = (self.seconds_per_event + seconds / events) / 2

    def most_events(self) -> int:
        """Return how many events can be applied while the lock may be held."""
        return max(FEWEST, int(LOCK_SECONDS / self.seconds_per_event))
