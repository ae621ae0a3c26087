"""How many events a batch may take, so that nobody waits for the lock of its pool for long."""

from dataclasses import dataclass

LOCK_SECONDS = 0.1
"""A batch is to keep its pool locked by its own work no longer than this. Waits are not counted: for a slow
disk, or a server far away, they are as long for a small batch."""
FIRST = 500
"""Events of a first batch: how much work they are is not known yet."""
FEWEST = 20
"""A smaller batch is mostly round trips, and says nothing of the work on an event."""


@dataclass
class BatchSize:
    """How much work the events of a pool are: games of many players are much."""

    seconds_per_event: float = LOCK_SECONDS / FIRST

    def learn(self, events: int, cpu_seconds: float) -> None:
        """Take over what a batch has shown; the ones before it have half a say."""
        if events >= FEWEST:
            self.seconds_per_event = (self.seconds_per_event + cpu_seconds / events) / 2

    def most_events(self) -> int:
        """Return how many events can be worked on while the lock may be held."""
        return max(FEWEST, int(LOCK_SECONDS / self.seconds_per_event))
