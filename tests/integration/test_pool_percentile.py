"""Where a rating stands on a pool's board: as the board says it of players, and of ratings nobody has."""

import random

import psycopg
import pytest

from integration.arena import POOL, START, make_pool
from integration.test_pool_stats import NOW, list_player, on, pool_in
from petard_worker.pool_percentile import rating_percentile
from petard_worker.pool_settings import PoolSettings
from petard_worker.postgres import boards
from petard_worker.postgres.boards import list_by
from petard_worker.postgres.connect import Connection


@pytest.mark.parametrize(
    "settings", [{}, {"hide_provisional": True}, {"ranked_by": "conservative"}, {"hide_inactive_days": 999.5}]
)
def test_percentile_of_a_listed_players_rating_is_that_of_the_player(
    connection: Connection, owner: psycopg.Connection, settings: dict[str, object]
) -> None:
    make_pool(connection, **settings)
    choose = random.Random(7)
    for number in range(60):
        rd, last = choose.choice((50.0, 80.0, 200.0)), choose.choice((START, on(1), None))
        list_player(owner, f"player-{number}", choose.randrange(1400, 1600, 10), rd, last)
    pool = pool_in(connection)
    listing = list_by(POOL, PoolSettings(**settings), NOW)  # type: ignore[arg-type]
    lines = boards.board_top(connection, listing, 100)
    places = {line.player: boards.find_place(connection, listing, line.player) for line in lines}

    found = {line.player: rating_percentile(connection, pool, line.rating, NOW, line.rd) for line in lines}

    assert len(lines) > 10
    assert {name: one and (one.percentile, one.listed) for name, one in found.items()} == {
        name: place and (place.percentile, len(lines)) for name, place in places.items()
    }


def test_rating_that_nobody_has_has_a_percentile(connection: Connection, owner: psycopg.Connection) -> None:
    make_pool(connection)
    for player, rating in (("a", 1400), ("b", 1500), ("c", 1500), ("d", 1600)):
        list_player(owner, player, rating)
    pool = pool_in(connection)

    found = {rating: rating_percentile(connection, pool, rating, NOW) for rating in (0, 1450, 1500, 9999)}

    # Percentile, lower, equal, listed.
    assert found == {0: (0, 0, 0, 4), 1450: (25, 1, 0, 4), 1500: (50, 1, 2, 4), 9999: (100, 4, 0, 4)}


def test_percentile_on_an_empty_board_is_none(connection: Connection) -> None:
    make_pool(connection)
    pool = pool_in(connection)

    assert rating_percentile(connection, pool, 1500, NOW) is None
