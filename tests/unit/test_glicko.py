"""Glicko against the numbers of its papers, never against its own output.

The numbers of other implementations are among the shared vectors: vector_runners/glicko1.py.
"""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.elo import Elo
from petard_worker.ratings.glicko import E, Glicko, Result, aged_rd, g, predict, q, update
from petard_worker.ratings.pool_rules import PoolRules
from petard_worker.ratings.system import Game, GameSide, PlayerState, Rated

CLOSE = 1e-9

ratings = st.floats(0, 3000)
deviations = st.floats(30, 350)
idle_days = st.floats(0, 20_000)
players = st.builds(lambda r, RD, days: PlayerState(r, RD, days=days), ratings, deviations, idle_days)
ranks = st.integers(1, 4)
sides = st.builds(GameSide, st.lists(players, min_size=1, max_size=4), ranks)


def duel(a: PlayerState, b: PlayerState, s: float = 1) -> Game:
    """The game of a against b; s is the score of a."""
    return Game((GameSide((a,), 1 if s > 0 else 2), GameSide((b,), 1 if s < 1 else 2)))


def exactly(rated: Sequence[Rated]) -> list[str]:
    """The result with all its bits: unlike ==, repr tells 0.0 from -0.0."""
    return [repr(player) for player in rated]


def one_result(r_j: float, RD_j: float, s: float, r: float = 1500) -> Result:
    return Result(g(RD_j), E(r, r_j, g(RD_j)), s)


# --- The papers ---------------------------------------------------------------------------------------------

# r, RD, r_j, RD_j, s; r', RD', E, K = (r' − r) / (s − E)
SINGLE_GAMES = [
    (1500, 350, 1500, 350, 1, 1662.2120026057648, 290.2305060910912, 0.5, 324.4240052115295),
    (1500, 350, 1500, 350, 0.5, 1500.0, 290.2305060910912, 0.5, 324.4240052115295),
    (1500, 350, 1500, 50, 0, 1325.0022586735336, 248.1152781753439, 0.5, 349.99548265293276),
    (1500, 50, 1500, 350, 1, 1504.7701168303684, 49.769820468594936, 0.5, 9.540233660736918),
    (1500, 200, 1400, 30, 1, 1563.4320485812902, 175.22023356952303, 0.639467736007921, 175.9400056985855),
    (1500, 350, 0, 0, 0, 795.467078189583, 349.8737893144073, 0.9998222036761504, 704.6582074492719),
    (1500, 350, 0, 350, 0, 1032.2677033296072, 349.0252030637202, 0.9969122176594073, 469.18102555564474),
    (1500, 50, 0, 0, 0, 1485.611613752877, 49.999631843756696, 0.9998222036761504, 14.390944904223582),
]


@pytest.mark.parametrize(("r", "RD", "r_j", "RD_j", "s", "r_new", "RD_new", "expected", "K"), SINGLE_GAMES)
def test_one_game_moves_rating_and_deviation_by_the_formula(
    r: float,
    RD: float,
    r_j: float,
    RD_j: float,
    s: float,
    r_new: float,
    RD_new: float,
    expected: float,
    K: float,
) -> None:
    result = one_result(r_j, RD_j, s, r)

    got = update(r, RD, [result])

    assert got == pytest.approx((r_new, RD_new), abs=CLOSE)
    assert abs(result.E - expected) < 1e-14
    won, _ = update(r, RD, [result._replace(s=1)])
    assert (won - r) / (1 - result.E) == pytest.approx(K, rel=CLOSE)


@pytest.mark.parametrize(
    ("r", "RD", "r_j", "RD_j", "s", "r_new", "RD_new", "expected", "K"),
    [single for single in SINGLE_GAMES if single[3] > 0],
)
def test_system_rates_one_game_by_the_formula(
    r: float,
    RD: float,
    r_j: float,
    RD_j: float,
    s: float,
    r_new: float,
    RD_new: float,
    expected: float,
    K: float,
) -> None:
    rated = Glicko().rate(duel(PlayerState(r, RD), PlayerState(r_j, RD_j), s))[0]

    assert (rated.rating, rated.rd) == pytest.approx((r_new, RD_new), abs=CLOSE)
    assert rated.expected == pytest.approx(expected, abs=1e-14)
    assert rated.actual == s
    assert rated.rd_aged == RD


