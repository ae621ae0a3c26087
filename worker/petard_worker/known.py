"""What a drain knows from the batches before, so that it need not ask again."""

from collections.abc import Mapping
from typing import NamedTuple

from petard_worker.fold import PlayerRecord
from petard_worker.ratings.parameters import ParameterValue
from petard_worker.ratings.pool_rules import PoolRules, pool_rules

MOST_PLAYERS = 100_000
NEW_BATCHES = 4
"""After so many batches in which everything was new, and counted, the next is taken for one of them."""


class Place(NamedTuple):
    """How far a pool has come: its seq, and the version of its parameters."""

    seq: int
    version: int


NOWHERE = Place(-1, -1)


class Known:
    """What the last batch of this drain has left in Postgres, and what is expected of the next one.

    Records are good as long as nobody else has written to the pool, and its seq tells: whoever changes a
    rating takes the next seq, under the pool's lock. They are good for one version of the pool's parameters
    only, which say what is read of a player.
    """

    def __init__(self) -> None:
        self._left_at = NOWHERE
        self._records: dict[str, PlayerRecord] = {}
        self._new_batches = 0
        self._rules: dict[int, PoolRules] = {}
        """Of the version that was in force last."""

    @property
    def expects_new(self) -> bool:
        """Whether the ledger need not be asked what it knows of the next batch.

        Its constraints refuse what has counted before: then the batch is done again, having asked.
        """
        return self._new_batches >= NEW_BATCHES

    def is_at(self, place: Place) -> bool:
        """Return whether the pool is where the last batch left it: nobody else has written since."""
        return place == self._left_at

    def at(self, place: Place) -> Mapping[str, PlayerRecord]:
        """Return the records if they are those of a pool at this place; else forget them, and know nobody."""
        if not self.is_at(place):
            self.forget()
        return self._records

    def rules(self, version: int, system: str, parameters: Mapping[str, ParameterValue]) -> PoolRules:
        """Return the rules of the pool in this version; raises BadParameterError."""
        if version not in self._rules:
            self._rules = {version: pool_rules(system, parameters)}
        return self._rules[version]

    def learn(self, place: Place, records: Mapping[str, PlayerRecord], *, all_new: bool) -> None:
        """Take over what a committed batch left, at the place it left the pool at.

        `all_new` says that everything in it was new, and counted.
        """
        self._new_batches = self._new_batches + 1 if all_new else 0
        if len(self._records) > MOST_PLAYERS:
            self._records.clear()
        self._records.update(records)
        self._left_at = place

    def forget(self) -> None:
        """Know nothing: something failed, or somebody else has written."""
        self._left_at = NOWHERE
        self._records.clear()
        self._new_batches = 0
        self._rules = {}
