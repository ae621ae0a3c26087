"""What if they played now: the change of both sides for every result, by the code that would rate it."""

from datetime import datetime
from typing import NamedTuple

from petard_worker.fold import PlayerRecord, When, new_record, rate, state_at
from petard_worker.periods import period_at
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.open_periods import find_running_record
from petard_worker.postgres.pools import Pool
from petard_worker.ratings.pool_rules import PoolRules, pool_rules
from petard_worker.ratings.system import Game, GameSide


class Outlook(NamedTuple):
    """One result and what it would make of both players."""

    result: str
    first_rating: float
    first_change: float
    second_rating: float
    second_change: float


class Preview(NamedTuple):
    """A game that has not been played; `expected` is the first player's predicted score, 0 to 1."""

    expected: float
    outlooks: list[Outlook]


FIRST, SECOND = "first", "second"
RESULTS = {"win": (1, 2), "draw": (1, 1), "loss": (2, 1)}


def find_preview(connection: Connection, pool: Pool, first: str, second: str, now: datetime) -> Preview:
    """Return what a game between two players of the pool, ending now, would do."""
    rules = pool_rules(pool.system, pool.parameters)
    one, other = (find_running_record(connection, pool.name, player) for player in (first, second))
    # The open period may be ahead of now: clocks of game servers are.
    counted_at = now if pool.newest is None else max(now, pool.newest)
    when = When(now, period_at(counted_at, rules.system.period, pool.version))
    return preview(rules, one, other, when)


def preview(rules: PoolRules, first: PlayerRecord | None, second: PlayerRecord | None, when: When) -> Preview:
    """Return what a game between the two would do; None is a player the pool does not know."""
    records = {FIRST: first or new_record(rules), SECOND: second or new_record(rules)}
    a, b = (state_at(rules, record, when) for record in records.values())
    outlooks = []
    for result, (rank_a, rank_b) in RESULTS.items():
        # As a forfeit: the result counts, and no margin, which nobody knows yet.
        game = Game((GameSide((a,), rank_a), GameSide((b,), rank_b)), decided_by="forfeit")
        (one, _), (other, _) = rate(rules, records, [[FIRST], [SECOND]], game, when)
        change, counter_change = (
            rated.rating - record.rating for rated, record in zip((one, other), records.values(), strict=True)
        )
        outlooks.append(Outlook(result, one.rating, change, other.rating, counter_change))
    return Preview(rules.system.expected(a, b), outlooks)