# r_j, RD_j, s, g, E: the worked example of the paper, a player of 1500 with RD 200.
EXAMPLE = [
    (1400, 30, 1, 0.9954980060779481, 0.639467736007921),
    (1550, 100, 0, 0.953148974234587, 0.43184235355955686),
    (1700, 300, 0, 0.7242354637384434, 0.30284072524764),
]
EXAMPLE_RESULTS = [one_result(r_j, RD_j, s) for r_j, RD_j, s, _, _ in EXAMPLE]


@pytest.mark.parametrize(("r_j", "RD_j", "s", "g_j", "E_j"), EXAMPLE)
def test_worked_example_weighs_each_opponent(
    r_j: float, RD_j: float, s: float, g_j: float, E_j: float
) -> None:
    assert g(RD_j) == pytest.approx(g_j, abs=1e-14)
    assert E(1500, r_j, g(RD_j)) == pytest.approx(E_j, abs=1e-14)


def test_worked_example_comes_to_the_variance_of_the_paper() -> None:
    inverse_d2 = q * q * sum(g_j * g_j * E_j * (1 - E_j) for _, _, _, g_j, E_j in EXAMPLE)
    _, RD_new = update(1500, 200, EXAMPLE_RESULTS)

    d2 = 1 / (1 / (RD_new * RD_new) - 1 / 200**2)

    assert d2 == pytest.approx(53685.74290197874, rel=CLOSE)
    assert 1 / inverse_d2 == pytest.approx(53685.74290197874, rel=CLOSE)


def test_worked_example_comes_to_the_rating_of_the_paper() -> None:
    got = update(1500, 200, EXAMPLE_RESULTS)

    assert got == pytest.approx((1464.1064627569112, 151.39890244796933), abs=CLOSE)


def test_same_three_games_one_at_a_time_come_to_something_else() -> None:
    system = Glicko()
    player = PlayerState(1500.0, 200.0)

    for r_j, RD_j, s, _, _ in EXAMPLE:
        rated = system.rate(duel(player, PlayerState(r_j, RD_j), s))[0]
        player = PlayerState(rated.rating, rated.rd)

    assert (player.rating, player.rd) == pytest.approx((1464.2190389663429, 151.25374343178316), abs=CLOSE)


def test_prediction_counts_both_deviations() -> None:
    system = Glicko()

    assert predict(1400, 80, 1500, 150) == pytest.approx(0.3759876557136924, abs=1e-14)
    assert system.expected(PlayerState(1400, 80), PlayerState(1500, 150)) == pytest.approx(
        0.3759876557136924, abs=1e-14
    )


def test_constants_are_those_of_the_paper() -> None:
    assert q == pytest.approx(0.005756462732485115, rel=1e-15)
    assert (1 / g(1) ** 2) - 1 == pytest.approx(1.0072398601963978e-05, rel=1e-9)


# --- Ageing -------------------------------------------------------------------------------------------------


def test_deviation_of_60_grows_to_110_in_a_year() -> None:
    grown = aged_rd(60, 4.826, 365, 350)

    assert grown == pytest.approx(110, abs=0.01)


# c² = (350² − 50²) / t, for a deviation of 50 to become that of an unknown player in t periods.
@pytest.mark.parametrize(
    ("c", "periods"), [(63.2456, 30), (34.6410, 100), (18.132, 365), (12.821, 730), (8.107, 1826)]
)
def test_deviation_of_50_is_forgotten_in_the_time_that_c_was_made_for(c: float, periods: int) -> None:
    assert aged_rd(50, c, periods, 1000) == pytest.approx(350, abs=0.05)


def test_deviation_never_grows_beyond_that_of_an_unknown_player() -> None:
    assert aged_rd(60, 4.826, 1e6, 350) == 350
    assert aged_rd(350, 4.826, 1, 350) == 350


def test_nobody_ages_in_no_time() -> None:
    assert aged_rd(60, 4.826, 0, 350) == 60


@given(deviations, idle_days)
def test_ageing_never_makes_a_player_surer(RD: float, days: float) -> None:
    assert RD <= aged_rd(RD, 4.826, days, 350) <= 350


