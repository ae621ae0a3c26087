"""Which K, and the reason for it: FIDE's 8.3.3, the bands of other calculators, or what is given."""

import math

import pytest

from petard_worker.ratings.calculator import Assumption, CalculatorInputError, KChoice, KReason, k_for, read_k
from petard_worker.ratings.calculator.which_k import check_choice


@pytest.mark.parametrize(
    ("rating", "choice", "k", "reason"),
    [
        (1800, KChoice(), 20, KReason.FIDE_USUAL),
        (1800, KChoice(games=29), 40, KReason.FIDE_NEW),
        (1800, KChoice(games=30), 20, KReason.FIDE_USUAL),
        (2400, KChoice(), 10, KReason.FIDE_MASTER),
        (2399, KChoice(), 20, KReason.FIDE_USUAL),
        (2350, KChoice(peak=2400), 10, KReason.FIDE_MASTER),
        (2450, KChoice(games=5), 10, KReason.FIDE_MASTER),
        (2299, KChoice(games=100, age=18), 40, KReason.FIDE_YOUNG),
        (2300, KChoice(games=100, age=18), 20, KReason.FIDE_USUAL),
        (2299, KChoice(games=100, age=19), 20, KReason.FIDE_USUAL),
        (1800, KChoice("fide", games=100), 20, KReason.FIDE_USUAL),
        (2099, KChoice("calculator"), 40, KReason.CALCULATOR_USUAL),
        (2100, KChoice("calculator"), 20, KReason.CALCULATOR_STRONG),
        (2399.9, KChoice("calculator"), 20, KReason.CALCULATOR_STRONG),
        (2400, KChoice("calculator"), 10, KReason.CALCULATOR_MASTER),
        (1800, KChoice(given=32), 32, KReason.GIVEN),
    ],
)
def test_k_follows_its_rule_and_says_so(rating: float, choice: KChoice, k: float, reason: KReason) -> None:
    found = k_for(choice, rating)

    assert (found.k, found.reason) == (k, reason)
    assert found.unlimited is None


def test_games_since_the_choice_count() -> None:
    choice = KChoice(games=28)

    assert [k_for(choice, 1500, since=since).k for since in range(4)] == [40, 40, 20, 20]


# 700 / 20 = 35; 700 // 36 = 19; 700 // 18 = 38; 700 // 71 = 9.
@pytest.mark.parametrize(
    ("choice", "rating", "together", "k"),
    [
        (KChoice(), 1500, 35, 20),
        (KChoice(), 1500, 36, 19),
        (KChoice(games=0), 1500, 18, 38),
        (KChoice("calculator"), 1500, 18, 38),
        (KChoice(given=10), 1500, 70, 10),
        (KChoice(given=10), 1500, 71, 9),
    ],
)
def test_k_times_games_of_a_period_is_at_most_700(
    choice: KChoice, rating: float, together: int, k: float
) -> None:
    found = k_for(choice, rating, together)

    assert found.k == k
    one_game = k_for(choice, rating).k
    assert (found.unlimited, found.together) == ((one_game, together) if k < one_game else (None, 1))


@pytest.mark.parametrize(
    ("choice", "assumes"),
    [
        (KChoice(), True),
        (KChoice("fide"), True),
        (KChoice(games=3), False),
        (KChoice("calculator"), False),
        (KChoice(given=20), False),
    ],
)
def test_games_that_are_not_given_are_said_to_be_assumed(choice: KChoice, assumes: bool) -> None:
    assert choice.assumed == (Assumption.GAMES if assumes else None)


def test_choice_is_read_from_text() -> None:
    assert read_k("auto", 5, 17, 1900) == KChoice("auto", None, 5, 17, 1900)
    assert read_k(" FIDE ") == KChoice("fide")
    assert read_k("calculator") == KChoice("calculator")
    assert read_k("27.5").given == 27.5


@pytest.mark.parametrize("text", ["", "0", "-20", "nan", "inf", "700.5", "1001", "uscf", "twenty", "1e999"])
def test_text_that_is_no_k_is_refused(text: str) -> None:
    with pytest.raises(CalculatorInputError, match="K is"):
        read_k(text)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (KChoice("uscf"), "rule for K is 'uscf'"),
        (KChoice(games=-1), "number of games is -1"),
        (KChoice(age=-1), "age is -1"),
        (KChoice(age=math.nan), "age is nan"),
        (KChoice(peak=math.inf), "highest rating is inf"),
        (KChoice(given=0), "K is 0"),
    ],
)
def test_choice_out_of_range_is_refused_by_name(choice: KChoice, said: str) -> None:
    with pytest.raises(CalculatorInputError, match=said):
        check_choice(choice)
