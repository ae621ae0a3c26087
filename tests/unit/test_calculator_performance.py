"""Performance ratings by their definitions: by hand, by the table, and by putting the exact one back in."""

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from petard_worker.ratings import fide
from petard_worker.ratings.calculator import (
    CalculatorInputError,
    PerformanceNote,
    PlayedGame,
    Record,
    performance,
)

results = st.lists(
    st.builds(PlayedGame, st.floats(-10_000, 10_000), st.sampled_from([0.0, 0.5, 1.0])),
    min_size=1,
    max_size=30,
)
near = st.lists(
    st.builds(PlayedGame, st.floats(1000, 2400), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=30
)


def against(opponent: float, *scores: float) -> list[PlayedGame]:
    return [PlayedGame(opponent, score) for score in scores]


def test_linear_adds_400_times_wins_less_losses_over_games() -> None:
    found = performance(
        [PlayedGame(1800, 1), PlayedGame(1650, 0.5), PlayedGame(1700, 0), PlayedGame(1600, 1)]
    )

    assert found.average_opponent == 1687.5
    assert found.linear == 1687.5 + 400 * (2 - 1) / 4
    assert found.record == Record(wins=2, draws=1, losses=1, games=4, points=2.5)


# Results; p and dp of table 8.1.1. A win and a draw are p = .75: 1500 + 193 is in the tests of scalachess.
@pytest.mark.parametrize(
    ("scores", "p", "dp"),
    [
        ((1,), 1.00, 800),
        ((0,), 0.00, -800),
        ((0.5,), 0.50, 0),
        ((1, 0.5), 0.75, 193),
        ((0, 0.5), 0.25, -193),
        ((1, 1, 0), 0.67, 125),
        ((1, 0, 0), 0.33, -125),
        ((1, 1, 1, 1, 1, 1, 1, 0.5), 0.94, 444),  # .9375
        ((0, 0, 0, 0, 0, 0, 0, 0.5), 0.06, -444),
    ],
)
def test_fide_reads_dp_for_the_score_in_hundredths(scores: tuple[float, ...], p: float, dp: int) -> None:
    found = performance(against(1500, *scores))

    assert (found.p, found.dp, found.fide) == (p, dp, 1500 + dp)
    assert found.fide_note == (PerformanceNote.NOTIONAL if p in {0, 1} else None)


def test_only_all_won_or_all_lost_is_notional_at_fide() -> None:
    nearly = performance(against(1500, *[1] * 199, 0.5))  # p = .9975, which the table knows as 1.00

    assert (nearly.p, nearly.dp, nearly.fide_note) == (1.0, 800, None)
    assert nearly.exact is not None


# Against equals: R + 400 log10(points / points lost).
@pytest.mark.parametrize(
    ("scores", "above"),
    [
        ((1, 0.5), 400 * math.log10(3)),
        ((1, 1, 0), 400 * math.log10(2)),
        ((0, 0.5), -400 * math.log10(3)),
        ((1, 0), 0.0),
        ((1,) * 10 + (0,), 400.0),
    ],
)
def test_exact_against_equals_is_the_formula_turned_round(scores: tuple[float, ...], above: float) -> None:
    found = performance(against(1500, *scores))

    assert found.exact == pytest.approx(1500 + above, abs=1e-9)


@given(near)
def test_exact_expects_the_points_that_were_scored(games: list[PlayedGame]) -> None:
    found = performance(games)
    assume(found.exact is not None)

    assert found.exact is not None
    expected = math.fsum(1 / (1 + 10 ** ((game.opponent - found.exact) / 400)) for game in games)
    assert expected == pytest.approx(found.record.points, abs=1e-9)


@given(results)
def test_exact_turns_round_with_the_results(games: list[PlayedGame]) -> None:
    turned = [PlayedGame(-game.opponent, 1 - game.score) for game in games]

    found, opposite = performance(games).exact, performance(turned).exact

    assert (found is None) == (opposite is None)
    if found is not None and opposite is not None:
        assert math.isfinite(found)
        assert found == pytest.approx(-opposite, abs=3e-9)


def test_exact_keeps_its_place_far_from_all_opponents() -> None:
    # One point of two from 0 and 20000 away: by symmetry half-way, though E there is 1e-25 from 0 and from 1.
    found = performance([PlayedGame(-10_000, 1), PlayedGame(10_000, 0)])

    assert found.exact == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("score", [1.0, 0.0])
def test_no_exact_rating_for_all_or_nothing_and_it_is_said(score: float) -> None:
    found = performance(against(1500, score, score, score))

    assert found.exact is None
    assert found.exact_note == PerformanceNote.NO_EXACT


def test_fide_gives_the_published_performances(shared_data: Path) -> None:
    cases = [
        case
        for case in json.loads((shared_data / "vectors.json").read_text())
        if (case["system"], case["kind"]) == ("fide", "performance_rating")
    ]

    found = [
        performance(PlayedGame(game["opponent"]["rating"], game["score"]) for game in case["inputs"]["games"])
        for case in cases
    ]

    assert cases
    assert [one.fide for one in found] == [case["expected"]["performance"] for case in cases]


@given(results)
def test_fide_agrees_with_the_official_whole_number(games: list[PlayedGame]) -> None:
    found = performance(games)

    assert fide.rounded(found.fide) == fide.performance(games)


@pytest.mark.parametrize("scored", range(201))
def test_table_is_read_with_the_nearest_hundredth_by_both_sides(scored: int) -> None:
    p = scored / 200
    exact = Fraction(scored, 200)

    found = fide.hundredths(p)

    assert abs(Fraction(found, 100) - exact) <= Fraction(1, 200)
    assert fide.hundredths(1 - p) == 100 - found


@pytest.mark.parametrize(
    ("games", "said"),
    [
        ([], "no games"),
        ([PlayedGame(math.nan, 1)], "opponent's rating is nan"),
        ([PlayedGame(1500, 3)], "score is 3"),
    ],
)
def test_what_cannot_be_calculated_with_is_refused(games: list[PlayedGame], said: str) -> None:
    with pytest.raises(CalculatorInputError, match=said):
        performance(games)
