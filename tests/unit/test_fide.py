"""FIDE's tables and rules against the handbook, and against each other."""

import json
import math
from pathlib import Path
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings import fide

# Table 8.1.1 of the handbook, p from .50 to 1.0.
TABLE_8_1_1 = """
    0 7 14 21 29 36 43 50 57 65 72 80 87 95 102 110 117 125 133 141 149 158 166 175 184 193 202 211 220 230
    240 251 262 273 284 296 309 322 336 351 366 383 401 422 444 470 501 538 589 677 800
"""


def rounded_hundredths(p: float) -> int:
    return math.floor(p * 100 + 0.5)


# --- The tables ---------------------------------------------------------------------------------------------


def test_every_row_of_table_8_1_2_is_that_of_the_handbook(shared_data: Path) -> None:
    cases = json.loads((shared_data / "vectors.json").read_text())
    rows = next(case for case in cases if case["kind"] == "table_8_1_2")["expected"]["rows"]

    assert len(rows) == 51
    for D_low, D_high, higher, lower in rows:
        for D in range(D_low, (D_high or 4000) + 1):
            assert fide.expected_score(D) == higher
            assert fide.expected_score(-D) == (lower if D else higher)


def test_every_row_of_table_8_1_1_is_that_of_the_handbook() -> None:
    handbook = [int(dp) for dp in TABLE_8_1_1.split()]

    ours = [fide.performance_difference(hundredths / 100) for hundredths in range(50, 101)]

    assert ours == handbook


def test_tables_are_each_other_turned_round() -> None:
    for hundredths in range(100):
        p = (hundredths + 1) / 100
        assert fide.expected_score(fide.performance_difference(p)) == p


def test_performance_difference_of_the_lower_half_is_that_of_the_upper_half_negated() -> None:
    for hundredths in range(101):
        p = hundredths / 100
        assert fide.performance_difference(1 - p) == -fide.performance_difference(p)


@pytest.mark.parametrize(
    ("p", "dp"), [(2 / 3, 125), (1 / 3, -125), (0.755, 202), (0.245, -202), (0.7549, 193), (5 / 7, 158)]
)
def test_share_of_points_is_rounded_before_the_table_is_read(p: float, dp: int) -> None:
    assert fide.performance_difference(p) == dp


@given(st.floats(0, 1))
def test_performance_difference_is_antisymmetric_between_the_rows_too(p: float) -> None:
    q = 1 - p

    assert fide.performance_difference(1 - q) == -fide.performance_difference(q)


def test_table_is_no_logistic_curve() -> None:
    others = [
        D
        for D in range(736)
        if rounded_hundredths(1 / (1 + 10 ** (-D / 400))) != round(fide.expected_score(D) * 100)
    ]

    assert len(others) == 460


def test_table_is_nearly_a_normal_distribution_and_not_exactly() -> None:
    normal = NormalDist(sigma=2000 / 7)

    others = [
        D for D in range(736) if rounded_hundredths(normal.cdf(D)) != round(fide.expected_score(D) * 100)
    ]

    assert len(others) == 6


@pytest.mark.parametrize(
    ("D", "PD"), [(3, 0.5), (3.49, 0.5), (3.5, 0.51), (-3.49, 0.5), (-3.5, 0.49), (735.49, 0.99), (735.5, 1)]
)
def test_difference_is_rounded_before_the_table_is_read(D: float, PD: float) -> None:
    assert fide.expected_score(D) == PD


@given(st.floats(-10_000, 10_000))
def test_expected_scores_of_both_are_one_together(D: float) -> None:
    assert round(fide.expected_score(D) * 100) + round(fide.expected_score(-D) * 100) == 100


# --- The cap on differences ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("difference", "rating", "counted"),
    [
        (401, 2649.9, 400),
        (-401, 1500, -400),
        (399, 1500, 399),
        (850, 2650, 850),
        (-850, 2650, -850),
        (850, 2649, 400),
    ],
)
def test_difference_above_400_counts_for_players_from_2650_only(
    difference: float, rating: float, counted: float
) -> None:
    assert fide.capped(difference, rating, fide.DIFFERENCE_CAP, fide.UNCAPPED_FROM) == counted


def test_cap_of_zero_is_none() -> None:
    assert fide.capped(1000, 1500, 0, fide.UNCAPPED_FROM) == 1000


