"""US Chess against its own examples and the numbers of other implementations."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.uscf import bonus_points, effective_games, floor, rate

CLOSE = 1e-9

ratings = st.floats(100, 3000)
played = st.integers(0, 5000)


def event(rating: float, games: int, results: list[tuple[float, float]], bonus: float = 14) -> float:
    """The rating after an event: the opponents' ratings and the scores against them."""
    opponents, scores = [r for r, _ in results], [s for _, s in results]
    expected = math.fsum(1 / (1 + 10 ** ((r - rating) / 400)) for r in opponents)
    mean = math.fsum(opponents) / len(results)
    surplus = math.fsum(2 * s - 1 for s in scores)
    return rate(rating, games, mean, expected, math.fsum(scores), len(results), surplus, bonus)


# --- The numbers of others ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rating", "games", "effective"),
    [(1700, 30, 20.01178674737454), (2356, 51, 50), (2356, 30, 30), (1700, 9, 9), (2900, 4000, 50)],
)
def test_rating_is_worth_no_more_games_than_were_played(rating: float, games: int, effective: float) -> None:
    assert effective_games(rating, games) == pytest.approx(effective, abs=CLOSE)


def test_first_games_are_averaged_as_in_the_published_example() -> None:
    after = event(1500, 6, [(1400, 1), (1550, 0), (1650, 0.5)])

    assert after == pytest.approx(1511.111111111111, abs=CLOSE)


@pytest.mark.parametrize(
    ("rating", "opponent", "score", "after"),
    [(1300, 1200, 1, 1337.5), (1200, 1300, 0, 1162.5), (1300, 1200, 0, 1237.5), (1200, 1300, 1, 1262.5)],
)
def test_one_of_the_first_games_is_averaged(
    rating: float, opponent: float, score: float, after: float
) -> None:
    assert event(rating, 7, [(opponent, score)]) == pytest.approx(after, abs=CLOSE)


def test_first_event_of_all_starts_from_the_opponents() -> None:
    assert event(1300, 0, [(1500, 1), (1700, 0)]) == 1600
    assert event(1300, 0, [(1500, 1), (1700, 1)]) == 2000


@pytest.mark.parametrize(
    ("rating", "opponent", "score", "after"),
    [(1300, 1200, 1, 1319.0607266129887), (1200, 1300, 0, 1179.6145761968105)],
)
def test_later_games_move_by_k(rating: float, opponent: float, score: float, after: float) -> None:
    assert event(rating, 32, [(opponent, score)]) == pytest.approx(after, abs=CLOSE)


@pytest.mark.parametrize(
    ("rating", "games", "results", "after"),
    [
        (1500, 31, [(1400, 1), (1550, 0), (1700, 0)], 1487),
        (1250, 30, [(1400, 1)], 1289),
        (1400, 9, [(1250, 0)], 1344),
    ],
)
def test_others_round_to_the_same(
    rating: float, games: int, results: list[tuple[float, float]], after: float
) -> None:
    assert round(event(rating, games, results)) == after


def test_special_formula_ends_with_the_eighth_game() -> None:
    # 800 / (N + n), and 9 games are fewer than N* is for 1300.
    assert event(1300, 9, [(1700, 1)]) == pytest.approx(1300 + 800 / 10 * (1 - 1 / 11), abs=CLOSE)
    assert event(1300, 8, [(1700, 1)]) == pytest.approx((8 * 1300 + 1700 + 400) / 9, abs=CLOSE)


def test_approximation_lets_a_newcomer_rise_by_losing_to_a_master() -> None:
    after = event(1000, 4, [(2400, 0)])

    assert after == 1200


# --- The bonus ----------------------------------------------------------------------------------------------

UPSET = [(1250.0, 1.0), (1400.0, 0.5), (1500.0, 1.0), (1550.0, 1.0)]


def test_bonus_is_paid_as_by_the_published_example() -> None:
    after = event(1300, 45, UPSET, bonus=12)

    assert after == pytest.approx(1464.80488826172, abs=CLOSE)


def test_higher_threshold_of_2017_costs_two_points_for_each_point_of_b() -> None:
    now, before = event(1300, 45, UPSET), event(1300, 45, UPSET, bonus=12)

    assert before - now == pytest.approx((14 - 12) * 2, abs=CLOSE)


@pytest.mark.parametrize(("n", "threshold"), [(3, 20), (4, 20), (5, 22.36), (9, 30)])
def test_threshold_of_the_bonus_grows_with_the_root_of_four_games_or_more(n: int, threshold: float) -> None:
    # With the smaller of n and 4, as in `skillratings`, all of these but one would differ.
    assert bonus_points(100, n, 10) == pytest.approx(100 - threshold, abs=0.005)


def test_threshold_counts_every_game_of_a_long_event() -> None:
    ten_wins = [(1300.0, 1.0)] * 10

    gain = event(1300, 45, ten_wins) - 1300

    K = 800 / (effective_games(1300, 45) + 10)
    assert gain == pytest.approx(2 * K * 5 - 14 * math.sqrt(10), abs=CLOSE)


@pytest.mark.parametrize("n", [1, 2])
def test_event_of_fewer_than_three_games_brings_no_bonus(n: int) -> None:
    assert bonus_points(1000, n) == 0


def test_bad_event_costs_no_bonus() -> None:
    assert bonus_points(-200, 6) == 0
    assert bonus_points(20, 6) == 0


# --- Floors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("peak", "protected"),
    [
        *((1941, 1700), (1653, 1400), (1799, 1500), (1800, 1600), (1843, 1600)),
        *((1400, 1200), (1499.9, 1200), (1500, 1300), (2300, 2100), (2399, 2100), (2850, 2100)),
    ],
)
def test_peak_protects_two_hundred_points_below_it(peak: float, protected: float) -> None:
    assert floor(peak, 300, 200) == protected


@pytest.mark.parametrize(
    ("wins", "draws", "lowest"),
    [(0, 0, 100), (5, 0, 120), (0, 5, 110), (3, 4, 120), (12, 1, 150), (90, 90, 150)],
)
def test_peak_below_1400_protects_by_wins_and_draws_only(wins: int, draws: int, lowest: float) -> None:
    assert floor(1399.9, wins, draws) == lowest


# --- What must hold for all players -------------------------------------------------------------------------


@given(ratings, played, st.floats(0, 20), st.integers(1, 20), ratings)
def test_more_points_never_give_less(
    rating: float, games: int, expected: float, n: int, mean_opponent: float
) -> None:
    E = min(expected, n)

    after = [rate(rating, games, mean_opponent, E, wins, n, 2 * wins - n) for wins in range(n + 1)]

    assert all(math.isfinite(r) for r in after)
    assert after == sorted(after)


@given(ratings, played, ratings)
def test_event_without_games_changes_nothing(rating: float, games: int, mean_opponent: float) -> None:
    assert rate(rating, games, mean_opponent, 0, 0, 0, 0) == rating


@given(ratings, played)
def test_effective_games_stay_within_their_limits(rating: float, games: int) -> None:
    assert 0 <= effective_games(rating, games) <= min(games, 50)
