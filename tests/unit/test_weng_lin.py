"""Weng-Lin against openskill and the numbers of the paper's functions, never against its own output.

Where openskill is no measure, it is not asked: in tails, where its normal distribution has run out of digits,
and where more sides than its window are tied, whose neighbours it takes in the order they are named.
"""

import math
import random
from collections.abc import Sequence

import openskill.models
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.parameters import BadParameterError, build
from petard_worker.ratings.system import Game, GameSide, PlayerState, Rated
from petard_worker.ratings.weng_lin import WengLin
from petard_worker.ratings.weng_lin_models import MODELS, V_W, V_W_draw

CLOSE = 1e-9
NO_LIMITS = {"rd": 10_000.0, "rd_floor": 0.001, "rating_min": -10_000.0, "rating_max": 10_000.0}
OPENSKILL = {
    "bradley_terry_full": openskill.models.BradleyTerryFull,
    "bradley_terry_part": openskill.models.BradleyTerryPart,
    "plackett_luce": openskill.models.PlackettLuce,
    "thurstone_mosteller_full": openskill.models.ThurstoneMostellerFull,
    "thurstone_mosteller_part": openskill.models.ThurstoneMostellerPart,
}
THURSTONE = {name for name in MODELS if name.startswith("thurstone")}

models = st.sampled_from(sorted(MODELS))
ratings = st.floats(-25, 75)
deviations = st.floats(0.1, 25 / 3)
players = st.tuples(ratings, deviations).map(lambda state: PlayerState(*state))
ranks = st.integers(1, 4)
sides = st.tuples(st.lists(players, min_size=1, max_size=4), ranks).map(lambda side: GameSide(*side))
fields = st.lists(sides, min_size=2, max_size=7)


def duel(a: PlayerState, b: PlayerState, s: float = 1) -> Game:
    """The game of a against b; s is the score of a."""
    return Game((GameSide((a,), 1 if s > 0 else 2), GameSide((b,), 1 if s < 1 else 2)))


def free_for_all(states: Sequence[PlayerState], ranks: Sequence[int]) -> Game:
    return Game([GameSide((state,), rank) for state, rank in zip(states, ranks, strict=True)])


def exactly(rated: Sequence[Rated]) -> list[str]:
    """The result with all its bits: unlike ==, repr tells 0.0 from -0.0."""
    return [repr(player) for player in rated]


# --- openskill ----------------------------------------------------------------------------------------------


def rate_by_openskill(game: Game, model: str, **parameters: float) -> list[tuple[float, float]]:
    library = OPENSKILL[model](**parameters)
    teams = [[library.rating(player.rating, player.rd) for player in side.players] for side in game.sides]
    rated = library.rate(teams, ranks=[float(side.rank) for side in game.sides])
    return [(player.mu, player.sigma) for team in rated for player in team]


def assert_as_openskill(game: Game, model: str, **parameters: float) -> None:
    got = [
        (player.rating, player.rd) for player in WengLin(model=model, **NO_LIMITS, **parameters).rate(game)
    ]

    for player, expected in zip(got, rate_by_openskill(game, model, **parameters), strict=True):
        assert player == pytest.approx(expected, rel=CLOSE, abs=CLOSE)


def random_side(dice: random.Random, size: int, rank: int) -> GameSide:
    """A team of about the strength of all other teams: no surprise is beyond openskill's digits."""
    return GameSide([PlayerState(dice.uniform(21, 29) / size, dice.uniform(1, 9)) for _ in range(size)], rank)


def random_games(number: int, most_sides: int, ranks: str) -> list[Game]:
    dice = random.Random(f"{number} {most_sides} {ranks}")
    games = []
    for _ in range(number):
        n = dice.randint(2, most_sides)
        order = dice.sample(range(1, n + 1), n) if ranks == "strict" else dice.choices(range(1, n + 1), k=n)
        games.append(Game([random_side(dice, dice.randint(1, 4), rank) for rank in order]))
    return games


@pytest.mark.parametrize("model", MODELS)
def test_teams_in_strict_order_are_rated_as_by_openskill(model: str) -> None:
    for game in random_games(200, 10, "strict"):
        assert_as_openskill(game, model)


@pytest.mark.parametrize("model", MODELS)
def test_teams_with_ties_are_rated_as_by_openskill(model: str) -> None:
    for game in random_games(200, 5, "tied"):
        assert_as_openskill(game, model)


