"""What if they played now: the change of both sides for every result, by the code that would rate it."""

from datetime import datetime
from typing import NamedTuple

from petard_worker.fold import PlayerRecord, new_record, state_at
from petard_worker.postgres.boards import find_record
from petard_worker.postgres.connect import Connection
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


RESULTS = {"win": (1, 2), "draw": (1, 1), "loss": (2, 1)}


def find_preview(connection: Connection, pool: Pool, first: str, second: str, now: datetime) -> Preview:
    """Return what a game between two players of the pool, ending now, would do."""
    rules = pool_rules(pool.system, pool.parameters)
    one, other = (find_record(connection, pool.name, player) for player in (first, second))
    return preview(rules, one, other, now)


def preview(
    rules: PoolRules, first: PlayerRecord | None, second: PlayerRecord | None, now: datetime
) -> Preview:
    """Return what a game between the two, ending now, would do; None is a player the pool does not know."""
    records = (first or new_record(rules), second or new_record(rules))
    a, b = (state_at(record, now) for record in records)
    outlooks = []
    for result, (rank_a, rank_b) in RESULTS.items():
        rated = rules.system.rate(Game((GameSide((a,), rank_a), GameSide((b,), rank_b))))
        outlooks.append(
            Outlook(
                result,
                rated[0].rating,
                rated[0].rating - a.rating,
                rated[1].rating,
                rated[1].rating - b.rating,
            )
        )
    return Preview(rules.system.expected(a, b), outlooks)
