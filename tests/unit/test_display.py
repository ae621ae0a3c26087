"""Ratings as players see them, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.display import displayed, undisplayed
from petard_worker.postgres.pools import Pool

LIMITS = {"rating_min": 0.0, "rating_max": 3000.0}


def pool(low: float, high: float, parameters: dict[str, float] = LIMITS) -> Pool:
    """A pool with a display range."""
    shown = {"display_low": low, "display_high": high}
    return Pool("p", "glicko", parameters, 1, 0, 1, None, shown, None, None, 0)


@pytest.mark.parametrize(("shown", "rating"), [(0, 0), (5000, 1500), (10_000, 3000), (6000, 1800)])
def test_rating_that_is_seen_is_turned_back_into_points(shown, rating):
    # The game site's own rule: 1500 + 1500 (shown - 5000) / 5000.
    assert undisplayed(pool(0, 10_000), shown) == pytest.approx(rating)


@given(st.floats(0, 3000), st.floats(-1e6, 0), st.floats(1, 1e6))
def test_what_is_shown_and_turned_back_is_the_same_rating(rating, low, span):
    for ranged in (pool(low, low + span), pool(low + span, low)):
        assert undisplayed(ranged, displayed(ranged, rating)) == pytest.approx(rating, abs=1e-3)


@given(st.floats(-10_000, 10_000))
def test_without_a_display_range_a_rating_is_what_it_is(rating):
    assert undisplayed(pool(0, 0), rating) == displayed(pool(0, 0), rating) == rating


def test_pool_of_one_rating_only_shows_it_as_it_is():
    single = pool(0, 100, {"rating_min": 5.0, "rating_max": 5.0})

    assert displayed(single, 5.0) == undisplayed(single, 5.0) == 5.0
