"""DWZ against its regulation and the numbers of another implementation."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.dwz import J, accelerator, brake, development, k_factor

CLOSE = 1e-9

ratings = st.floats(-1000, 3500)
ages = st.none() | st.floats(4, 100)
indices = st.integers(0, 500)


def expected(rating: float, opponent: float) -> float:
    return 1 / (1 + 10 ** ((opponent - rating) / 400))


def tournament(rating: float, age: float | None, index: int, results: list[tuple[float, float]]) -> float:
    """The rating after a tournament: the opponents' ratings and the scores against them."""
    W = math.fsum(s for _, s in results)
    W_e = math.fsum(expected(rating, opponent) for opponent, _ in results)
    return rating + k_factor(rating, age, index, len(results), W, W_e) * (W - W_e)


# --- The numbers of others ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rating", "age", "index", "results", "after"),
    [
        (1530, 26, 22, [(1930, 1)], 1564),
        (1930, 39, 103, [(1530, 0)], 1906),
        (1500, 42, 42, [(1500, 1)], 1519),
        (1500, 12, 12, [(1500, 0)], 1464),
        (1530, 9, 17, [(1930, 1), (1930, 0.5)], 1635),
        (1530, 9, 17, [(1930, 1), (1930, 0.5), (1930, 0)], 1619),
        (3210, 25, 143, [(90, 1)], 3210),
        (90, 12, 1, [(3210, 0)], 90),
        (2, 5, 144, [(1, 0)], -1),
        (1, 5, 2, [(2, 1)], 68),
    ],
)
def test_others_round_to_the_same(
    rating: float, age: float, index: int, results: list[tuple[float, float]], after: float
) -> None:
    assert round(tournament(rating, age, index, results)) == after


def test_beginners_move_as_in_another_implementation_to_the_last_digits() -> None:
    assert tournament(240, 26, 1, [(240, 1)]) == pytest.approx(306.6666666666667, abs=CLOSE)
    assert tournament(240, 26, 1, [(240, 0)]) == pytest.approx(237.35099337748343, abs=CLOSE)


# --- The regulation -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "years"), [(8, 5), (20, 5), (20.9, 5), (21, 10), (25, 10), (25.9, 10), (26, 15), (80, 15)]
)
def test_age_decides_j(age: float, years: int) -> None:
    assert J(age) == years


def test_who_gives_no_age_is_a_grown_up() -> None:
    assert k_factor(1500, None, 10, 5, 3, 2.5) == k_factor(1500, 40, 10, 5, 3, 2.5)
    assert k_factor(1500, None, 10, 5, 3, 2.5) == pytest.approx(800 / (1.5**4 + 15 + 5), abs=CLOSE)


@pytest.mark.parametrize(("rating", "f_B"), [(500, 0.5), (1000, 0.5), (1600, 0.8), (2000, 1), (2600, 1)])
def test_accelerator_is_half_to_one(rating: float, f_B: float) -> None:
    assert accelerator(rating) == f_B


def test_youths_up_to_twenty_who_score_what_is_expected_or_more_rise_faster() -> None:
    slow, fast = 1.6**4 + 5, (1.6**4 + 5) * 0.8

    assert development(1600, 20, 10, 3, 2.5) == pytest.approx(fast, abs=CLOSE)
    assert development(1600, 20, 10, 2.5, 2.5) == pytest.approx(fast, abs=CLOSE)
    assert development(1600, 20, 10, 2, 2.5) == pytest.approx(slow, abs=CLOSE)
    assert development(1600, 21, 10, 3, 2.5) == pytest.approx(1.6**4 + 10, abs=CLOSE)


@pytest.mark.parametrize(
    ("rating", "S_Br"), [(1300, 0), (2000, 0), (1150, math.e - 1), (1000, math.e**2 - 1)]
)
def test_brake_grows_below_1300(rating: float, S_Br: float) -> None:
    assert brake(rating) == pytest.approx(S_Br, abs=CLOSE)


@pytest.mark.parametrize(("age", "of_age"), [(10, 5), (23, 10), (50, 15)])
def test_brake_holds_players_of_any_age_who_score_less_than_expected(age: float, of_age: int) -> None:
    braked = development(1150, age, 10, 1, 2.5)

    assert braked == pytest.approx(1.15**4 + of_age + math.e - 1, abs=CLOSE)
    assert development(1150, 50, 10, 3, 2.5) == pytest.approx(1.15**4 + 15, abs=CLOSE)
    assert development(1150, 50, 10, 2.5, 2.5) == pytest.approx(1.15**4 + 15, abs=CLOSE)


@pytest.mark.parametrize(("index", "E"), [(0, 5), (1, 5), (2, 10), (4, 20), (5, 25), (6, 30), (200, 30)])
def test_few_tournaments_limit_e(index: int, E: float) -> None:
    # 2.2 ** 4 + 15 is 38.4.
    assert development(2200, 50, index, 3, 2.5) == E


def test_brake_limits_e_to_150_however_few_the_tournaments() -> None:
    assert development(400, 50, 1, 1, 2.5) == 150


def test_e_is_five_at_least() -> None:
    # (0.5 ** 4 + 5) / 2 is 2.5.
    assert development(500, 10, 10, 3, 2.5) == 5


# --- What must hold for all players -------------------------------------------------------------------------


@given(ratings, ages, indices, st.integers(1, 30), st.floats(0, 30), st.floats(0, 30))
def test_e_stays_within_its_limits(
    rating: float, age: float | None, index: int, n: int, W: float, W_e: float
) -> None:
    K = k_factor(rating, age, index, n, W, W_e)

    assert 800 / (150 + n) <= K <= 800 / (5 + n)


@given(ratings, ages, indices, st.integers(2, 30), st.floats(0, 30))
def test_more_points_never_give_less(
    rating: float, age: float | None, index: int, n: int, expected: float
) -> None:
    W_e = min(expected, n)

    changes = [k_factor(rating, age, index, n, W, W_e) * (W - W_e) for W in range(n + 1)]

    assert changes == sorted(changes)


@pytest.mark.parametrize("rating", [-10_000, 10_000])
def test_farthest_rating_there_can_be_stays_finite(rating: float) -> None:
    assert math.isfinite(k_factor(rating, 10, 10, 5, 1, 2.5))
    assert math.isfinite(brake(-1e300))
