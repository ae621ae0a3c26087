"""Who of a pool plays a tournament, asked as a console would: with a connection, without a command."""

from collections.abc import Sequence

import psycopg
import pytest

from integration.arena import make_pool
from integration.test_pool_stats import NOW, list_player, pool_in
from petard_worker.pool_field import TooFewListedError, UnknownPlayerError, named_in_pool, top_of_pool
from petard_worker.postgres.connect import Connection
from petard_worker.ratings.calculator import (
    CalculatorInputError,
    Entrant,
    Forecast,
    Setting,
    simulate_round_robin,
)

TENFOLD = {"display_high": 30_000.0}


def play(entrants: Sequence[Entrant]) -> Forecast:
    """A tournament in which whoever is first past 0.5 wins: chance has no say."""
    return simulate_round_robin(entrants, Setting(1, 0), lambda: 0.5, lambda _: None)


def test_top_is_the_first_of_the_board(connection: Connection, owner: psycopg.Connection) -> None:
    make_pool(connection)
    for player, rating in (("low", 1400), ("high", 1600), ("middle", 1500)):
        list_player(owner, player, rating)

    field = top_of_pool(connection, pool_in(connection), 2, NOW)

    assert field.players == [Entrant("high", 1600), Entrant("middle", 1500)]


def test_board_of_one_player_makes_no_field(connection: Connection, owner: psycopg.Connection) -> None:
    make_pool(connection)
    list_player(owner, "alone", 1500)

    with pytest.raises(TooFewListedError, match="needs 2 players, but 1 are on the board of 'p'"):
        top_of_pool(connection, pool_in(connection), 16, NOW)


def test_ratings_that_are_typed_are_those_that_the_pool_shows(
    connection: Connection, owner: psycopg.Connection
) -> None:
    make_pool(connection, **TENFOLD)
    list_player(owner, "a:1", 1400)

    field = named_in_pool(connection, pool_in(connection), ["a:1", "guest: 17000"])

    assert field.players == [Entrant("a:1", 1400), Entrant("guest", 1700)]


def test_player_whom_nobody_knows_is_named(connection: Connection) -> None:
    make_pool(connection)

    with pytest.raises(UnknownPlayerError, match="the pool 'p' knows no player 'zoe'"):
        named_in_pool(connection, pool_in(connection), ["zoe"])


def test_scale_of_a_pool_is_what_400_points_of_elo_come_to(connection: Connection) -> None:
    make_pool(connection, system="elo", parameters={"scale": 800})

    field = named_in_pool(connection, pool_in(connection), ["a:1000", "b:1600"])

    assert field.players == [Entrant("a", 1000), Entrant("b", 1600)]
    assert (field.elo_point, field.scale) == (2, 800)


def test_name_that_is_there_twice_makes_no_tournament(connection: Connection) -> None:
    make_pool(connection)
    field = named_in_pool(connection, pool_in(connection), ["a:1500", "a:1600"])

    with pytest.raises(CalculatorInputError, match="player 'a' is there twice: names must differ"):
        play(field.players)


@pytest.mark.parametrize("typed", ["inf", "-inf", "NaN"])
def test_rating_that_is_no_number_is_refused_by_its_value(connection: Connection, typed: str) -> None:
    make_pool(connection)

    with pytest.raises(CalculatorInputError, match=f"the rating of 'guest' is '{typed}'"):
        named_in_pool(connection, pool_in(connection), [f"guest:{typed}"])
