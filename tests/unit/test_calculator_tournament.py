"""What the games of a tournament do, game by game and by FIDE's periods: sums done by hand."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings import fide
from petard_worker.ratings.calculator import (
    CalculatorInputError,
    KChoice,
    PeriodGame,
    PlayedGame,
    Record,
    fide_tournament,
    plain_tournament,
)

K40, K20 = KChoice(given=40), KChoice(given=20)
games = st.lists(
    st.builds(
        lambda opponent, score: PeriodGame(PlayedGame(opponent, score)),
        st.integers(0, 3000),
        st.sampled_from([0.0, 0.5, 1.0]),
    ),
    min_size=1,
    max_size=60,
)


def played(*results: tuple[float, float], period: str = "") -> list[PeriodGame]:
    return [PeriodGame(PlayedGame(*result), period) for result in results]


def test_plain_rating_moves_after_every_game() -> None:
    # 1500 beats 1500 at K 40: 1520. Then 1520 beats 1520: 1540. Then 1540 draws with 1540.
    found = plain_tournament(1500, played((1500, 1), (1520, 1), (1540, 0.5)), K40)

    assert [line.rated_as for line in found.games] == [1500, 1520, 1540]
    assert [line.change for line in found.games] == [20, 20, 0]
    assert found.ratings == (1500, 1520, 1540, 1540)
    assert (found.final, found.net) == (1540, 40)
    assert found.record == Record(wins=2, draws=1, losses=0, games=3, points=2.5)
    assert found.periods == ()


@given(games, st.integers(0, 3000))
def test_plain_is_the_formula_game_by_game(listed: list[PeriodGame], start: int) -> None:
    found = plain_tournament(start, listed, K20)

    R = float(start)
    for line, game in zip(found.games, listed, strict=True):
        R += 20 * (game.result.score - 1 / (1 + 10 ** (-(R - game.result.opponent) / 400)))
        assert line.after == pytest.approx(R, abs=1e-9)
    assert found.final == found.games[-1].after


def test_plain_k_follows_rating_and_games() -> None:
    by_rating = plain_tournament(2090, played(*[(2090, 1)] * 3), KChoice("calculator"))
    by_games = plain_tournament(1500, played(*[(1500, 0.5)] * 3), KChoice(games=28))

    assert [line.k.k for line in by_rating.games] == [40, 20, 20]  # 2090 + 20 = 2110
    assert [line.k.k for line in by_games.games] == [40, 40, 20]


def test_k_10_stays_after_2400_was_reached() -> None:
    found = plain_tournament(2395, played((2395, 1), (2405, 0), (2400, 0), (2395, 0)), KChoice(games=100))

    assert [line.k.k for line in found.games] == [20, 10, 10, 10]
    assert found.games[2].after < 2400


# FIDE, one period: 1600 against 1800, 1650, 1500 is PD .24, .43, .64; win, draw, win are 2.5 - 1.31 = 1.19.
def test_fide_rating_and_k_hold_for_the_period() -> None:
    found = fide_tournament(1600, played((1800, 1), (1650, 0.5), (1500, 1)), K20)

    assert [line.expected for line in found.games] == [0.24, 0.43, 0.64]
    assert [line.rated_as for line in found.games] == [1600, 1600, 1600]
    assert [line.after for line in found.games] == pytest.approx([1615.2, 1616.6, 1623.8], abs=1e-9)
    (period,) = found.periods
    assert period.change == pytest.approx(23.8, abs=1e-9)
    assert (period.rounded, period.end, found.final, found.net) == (24, 1624, 1624, 24)


@pytest.mark.parametrize(("score", "rounded"), [(1, 13), (0, -13)])
def test_half_a_point_is_rounded_away_from_zero(score: float, rounded: int) -> None:
    # Equals: 25 * (score - .5) = +-12.5.
    found = fide_tournament(1500, played((1500, score)), KChoice(given=25))

    assert found.periods[0].rounded == rounded
    assert found.final == 1500 + rounded


def test_every_period_is_rounded_on_its_own() -> None:
    # K 20, D = 10 is PD .51: a win is +9.8. Twice in one period 19.6 -> 20, in two 10 each, the second from
    # 1520, against whom 1510 is D = 10 again.
    together = fide_tournament(1510, played((1500, 1), (1500, 1)), K20)
    apart = fide_tournament(1510, [*played((1500, 1), period="a"), *played((1510, 1), period="b")], K20)

    assert [period.rounded for period in together.periods] == [20]
    assert [(period.period, period.start, period.rounded) for period in apart.periods] == [
        ("a", 1510, 10),
        ("b", 1520, 10),
    ]
    assert apart.games[1].rated_as == 1520


def test_k_times_games_of_a_period_is_at_most_700() -> None:
    # 20 games at K 40 are 800: K is 700 // 20 = 35. All drawn but one won: 35 * .5.
    found = fide_tournament(1500, played(*[(1500, 0.5)] * 19, (1500, 1)), KChoice(games=0))

    assert found.periods[0].k == (35, "fide_new", 40, 20)
    assert found.periods[0].change == 17.5
    assert found.final == 1518


def test_games_of_earlier_periods_count_for_k() -> None:
    listed = [*played(*[(1500, 0.5)] * 2, period="a"), *played((1500, 0.5), period="b")]

    found = fide_tournament(1500, listed, KChoice(games=28))

    assert [period.k.k for period in found.periods] == [40, 20]


def test_k_10_stays_in_later_periods() -> None:
    listed = [*played((2380, 0), period="a"), *played((2380, 0), period="b")]

    found = fide_tournament(2400, listed, KChoice(games=100))

    assert [period.k.k for period in found.periods] == [10, 10]
    assert found.periods[1].start < 2400


def test_difference_counts_400_at_most_below_2650() -> None:
    below, above = (fide_tournament(rating, played((2000, 1)), K20).games[0] for rating in (2649, 2650))

    assert (below.expected, above.expected) == (0.92, 0.99)


@given(games, st.integers(0, 3000), st.sampled_from([10, 20, 40]))
def test_fide_agrees_with_the_change_of_a_period(listed: list[PeriodGame], start: int, k: int) -> None:
    found = fide_tournament(start, listed, KChoice(given=k))

    assert found.net == fide.rating_change(start, [game.result for game in listed], k)


def test_fide_gives_the_published_changes_of_periods(shared_data: Path) -> None:
    standard = [
        case
        for case in json.loads((shared_data / "vectors.json").read_text())
        if (case["system"], case["kind"]) == ("fide", "rating_change")
        and case["params"]["time_control"] == "standard"
    ]

    found = [
        fide_tournament(
            case["inputs"]["player"]["rating"],
            played(*((game["opponent"]["rating"], game["score"]) for game in case["inputs"]["games"])),
            KChoice(given=case["params"]["k"]),
        ).net
        for case in standard
    ]

    assert standard
    assert found == [case["expected"]["change"] for case in standard]


@pytest.mark.parametrize(
    ("start", "score", "end", "below"),
    [(1402, 0, 1382, True), (1410, 0.5, 1410, False), (1420, 0, 1400, False)],
)
def test_rating_that_fide_calls_unrated_is_marked(
    start: float, score: float, end: float, below: bool
) -> None:
    # Equals at K 40: a loss is -20. FIDE's 7.2.1: unrated below 1400.
    found = fide_tournament(start, played((start, score)), K40)

    assert [(period.end, period.below_floor) for period in found.periods] == [(end, below)]


def test_period_that_is_taken_up_again_is_refused() -> None:
    listed = [PeriodGame(PlayedGame(1500, 1), period) for period in ("a", "b", "a")]

    with pytest.raises(CalculatorInputError, match="period 'a' is taken up again"):
        fide_tournament(1500, listed, K20)


@pytest.mark.parametrize("rate", [plain_tournament, fide_tournament])
@pytest.mark.parametrize(
    ("start", "listed", "choice", "said"),
    [
        (1500, [], K20, "no games"),
        (math.nan, played((1500, 1)), K20, "starting rating is nan"),
        (1500, played((1e9, 1)), K20, "opponent's rating is 1000000000.0"),
        (1500, played((1500, 0.7)), K20, "score is 0.7"),
        (1500, played((1500, 1)), KChoice(given=0), "K is 0"),
    ],
)
def test_what_cannot_be_calculated_with_is_named(rate, start, listed, choice, said) -> None:
    with pytest.raises(CalculatorInputError, match=said):
        rate(start, listed, choice)


def test_a_period_cannot_be_taken_up_again() -> None:
    games = [*played((1500, 1), period="a"), *played((1500, 1), period="b"), *played((1500, 1), period="a")]

    with pytest.raises(CalculatorInputError, match="period 'a' is taken up again"):
        fide_tournament(1500, games, K20)
