"""What a drain knows of its players from the batch before, so that it need not ask again."""

from collections.abc import Mapping

from petard_worker.fold import PlayerRecord

MOST_PLAYERS = 100_000


class KnownRecords:
    """Records as the last batch of this drain left them in Postgres.

    Good as long as nobody else has written to the pool, and its seq tells: whoever changes a rating takes the
    next seq, under the pool's lock.
    """

    def __init__(self) -> None:
        self._seq = -1
        self._records: dict[str, PlayerRecord] = {}

    def at(self, seq: int) -> Mapping[str, PlayerRecord]:
        """Return the records if they are those of a pool at this seq; else forget them, and know nobody."""
        if seq != self._seq:
            self.forget()
        return self._records

    def learn(self, seq: int, records: Mapping[str, PlayerRecord]) -> None:
        """Take over what a committed batch left, at the seq it left the pool at."""
        if len(self._records) > MOST_PLAYERS:
            self._records.clear()
        self._records.update(records)
        self._seq = seq

    def forget(self) -> None:
        """Know nobody: something failed, or somebody else has written."""
        self._seq = -1
        self._records.clear()
