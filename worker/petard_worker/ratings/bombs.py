"""Bombs: a player's abandonment counter in a pool, and when it costs rating.

The rules are those of a game site: the test comes before the addition, more than 20 is punished, an abandon
adds 10 up to 50, a finished rated game takes 1 off. So the first three abandons from 0 are free (a first
disconnection is not cheating) and the fourth is not.
"""

from dataclasses import dataclass
from typing import NamedTuple

from petard_worker.ratings.parameters import choice, integer, switch


class Abandon(NamedTuple):
    """What an abandon does: the bomb after it, and whether it costs rating."""

    bomb: int
    punished: bool


@dataclass(frozen=True, slots=True)
class BombRules:
    """The parameters of the bomb rules; bombs are whole numbers from 0 to `cap`."""

    step: int = integer(10, 0, 10_000, "what an abandon adds")
    cap: int = integer(50, 0, 10_000, "the highest bomb")
    forgive: int = integer(1, 0, 10_000, "what finishing a rated game takes off")
    threshold: int = integer(20, 0, 10_000, "a bomb above it is punished")
    inclusive: bool = switch(False, "whether a bomb equal to the threshold is punished too")
    check: str = choice("before", ("before", "after"), "whether the test comes before or after the addition")

    def abandon(self, bomb: int) -> Abandon:
        """Return what an abandon does to a player with this bomb."""
        added = min(bomb + self.step, self.cap)
        tested = added if self.check == "after" else bomb
        punished = tested >= self.threshold if self.inclusive else tested > self.threshold
        return Abandon(added, punished)

    def finish(self, bomb: int) -> int:
        """Return the bomb after a finished rated game."""
        if not bomb:  # nearly everybody's
            return 0
        return max(min(bomb, self.cap) - self.forgive, 0)