@given(deviations, idle_days, idle_days)
def test_two_waits_age_like_one(RD: float, first: float, second: float) -> None:
    in_two = aged_rd(aged_rd(RD, 4.826, first, 350), 4.826, second, 350)

    assert in_two == pytest.approx(aged_rd(RD, 4.826, first + second, 350), rel=CLOSE)


def test_each_player_ages_by_the_time_since_their_own_last_game() -> None:
    a, b = PlayerState(1500, 60, days=365), PlayerState(1500, 60, days=0)

    rated_a, rated_b = Glicko().rate(duel(a, b))

    assert rated_a.rd_aged == pytest.approx(110, abs=0.01)
    assert rated_b.rd_aged == 60
    r, RD = update(1500, rated_a.rd_aged, [one_result(1500, 60, 1)])
    assert (rated_a.rating, rated_a.rd) == (r, RD)
    # The opponent meets the aged deviation too.
    r, RD = update(1500, 60, [one_result(1500, rated_a.rd_aged, 0)])
    assert (rated_b.rating, rated_b.rd) == (r, RD)


def test_prediction_is_made_for_aged_players() -> None:
    a, b = PlayerState(1700, 60, days=365), PlayerState(1500, 60, days=100)

    expected = Glicko().expected(a, b)

    assert expected == predict(1700, aged_rd(60, 4.826, 365, 350), 1500, aged_rd(60, 4.826, 100, 350))


# --- What must hold for all players -------------------------------------------------------------------------


@given(players, players, st.sampled_from([0, 0.5, 1]))
def test_duel_is_a_field_of_two_bit_for_bit(a: PlayerState, b: PlayerState, s: float) -> None:
    system = Glicko()
    game = duel(a, b, s)

    assert exactly(system.rate(game)) == exactly(system.rate_field(game.sides))


def test_a_game_of_two_is_rated_by_its_ranks_alone() -> None:
    system = Glicko()
    a, b = PlayerState(1500, 200, days=12.0), PlayerState(1700, 60, games=9)
    sides = (GameSide((a,), 1, points=7.0, home=True, weights=(0.5,)), GameSide((b,), 3, points=2.0))

    rated = system.rate(Game(sides, importance=3.0, decided_by="shootout", knockout=True))

    assert rated == system.rate_by_rank(a, b, 1.0)
    assert PoolRules(system).rate_by_rank is not None
    assert PoolRules(Elo()).rate_by_rank is None


@given(players, players, st.sampled_from([0, 0.5, 1]))
def test_who_is_named_first_makes_no_difference(a: PlayerState, b: PlayerState, s: float) -> None:
    system = Glicko()

    forth, back = system.rate(duel(a, b, s)), system.rate(duel(b, a, 1 - s))

    assert exactly(forth) == exactly(back[::-1])


@given(st.permutations(range(4)), st.lists(sides, min_size=4, max_size=4))
def test_order_of_many_sides_makes_no_difference(order: list[int], field: list[GameSide]) -> None:
    system = Glicko()
    ends = [sum(len(side.players) for side in field[: i + 1]) for i in range(4)]

    rated = system.rate(Game(field))
    moved = system.rate(Game([field[i] for i in order]))

    by_side = [rated[ends[i] - len(field[i].players) : ends[i]] for i in range(4)]
    assert exactly(moved) == exactly([player for i in order for player in by_side[i]])


@given(ratings, st.floats(0.001, 3000), deviations, ratings, deviations)
def test_higher_rating_never_expects_less(r: float, more: float, RD: float, r_j: float, RD_j: float) -> None:
    assert predict(r + more, RD, r_j, RD_j) >= predict(r, RD, r_j, RD_j)
    assert E(r + more, r_j, g(RD_j)) >= E(r, r_j, g(RD_j))


@given(players, players)
def test_expectations_of_both_add_up_to_one(a: PlayerState, b: PlayerState) -> None:
    system = Glicko()

    assert 0 <= system.expected(a, b) <= 1
    assert system.expected(a, b) + system.expected(b, a) == pytest.approx(1, abs=1e-12)


@given(players, players)
def test_win_never_lowers_and_loss_never_raises(a: PlayerState, b: PlayerState) -> None:
    winner, loser = Glicko().rate(duel(a, b))

    assert winner.rating >= a.rating
    assert loser.rating <= b.rating