@pytest.mark.parametrize("model", MODELS)
def test_other_parameters_mean_what_they_mean_to_openskill(model: str) -> None:
    parameters = {"beta": 7.5, "kappa": 0.9, "tau": 0.7}
    of_model = {"epsilon": 1.5} if model in THURSTONE else {}

    for game in random_games(100, 5, "tied"):
        assert_as_openskill(game, model, **parameters, **of_model)


@pytest.mark.parametrize("window", [1, 2, 7])
@pytest.mark.parametrize("model", [name for name in MODELS if name.endswith("part")])
def test_partial_models_look_as_far_as_openskill(model: str, window: int) -> None:
    got = [WengLin(model=model, window=window, **NO_LIMITS).rate(g) for g in random_games(50, 8, "strict")]

    library = OPENSKILL[model](window_size=window)
    for game, rated in zip(random_games(50, 8, "strict"), got, strict=True):
        teams = [[library.rating(player.rating, player.rd) for player in side.players] for side in game.sides]
        teams = library.rate(teams, ranks=[float(side.rank) for side in game.sides])
        assert [player.rating for player in rated] == pytest.approx(
            [player.mu for team in teams for player in team], abs=CLOSE
        )


def test_scale_of_thousands_is_rated_as_by_openskill() -> None:
    system = WengLin(1500, 500, beta=240, tau=10, rating_min=0, rating_max=3000)
    a, b = PlayerState(1612.5, 133), PlayerState(1388, 411)

    got = [(player.rating, player.rd) for player in system.rate(duel(a, b, 0))]

    expected = rate_by_openskill(duel(a, b, 0), "plackett_luce", beta=240, tau=10)
    assert [*map(list, got)] == [pytest.approx(player, rel=1e-12) for player in map(list, expected)]


def test_tied_winners_can_gain_less_than_the_third_by_plackett_luce() -> None:
    game = free_for_all([WengLin().initial()] * 5, [1, 1, 3, 4, 5])

    first, _, third, _, _ = WengLin().rate(game)

    assert third.rating > first.rating > 25
    assert_as_openskill(game, "plackett_luce")


# --- The functions of Thurstone and Mosteller ---------------------------------------------------------------

# x, V(x, 0), W(x, 0) to 20 digits, by the definitions of the paper in mpmath with 60 digits.
WINS = [
    (-40.0, 40.024968847207263723, 0.99937733162140861123),
    (-30.1, 30.133149654578452503, 0.99890350241004822535),
    (-12.5, 12.579007304406976089, 0.99383345923685769733),
    (-5.0, 5.1865039671258421156, 0.96730356538288777465),
    (0.0, 0.79788456080286535588, 0.63661977236758134308),
    (4.0, 0.00013383446446857514211, 0.00053535576953818015875),
]
# x, t, V~(x, t), W~(x, t), likewise.
DRAWS = [
    (0.0, 0.5, 0.0, 0.91941084539918830157),
    (2.0, 0.01, -1.9999333359998603252, 0.99996666977750478305),
    (4.5, 0.001, -4.4999985000022249953, 0.99999966666806110626),
    (-9.0, 0.3, 8.8095680437889099185, 0.9892289291714442133),
    (35.0, 0.1, -34.928425081727442558, 0.99921927184189329351),
    (3.0, 2e-05, -2.9999999996000000001, 0.99999999986666666677),
    (0.5, 2.0, -0.12081049928159884405, 0.27144682392693156789),
]


@pytest.mark.parametrize(("x", "v", "w"), WINS)
def test_win_moves_and_narrows_as_defined_in_the_far_tail_too(x: float, v: float, w: float) -> None:
    got = V_W(x)

    assert got == pytest.approx((v, w), rel=1e-12, abs=1e-10)


@pytest.mark.parametrize(("x", "t", "v", "w"), DRAWS)
def test_draw_moves_and_narrows_as_defined_in_the_far_tail_too(
    x: float, t: float, v: float, w: float
) -> None:
    got = V_W_draw(x, t)

    assert got == pytest.approx((v, w), rel=CLOSE, abs=1e-10)


@pytest.mark.parametrize("x", [-1e9, -1e4, -30.0, -3.0, 0.0, 3.0, 30.0, 1e4, 1e9])
@pytest.mark.parametrize("t", [0.0, 1e-300, 1e-12, 1e-3, 0.1, 3.0, 30.0, 1e4, 1e9])
def test_no_surprise_is_beyond_the_functions(x: float, t: float) -> None:
    v, w = V_W(x - t)
    v_draw, w_draw = V_W_draw(x, t)

    assert v >= 0
    assert math.copysign(v_draw, x) == pytest.approx(-v_draw)
    assert abs(x + v_draw) <= t + 1e-6 * abs(x)
    assert all(-1e-9 <= narrowing <= 1 + 1e-9 for narrowing in (w, w_draw))