# --- K ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rating", "games", "peak", "age", "k"),
    [
        pytest.param(1500, 0, 1500, None, 40, id="new"),
        pytest.param(1500, 29, 1500, 40, 40, id="29 games"),
        pytest.param(1500, 30, 1500, 40, 20, id="30 games"),
        pytest.param(2399, 500, 2399, 40, 20, id="never 2400"),
        pytest.param(2400, 500, 2390, 40, 10, id="2400 now"),
        pytest.param(1900, 500, 2400, 40, 10, id="2400 once is for ever"),
        pytest.param(2450, 5, 2450, 14, 10, id="2400 in few games and young"),
        pytest.param(2299, 500, 2299, 18, 40, id="18 in this year"),
        pytest.param(2299, 500, 2299, 19, 20, id="19 in this year"),
        pytest.param(2300, 500, 2300, 12, 20, id="young and 2300"),
        pytest.param(2299, 500, 2310, 12, 40, id="young and below 2300 again"),
        pytest.param(2350, 10, 2350, 12, 40, id="young and 2300 in few games"),
        pytest.param(1800, 100, 1800, None, 20, id="age not known"),
    ],
)
def test_k_is_by_games_peak_and_age(
    rating: float, games: int, peak: float, age: float | None, k: int
) -> None:
    assert fide.k_factor(rating, games, peak, age) == k


@pytest.mark.parametrize(
    ("k", "games", "limited"),
    [(40, 1, 40), (40, 17, 40), (40, 18, 38), (40, 20, 35), (20, 35, 20), (20, 36, 19), (10, 70, 10)],
)
def test_k_times_games_is_at_most_700(k: float, games: int, limited: float) -> None:
    assert fide.limited_k(k, games) == limited


# --- Changes and performances -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "points"), [(0.5, 1), (-0.5, -1), (0.49, 0), (-0.49, 0), (2.5, 3), (-2.5, -3), (18.4, 18)]
)
def test_half_a_point_is_rounded_away_from_zero(change: float, points: int) -> None:
    assert fide.rounded(change) == points


def test_error_of_the_last_bits_decides_no_half() -> None:
    # By hand 10 * (.50 - .45) = .5, which floats make a little less.
    assert 10 * (0.5 - 0.45) < 0.5

    assert fide.rating_change(2500, [(2535, 0.5)], 10) == 1


def test_period_is_rounded_once_and_not_game_by_game() -> None:
    # K 10, draws at .53: -0.3 each.
    one, ten = [(1480.0, 0.5)], [(1480.0, 0.5)] * 10

    assert fide.rating_change(1500, one, 10) == 0
    assert fide.rating_change(1500, ten, 10) == -3


def test_period_of_many_games_is_rated_with_a_smaller_k() -> None:
    assert fide.rating_change(1500, [(1500, 1)] * 17, 40) == 340
    assert fide.rating_change(1500, [(1500, 1)] * 20, 40) == 350


def test_true_difference_counts_from_2650_in_standard_chess_only() -> None:
    lost = [(2100.0, 0.0)]

    assert fide.rating_change(2650, lost, 10) == -10
    assert fide.rating_change(2649, lost, 10) == -9
    assert fide.rating_change(2650, lost, 10, "rapid") == -9


@pytest.mark.parametrize("control", ["rapid", "blitz"])
def test_rapid_game_of_600_points_is_not_rated_when_one_player_is_above_2600(control: str) -> None:
    assert fide.rating_change(2601, [(2001, 0)], 10, control) == 0
    assert fide.rating_change(2001, [(2601, 1)], 20, control) == 0
    assert fide.rating_change(2601, [(2002, 0)], 10, control) == -9
    assert fide.rating_change(2600, [(2000, 0)], 10, control) == -9
    assert fide.rating_change(2601, [(2001, 0)], 10) == -9


def test_games_that_are_not_rated_do_not_lower_k() -> None:
    unrated, won = (1000.0, 1.0), (2700.0, 1.0)

    assert fide.rating_change(2700, [won] * 14 + [unrated] * 20, 40, "blitz") == 280


def test_unknown_time_control_is_refused() -> None:
    with pytest.raises(ValueError, match=r"bullet.*standard, rapid, blitz"):
        fide.rating_change(1500, [(1500, 1)], 40, "bullet")


def test_performance_is_the_mean_opponent_and_what_the_share_of_points_stands_for() -> None:
    assert fide.performance([(1500, 1)]) == 2300
    assert fide.performance([(1500, 0), (1700, 0)]) == 800
    assert fide.performance([(1500, 1), (1501, 0)]) == 1501


def test_performance_without_games_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one game"):
        fide.performance([])
