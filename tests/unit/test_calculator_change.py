"""What one game does, by hand: K times what was scored less what was expected."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.calculator import CalculatorInputError, KChoice, change

K40, K20, K10 = KChoice(given=40), KChoice(given=20), KChoice(given=10)


def test_1200_beats_1800_at_k_40() -> None:
    found = change(1200, 1800, 1, K40).player

    assert found.plain.expected == pytest.approx(0.030653430031715508, abs=1e-17)
    assert found.plain.change == pytest.approx(38.77386279873138, abs=1e-12)
    assert found.plain.new == pytest.approx(1238.77386279873138, abs=1e-12)
    assert found.plain.rounded == 1239
    assert (found.fide.expected, found.fide.change) == (0.08, pytest.approx(36.8, abs=1e-12))
    assert found.fide.rounded == 1237


# rating, opponent, score, K; FIDE's change: K (S - PD), D at most 400 below 2650.
FIDE_CHANGES = [
    (1500, 1900, 0, K40, -3.2, 1497),
    (1500, 2900, 1, K40, 36.8, 1537),
    (2000, 1000, 0, K40, -36.8, 1963),
    (2649, 2000, 1, K10, 0.8, 2650),
    (2650, 2000, 1, K10, 0.1, 2650),  # D = 650: PD .99
    (2800, 1800, 1, K10, 0.0, 2800),  # D = 1000: PD 1.00
    (2650, 2000, 0, K10, -9.9, 2640),
    (1500, 1500, 0.5, K40, 0.0, 1500),
    (1600, 1610, 1, KChoice(given=25), 12.75, 1613),  # D = -10: PD .49
    (1500, 1500, 1, KChoice(given=25), 12.5, 1513),  # half a point goes away from zero
    (1500, 1500, 0, KChoice(given=25), -12.5, 1487),
]


@pytest.mark.parametrize(("rating", "opponent", "score", "choice", "moved", "rounded"), FIDE_CHANGES)
def test_fide_caps_the_difference_reads_the_table_and_rounds(
    rating: float, opponent: float, score: float, choice: KChoice, moved: float, rounded: float
) -> None:
    found = change(rating, opponent, score, choice).player.fide

    assert found.change == pytest.approx(moved, abs=1e-12)
    assert found.new == pytest.approx(rating + moved, abs=1e-9)
    assert found.rounded == rounded


def test_equals_move_by_half_of_k_and_a_draw_moves_nobody() -> None:
    assert change(1500, 1500, 1, K40).player.plain.change == 20
    assert change(1500, 1500, 0, K40).player.plain.change == -20
    assert change(1500, 1500, 0.5, K40).player.plain.change == 0


def test_opponent_is_moved_by_the_own_k_only() -> None:
    found = change(1200, 1800, 1, K40, K20)

    assert found.opponent is not None
    assert found.opponent.fide.change == pytest.approx(-18.4, abs=1e-12)
    assert found.opponent.plain.change == pytest.approx(-38.77386279873138 / 2, abs=1e-12)
    assert (found.opponent.rating, found.opponent.score) == (1800, 0)


def test_opponent_whose_k_is_not_known_is_not_said_to_lose_as_much() -> None:
    assert change(1200, 1800, 1, K40).opponent is None


def test_performance_of_the_game_has_three_definitions() -> None:
    won, drawn = change(1200, 1800, 1, K40).performance, change(1200, 1800, 0.5, K40).performance

    assert (won.linear, won.fide, won.exact) == (2200, 2600, None)
    assert (drawn.linear, drawn.fide, drawn.exact) == (1800, 1800, 1800)


def test_k_by_rule_says_why_and_what_it_assumed() -> None:
    found = change(1800, 1800, 1, KChoice(), KChoice("calculator"))

    assert found.opponent is not None
    assert (found.player.k.k, found.opponent.k.k) == (20, 40)
    assert (found.player.assumed is None, found.opponent.assumed) == (False, None)


def test_plain_formula_is_moved_by_the_k_that_is_given_whatever_fide_limits() -> None:
    found = change(1200, 1800, 1, KChoice(given=700)).player

    # 700 (1 - .030653430031715508), and 700 (1 - .08).
    assert found.plain.change == pytest.approx(678.5425989777991, abs=1e-12)
    assert found.fide.change == pytest.approx(644, abs=1e-9)
    assert found.k.unlimited is None


def test_k_that_fide_would_limit_for_one_game_is_refused() -> None:
    with pytest.raises(CalculatorInputError, match="K is 800, but must be a number above 0 and at most 700"):
        change(1200, 1800, 1, KChoice(given=800))


@given(st.floats(-10_000, 10_000), st.floats(-10_000, 10_000), st.sampled_from([0, 0.5, 1]))
def test_nobody_moves_by_more_than_k_and_everything_is_finite(a: float, b: float, score: float) -> None:
    found = change(a, b, score, K40, K40)

    assert found.opponent is not None
    for moves in (found.player, found.opponent):
        for move in (moves.plain, moves.fide):
            assert abs(move.change) <= 40
            assert all(math.isfinite(number) for number in move)
    assert found.player.plain.change == pytest.approx(-found.opponent.plain.change, abs=1e-12)


@pytest.mark.parametrize(
    ("rating", "opponent", "score", "choice", "said"),
    [
        (math.nan, 1500, 1, K40, "rating is nan"),
        (1500, math.inf, 1, K40, "the opponent's rating is inf"),
        (1500, 1500, 2, K40, "score is 2"),
        (1500, 1500, 1, KChoice(given=-1), "K is -1"),
    ],
)
def test_what_cannot_be_calculated_with_is_named(
    rating: float, opponent: float, score: float, choice: KChoice, said: str
) -> None:
    with pytest.raises(CalculatorInputError, match=said):
        change(rating, opponent, score, choice)
