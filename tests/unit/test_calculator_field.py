"""Forecasts of a field: what follows without chance, and what chance must not miss."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, count, cycle
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.calculator import (
    CalculatorInputError,
    Entrant,
    Forecast,
    Setting,
    check_setting,
    simulate_round_robin,
    simulate_swiss,
)
from petard_worker.ratings.calculator.field import drawn_by_lot, thresholds

CLUB = [Entrant(name, rating) for name, rating in zip("ABCDEFG", range(2000, 1300, -100), strict=True)]
EQUALS = [Entrant(name, 1500) for name in "ABC"]


def logistic(D: float) -> float:
    """The expected score, written out."""
    return 1 / (1 + 10 ** (-D / 400))


def quiet(_done: int) -> None:
    """Follow no progress."""


def evenly(steps: int) -> Iterator[float]:
    """The middles of so many equal parts of 0 to 1, again and again: what chance comes to in the long run."""
    return cycle((step + 0.5) / steps for step in range(steps))


def robin(entrants: Sequence[Entrant], setting: Setting, seed: int = 1, games: int = 1) -> Forecast:
    return simulate_round_robin(entrants, setting, Random(seed).random, quiet, games=games)


def swiss(entrants: Sequence[Entrant], rounds: int, setting: Setting, seed: int = 1) -> Forecast:
    return simulate_swiss(entrants, rounds, setting, Random(seed).random, quiet)


ratings = st.floats(-10_000, 10_000)


@given(ratings, ratings, st.floats(0, 1))
def test_draws_leave_the_mean_score_and_are_probabilities(a: float, b: float, d: float) -> None:
    win, draw = thresholds(a, b, Setting(1, d))

    assert 0 <= win <= draw <= 1
    assert win + (draw - win) / 2 == pytest.approx(logistic(a - b), abs=1e-15)


def test_equals_draw_the_given_share_and_unequals_fewer() -> None:
    # E = .9090909: 2 * .3 * .0909091 = .0545455.
    win, draw = thresholds(1500, 1500, Setting(1, 0.3))
    strong_win, strong_draw = thresholds(1900, 1500, Setting(1, 0.3))

    assert (win, draw) == (pytest.approx(0.35), pytest.approx(0.65))
    assert strong_draw - strong_win == pytest.approx(0.6 / 11)


def test_two_players_have_the_chances_of_their_one_game() -> None:
    numbers = evenly(10_000)

    found = simulate_round_robin(
        [Entrant("A", 1900), Entrant("B", 1500)], Setting(10_000, 0.0), numbers.__next__, quiet
    )

    strong, weak = found.players
    assert (strong.name, weak.name) == ("A", "B")
    assert strong.places == pytest.approx((10 / 11, 1 / 11), abs=1e-4)
    assert weak.places == pytest.approx((1 / 11, 10 / 11), abs=1e-4)
    assert strong.points == pytest.approx(10 / 11, abs=1e-4)


def test_equal_points_share_their_places() -> None:
    found = robin(EQUALS, Setting(50, 1.0))  # equals who draw all their games

    assert [player.places for player in found.players] == [pytest.approx((1 / 3,) * 3)] * 3
    assert [player.points for player in found.players] == [1.0] * 3
    assert [player.mean_place for player in found.players] == pytest.approx([2.0] * 3)


@pytest.mark.parametrize("make", [lambda: robin(CLUB, Setting(500)), lambda: swiss(CLUB, 3, Setting(500))])
def test_chances_add_up_to_one_by_player_and_by_place(make) -> None:
    places = [player.places for player in make().players]

    assert [math.fsum(row) for row in places] == pytest.approx([1.0] * 7)
    assert [math.fsum(column) for column in zip(*places, strict=True)] == pytest.approx([1.0] * 7)


@pytest.mark.parametrize("games", [1, 2])
def test_mean_points_are_the_sum_of_the_expected_scores(games: int) -> None:
    runs = 4000

    found = robin(CLUB, Setting(runs), games=games)

    assert math.fsum(player.points for player in found.players) == pytest.approx(21 * games)
    for player in found.players:
        expected = games * math.fsum(
            logistic(player.rating - other.rating) for other in CLUB if other.name != player.name
        )
        # A score varies by at most 1/2 a game: five standard deviations of the mean of all.
        assert player.points == pytest.approx(expected, abs=5 * 0.5 * math.sqrt(6 * games / runs))


def test_chances_of_three_players_are_those_of_all_their_results() -> None:
    players = [Entrant("A", 1700), Entrant("B", 1600), Entrant("C", 1500)]
    runs = 20_000

    found = robin(players, Setting(runs, 0.4), seed=3)

    exact = first_places(players, 0.4)
    for player in found.players:
        # Five standard deviations of a share of runs.
        assert player.places[0] == pytest.approx(exact[player.name], abs=5 * 0.5 / math.sqrt(runs))


def first_places(players: Sequence[Entrant], d: float) -> dict[str, float]:
    """The chance of the first place, over all 27 results of three games."""
    pairs = list(combinations(range(3), 2))
    chances = dict.fromkeys((player.name for player in players), 0.0)
    for outcome in range(27):
        points, weight = [0, 0, 0], 1.0
        for (a, b), result in zip(pairs, (outcome // 9, outcome // 3 % 3, outcome % 3), strict=True):
            E = logistic(players[a].rating - players[b].rating)
            drawn = 2 * d * min(E, 1 - E)
            weight *= (1 - E - drawn / 2, drawn, E - drawn / 2)[result]
            points[a] += result
            points[b] += 2 - result
        best = [index for index in range(3) if points[index] == max(points)]
        for index in best:
            chances[players[index].name] += weight / len(best)
    return chances


def test_overwhelming_player_is_always_first() -> None:
    field = [Entrant("A", 9000), *EQUALS[1:]]

    assert robin(field, Setting(200)).players[0].places == (1.0, 0.0, 0.0)
    assert swiss(field, 2, Setting(200)).players[0].places[0] > 0.5


def test_swiss_of_all_rounds_is_nearly_a_round_robin_for_two() -> None:
    two = [Entrant("A", 1900), Entrant("B", 1500)]
    numbers = evenly(1000)

    found = simulate_swiss(two, 1, Setting(1000, 0.0), numbers.__next__, quiet)

    assert found.players[0].places == pytest.approx((10 / 11, 1 / 11), abs=1e-3)


def test_who_sits_out_gets_a_full_point() -> None:
    # One round of three: A meets B, and C sits out.
    found = swiss([Entrant("A", 1600), Entrant("B", 1500), Entrant("C", 1400)], 1, Setting(100))

    assert next(player for player in found.players if player.name == "C").points == 1.0
    assert math.fsum(player.points for player in found.players) == pytest.approx(2.0)


NEARLY_EQUAL = [Entrant(name, 1900 - 80 * at) for at, name in enumerate("ABCDE")] + [
    Entrant("F", 1500),
    Entrant("G", 1500),
]


@pytest.mark.parametrize("shift", range(1, 7))
def test_order_in_which_players_are_named_changes_nothing(shift: int) -> None:
    named = NEARLY_EQUAL[shift:] + NEARLY_EQUAL[:shift]

    assert swiss(named, 3, Setting(200)) == swiss(NEARLY_EQUAL, 3, Setting(200))
    assert robin(named, Setting(200)) == robin(NEARLY_EQUAL, Setting(200))


def test_lots_give_equals_the_same_chances_of_a_bye() -> None:
    runs = 4000

    # One round of three equals without draws: who has the bye has 1 point, the others 1/2 each on average.
    found = swiss(EQUALS, 1, Setting(runs, 0.0))

    for player in found.players:
        assert player.points == pytest.approx(2 / 3, abs=5 * 0.5 / math.sqrt(runs))


def test_lots_are_drawn_evenly() -> None:
    numbers = (
        (first + 0.5) / 3 if step == 0 else (second + 0.5) / 2
        for first in range(3)
        for second in range(2)
        for step in range(2)
    )

    orders = {tuple(drawn_by_lot([0, 1, 2], numbers.__next__)) for _ in range(6)}

    assert len(orders) == 6


def test_same_numbers_give_the_same_forecast_and_others_another() -> None:
    assert robin(CLUB, Setting(300), seed=7) == robin(CLUB, Setting(300), seed=7)
    assert swiss(CLUB, 3, Setting(300), seed=7) == swiss(CLUB, 3, Setting(300), seed=7)
    assert robin(CLUB, Setting(300), seed=7) != robin(CLUB, Setting(300), seed=8)


def test_rounds_and_margin_are_told() -> None:
    assert [robin(field, Setting(100)).rounds for field in (CLUB, CLUB[:6])] == [7, 5]
    assert robin(CLUB, Setting(100), games=2).rounds == 14
    assert robin(CLUB, Setting(10_000 // 4)).margin == pytest.approx(0.0196)


def test_progress_is_reported_to_the_end() -> None:
    told: list[int] = []

    simulate_round_robin(CLUB, Setting(1000), Random(1).random, told.append)

    assert told == sorted(told)
    assert told[-1] == 1000
    assert len(told) == 100


def test_progress_ends_with_the_last_tournament_however_many_there_are() -> None:
    told: list[int] = []

    simulate_round_robin(CLUB, Setting(299), Random(1).random, told.append)

    assert told[-1] == 299
    assert len(told) == len(set(told)) == 150


@pytest.mark.parametrize(
    ("entrants", "setting", "said"),
    [
        ([], Setting(), "number of players is 0"),
        (CLUB[:1], Setting(), "number of players is 1"),
        ([Entrant(str(number), 1500) for number in range(257)], Setting(), "number of players is 257"),
        ([Entrant("A", 1), Entrant("A", 2)], Setting(), "'A' is there twice"),
        ([Entrant("", 1), Entrant("A", 2)], Setting(), "printable letters"),
        ([Entrant("a\nb", 1), Entrant("A", 2)], Setting(), "printable letters"),
        ([Entrant("B", math.nan), Entrant("A", 2)], Setting(), "rating of 'B' is nan"),
        (CLUB, Setting(runs=0), "number of runs is 0"),
        (CLUB, Setting(draws=1.1), "share of draws is 1.1"),
        (CLUB, Setting(draws=math.nan), "share of draws is nan"),
    ],
)
def test_field_that_cannot_be_played_is_refused(entrants: list[Entrant], setting: Setting, said: str) -> None:
    with pytest.raises(CalculatorInputError, match=said):
        robin(entrants, setting)
    with pytest.raises(CalculatorInputError, match=said):
        swiss(entrants, 1, setting)


@pytest.mark.parametrize(("players", "rounds"), [(6, 6), (7, 8), (6, 0)])
def test_rounds_of_a_swiss_are_at_most_those_of_all_against_all(players: int, rounds: int) -> None:
    with pytest.raises(CalculatorInputError, match="number of rounds"):
        swiss(CLUB[:players], rounds, Setting(10))


def test_all_play_all_once_or_twice_only() -> None:
    with pytest.raises(CalculatorInputError, match="games against each other is 3"):
        robin(CLUB, Setting(10), games=3)


def test_no_random_number_is_wasted() -> None:
    numbers = count()

    simulate_round_robin(CLUB, Setting(10), lambda: next(numbers) % 10 / 10, quiet)

    assert next(numbers) == 10 * 21


def test_scale_says_for_how_many_points_the_odds_are_ten_to_one() -> None:
    win, draw = thresholds(10, 0, Setting(1, 0, scale=10))

    assert win == draw == pytest.approx(10 / 11, abs=1e-12)


@pytest.mark.parametrize("scale", [0, -400, math.inf, math.nan])
def test_scale_that_is_none_is_refused(scale: float) -> None:
    with pytest.raises(CalculatorInputError, match="the scale is"):
        check_setting(Setting(1, 0, scale))