@given(st.floats(-60, 60), st.floats(0, 10))
def test_win_moves_less_the_surer_it_was(x: float, more: float) -> None:
    assert V_W(x)[0] >= V_W(x + more)[0] - 1e-12


def test_draw_without_a_margin_says_that_both_performed_alike() -> None:
    system = WengLin(model="thurstone_mosteller_full", epsilon=0, tau=0)

    strong, weak = system.rate(duel(PlayerState(30, 2), PlayerState(20, 2), 0.5))

    # V~ = -x: mu moves by sigma^2 (mu_q - mu_i) / c^2.
    assert strong.rating == pytest.approx(30 - 4 * 10 / (8 + 2 * (25 / 6) ** 2), rel=1e-12)
    assert strong.rating + weak.rating == pytest.approx(50, rel=1e-12)


# --- Expectations -------------------------------------------------------------------------------------------


def test_plackett_luce_expects_the_logistic_of_the_difference() -> None:
    system = WengLin(tau=0)

    expected = system.expected(PlayerState(42, 2.1), PlayerState(31, 1.2))

    assert expected == pytest.approx(0.8490211234122605, abs=1e-14)  # the test suite of skillratings


@pytest.mark.parametrize("model", sorted(THURSTONE))
def test_thurstone_mosteller_expects_the_normal_of_the_difference(model: str) -> None:
    a, b = PlayerState(31, 2.1), PlayerState(28, 1.2)

    expected = WengLin(model=model, tau=0).expected(a, b)

    library = OPENSKILL[model]()
    by_library = library.predict_win([[library.rating(31, 2.1)], [library.rating(28, 1.2)]])
    assert expected == pytest.approx(by_library[0], abs=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_game_expects_what_was_predicted(model: str) -> None:
    system = WengLin(model=model)
    a, b = PlayerState(28, 5), PlayerState(22, 3)

    rated_a, rated_b = system.rate(duel(a, b))

    assert rated_a.expected == system.expected(a, b)
    assert rated_b.expected == system.expected(b, a)
    assert (rated_a.actual, rated_b.actual) == (1, 0)


@given(models, players, players)
def test_expectations_of_both_add_up_to_one(model: str, a: PlayerState, b: PlayerState) -> None:
    system = WengLin(model=model)

    assert 0 <= system.expected(a, b) <= 1
    assert system.expected(a, b) + system.expected(b, a) == pytest.approx(1, abs=1e-12)


@given(models, fields)
def test_scores_of_a_field_are_one_for_every_pair(model: str, field: list[GameSide]) -> None:
    rated = iter(WengLin(model=model).rate(Game(field)))

    captains = [[next(rated) for _ in side.players].pop() for side in field]

    pairs = len(field) * (len(field) - 1) / 2
    assert math.fsum(captain.expected for captain in captains) == pytest.approx(pairs, abs=1e-12)
    assert math.fsum(captain.actual for captain in captains) == pairs


def test_score_counts_every_side_that_was_beaten() -> None:
    rated = WengLin().rate(free_for_all([PlayerState(25, 5)] * 4, [2, 1, 2, 4]))

    assert [player.actual for player in rated] == [1.5, 3, 1.5, 0]
    assert [player.expected for player in rated] == [1.5] * 4


# --- Order and ties -----------------------------------------------------------------------------------------


@given(models, players, players, st.sampled_from([0, 0.5, 1]))
def test_duel_is_a_field_of_two_bit_for_bit(model: str, a: PlayerState, b: PlayerState, s: float) -> None:
    system = WengLin(model=model)
    game = duel(a, b, s)

    assert exactly(system.rate(game)) == exactly(system.rate_field(game.sides))


@given(players, players, st.sampled_from([0, 0.5, 1]))
def test_three_models_are_one_for_two_sides(a: PlayerState, b: PlayerState, s: float) -> None:
    full, part, luce = (
        exactly(WengLin(model=model).rate_field(duel(a, b, s).sides))
        for model in ("bradley_terry_full", "bradley_terry_part", "plackett_luce")
    )

    assert full == part == luce


@given(models, st.integers(1, 4), fields, st.randoms(use_true_random=False))
def test_order_of_sides_makes_no_difference(
    model: str, window: int, field: list[GameSide], dice: random.Random
) -> None:
    system = WengLin(model=model, window=window)
    order = dice.sample(range(len(field)), len(field))

    rated, moved = iter(system.rate(Game(field))), system.rate(Game([field[i] for i in order]))

    by_side = [[next(rated) for _ in side.players] for side in field]
    assert exactly(moved) == exactly([player for i in order for player in by_side[i]])


@given(models, st.lists(players, min_size=2, max_size=6), sides, st.integers(1, 2))
def test_order_of_players_in_a_team_makes_no_difference(
    model: str, team: list[PlayerState], other: GameSide, rank: int
) -> None:
    system = WengLin(model=model)

    forth = system.rate(Game([GameSide(team, rank), other]))
    back = system.rate(Game([GameSide(team[::-1], rank), other]))

    assert exactly(back[: len(team)]) == exactly(forth[: len(team)][::-1])
    assert exactly(back[len(team) :]) == exactly(forth[len(team) :])


@given(models, players)
def test_draw_of_equals_moves_nobody(model: str, player: PlayerState) -> None:
    a, b = WengLin(model=model).rate(duel(player, player, 0.5))

    assert (a.rating, a.expected, a.actual) == (player.rating, 0.5, 0.5)
    assert exactly([a]) == exactly([b])


@given(models, st.integers(1, 3), sides, st.integers(2, 6), fields)
def test_equal_sides_in_a_tie_stay_equal(
    model: str, window: int, side: GameSide, times: int, others: list[GameSide]
) -> None:
    rated = WengLin(model=model, window=window).rate(Game([side] * times + others))

    size = len(side.players)
    teams = {tuple(exactly(rated[size * n : size * (n + 1)])) for n in range(times)}
    assert len(teams) == 1


@pytest.mark.parametrize("model", MODELS)
def test_eight_equals_end_in_the_order_of_the_result(model: str) -> None:
    rated = WengLin(model=model, rating_min=-100).rate(free_for_all([PlayerState(25, 5)] * 8, range(1, 9)))

    moves = [player.rating - 25 for player in rated]
    assert moves == sorted(moves, reverse=True)
    assert len(set(moves)) == 8
    assert moves[0] > 0 > moves[-1]
    assert math.fsum(moves) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("model", [name for name in MODELS if name != "plackett_luce"])
def test_equals_of_better_rank_never_gain_less_whoever_ties(model: str) -> None:
    dice = random.Random(model)

    for _ in range(200):
        order = sorted(dice.choices(range(1, 6), k=5))
        moved = [p.rating for p in WengLin(model=model).rate(free_for_all([PlayerState(25, 5)] * 5, order))]

        assert moved == sorted(moved, reverse=True), order


def test_far_places_are_none_of_the_business_of_partial_models() -> None:
    system = WengLin(model="bradley_terry_part", window=1)
    field = [PlayerState(25, 5)] * 4

    near = system.rate(free_for_all(field, [1, 2, 3, 4]))
    far = system.rate(free_for_all([*field[:2], PlayerState(70, 1), PlayerState(-20, 8)], [1, 2, 3, 4]))

    assert (far[0].rating, far[0].rd) == (near[0].rating, near[0].rd)
    assert far[1].rating != near[1].rating


# --- Who rises and who falls --------------------------------------------------------------------------------


@given(models, players, players)
def test_win_never_lowers_and_loss_never_raises(model: str, a: PlayerState, b: PlayerState) -> None:
    winner, loser = WengLin(model=model).rate(duel(a, b))

    assert winner.rating >= a.rating
    assert loser.rating <= b.rating


@given(models, fields)
def test_only_winner_never_falls_and_only_loser_never_rises(model: str, field: list[GameSide]) -> None:
    first, *middle, last = field
    inner = [side._replace(rank=side.rank + 1) for side in middle]

    rated = WengLin(model=model).rate(Game([first._replace(rank=1), *inner, last._replace(rank=9)]))

    winners, losers = rated[: len(first.players)], rated[-len(last.players) :]
    assert all(r.rating >= p.rating for r, p in zip(winners, first.players, strict=True))
    assert all(r.rating <= p.rating for r, p in zip(losers, last.players, strict=True))


@given(models, players, players)
def test_draw_never_moves_the_better_player_up(model: str, a: PlayerState, b: PlayerState) -> None:
    better, worse = sorted((a, b), key=lambda player: -player.rating)

    rated_better, rated_worse = WengLin(model=model).rate(duel(better, worse, 0.5))

    assert rated_better.rating <= better.rating
    assert rated_worse.rating >= worse.rating


@given(models, fields)
def test_game_makes_nobody_less_sure_than_tau(model: str, field: list[GameSide]) -> None:
    for rated in WengLin(model=model).rate(Game(field)):
        assert rated.rd <= rated.rd_aged * (1 + 1e-15)


def test_mates_of_a_team_move_by_their_own_variance() -> None:
    team = [PlayerState(25, 8), PlayerState(20, 2)]

    unsure, sure, _ = WengLin(tau=0).rate(Game([GameSide(team, 1), GameSide([PlayerState(40, 4)], 2)]))

    assert (unsure.rating - 25) / (sure.rating - 20) == pytest.approx(16, rel=1e-12)


# --- Growth before a game -----------------------------------------------------------------------------------


def test_every_game_makes_unsurer_by_tau_before_it_is_rated() -> None:
    rated, _ = WengLin(tau=3).rate(duel(PlayerState(25, 4), PlayerState(25, 4)))

    assert rated.rd_aged == 5


def test_days_make_nobody_unsurer() -> None:
    today, later = PlayerState(25, 4), PlayerState(25, 4, days=1000)

    assert exactly(WengLin().rate(duel(today, today))) == exactly(WengLin().rate(duel(later, later)))
    assert WengLin().expected(later, today) == WengLin().expected(today, today)


# --- Partial play -------------------------------------------------------------------------------------------


def with_weights(field: Sequence[GameSide], weight: float) -> list[GameSide]:
    return [side._replace(weights=[weight] * len(side.players)) for side in field]


@given(models, fields)
def test_weight_of_one_is_the_whole_game(model: str, field: list[GameSide]) -> None:
    system = WengLin(model=model)

    assert exactly(system.rate(Game(with_weights(field, 1)))) == exactly(system.rate(Game(field)))


@given(models, st.lists(sides, min_size=1, max_size=4), sides, players)
def test_player_of_weight_zero_is_as_if_not_there(
    model: str, others: list[GameSide], side: GameSide, absent: PlayerState
) -> None:
    system = WengLin(model=model)
    joined = side._replace(players=[*side.players, absent], weights=[1.0] * len(side.players) + [0.0])

    *rated, left = system.rate(Game([*others, joined]))

    assert exactly(rated) == exactly(system.rate(Game([*others, side])))
    assert (left.rating, left.rd, left.rd_aged) == (absent.rating, absent.rd, absent.rd)


@pytest.mark.parametrize("model", MODELS)
def test_weighted_performance_is_rated_as_openskill_rates_a_player_of_it(model: str) -> None:
    """A player of weight w performs as one of w mu and w sigma, who moves w times as far."""
    dice = random.Random(model)
    system = WengLin(model=model, tau=0, **NO_LIMITS)
    for game in random_games(100, 5, "tied"):
        weights = [[dice.uniform(0.1, 1) for _ in side.players] for side in game.sides]
        flat = [w for side in weights for w in side]
        whole = [
            PlayerState(p.rating / w, p.rd / w)
            for p, w in zip((p for side in game.sides for p in side.players), flat, strict=True)
        ]
        states = iter(whole)

        rated = system.rate(
            Game(
                [
                    GameSide([next(states) for _ in w], side.rank, weights=w)
                    for side, w in zip(game.sides, weights, strict=True)
                ]
            )
        )

        by_library = rate_by_openskill(game, model, tau=0)
        for got, before, w, (mu, sigma) in zip(rated, whole, flat, by_library, strict=True):
            assert (got.rating - before.rating) * w == pytest.approx(mu - before.rating * w, abs=CLOSE)
            assert got.rd * w == pytest.approx(sigma, rel=CLOSE)


def test_team_that_lost_a_player_halfway_is_expected_to_score_less() -> None:
    four, other = [PlayerState(25, 4)] * 4, GameSide([PlayerState(25, 4)] * 4, 2)

    whole = WengLin().rate(Game([GameSide(four, 1), other]))
    short = WengLin().rate(Game([GameSide(four, 1, weights=[1, 1, 1, 0.5]), other]))

    assert short[0].expected < whole[0].expected == 0.5
    assert 25 < short[3].rating < short[0].rating


@given(models, st.floats(0, 1), players, players)
def test_part_of_a_win_never_lowers(model: str, w: float, a: PlayerState, b: PlayerState) -> None:
    game = Game([GameSide([a], 1, weights=[w]), GameSide([b], 2)])

    winner, loser = WengLin(model=model).rate(game)

    assert winner.rating >= a.rating
    assert loser.rating <= b.rating


def test_weights_are_one_for_every_player() -> None:
    with pytest.raises(ValueError, match="zip"):
        WengLin().rate(Game([GameSide([PlayerState(25, 4)], 1, weights=[1, 1]), GameSide([], 2)]))


# --- Limits -------------------------------------------------------------------------------------------------


@given(models, fields)
def test_whatever_is_played_stays_within_the_limits(model: str, field: list[GameSide]) -> None:
    system = WengLin(model=model)

    for rated in system.rate(Game(field)):
        assert system.rating_min <= rated.rating <= system.rating_max
        assert system.rd_floor <= rated.rd <= system.rd


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("rd", [0.001, 1.0, 500.0])
@pytest.mark.parametrize("beta", [0.001, 240.0, 10_000.0])
@pytest.mark.parametrize("s", [0, 0.5, 1])
def test_3000_against_0_stays_finite(model: str, rd: float, beta: float, s: float) -> None:
    system = WengLin(1500, 500, model, beta, rd_floor=0.001, rating_min=0, rating_max=3000)

    strong, weak = system.rate(duel(PlayerState(3000, rd), PlayerState(0, rd), s))

    assert all(math.isfinite(number) for number in (*strong[:2], *strong[3:], *weak[:2], *weak[3:]))
    assert weak.rating >= 0
    assert strong.rating <= 3000
    assert 0 <= weak.expected <= strong.expected <= 1


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("tied", [True, False])
def test_64_players_against_their_ratings_stay_finite(model: str, tied: bool) -> None:
    system = WengLin(model=model, beta=0.001, tau=10_000, **NO_LIMITS)
    field = [PlayerState(-10_000 + 300 * n, 0.001 if n % 2 else 10_000) for n in range(64)]

    rated = system.rate(free_for_all(field, [1] * 64 if tied else [64 - n for n in range(64)]))

    assert all(math.isfinite(number) for player in rated for number in (*player[:2], *player[3:]))
    assert all(0.001 <= player.rd <= 10_000 for player in rated)


@pytest.mark.parametrize("model", MODELS)
def test_ten_thousand_straight_wins_end_within_the_limits(model: str) -> None:
    system = WengLin(model=model)
    player, rookie = system.initial(), system.initial()

    for _ in range(10_000):
        rated = system.rate(duel(player, rookie))[0]
        player = PlayerState(rated.rating, rated.rd)

    assert 25 < player.rating <= 75
    assert 0.1 <= player.rd <= 25 / 3


def test_deviation_is_cut_at_both_ends() -> None:
    system = WengLin(rd_floor=8.2)

    newcomer, sure = system.rate(duel(PlayerState(-25, 25 / 3), PlayerState(75, 1), 0))

    assert newcomer.rd_aged > newcomer.rd == 25 / 3
    assert sure.rd == 8.2


def test_kappa_limits_what_one_game_can_make_sure() -> None:
    system = WengLin(kappa=0.99, tau=0)

    rated, _ = system.rate(duel(PlayerState(25, 8), PlayerState(25, 1)))

    assert rated.rd == pytest.approx(8 * math.sqrt(0.99), rel=1e-14)


def test_unknown_player_starts_at_25_with_a_third_of_it() -> None:
    assert WengLin().initial() == PlayerState(25, 25 / 3)


def test_lowest_opponent_has_the_lowest_rating_and_the_least_doubt() -> None:
    assert WengLin().lowest() == PlayerState(-25, 0.1)


def test_floor_above_the_highest_deviation_is_a_contradiction() -> None:
    assert WengLin(rd=1, rd_floor=2).contradiction() == "rd_floor 2 is above rd 1"
    assert WengLin().contradiction() is None


def test_unknown_model_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        BadParameterError, match="one of bradley_terry_full, bradley_terry_part, plackett_luce"
    ):
        build(WengLin, {"model": "elo"})


def test_volatility_of_another_system_is_left_alone() -> None:
    rated = WengLin().rate(duel(PlayerState(25, 8, 0.06), PlayerState(25, 8)))

    assert [player.volatility for player in rated] == [0.06, None]
