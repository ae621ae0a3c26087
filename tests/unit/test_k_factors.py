"""Every K with its reason: the number is the rule's, the sentence names it."""

import pytest

from petard_worker.ratings.k_factors import K_RULES, KFactor, Results
from petard_worker.ratings.system import PlayerState

ONE_WIN = Results(1, 0.5, 1.0)


def k_of(rule: str, player: PlayerState, results: Results = ONE_WIN) -> KFactor:
    return K_RULES[rule](player, results)


def test_every_rule_says_its_k_in_words_too() -> None:
    for rule in K_RULES.values():
        for rating in (-500.0, 1000.0, 2100.0, 2399.5, 3000.0):
            k, why = rule(PlayerState(rating, 0.0, games=50), ONE_WIN)

            assert why.startswith(f"K {k:g}: ")


@pytest.mark.parametrize(
    ("player", "k", "reason"),
    [
        (PlayerState(1500, 0, games=29), 40, "fewer than 30 games"),
        (PlayerState(1800, 0, games=100), 20, "30 games or more, never rated 2400"),
        (PlayerState(1800, 0, games=100, peak=2400), 10, "at any time before"),
        (PlayerState(2400, 0, games=3), 10, "rated 2400 or more"),
        (PlayerState(2200, 0, games=30, age=17), 40, "18th birthday"),
        (PlayerState(2200, 0, games=100, age=19), 20, "never rated 2400"),
    ],
)
def test_fide_reason_is_the_one_that_gave_the_k(player: PlayerState, k: float, reason: str) -> None:
    got = k_of("fide", player)

    assert got.k == k
    assert reason in got.why
    assert "8.3.3" in got.why


def test_fide_reason_names_the_limit_for_many_games() -> None:
    got = k_of("fide", PlayerState(1500, 0), Results(20, 10, 10))

    assert got.k == 35
    assert got.why.startswith("K 35 instead of 40: 20 games in one period")
    assert k_of("fide", PlayerState(1500, 0), Results(17, 8, 8)).k == 40


@pytest.mark.parametrize(
    ("rating", "k"), [(0, 40), (2099.99, 40), (2100, 20), (2399.99, 20), (2400, 10), (3000, 10)]
)
def test_calculators_know_three_bands_and_nothing_of_the_past(rating: float, k: float) -> None:
    got = k_of("calculator", PlayerState(rating, 0, games=100, peak=2900))

    assert got.k == k
    assert "not FIDE's rule" in got.why


def test_adult_of_1800_with_100_games_shows_that_the_calculators_do_not_follow_fide() -> None:
    adult = PlayerState(1800, 0, games=100, age=40)

    assert (k_of("calculator", adult).k, k_of("fide", adult).k) == (40, 20)


def test_con_of_2400_is_15() -> None:
    # The EGF's own example: 2400 wins against 2400, and gains 7.5.
    assert k_of("egf", PlayerState(2400, 0)).k == 15


def test_dwz_k_is_slower_the_older_the_player() -> None:
    young, middle, old = (
        k_of("dwz", PlayerState(1530, 0, games=22, age=age), Results(5, 3, 2)).k for age in (15, 24, 40)
    )

    # 800 / ((R / 1000)^4 + J + n), J being 5, 10 and 15.
    assert young == pytest.approx(800 / (1.53**4 + 5 + 5), abs=1e-9)
    assert middle == pytest.approx(800 / (1.53**4 + 10 + 5), abs=1e-9)
    assert old == pytest.approx(800 / (1.53**4 + 15 + 5), abs=1e-9)


def test_dwz_takes_unknown_age_for_a_grown_up() -> None:
    unknown, grown_up = PlayerState(1530, 0, games=22), PlayerState(1530, 0, games=22, age=40)

    assert k_of("dwz", unknown).k == k_of("dwz", grown_up).k
    assert "unknown age" in k_of("dwz", unknown).why
    assert "age 40" in k_of("dwz", grown_up).why