@given(players, players)
def test_draw_never_moves_the_better_player_up(a: PlayerState, b: PlayerState) -> None:
    better, worse = sorted((a, b), key=lambda player: player.rating, reverse=True)

    up, down = Glicko().rate(duel(better, worse, 0.5))

    assert up.rating <= better.rating
    assert down.rating >= worse.rating


@given(players, players, st.sampled_from([0, 0.5, 1]))
def test_game_never_makes_anybody_less_sure(a: PlayerState, b: PlayerState, s: float) -> None:
    for rated in Glicko().rate(duel(a, b, s)):
        assert rated.rd <= rated.rd_aged


@given(st.lists(sides, min_size=2, max_size=8))
def test_whatever_is_played_stays_within_the_limits(field: list[GameSide]) -> None:
    rated = Glicko().rate(Game(field))

    assert len(rated) == sum(len(side.players) for side in field)
    assert all(0 <= player.rating <= 3000 and 30 <= player.rd <= 350 for player in rated)


@pytest.mark.parametrize("RD_high", [30, 350])
@pytest.mark.parametrize("RD_low", [30, 350])
@pytest.mark.parametrize("s", [0, 0.5, 1])
def test_highest_against_lowest_stays_finite(RD_high: float, RD_low: float, s: float) -> None:
    rated = Glicko().rate(duel(PlayerState(3000, RD_high), PlayerState(0, RD_low), s))

    assert all(
        math.isfinite(value) for player in rated for value in (player.rating, player.rd, player.expected)
    )
    assert all(0 <= player.rating <= 3000 and 30 <= player.rd <= 350 for player in rated)


@pytest.mark.parametrize("gap", [20_000, -20_000])
def test_widest_pool_there_can_be_stays_finite(gap: float) -> None:
    system = Glicko(rating_min=-10_000, rating_max=10_000, rd=1000, rd_floor=1, c=1000)
    a, b = PlayerState(gap / 2, 1, days=0), PlayerState(-gap / 2, 1000, days=1e6)

    for rated in system.rate(duel(a, b)):
        assert -10_000 <= rated.rating <= 10_000
        assert 1 <= rated.rd <= 1000
        assert 0 <= rated.expected <= 1


@pytest.mark.parametrize("days", [0, 1, 10_000])
def test_ten_thousand_straight_wins_end_within_the_limits(days: float) -> None:
    system = Glicko()
    a, b = system.initial(), system.initial()

    for _ in range(10_000):
        won, lost = system.rate(duel(a, b))
        assert a.rating <= won.rating <= 3000
        assert 0 <= lost.rating <= b.rating
        assert 30 <= won.rd <= 350
        a = PlayerState(won.rating, won.rd, days=days)
        b = PlayerState(lost.rating, lost.rd, days=days)


# --- Limits -------------------------------------------------------------------------------------------------


def test_unknown_player_starts_at_1500_with_350() -> None:
    initial = Glicko().initial()

    assert initial == PlayerState(1500.0, 350.0)


def test_lowest_opponent_has_the_lowest_rating_and_the_least_doubt() -> None:
    assert Glicko().lowest() == PlayerState(0.0, 30.0)
    assert Glicko(rating_min=-500, rd_floor=45).lowest() == PlayerState(-500, 45)


def test_rating_is_cut_at_both_ends() -> None:
    system = Glicko()

    winner, loser = system.rate(duel(PlayerState(2990, 350), PlayerState(2990, 350)))
    upset, shocked = system.rate(duel(PlayerState(10, 350), PlayerState(10, 350), 0))

    assert winner.rating == 3000
    assert upset.rating == 0
    # The other one is not cut, and moves as if nobody were.
    assert loser.rating == pytest.approx(2990 - 162.2120026057648, abs=CLOSE)
    assert shocked.rating == pytest.approx(10 + 162.2120026057648, abs=CLOSE)


def test_deviation_is_cut_at_the_floor() -> None:
    a, b = Glicko().rate(duel(PlayerState(1500, 30), PlayerState(1500, 30)))

    assert (a.rd, b.rd) == (30, 30)
    assert a.rating > 1500 > b.rating


def test_without_a_floor_the_deviation_goes_on_falling() -> None:
    a, _ = Glicko(rd_floor=1).rate(duel(PlayerState(1500, 30), PlayerState(1500, 30)))

    assert 29 < a.rd < 30


