"""Where a player stood at some time: before the first of their applied events that is later."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, cast

import psycopg
import pytest
import redis

from integration.arena import POOL, apply_all, make_pool
from petard_schema import Keys
from petard_worker.postgres import boards
from petard_worker.postgres.boards import PastStanding
from petard_worker.postgres.connect import Connection
from petard_worker.simulate import Season, simulate

MICROSECOND = timedelta(microseconds=1)
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)


class Applied(NamedTuple):
    """An event of a player, and where it left them."""

    player: str
    player_seq: int
    time: datetime
    rating: float


@pytest.mark.parametrize("late_share", [0.0, 0.1, 0.6])
def test_no_later_event_is_in_a_past_standing(
    connection: Connection, client: redis.Redis, keys: Keys, owner: psycopg.Connection, late_share: float
) -> None:
    """However many events come late, among them ones that only a player who left was changed by."""
    make_pool(connection)
    season = Season(POOL, players=5, games=120, late_share=late_share, abandon_share=0.3, hostile_share=0)
    apply_all(connection, client, keys, simulate(season))
    chains = read_chains(owner)

    for player, chain in chains.items():
        for time in sorted(
            {applied.time + step for applied in chain for step in (-MICROSECOND, 0 * MICROSECOND)}
        ):
            found = boards.find_past_standing(connection, POOL, player, time)
            assert as_applied(player, found) == stood(chain, time)

    assert len(chains) == 5
    assert late_share == 0 or any(is_out_of_order(chain) for chain in chains.values())


def test_whoever_is_nobody_stood_nowhere(connection: Connection) -> None:
    make_pool(connection)

    assert boards.find_past_standing(connection, POOL, "nobody", BEGIN) is None


def read_chains(owner: psycopg.Connection) -> dict[str, list[Applied]]:
    sql = """
        SELECT player, player_seq, time, rating_after
        FROM petard.change JOIN petard.ledger USING (pool, seq) ORDER BY player, player_seq
    """
    chains: dict[str, list[Applied]] = {}
    for row in owner.execute(sql):
        applied = Applied(*cast("Applied", row))
        chains.setdefault(applied.player, []).append(applied)
    return chains


def stood(chain: Sequence[Applied], time: datetime) -> Applied | None:
    """Return the last event before the first one that is later."""
    standing = None
    for applied in chain:
        if applied.time > time:
            break
        standing = applied
    return standing


def as_applied(player: str, found: PastStanding | None) -> Applied | None:
    return None if found is None else Applied(player, found.player_seq, found.time, found.rating)


def is_out_of_order(chain: Sequence[Applied]) -> bool:
    times = [applied.time for applied in chain]
    return times != sorted(times)
