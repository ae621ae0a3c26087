"""Every K with its reason: the number is the rule's, the key says which part of it."""

import pytest

from petard_worker.ratings.k_factors import K_RULES, KFactor, KReason, Results, limited
from petard_worker.ratings.system import PlayerState

ONE_WIN = Results(1, 0.5, 1.0)


def k_of(rule: str, player: PlayerState, results: Results = ONE_WIN) -> KFactor:
    return K_RULES[rule](player, results)


@pytest.mark.parametrize(
    ("player", "k", "reason"),
    [
        (PlayerState(1500, 0, games=29), 40, KReason.FIDE_NEW),
        (PlayerState(1800, 0, games=100), 20, KReason.FIDE_USUAL),
        (PlayerState(1800, 0, games=100, peak=2400), 10, KReason.FIDE_MASTER),
        (PlayerState(2400, 0, games=3), 10, KReason.FIDE_MASTER),
        (PlayerState(2200, 0, games=30, age=17), 40, KReason.FIDE_YOUNG),
        (PlayerState(2200, 0, games=100, age=19), 20, KReason.FIDE_USUAL),
    ],
)
def test_fide_reason_is_the_one_that_gave_the_k(player: PlayerState, k: float, reason: KReason) -> None:
    assert k_of("fide", player) == KFactor(k, reason)


def test_fide_k_is_limited_for_many_games_and_says_what_it_would_be() -> None:
    got = k_of("fide", PlayerState(1500, 0), Results(20, 10, 10))

    assert got == KFactor(35, KReason.FIDE_NEW, unlimited=40, together=20)  # 700 / 20
    assert k_of("fide", PlayerState(1500, 0), Results(17, 8, 8)) == KFactor(40, KReason.FIDE_NEW)


def test_limit_leaves_a_k_alone_that_it_does_not_reach() -> None:
    ten = KFactor(10, KReason.GIVEN)

    assert limited(ten, 70) == ten
    assert limited(ten, 71) == KFactor(9, KReason.GIVEN, unlimited=10, together=71)


@pytest.mark.parametrize(
    ("rating", "k"), [(0, 40), (2099.99, 40), (2100, 20), (2399.99, 20), (2400, 10), (3000, 10)]
)
def test_calculators_know_three_bands_and_nothing_of_the_past(rating: float, k: float) -> None:
    got = k_of("calculator", PlayerState(rating, 0, games=100, peak=2900))

    assert got.k == k
    assert got.reason.startswith("calculator_")


def test_adult_of_1800_with_100_games_shows_that_the_calculators_do_not_follow_fide() -> None:
    adult = PlayerState(1800, 0, games=100, age=40)

    assert (k_of("calculator", adult).k, k_of("fide", adult).k) == (40, 20)


def test_con_of_2400_is_15() -> None:
    # The EGF's own example: 2400 wins against 2400, and gains 7.5.
    assert k_of("egf_until_2021", PlayerState(2400, 0)).k == 15


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