def test_volatility_of_another_system_is_left_alone() -> None:
    a, b = Glicko().rate(duel(PlayerState(1500, 350, 0.06), PlayerState(1500, 350)))

    assert (a.volatility, b.volatility) == (0.06, None)


# --- Teams and many sides, against the same folded by hand --------------------------------------------------


def folded_by_hand(field: Sequence[GameSide]) -> list[tuple[float, float]]:
    """One period in which a player meets every other side: its mean rating, its root mean square RD."""
    q_ = math.log(10) / 400
    new = []
    for side in field:
        for player in side.players:
            variance, gain = 0.0, 0.0
            for other in field:
                if other is side:
                    continue
                mean = sum(mate.rating for mate in other.players) / len(other.players)
                mean_square = sum(mate.rd**2 for mate in other.players) / len(other.players)
                g_j = 1 / math.sqrt(1 + 3 * q_**2 * mean_square / math.pi**2)
                E_j = 1 / (1 + 10 ** (-g_j * (player.rating - mean) / 400))
                s = 1 if side.rank < other.rank else 0.5 if side.rank == other.rank else 0
                variance += q_**2 * g_j**2 * E_j * (1 - E_j)
                gain += g_j * (s - E_j)
            precision = 1 / player.rd**2 + variance
            new.append((player.rating + q_ / precision * gain, math.sqrt(1 / precision)))
    return new


def side(rank: int, *players: tuple[float, float]) -> GameSide:
    return GameSide([PlayerState(r, RD) for r, RD in players], rank)


@pytest.mark.parametrize(
    "field",
    [
        pytest.param(
            [side(1, (1600, 80), (1400, 200)), side(2, (1500, 50), (1450, 350))], id="two against two"
        ),
        pytest.param(
            [side(2, (1900, 60)), side(1, (1500, 90), (1300, 120), (1100, 70))], id="one against three"
        ),
        pytest.param([side(1, (1600, 80), (1400, 200)), side(1, (1550, 50))], id="teams that draw"),
        pytest.param(
            [side(n, (1400 + 50 * n, 60 + 30 * n)) for n in (1, 2, 3, 4)], id="everybody for themselves"
        ),
        pytest.param(
            [side(1, (1500, 80)), side(1, (1600, 90)), side(7, (1700, 100))], id="a shared first place"
        ),
        pytest.param(
            [
                side(3, (1500, 80), (1520, 95)),
                side(1, (1600, 90)),
                side(2, (1400, 70), (1700, 150), (1200, 60)),
            ],
            id="three teams",
        ),
    ],
)
def test_many_players_are_rated_as_folded_by_hand(field: list[GameSide]) -> None:
    rated = Glicko().rate(Game(field))

    by_hand = folded_by_hand(field)
    assert [player.rating for player in rated] == pytest.approx([r for r, _ in by_hand], abs=CLOSE)
    assert [player.rd for player in rated] == pytest.approx([RD for _, RD in by_hand], abs=CLOSE)


def test_score_counts_every_side_that_was_beaten() -> None:
    field = [side(1, (1500, 80)), side(2, (1500, 80)), side(2, (1500, 80)), side(4, (1500, 80))]

    rated = Glicko().rate(Game(field))

    assert [player.actual for player in rated] == [3, 1.5, 1.5, 0]
    assert [player.expected for player in rated] == pytest.approx([1.5] * 4, abs=1e-12)


def test_player_of_a_team_ages_before_the_team_is_measured() -> None:
    rested, idle = PlayerState(1500, 60), PlayerState(1500, 60, days=365)
    grown = PlayerState(1500, aged_rd(60, 4.826, 365, 350))

    waited = Glicko().rate(Game([GameSide([rested, idle], 1), GameSide([rested], 2)]))
    known = Glicko().rate(Game([GameSide([rested, grown], 1), GameSide([rested], 2)]))

    assert exactly(waited) == exactly(known)


def test_mates_of_a_team_move_by_their_own_uncertainty() -> None:
    sure, unsure, _ = Glicko().rate(Game([side(1, (1500, 50), (1500, 300)), side(2, (1500, 100))]))

    assert 1500 < sure.rating < unsure.rating
