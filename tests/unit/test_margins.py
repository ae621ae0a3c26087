"""Margin multipliers against FiveThirtyEight's formulas, worked by hand, and where they would break."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.margins import (
    MULTIPLIERS,
    Multiplier,
    fivethirtyeight_nba,
    fivethirtyeight_nfl,
    winning_margin,
)
from petard_worker.ratings.system import GameSide, GameUnsupportedError, PlayerState

margins = st.floats(0, 1e16)
advantages = st.floats(-50_000, 50_000)
multipliers = pytest.mark.parametrize("multiplier", MULTIPLIERS.values(), ids=MULTIPLIERS)


def test_even_nfl_game_won_by_a_field_goal_counts_ln_4() -> None:
    assert fivethirtyeight_nfl(3, 0) == pytest.approx(1.3862943611198906, abs=1e-12)


def test_nfl_favourite_of_220_points_counts_ten_elevenths() -> None:
    assert fivethirtyeight_nfl(3, 220) == pytest.approx(math.log(4) * 10 / 11, abs=1e-12)
    assert fivethirtyeight_nfl(3, -220) == pytest.approx(math.log(4) * 10 / 9, abs=1e-12)


def test_nfl_tie_counts_ln_2_times_2_2_whatever_the_ratings() -> None:
    assert fivethirtyeight_nfl(0, None) == pytest.approx(0.6931471805599453 * 2.2, abs=1e-12)


def test_nfl_win_without_a_margin_counts_as_one_by_a_point() -> None:
    assert fivethirtyeight_nfl(0, 100) == fivethirtyeight_nfl(1, 100)


def test_even_nba_game_won_by_29_counts_32_to_the_power_of_four_fifths() -> None:
    assert fivethirtyeight_nba(29, 0) == pytest.approx(16 / 7.5, abs=1e-12)


def test_nba_favourite_of_125_points_counts_ten_elevenths() -> None:
    assert fivethirtyeight_nba(29, 125) == pytest.approx(16 / 8.25, abs=1e-12)
    assert fivethirtyeight_nba(29, -125) == pytest.approx(16 / 6.75, abs=1e-12)


def test_nba_tie_counts_as_one_between_equals() -> None:
    assert fivethirtyeight_nba(0, None) == fivethirtyeight_nba(0, 0)


@multipliers
@given(margin=margins, advantage=advantages)
def test_multiplier_is_positive_and_finite_for_absurd_differences(
    multiplier: Multiplier, margin: float, advantage: float
) -> None:
    got = multiplier(margin, advantage)

    assert 0 < got < math.inf


@multipliers
@given(margin=margins, advantage=advantages, more=st.floats(0, 10_000))
def test_greater_favourite_never_counts_more(
    multiplier: Multiplier, margin: float, advantage: float, more: float
) -> None:
    assert multiplier(margin, advantage + more) <= multiplier(margin, advantage)


@multipliers
@pytest.mark.parametrize("advantage", [-100_000, -2200, -1250])
def test_hopeless_outsider_counts_at_most_ten_times_what_an_equal_does(
    multiplier: Multiplier, advantage: float
) -> None:
    assert multiplier(10, advantage) <= 10 * multiplier(10, 0) * (1 + 1e-12)


def test_formula_holds_until_the_divisor_is_a_tenth() -> None:
    assert fivethirtyeight_nfl(3, -1979) == pytest.approx(math.log(4) * 2.2 / 0.221, rel=1e-9)
    assert fivethirtyeight_nba(29, -1124) == pytest.approx(16 / 0.756, rel=1e-9)


def side(rank: int, points: float | None) -> GameSide:
    return GameSide((PlayerState(1500, 0),), rank, points)


@pytest.mark.parametrize(
    ("a", "b", "margin"),
    [
        (side(1, 30), side(2, 3), 27),
        (side(2, 3), side(1, 30), 27),
        (side(1, 20), side(1, 20), 0),
        (side(1, 20), side(2, 20), 0),  # by kicks, after a draw
        (side(1, -1), side(2, -4), 3),
    ],
)
def test_margin_is_what_the_winner_is_ahead(a: GameSide, b: GameSide, margin: float) -> None:
    assert winning_margin(a, b, "rugby") == margin


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (side(1, 3), side(2, 30), "points 3 and 30 contradict the ranks 1 and 2: rugby takes more points"),
        (side(2, 30), side(1, 3), "points 30 and 3 contradict the ranks 2 and 1"),
        (side(1, 3), side(1, 30), "points 3 and 30 contradict the ranks 1 and 1"),
        (side(1, None), side(2, 3), "rugby needs the points of both sides, which are None and 3"),
    ],
)
def test_points_that_contradict_the_ranks_are_refused(a: GameSide, b: GameSide, words: str) -> None:
    with pytest.raises(GameUnsupportedError, match=words):
        winning_margin(a, b, "rugby")
