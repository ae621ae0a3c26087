"""Elo and its options against published numbers and formulas worked by hand."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.elo import Elo, logistic
from petard_worker.ratings.margins import MULTIPLIERS
from petard_worker.ratings.parameters import BadParameterError, build
from petard_worker.ratings.system import (
    Game,
    GameSide,
    GameUnsupportedError,
    PeriodSystem,
    PlayerState,
    Rated,
    sum_terms,
)

CLOSE = 1e-9
FIDE = Elo(k_rule="fide", expectation="fide_table", difference_cap=400)
NFL = Elo(k=20, home_advantage=65, margin="fivethirtyeight_nfl")
OPTIONS: list[dict[str, Any]] = [
    {"expectation": expectation, "k_rule": k_rule, **more}
    for expectation, k_rule, more in product(
        ("logistic", "fide_table", "egf_until_2021"),
        ("fixed", "fide", "calculator", "uscf", "egf_until_2021", "dwz"),
        (
            {},
            {"floor": "uscf"},
            {"difference_cap": 400, "home_advantage": 70},
            {"carry": 0.75, "season_month": 9},
        ),
    )
]
MARGINS: list[dict[str, Any]] = [{"margin": margin, "home_advantage": 100} for margin in MULTIPLIERS]

ratings = st.floats(0, 4000)
scores = st.sampled_from([0, 0.5, 1])
players = st.builds(
    lambda R, games, new_season: PlayerState(R, 0.0, None, games, R, 1.0, games // 2, 0, new_season),
    ratings,
    st.integers(0, 100),
    st.booleans(),
)
teams = st.lists(players, min_size=1, max_size=4)
some_options = st.sampled_from(OPTIONS + MARGINS)


def rated_player(R: float, games: int = 50, **more: Any) -> PlayerState:
    return PlayerState(R, 0.0, games=games, **more)


def points_of(W: float) -> tuple[float, float]:
    """Points that go with the score of the first side."""
    return (20 + 14 * W, 34 - 14 * W)


def duel(a: PlayerState, b: PlayerState, W: float = 1) -> Game:
    """The game of a against b; W is the score of a."""
    return match([a], [b], W)


def match(
    a: Sequence[PlayerState],
    b: Sequence[PlayerState],
    W: float = 1,
    points: tuple[float | None, float | None] = (None, None),
    home: tuple[bool | None, bool | None] = (None, None),
    decided_by: str = "play",
) -> Game:
    """The game of team a against team b."""
    first = GameSide(a, 1 if W > 0 else 2, points[0], home[0])
    second = GameSide(b, 1 if W < 1 else 2, points[1], home[1])
    return Game((first, second), decided_by=decided_by)


def after_period(system: Elo, player: PlayerState, results: Sequence[tuple[PlayerState, float]]) -> Rated:
    """The player after simultaneous games against the opponents, with these scores."""
    terms = [system.results(duel(player, opponent, W))[0][0] for opponent, W in results]
    return system.rate_period(player, sum_terms(terms))


def exactly(rated: Sequence[Rated]) -> list[str]:
    """The result with all its bits: unlike ==, repr tells 0.0 from -0.0."""
    return [repr(player) for player in rated]


# --- The formula --------------------------------------------------------------------------------------------


def test_1200_that_beats_1800_gains_38_77_at_k_40() -> None:
    winner, loser = Elo(k=40).rate(duel(rated_player(1200), rated_player(1800)))

    assert winner.expected == pytest.approx(0.030653430031715508, abs=1e-15)
    assert winner.rating - 1200 == pytest.approx(38.77386279873138, abs=CLOSE)
    assert 1800 - loser.rating == pytest.approx(38.77386279873138, abs=CLOSE)
    assert (winner.actual, loser.actual) == (1, 0)


def test_1200_that_beats_1800_gains_36_8_under_fide() -> None:
    winner, loser = FIDE.rate(duel(rated_player(1200, games=10), rated_player(1800, games=200)))

    assert winner.rating == pytest.approx(1236.8, abs=CLOSE)
    assert loser.rating == pytest.approx(1800 - 18.4, abs=CLOSE)
    assert (winner.expected, loser.expected) == (0.08, 0.92)


@pytest.mark.parametrize(("D", "W_e"), [(0, 0.5), (200, 0.7597), (400, 0.9091), (600, 0.9693)])
def test_expected_score_is_that_of_the_printed_tables(D: float, W_e: float) -> None:
    assert Elo().expected(rated_player(1500 + D), rated_player(1500)) == pytest.approx(W_e, abs=5e-5)


def test_scale_makes_the_odds_ten_to_one() -> None:
    assert Elo(scale=600).expected(rated_player(1600), rated_player(1000)) == pytest.approx(10 / 11)


def test_draw_between_equals_moves_nobody() -> None:
    a, b = Elo().rate(duel(rated_player(1500), rated_player(1500), 0.5))

    assert (a.rating, b.rating) == (1500, 1500)


def test_elo_knows_no_deviation_and_leaves_the_volatility_alone() -> None:
    a, b = Elo().rate(duel(PlayerState(1500, 350, 0.06, days=1000), PlayerState(1500, 30)))

    assert (a.rd, a.rd_aged, a.volatility) == (0, 0, 0.06)
    assert (b.rd, b.rd_aged, b.volatility) == (0, 0, None)
    assert a.rating == 1516


def test_deviations_make_no_difference() -> None:
    sure, unsure = (
        duel(PlayerState(1500, 30), PlayerState(1600, 30)),
        duel(PlayerState(1500, 350), PlayerState(1600, 350)),
    )

    assert exactly(Elo().rate(sure)) == exactly(Elo().rate(unsure))


def test_elo_is_a_system_of_periods() -> None:
    assert isinstance(Elo(), PeriodSystem)


# --- The cap on differences ---------------------------------------------------------------------------------


def test_cap_is_lifted_for_the_one_player_who_is_rated_so_high() -> None:
    # Table 8.1.2: .99 for 650, .92 and .08 for 400.
    strong, weak = FIDE.rate(duel(rated_player(2700), rated_player(2050)))

    assert (strong.expected, weak.expected) == (0.99, 0.08)


def test_capped_logistic_counts_400_of_600() -> None:
    a, b = Elo(difference_cap=400).rate(duel(rated_player(1200), rated_player(1800)))

    assert (a.expected, b.expected) == (pytest.approx(1 / 11), pytest.approx(10 / 11))


def test_home_advantage_is_added_before_the_cap() -> None:
    system = Elo(difference_cap=400, home_advantage=100)
    at_home, away = rated_player(1850), rated_player(1500)

    a, b = system.rate(match([at_home], [away], home=(True, False)))

    assert (a.expected, b.expected) == (pytest.approx(10 / 11), pytest.approx(1 / 11))


def test_cap_is_lifted_by_the_rating_and_not_by_the_place() -> None:
    system = Elo(difference_cap=400, home_advantage=100)

    a, _ = system.rate(match([rated_player(2600)], [rated_player(1500)], home=(True, False)))

    assert a.expected == pytest.approx(10 / 11)


# --- K ------------------------------------------------------------------------------------------------------


def test_each_player_has_an_own_k() -> None:
    new, old, master = (
        rated_player(1800, games=3),
        rated_player(1800, games=300),
        rated_player(1800, games=300, peak=2410.0),
    )

    gains = [FIDE.rate(duel(player, rated_player(1800)))[0].rating - 1800 for player in (new, old, master)]

    assert gains == [20, 10, 5]


def test_bands_of_the_calculators_are_another_rule() -> None:
    system = Elo(k_rule="calculator")

    gains = [system.rate(duel(rated_player(R), rated_player(R)))[0].rating - R for R in (1800, 2100, 2400)]

    assert gains == [20, 10, 5]


def test_fixed_k_is_ignored_by_the_other_rules() -> None:
    game = duel(rated_player(1800, games=3), rated_player(1700))

    assert exactly(FIDE.rate(game)) == exactly(replace(FIDE, k=1000).rate(game))


def test_uscf_provisional_player_is_rated_as_skillratings_does() -> None:
    # Case uscf-003 of the shared vectors.
    opponents = [(rated_player(1400), 1.0), (rated_player(1550), 0.0), (rated_player(1650), 0.5)]

    rated = after_period(Elo(k_rule="uscf", period=30), rated_player(1500, games=6), opponents)

    assert rated.rating == pytest.approx(1511.111111111111, abs=CLOSE)


def test_uscf_event_is_rated_with_one_k_and_a_bonus() -> None:
    # R >= 2355, so Ne = 50 and K = 800 / (50 + 4); won all four against equals; B = 14 and sqrt(4) = 2.
    opponents = [(rated_player(2400, games=100), 1.0)] * 4

    rated = after_period(Elo(k_rule="uscf", period=30), rated_player(2400, games=100), opponents)

    change = 800 / 54 * 2
    assert rated.rating == pytest.approx(2400 + change + max(0, change - 28), abs=CLOSE)
    assert change > 28


def test_single_uscf_game_is_rated_without_a_bonus() -> None:
    a, _ = Elo(k_rule="uscf").rate(duel(rated_player(2400, games=100), rated_player(2400, games=100)))

    assert a.rating == pytest.approx(2400 + 800 / 51 / 2, abs=CLOSE)


def test_egf_game_is_rated_as_in_the_example_of_the_egf() -> None:
    system = Elo(expectation="egf_until_2021", egf_epsilon=0, k_rule="egf_until_2021")

    a, b = system.rate(duel(rated_player(2400), rated_player(2400)))

    assert (a.rating, b.rating) == (pytest.approx(2407.5, abs=CLOSE), pytest.approx(2392.5, abs=CLOSE))


@pytest.mark.parametrize(("opponent", "W_e"), [(1820, 0.457), (1840, 0.414), (1860, 0.372), (1880, 0.333)])
def test_egf_expects_what_its_table_says(opponent: float, W_e: float) -> None:
    system = Elo(expectation="egf_until_2021", egf_epsilon=0)

    assert system.expected(rated_player(1800), rated_player(opponent)) == pytest.approx(W_e, abs=5e-4)


def test_egf_expects_epsilon_less_of_both_together() -> None:
    a, b = Elo(expectation="egf_until_2021").rate(duel(rated_player(1800), rated_player(1950)))

    assert a.expected + b.expected == pytest.approx(1 - 0.016, abs=1e-12)


def test_egf_gives_to_who_loses_without_a_chance_but_predicts_nothing_below_zero() -> None:
    system = Elo(expectation="egf_until_2021", k_rule="egf_until_2021")
    weak, strong = rated_player(100), rated_player(2700)

    lost, _ = system.rate(duel(weak, strong, 0))

    # con at 100 is 116, and S_E comes as near to -0.016 / 2 as the ratings allow.
    assert lost.rating == pytest.approx(100 + 116 * (0.008 - 1 / (math.exp(13) + 1)), abs=CLOSE)
    assert system.expected(weak, strong) == 0


def test_dwz_game_is_rated_as_the_german_federation_does() -> None:
    # Case dwz-001 of the shared vectors.
    a, b = rated_player(1530, games=22, age=26), rated_player(1930, games=103, age=39)

    winner, loser = Elo(k_rule="dwz").rate(duel(a, b))

    assert (winner.rating, loser.rating) == (pytest.approx(1564, abs=0.5), pytest.approx(1906, abs=0.5))


# --- Periods ------------------------------------------------------------------------------------------------


def test_period_adds_up_what_every_game_is_worth_at_its_start() -> None:
    opponents = [(rated_player(1400), 1.0), (rated_player(1600), 0.5), (rated_player(1700), 0.0)]

    rated = after_period(Elo(k=20, period=7), rated_player(1500), opponents)

    W_e = [1 / (1 + 10 ** (D / 400)) for D in (-100, 100, 200)]
    assert rated.expected == pytest.approx(sum(W_e), abs=1e-12)
    assert rated.actual == 1.5
    assert rated.rating == pytest.approx(1500 + 20 * (1.5 - sum(W_e)), abs=CLOSE)


def test_many_games_of_a_fide_period_are_rated_with_a_smaller_k() -> None:
    # 700 // 20 = 35.
    new, opponent = rated_player(1500, games=0), rated_player(1500)

    rated = after_period(replace(FIDE, period=30), new, [(opponent, 1.0)] * 20)

    assert rated.rating == pytest.approx(1500 + 35 * 10, abs=CLOSE)


@given(players, st.lists(st.tuples(players, scores), min_size=2, max_size=8), some_options, st.randoms())
def test_order_of_a_period_makes_no_difference(
    player: PlayerState, results: list[tuple[PlayerState, float]], options: dict[str, Any], dice: Any
) -> None:
    system = Elo(**{**options, "margin": "none"})
    shuffled = [*results]
    dice.shuffle(shuffled)

    assert exactly([after_period(system, player, results)]) == exactly(
        [after_period(system, player, shuffled)]
    )


@given(teams, teams, scores, some_options, st.booleans())
def test_game_has_the_bits_of_a_period_of_one_game(
    a: list[PlayerState], b: list[PlayerState], W: float, options: dict[str, Any], home: bool
) -> None:
    system = Elo(**options)
    game = match(a, b, W, points_of(W), (home, False))

    rated = system.rate(game)

    periods = [
        system.rate_period(player, sum_terms(results))
        for player, results in zip([*a, *b], system.results(game), strict=True)
    ]
    assert exactly(rated) == exactly(periods)


@given(ratings, ratings, scores, st.floats(1, 10_000), st.floats(0.001, 1000))
def test_plain_duel_has_the_bits_of_a_period_of_one_game(
    R: float, R_other: float, W: float, scale: float, k: float
) -> None:
    system = Elo(scale=scale, k=k)
    game = duel(rated_player(R), rated_player(R_other), W)

    rated = system.rate(game)

    periods = [
        system.rate_period(side.players[0], sum_terms(results))
        for side, results in zip(game.sides, system.results(game), strict=True)
    ]
    assert system.is_plain()
    assert exactly(rated) == exactly(periods)


# --- Home, margins, seasons, floors -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("home", "D"),
    [
        ((True, False), 65),
        ((True, None), 65),
        ((False, True), -65),
        ((True, True), 0),
        ((False, False), 0),
        ((None, None), 0),
    ],
)
def test_side_that_alone_is_at_home_is_seen_as_stronger(
    home: tuple[bool | None, bool | None], D: float
) -> None:
    a, b = Elo(home_advantage=65).rate(match([rated_player(1500)], [rated_player(1500)], home=home))

    assert a.expected == pytest.approx(1 / (1 + 10 ** (-D / 400)), abs=1e-12)
    assert a.expected + b.expected == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("home", "opponent"), [((True, False), 1400), ((False, True), 1600), ((True, True), 1500)]
)
def test_first_games_of_us_chess_are_against_the_opponent_as_strong_as_the_place_makes_it(
    home: tuple[bool, bool], opponent: float
) -> None:
    system = Elo(k_rule="uscf", home_advantage=100)

    a, _ = system.rate(match([rated_player(1700, games=0)], [rated_player(1500)], home=home))

    assert a.rating == opponent + 400


def test_egf_measures_the_weaker_one_as_strong_as_the_place_makes_it() -> None:
    system = Elo(expectation="egf_until_2021", egf_epsilon=0, home_advantage=100)

    a, b = system.rate(match([rated_player(1800)], [rated_player(2000)], home=(True, False)))

    # 1900 against 2000: a = 205 - 1900 / 20 = 110.
    W_e = 1 / (math.exp(100 / 110) + 1)
    assert (a.expected, b.expected) == (pytest.approx(W_e, abs=1e-12), pytest.approx(1 - W_e, abs=1e-12))


def test_two_sides_at_home_meet_as_on_neutral_ground() -> None:
    system = Elo(expectation="egf_until_2021", home_advantage=100)
    a, b = [rated_player(1800)], [rated_player(2000)]

    both, neither = system.rate(match(a, b, home=(True, True))), system.rate(match(a, b))

    assert exactly(both) == exactly(neither)


def test_prediction_knows_no_home() -> None:
    assert Elo(home_advantage=65).expected(rated_player(1500), rated_player(1500)) == 0.5


def test_clear_win_counts_more() -> None:
    a, b = [rated_player(1500)], [rated_player(1500)]

    close, clear = (NFL.rate(match(a, b, points=(points, 0)))[0].rating - 1500 for points in (1, 30))

    assert close == pytest.approx(20 * math.log(2) / 2, abs=CLOSE)
    assert clear == pytest.approx(20 * math.log(31) / 2, abs=CLOSE)


def test_advantage_of_the_winner_counts_home_too() -> None:
    # A visitor wins by 3 points who was 65 behind.
    _, visitor = NFL.rate(match([rated_player(1500)], [rated_player(1500)], 0, (0, 3), (True, False)))

    W_e = 1 / (1 + 10 ** (65 / 400))
    weight = math.log(4) * 2.2 / (-0.065 + 2.2)
    assert visitor.rating == pytest.approx(1500 + 20 * weight * (1 - W_e), abs=CLOSE)


def test_points_that_contradict_the_ranks_are_refused() -> None:
    with pytest.raises(GameUnsupportedError, match="points 3 and 7 contradict the ranks 1 and 2"):
        NFL.rate(match([rated_player(1700)], [rated_player(1500)], 1, (3, 7)))


def test_tie_divides_by_one() -> None:
    a, _ = NFL.rate(match([rated_player(1500)], [rated_player(1700)], 0.5, (20, 20)))

    W_e = 1 / (1 + 10 ** (200 / 400))
    assert a.rating == pytest.approx(1500 + 20 * math.log(2) * 2.2 * (0.5 - W_e), abs=CLOSE)


def test_margin_of_teams_is_weighed_by_their_means() -> None:
    strong, weak = [rated_player(1700), rated_player(1500)], [rated_player(1450), rated_player(1350)]

    rated = replace(NFL, home_advantage=0).rate(match(strong, weak, 1, (10, 0)))

    weight = math.log(11) * 2.2 / (0.2 + 2.2)
    W_e = [1 / (1 + 10 ** (-D / 400)) for D in (300, 100, -150, -250)]
    by_hand = [
        R + 20 * weight * (W - e) for R, W, e in zip((1700, 1500, 1450, 1350), (1, 1, 0, 0), W_e, strict=True)
    ]
    assert [player.rating for player in rated] == pytest.approx(by_hand, abs=CLOSE)
    assert [player.expected for player in rated] == pytest.approx(W_e, abs=1e-12)


def test_forfeit_has_no_margin() -> None:
    a, b = [rated_player(1500)], [rated_player(1500)]

    without_points, with_points = (
        NFL.rate(match(a, b, points=points, decided_by="forfeit")) for points in ((None, None), (30, 0))
    )

    assert without_points[0].rating == 1510
    assert exactly(without_points) == exactly(with_points)


@pytest.mark.parametrize("points", [(None, None), (3, None), (None, 3)])
def test_margin_without_the_points_of_both_sides_is_refused(points: tuple[float, float]) -> None:
    with pytest.raises(GameUnsupportedError, match="fivethirtyeight_nfl needs the points of both sides"):
        NFL.rate(match([rated_player(1500)], [rated_player(1500)], points=points))


def test_new_season_draws_ratings_to_the_mean() -> None:
    system = Elo(carry=0.75, carry_mean=1505, season_month=10)
    new, old = rated_player(1705, new_season=True), rated_player(1505)

    a, b = system.rate(duel(new, old))

    # 0.75 * 1705 + 0.25 * 1505 = 1655.
    W_e = 1 / (1 + 10 ** (-150 / 400))
    assert a.expected == pytest.approx(W_e, abs=1e-12)
    assert a.rating == pytest.approx(1655 + 32 * (1 - W_e), abs=CLOSE)
    assert b.rating == pytest.approx(1505 - 32 * (1 - W_e), abs=CLOSE)
    assert system.expected(new, old) == a.expected


def test_team_is_met_as_the_season_has_made_it() -> None:
    system = Elo(carry=0.5, carry_mean=1500, season_month=10)
    mates = [rated_player(1900, new_season=True), rated_player(1500)]

    a, _, _ = system.rate(match([rated_player(1600)], mates))

    assert a.expected == 0.5


def test_new_season_does_nothing_when_all_is_carried() -> None:
    system = Elo(season_month=10)
    game = duel(rated_player(1905, new_season=True), rated_player(1505))

    assert exactly(system.rate(game)) == exactly(system.rate(duel(rated_player(1905), rated_player(1505))))


def test_k_is_that_of_the_rating_after_the_carry() -> None:
    system = Elo(k_rule="calculator", carry=0.5, carry_mean=1500, season_month=10)

    a, _ = system.rate(duel(rated_player(2500, new_season=True), rated_player(2000)))

    assert a.rating == 2000 + 40 / 2


def test_nobody_falls_below_the_personal_floor() -> None:
    # A peak of 2050 protects 1800.
    protected, bare = rated_player(1805, peak=2050.0), rated_player(1805, peak=1805.0)

    fallen, unprotected = (
        Elo(floor="uscf").rate(duel(player, rated_player(1500), 0))[0].rating for player in (protected, bare)
    )

    assert fallen == 1800
    assert unprotected < 1790


def test_a_provisional_peak_protects_nobody() -> None:
    newcomer = rated_player(1500, peak=2200.0, games=25)
    established = rated_player(1500, peak=1700.0, games=26)
    system = Elo(floor="uscf")

    fallen = [system.rate(duel(player, rated_player(600), 0))[0].rating for player in (newcomer, established)]

    assert fallen[0] < 1500
    assert fallen[1] >= 1500
    assert (system.provisional_games, Elo().provisional_games) == (25, 0)


@pytest.mark.parametrize("W", [0, 0.5])
def test_a_personal_floor_lifts_nobody_who_stands_below_it(W: float) -> None:
    # A peak of 2000 protects 1800; a change of parameters, or a correction, may have left the player below.
    player = rated_player(1500, peak=2000.0)

    rated, _ = Elo(floor="uscf").rate(duel(player, rated_player(1500), W))

    assert rated.rating <= 1500


def test_floor_of_a_weak_player_grows_with_wins_and_draws() -> None:
    # 100 + 4 * 5 + 2 * 3 = 126.
    player = rated_player(127, peak=400.0, wins=5, draws=3)

    fallen, _ = Elo(floor="uscf").rate(duel(player, rated_player(100), 0))

    assert fallen.rating == 126


def test_limits_of_the_pool_hold_before_any_personal_floor() -> None:
    player = rated_player(1805, peak=2050.0)

    high, _ = Elo(floor="uscf", rating_min=1803).rate(duel(player, rated_player(1803), 0))
    low, _ = Elo(floor="uscf", rating_max=1700).rate(duel(player, rated_player(1500), 0))

    assert high.rating == 1803
    assert low.rating == 1700


# --- Teams and shapes ---------------------------------------------------------------------------------------


def test_team_is_met_as_the_mean_of_its_ratings() -> None:
    a, b = [rated_player(1600), rated_player(1200)], [rated_player(1500)]

    rated = Elo().rate(match(a, b))

    W_e = [1 / (1 + 10 ** (-D / 400)) for D in (100, -300, 100)]
    by_hand = [1600 + 32 * (1 - W_e[0]), 1200 + 32 * (1 - W_e[1]), 1500 - 32 * W_e[2]]
    assert [player.rating for player in rated] == pytest.approx(by_hand, abs=CLOSE)


@pytest.mark.parametrize("sides", [1, 3, 6])
def test_game_of_other_than_two_sides_is_refused(sides: int) -> None:
    field = Game([GameSide([rated_player(1500)], rank) for rank in range(1, sides + 1)])

    with pytest.raises(GameUnsupportedError, match=f"elo rates games of two sides; this one has {sides}"):
        Elo().rate(field)
    with pytest.raises(GameUnsupportedError, match=f"elo rates games of two sides; this one has {sides}"):
        Elo().results(field)


# --- Limits -------------------------------------------------------------------------------------------------


def test_unknown_player_starts_at_1500() -> None:
    assert Elo().initial() == PlayerState(1500.0, 0.0)


@pytest.mark.parametrize(
    "system",
    [
        Elo(),
        Elo(difference_cap=400),
        FIDE,
        replace(FIDE, difference_cap=0),
        Elo(k_rule="calculator"),
        Elo(k_rule="uscf"),
        Elo(k_rule="egf_until_2021", expectation="egf_until_2021"),
        Elo(k_rule="dwz"),
        NFL,
    ],
)
def test_loss_against_the_lowest_opponent_costs_more_than_a_loss_against_an_equal(system: Elo) -> None:
    player = rated_player(1500)

    lost_low, lost_equal = (
        system.rate(match([player], [opponent], 0, decided_by="forfeit"))[0].rating
        for opponent in (system.lowest(), player)
    )

    assert system.lowest() == PlayerState(0.0, 0.0)
    assert lost_low < lost_equal < 1500


def test_loss_against_the_lowest_opponent_costs_the_share_of_k_that_the_cap_leaves() -> None:
    fallen, _ = FIDE.rate(duel(rated_player(1500), FIDE.lowest(), 0))

    assert fallen.rating == pytest.approx(1500 - 20 * 0.92, abs=CLOSE)


def test_rating_is_cut_at_both_ends() -> None:
    system = Elo(rating_min=1000, rating_max=2000, k=40)

    top, _ = system.rate(duel(rated_player(1990), rated_player(1990)))
    _, bottom = system.rate(duel(rated_player(1010), rated_player(1010)))

    assert (top.rating, bottom.rating) == (2000, 1000)


@pytest.mark.parametrize("options", OPTIONS + MARGINS)
@pytest.mark.parametrize("W", [0, 0.5, 1])
@pytest.mark.parametrize("home", [True, False])
def test_widest_pool_there_can_be_stays_finite(options: dict[str, Any], W: float, home: bool) -> None:
    system = Elo(**{**options, "rating_min": -10_000.0, "rating_max": 10_000.0, "scale": 1.0, "k": 1000.0})
    high, low = rated_player(10_000), rated_player(-10_000)

    points = (W - 0.5) * 2.0**53

    rated = system.rate(match([high], [low], W, (points, -points), (home, not home)))

    for player in rated:
        assert -10_000 <= player.rating <= 10_000
        assert -0.008 <= player.expected <= 1


def test_exponent_is_bounded_at_both_ends() -> None:
    assert logistic(-20_000, 1) == pytest.approx(0, abs=1e-299)
    assert logistic(20_000, 1) == 1


@given(teams, teams, scores, some_options)
def test_whatever_is_played_stays_within_the_limits(
    a: list[PlayerState], b: list[PlayerState], W: float, options: dict[str, Any]
) -> None:
    rated = Elo(**options).rate(match(a, b, W, points_of(W)))

    assert len(rated) == len(a) + len(b)
    assert all(0 <= player.rating <= 4000 and player.rd == 0 for player in rated)


@given(ratings, ratings, scores)
def test_points_only_change_hands_when_both_have_the_same_k(R: float, R_other: float, W: float) -> None:
    system = Elo(rating_min=-10_000, rating_max=10_000)

    a, b = system.rate(duel(rated_player(R), rated_player(R_other), W))

    assert a.rating + b.rating == pytest.approx(R + R_other, abs=1e-9)


@given(players, players, st.sampled_from(["logistic", "fide_table"]), st.sampled_from([0, 400]))
def test_expectations_of_both_add_up_to_one(
    a: PlayerState, b: PlayerState, expectation: str, cap: float
) -> None:
    system = Elo(expectation=expectation, difference_cap=cap, uncapped_from=10_000)

    assert 0 <= system.expected(a, b) <= 1
    assert system.expected(a, b) + system.expected(b, a) == pytest.approx(1, abs=1e-12)


@given(players, players, some_options)
def test_win_never_lowers_and_loss_never_raises(
    a: PlayerState, b: PlayerState, options: dict[str, Any]
) -> None:
    # US Chess's first games, the EGF's epsilon, a floor above the rating and a new season may.
    a, b = a._replace(new_season=False, games=a.games + 9), b._replace(new_season=False, games=b.games + 9)
    system = Elo(**{**options, "egf_epsilon": 0.0, "floor": "none"})

    winner, loser = system.rate(match([a], [b], 1, (3.0, 1.0)))

    assert winner.rating >= a.rating
    assert loser.rating <= b.rating


@given(teams, teams, scores, some_options)
def test_sides_in_the_other_order_have_the_same_bits(
    a: list[PlayerState], b: list[PlayerState], W: float, options: dict[str, Any]
) -> None:
    system = Elo(**options)

    forth = system.rate(match(a, b, W, points_of(W), (True, False)))
    back = system.rate(match(b, a, 1 - W, points_of(1 - W), (False, True)))

    assert exactly(forth) == exactly([*back[len(b) :], *back[: len(b)]])


# --- Parameters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "contradiction"),
    [
        (
            {"margin": "fivethirtyeight_nfl", "period": 7},
            "a margin multiplier rates game by game: period must be 0",
        ),
        ({"margin": "fivethirtyeight_nba", "k_rule": "uscf"}, "margin must be none"),
        ({"carry": 0.75}, "carry 0.75 needs season_month"),
        (
            {"carry": 0.75, "season_month": 9, "rating_max": 1504.0},
            "carry_mean 1505 is not between rating_min 0 and rating_max 1504",
        ),
    ],
)
def test_contradicting_parameters_are_told(options: dict[str, Any], contradiction: str) -> None:
    assert contradiction in (Elo(**options).contradiction() or "")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"season_month": 9},
        {"rating_max": 1504.0},
        {"carry": 0.75, "season_month": 9},
        {"margin": "fivethirtyeight_nfl", "k_rule": "fide"},
        {"k_rule": "uscf", "floor": "uscf", "period": 30},
    ],
)
def test_parameters_that_agree_are_no_contradiction(options: dict[str, Any]) -> None:
    assert Elo(**options).contradiction() is None


@pytest.mark.parametrize(
    "given_parameters",
    [{"k": 0}, {"k": 1001}, {"scale": 0}, {"season_month": 13}, {"carry": 1.1}, {"k_rule": "uefa"}],
)
def test_parameter_out_of_range_is_refused(given_parameters: dict[str, Any]) -> None:
    with pytest.raises(BadParameterError):
        build(Elo, given_parameters)
