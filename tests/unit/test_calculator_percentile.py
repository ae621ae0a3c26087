"""Percentiles: the rule of the board by counting, and the estimate by tables of the normal distribution."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.calculator import (
    GERMANY_2007,
    CalculatorInputError,
    estimated_percentile,
    percentile,
    percentile_of_counts,
)


@pytest.mark.parametrize(
    ("rating", "share", "lower", "equal"),
    [
        (1500, 12.5, 0, 1),
        (1600, 50, 1, 2),
        (1700, 87.5, 3, 1),
        (1650, 75, 3, 0),
        (0, 0, 0, 0),
        (3000, 100, 4, 0),
    ],
)
def test_share_rated_lower_counts_ties_half(rating: float, share: float, lower: int, equal: int) -> None:
    found = percentile(rating, [1600, 1500, 1700, 1600])

    assert found == (share, lower, equal, 4)


@given(st.lists(st.integers(0, 30), min_size=1))
def test_all_of_a_list_together_stand_at_one_half(ratings: list[int]) -> None:
    shares = [percentile(rating, ratings).percentile for rating in ratings]

    assert math.fsum(shares) / len(shares) == pytest.approx(50, abs=1e-9)


def test_counts_give_what_the_ratings_would() -> None:
    assert percentile_of_counts(1, 2, 4) == percentile(1600, [1600, 1500, 1700, 1600])


@pytest.mark.parametrize(
    ("lower", "equal", "listed", "said"),
    [
        (0, 0, 0, "number of listed players is 0"),
        (5, 0, 4, "number of lower ratings is 5"),
        (3, 2, 4, "number of equal ratings is 2"),
        (-1, 0, 4, "number of lower ratings is -1"),
    ],
)
def test_counts_that_cannot_be_are_refused(lower: int, equal: int, listed: int, said: str) -> None:
    with pytest.raises(CalculatorInputError, match=said):
        percentile_of_counts(lower, equal, listed)


def test_empty_list_is_refused() -> None:
    with pytest.raises(CalculatorInputError, match="listed players"):
        percentile(1500, [])


# Standard deviations from the mean; share below, from tables of the normal distribution.
@pytest.mark.parametrize(
    ("z", "share"),
    [(0, 50), (1, 84.134474606854), (-1, 15.865525393146), (1.959963984540054, 97.5), (3, 99.865010196837)],
)
def test_estimate_is_the_share_of_a_normal_distribution(z: float, share: float) -> None:
    found = estimated_percentile(GERMANY_2007.mean + z * GERMANY_2007.deviation)

    assert found.percentile == pytest.approx(share, abs=1e-9)


def test_estimate_names_its_source_and_its_limits() -> None:
    reference = estimated_percentile(1500).reference

    assert (reference.mean, reference.deviation) == (1461, 342)
    assert "Proceedings of the Royal Society B" in reference.source
    assert reference.url.startswith("https://doi.org/")
    assert reference.caveat


def test_reference_without_spread_is_refused() -> None:
    with pytest.raises(CalculatorInputError, match="deviation is 0"):
        estimated_percentile(1500, GERMANY_2007._replace(deviation=0))
