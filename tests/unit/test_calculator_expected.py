"""Expected scores: the values that Elo's formula and FIDE's table are known for."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.calculator import CalculatorInputError, Odds, expectation
from petard_worker.ratings.calculator.expected import BOUNDS, odds

ratings = st.floats(-10_000, 10_000)

# Difference; logistic, printed in any description of Elo; PD of FIDE table 8.1.2.
KNOWN = [
    (0, 0.5, 0.50),
    (200, 0.7597469266479578, 0.76),
    (400, 0.9090909090909091, 0.92),
    (600, 0.9693465699682845, 0.98),
    (735, 0.9856704765, 0.99),
    (736, 0.9857515550, 1.0),
]


@pytest.mark.parametrize(("difference", "logistic", "table"), KNOWN)
def test_both_readings_have_their_known_values(difference: float, logistic: float, table: float) -> None:
    found = expectation(1500 + difference, 1500)

    assert found.player.logistic == pytest.approx(logistic, abs=1e-7)
    assert found.opponent.logistic == pytest.approx(1 - logistic, abs=1e-7)
    assert (found.player.table, found.opponent.table) == (table, pytest.approx(1 - table, abs=1e-15))


def test_example_of_1200_against_1800_has_all_its_digits() -> None:
    found = expectation(1200, 1800).player

    assert found.logistic == pytest.approx(0.030653430031715508, abs=1e-17)
    assert found.table == 0.02
    assert found.counted == 0.08
    assert found.cap_matters


def test_cap_counts_below_2650_and_not_from_there_on() -> None:
    found = expectation(2650, 2100)

    assert (found.player.table, found.player.counted, found.player.cap_matters) == (0.97, 0.97, False)
    assert (found.opponent.table, found.opponent.counted, found.opponent.cap_matters) == (0.03, 0.08, True)


# 1 / (1 + 10^(-D / 400)) passes .55 between 34 and 35, .65 between 107 and 108, .80 between 240 and 241,
# .95 between 511 and 512: D = 400 log10(E / (1 - E)) is 34.86, 107.54, 240.82, 511.50.
@pytest.mark.parametrize(
    ("difference", "better", "worse"),
    [
        (0, Odds.EVEN, Odds.EVEN),
        (34, Odds.EVEN, Odds.EVEN),
        (35, Odds.SLIGHT_FAVOURITE, Odds.SLIGHT_UNDERDOG),
        (107, Odds.SLIGHT_FAVOURITE, Odds.SLIGHT_UNDERDOG),
        (108, Odds.FAVOURITE, Odds.UNDERDOG),
        (240, Odds.FAVOURITE, Odds.UNDERDOG),
        (241, Odds.STRONG_FAVOURITE, Odds.STRONG_UNDERDOG),
        (511, Odds.STRONG_FAVOURITE, Odds.STRONG_UNDERDOG),
        (512, Odds.OVERWHELMING_FAVOURITE, Odds.OVERWHELMING_UNDERDOG),
        (20_000, Odds.OVERWHELMING_FAVOURITE, Odds.OVERWHELMING_UNDERDOG),
    ],
)
def test_words_follow_the_stated_bounds(difference: float, better: Odds, worse: Odds) -> None:
    assert (odds(difference), odds(-difference)) == (better, worse)


def test_bounds_descend_to_one_half() -> None:
    assert all(higher.lowest > lower.lowest for higher, lower in pairwise(BOUNDS))
    assert BOUNDS[-1].lowest == 0.5


@given(ratings, ratings)
def test_the_two_share_one_point_by_every_reading(a: float, b: float) -> None:
    found = expectation(a, b)

    assert found.player.logistic + found.opponent.logistic == pytest.approx(1, abs=1e-15)
    assert found.player.table + found.opponent.table == pytest.approx(1, abs=1e-15)
    assert abs(found.player.logistic - found.player.table) < 0.024  # 0.018 and half a hundredth's rounding


@given(ratings, ratings)
def test_expected_of_the_opponent_is_expected_with_the_roles_changed(a: float, b: float) -> None:
    found, other = expectation(a, b), expectation(b, a)

    assert (found.player, found.opponent) == (other.opponent, other.player)


def test_rating_out_of_range_is_refused_by_role() -> None:
    with pytest.raises(CalculatorInputError, match="the opponent's rating is"):
        expectation(1500, 10_001)
