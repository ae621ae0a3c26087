"""The European Go Federation's old rules against its table and the numbers of other implementations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.egf import CON, EPSILON, a, expected_score, k_factor

ratings = st.floats(-900, 3200)


@pytest.mark.parametrize(
    ("rating", "con", "odds"),
    [(100, 116, 200), (200, 110, 195), (300, 105, 190), (2400, 15, 85), (2700, 10, 70)],
)
def test_table_is_the_published_one(rating: float, con: float, odds: float) -> None:
    assert k_factor(rating) == con
    assert a(rating) == odds


def test_con_is_linear_between_the_hundreds() -> None:
    assert k_factor(150) == 113
    assert k_factor(320) == 104
    assert k_factor(2650) == 10.5


@pytest.mark.parametrize(
    ("rating", "con", "odds"), [(0, 116, 200), (-900, 116, 200), (2800, 10, 70), (9000, 10, 70)]
)
def test_ends_of_the_table_are_kept_beyond_it(rating: float, con: float, odds: float) -> None:
    assert (k_factor(rating), a(rating)) == (con, odds)


# The weaker one's rating, and percentages against who is 25, 50, ... points stronger (Sensei's Library).
PERCENTAGES = {
    100: {25: 46.9, 50: 43.8, 75: 40.7, 100: 37.8, 200: 26.9, 300: 18.2, 400: 11.9, 500: 7.6},
    200: {25: 46.8, 50: 43.6, 75: 40.5, 100: 37.5, 200: 26.4, 300: 17.7, 400: 11.4, 500: 7.1},
    300: {25: 46.7, 50: 43.5, 75: 40.3, 100: 37.1, 200: 25.9, 300: 17.1, 400: 10.9, 500: 6.7},
}


@pytest.mark.parametrize("rating", PERCENTAGES)
def test_winning_percentages_are_the_published_ones(rating: int) -> None:
    for D, percentage in PERCENTAGES[rating].items():
        assert 100 * expected_score(rating, rating + D, 0) == pytest.approx(percentage, abs=0.05 + 1e-9)


def after(rating: float, opponent: float, score: float, handicap: float = 0) -> float:
    """The rating after one game; a handicap is added to the rating for the expected score only."""
    return rating + k_factor(rating) * (score - expected_score(rating + handicap, opponent, 0))


@pytest.mark.parametrize(
    ("got", "rounded", "digits"),
    [
        pytest.param(after(2400, 2400, 1), 2407.5, 1, id="equal, won"),
        pytest.param(after(2400, 2400, 0), 2392.5, 1, id="equal, lost"),
        pytest.param(after(320, 400, 1), 383, 0, id="weaker, won"),
        pytest.param(after(400, 320, 0), 340, 0, id="stronger, lost"),
        pytest.param(after(1850, 2400, 1, handicap=450), 1875, 0, id="with a handicap, won"),
        pytest.param(after(2400, 1850 + 450, 0), 2389, 0, id="against a handicap, lost"),
    ],
)
def test_examples_of_the_federation_come_out(got: float, rounded: float, digits: int) -> None:
    assert round(got, digits) == rounded


@given(ratings, ratings)
def test_both_expect_one_less_epsilon_together(rating: float, opponent: float) -> None:
    together = expected_score(rating, opponent) + expected_score(opponent, rating)

    assert together == pytest.approx(1 - 0.016, abs=1e-12)
    assert EPSILON == 0.016


@given(ratings, ratings, st.floats(0.001, 1000))
def test_stronger_opponent_is_never_expected_to_be_easier(
    rating: float, opponent: float, more: float
) -> None:
    assert expected_score(rating, opponent + more, 0) <= expected_score(rating, opponent, 0) + 1e-15


@given(ratings, st.floats(0.001, 1000))
def test_con_never_rises_with_the_rating(rating: float, more: float) -> None:
    assert CON[-1] <= k_factor(rating + more) <= k_factor(rating) <= CON[0]


@pytest.mark.parametrize("gap", [20_000, -20_000])
def test_widest_gap_there_can_be_stays_finite(gap: float) -> None:
    assert 0 <= expected_score(gap / 2, -gap / 2, 0) <= 1
