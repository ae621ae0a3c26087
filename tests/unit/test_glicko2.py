"""Glicko-2 against the numbers of its paper and a second reading of it, never against its own output.

The numbers of other implementations are among the shared vectors: vector_runners/glicko2.py.
"""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings import glicko2
from petard_worker.ratings.glicko2 import SCALE, Glicko2, aged_rd, bracket, f, g, new_volatility, result
from petard_worker.ratings.system import Game, GameSide, PeriodSystem, PlayerState, Rated, Terms, sum_terms

CLOSE = 1e-9
DAYS_OF_A_PERIOD = 1 / 0.21436
WIDEST: dict[str, Any] = {
    "rating_min": -10_000,
    "rating_max": 10_000,
    "rd_floor": 1,
    "rd": 1_000,
    "volatility_min": 0.0001,
    "volatility_max": 10,
}
"""The system with limits that no ordinary game meets."""

ratings = st.floats(0, 3000)
deviations = st.floats(30, 350)
volatilities = st.one_of(st.none(), st.floats(0.01, 0.15))
idle_days = st.floats(0, 20_000)
players = st.builds(
    lambda r, RD, sigma, days: PlayerState(r, RD, sigma, days=days),
    *(ratings, deviations, volatilities, idle_days),
)
wild_players = st.builds(
    lambda r, RD, sigma, days: PlayerState(r, RD, sigma, days=days),
    *(st.floats(-10_000, 10_000), st.floats(1, 1_000), st.floats(0.0001, 10), st.floats(0, 1e6)),
)
scores = st.sampled_from([0, 0.5, 1])
homes = st.sampled_from([None, True, False])
sides = st.builds(
    lambda team, rank, home: GameSide(team, rank, home=home),
    *(st.lists(players, min_size=1, max_size=4), st.integers(1, 4), homes),
)


def duel(
    a: PlayerState,
    b: PlayerState,
    s: float = 1,
    home_a: bool | None = None,
    home_b: bool | None = None,
) -> Game:
    """The game of a against b; s is the score of a."""
    return Game(
        (GameSide((a,), 1 if s > 0 else 2, home=home_a), GameSide((b,), 1 if s < 1 else 2, home=home_b))
    )


def exactly(rated: Sequence[Rated]) -> list[str]:
    """The result with all its bits: unlike ==, repr tells 0.0 from -0.0."""
    return [repr(player) for player in rated]


def side(rank: int, *team: tuple[float, float]) -> GameSide:
    return GameSide([PlayerState(r, RD) for r, RD in team], rank)


# --- The paper ----------------------------------------------------------------------------------------------

EXAMPLE_PLAYER = PlayerState(1500, 200, 0.06)
EXAMPLE = [(1400, 30, 1), (1550, 100, 0), (1700, 300, 0)]
EXAMPLE_GAMES = [duel(EXAMPLE_PLAYER, PlayerState(r_j, RD_j), s) for r_j, RD_j, s in EXAMPLE]
V, DELTA = 1.7789770897239976, -0.4839332609836549
SIGMA_NEW = 0.059995984286488495


def results_of_example() -> list[Terms]:
    return [terms for game in EXAMPLE_GAMES for terms in Glicko2().results(game)[0]]


def test_worked_example_has_the_variance_and_the_improvement_of_the_paper() -> None:
    information, gain, expected, actual = sum_terms(results_of_example())

    assert 1 / information == pytest.approx(V, rel=1e-14)
    assert gain / information == pytest.approx(DELTA, rel=1e-13)
    # Glicko and Glicko-2 expect the same, but for the scale's sixth digit.
    assert expected == pytest.approx(0.639467736007921 + 0.43184235355955686 + 0.30284072524764, abs=1e-7)
    assert actual == 1


def test_worked_example_has_the_volatility_of_the_paper() -> None:
    assert new_volatility(200 / SCALE, 0.06, V, DELTA, 0.5) == pytest.approx(SIGMA_NEW, abs=1e-14)


def test_worked_example_comes_to_the_rating_of_the_paper() -> None:
    rated = Glicko2().rate_period(EXAMPLE_PLAYER, sum_terms(results_of_example()))

    assert rated.rating == pytest.approx(1464.0506705393013, abs=CLOSE)
    assert rated.rd == pytest.approx(151.51652412385727, abs=CLOSE)
    assert rated.volatility == pytest.approx(SIGMA_NEW, abs=1e-14)
    assert rated.rd_aged == pytest.approx(200.27141669877065, abs=CLOSE)


def test_idle_period_only_widens_the_doubt() -> None:
    rated = Glicko2().rate_period(EXAMPLE_PLAYER, (0.0, 0.0, 0.0, 0.0))

    assert rated.rd == pytest.approx(200.27141669877065, abs=CLOSE)
    assert (rated.rating, rated.volatility) == (1500, 0.06)


def test_scale_is_rounded_as_in_the_paper() -> None:
    assert SCALE == 173.7178


@pytest.mark.parametrize(("RD", "g_j"), [(30, 0.9955), (100, 0.9531), (300, 0.7242)])
def test_table_of_the_paper_weighs_each_opponent(RD: float, g_j: float) -> None:
    assert g(RD / SCALE) == pytest.approx(g_j, abs=5e-5)


@pytest.mark.parametrize(("r_j", "RD_j", "E_j"), [(1400, 30, 0.639), (1550, 100, 0.432), (1700, 300, 0.303)])
def test_table_of_the_paper_expects_each_score(r_j: float, RD_j: float, E_j: float) -> None:
    rated, _ = Glicko2().rate(duel(EXAMPLE_PLAYER, PlayerState(r_j, RD_j)))

    assert rated.expected == pytest.approx(E_j, abs=5e-4)


def test_prediction_counts_both_deviations() -> None:
    expected = Glicko2().expected(PlayerState(1400, 80), PlayerState(1500, 150))

    # The number of Glicko, whose scale is the same but for the sixth digit.
    assert expected == pytest.approx(0.3759876557136924, abs=1e-7)


# --- The paper, read a second time --------------------------------------------------------------------------


def volatility_by_halving(phi: float, sigma: float, v: float, delta: float, tau: float) -> float:
    """The root of f, where it has one only, found by nothing but halving."""
    a = math.log(sigma**2)

    def f(x: float) -> float:
        e_x = math.exp(x)
        return e_x * (delta**2 - phi**2 - v - e_x) / (2 * (phi**2 + v + e_x) ** 2) - (x - a) / tau**2

    low, high = a - 10, a + 10
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) > 0 else (low, middle)
    return math.exp(low / 2)


def by_the_paper(player: PlayerState, field: Sequence[tuple[float, float, float]], n: float) -> Rated:
    """The player after n periods, at most one, against (rating, deviation, score), by steps 2 to 8."""
    sigma = player.volatility or 0.06
    mu, phi = (player.rating - 1500) / 173.7178, player.rd / 173.7178
    terms = []
    for r_j, RD_j, s in field:
        g_j = 1 / math.sqrt(1 + 3 * (RD_j / 173.7178) ** 2 / math.pi**2)
        terms.append((g_j, 1 / (1 + math.exp(-g_j * (mu - (r_j - 1500) / 173.7178))), s))
    v = 1 / sum(g_j**2 * E * (1 - E) for g_j, E, _ in terms)
    gain = sum(g_j * (s - E) for g_j, E, s in terms)
    sigma_new = volatility_by_halving(phi, sigma, v, v * gain, 0.5)
    phi_star = math.sqrt(phi**2 + n * sigma_new**2)
    phi_new = 1 / math.sqrt(1 / phi_star**2 + 1 / v)
    return Rated(
        173.7178 * (mu + phi_new**2 * gain) + 1500,
        173.7178 * phi_new,
        sigma_new,
        sum(E for _, E, _ in terms),
        sum(s for _, _, s in terms),
        173.7178 * math.sqrt(phi**2 + n * sigma**2),
    )


def assert_same(got: Rated, expected: Rated) -> None:
    assert got.volatility == pytest.approx(expected.volatility, rel=1e-6)
    for name in ("rating", "rd", "expected", "actual", "rd_aged"):
        assert getattr(got, name) == pytest.approx(getattr(expected, name), abs=1e-6), name


@pytest.mark.parametrize("n", [0, 0.25, 1])
@pytest.mark.parametrize("s", [0, 0.5, 1])
def test_one_game_is_rated_by_the_paper(n: float, s: float) -> None:
    a = PlayerState(1720, 90, 0.08, days=n * DAYS_OF_A_PERIOD)
    b = PlayerState(1610, 140, 0.05, days=0)

    rated_a, rated_b = Glicko2().rate(duel(a, b, s))

    assert_same(rated_a, by_the_paper(a, [(1610, 140, s)], n))
    assert_same(rated_b, by_the_paper(b, [(1720, 90, 1 - s)], 0))


FIELDS = [
    pytest.param([side(1, (1600, 80), (1400, 200)), side(2, (1500, 50), (1450, 340))], id="two against two"),
    pytest.param([side(2, (1900, 60)), side(1, (1500, 90), (1300, 120), (1100, 70))], id="one against three"),
    pytest.param([side(1, (1600, 80), (1400, 200)), side(1, (1550, 50))], id="teams that draw"),
    pytest.param(
        [side(n, (1400 + 50 * n, 60 + 30 * n)) for n in (1, 2, 3, 4)], id="everybody for themselves"
    ),
    pytest.param([side(1, (1500, 80)), side(1, (1600, 90)), side(7, (1700, 100))], id="a shared first place"),
    pytest.param(
        [
            side(3, (1500, 80), (1520, 95)),
            side(1, (1600, 90)),
            side(2, (1400, 70), (1700, 150), (1200, 60)),
        ],
        id="three teams",
    ),
]


def seen_by_others(team: GameSide) -> tuple[float, float]:
    """The mean rating of a team, and the root of its mean square deviation."""
    count = len(team.players)
    mean_square = sum(player.rd**2 for player in team.players) / count
    return sum(player.rating for player in team.players) / count, math.sqrt(mean_square)


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("field", FIELDS)
def test_many_players_are_rated_by_the_paper(field: list[GameSide], n: int) -> None:
    waited = [
        team._replace(players=[player._replace(days=n * DAYS_OF_A_PERIOD) for player in team.players])
        for team in field
    ]

    rated = iter(Glicko2().rate(Game(waited)))

    for team in field:
        others = [
            (*seen_by_others(other), 1 if team.rank < other.rank else 0.5 if team.rank == other.rank else 0)
            for other in field
            if other is not team
        ]
        for player in team.players:
            assert_same(next(rated), by_the_paper(player, others, n))
    assert next(rated, None) is None


def test_score_counts_every_side_that_was_beaten() -> None:
    field = [side(1, (1500, 80)), side(2, (1500, 80)), side(2, (1500, 80)), side(4, (1500, 80))]

    rated = Glicko2().rate(Game(field))

    assert [player.actual for player in rated] == [3, 1.5, 1.5, 0]
    assert [player.expected for player in rated] == pytest.approx([1.5] * 4, abs=1e-12)


# --- Step 5 always ends -------------------------------------------------------------------------------------

finite_terms = st.tuples(
    st.floats(1 / SCALE, 1_000 / SCALE),  # phi
    st.floats(0.0001, 10),  # sigma
    st.floats(-4, 52).map(lambda exponent: 10**exponent),  # v
    st.one_of(st.floats(-18, 4), st.just(-400)).map(lambda exponent: 10**exponent),  # the gain's size
    st.sampled_from([-1, 1]),
    st.floats(0.05, 3),  # tau
)


def count_of_f(*arguments: float) -> tuple[int, float]:
    """How often step 5 computes f, and the volatility."""
    calls = 0

    def counted(*numbers: float) -> float:
        nonlocal calls
        calls += 1
        return f(*numbers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(glicko2, "f", counted)
        sigma = new_volatility(*arguments)
    return calls, sigma


@given(finite_terms)
def test_search_for_the_volatility_ends_at_a_root_whatever_was_played(terms: tuple[float, ...]) -> None:
    phi, sigma, v, size, sign, tau = terms
    delta = v * size * sign

    calls, sigma_new = count_of_f(phi, sigma, v, delta, tau)

    assert calls <= 95
    x, a = 2 * math.log(sigma_new), math.log(sigma * sigma)
    numbers = (a, delta * delta - phi * phi - v, phi * phi + v, tau * tau)
    assert f(x - 2e-6, *numbers) * f(x + 2e-6, *numbers) <= 0


# Of 300,000 random ones the first took longest, 190 times f, where nothing ends step 5.4.
@pytest.mark.parametrize(
    ("phi", "sigma", "v", "delta", "tau"),
    [
        pytest.param(0.03908157423912717, 0.01388406611159197, 2.1e51, 1.81e54, 1.8, id="an absurd upset"),
        pytest.param(9.433077471081186, 0.000135, 4.1e47, -1.0968531256946797e35, 0.277, id="an absurd gap"),
        pytest.param(1.0, 0.06, 1.0, 0.0, 3.0, id="nothing new, volatility loose"),
        pytest.param(1.0, 10.0, 0.0001, 0.0, 0.05, id="nothing new, volatility tight"),
        pytest.param(1.0, 0.5, 1.0, 1.5, 0.5, id="the volatility is right already"),
    ],
)
def test_search_for_the_volatility_ends_in_the_worst_cases(
    phi: float, sigma: float, v: float, delta: float, tau: float
) -> None:
    calls, sigma_new = count_of_f(phi, sigma, v, delta, tau)

    assert calls <= 95
    assert 0 < sigma_new < math.inf


@given(players, players, scores)
def test_ordinary_game_needs_few_rounds(a: PlayerState, b: PlayerState, s: float) -> None:
    system = Glicko2()
    information, gain, _, _ = sum_terms(system.results(duel(a, b, s))[0])

    calls, _ = count_of_f(a.rd / SCALE, a.volatility or 0.06, 1 / information, gain / information, 0.5)

    assert calls <= 60


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_halving_comes_to_the_same_volatility(monkeypatch: pytest.MonkeyPatch, rounds: int) -> None:
    monkeypatch.setattr(glicko2, "ILLINOIS_ROUNDS", rounds)

    assert new_volatility(200 / SCALE, 0.06, V, DELTA, 0.5) == pytest.approx(SIGMA_NEW, rel=1e-6)


def test_halving_stays_at_a_root_that_it_hits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glicko2, "ILLINOIS_ROUNDS", 0)
    monkeypatch.setattr(glicko2, "f", lambda x, *_: -1 - x)

    # A is ln 1, B is 2 lower, and the root is the middle of the two.
    sigma = new_volatility(1, 1, 1, 0, 2)

    assert 2 * math.log(sigma) == pytest.approx(-1, abs=1e-6)


def test_search_stops_where_f_is_exactly_0() -> None:
    # Found by trying: with the older editions' `fC fB < 0` the root that was hit is never left.
    hit = (0.3959927485818111, 0.8683996576960488, 0.20606092365284734, -0.049053389062185815, 1.2)

    calls, sigma_new = count_of_f(*hit)

    assert calls <= 20
    assert sigma_new == pytest.approx(volatility_by_halving(*hit), rel=1e-6)


def test_search_starts_at_the_surprise_where_there_is_one() -> None:
    _, B, _, _ = bracket(-5.6, 0.25, 2.0, 0.5)

    assert math.log(0.25) == B


def test_halving_finds_the_higher_volatility_too(monkeypatch: pytest.MonkeyPatch) -> None:
    surprised = (0.3, 0.1, 0.5, 1.5, 1.2)
    monkeypatch.setattr(glicko2, "ILLINOIS_ROUNDS", 0)

    halved = new_volatility(*surprised)

    assert halved == pytest.approx(volatility_by_halving(*surprised), rel=1e-6)
    assert halved > 0.1


@given(
    st.floats(-18.5, 4.7),
    st.floats(0, 1).map(lambda share: -share),
    st.floats(1e-4, 1e52),
    st.floats(0.05, 3),
)
def test_bracket_has_a_root_inside_and_is_found_in_two_steps_of_tau(
    a: float, share: float, spread: float, tau: float
) -> None:
    A, B, fA, fB = bracket(a, share * spread, spread, tau)

    assert a == A
    assert fA <= 0 <= fB
    assert a - 2 * tau - 1e-12 <= B < a


# --- Ageing -------------------------------------------------------------------------------------------------


def test_deviation_of_60_grows_to_110_in_a_year() -> None:
    rated, _ = Glicko2().rate(duel(PlayerState(1500, 60, days=365), PlayerState(1500, 60)))

    assert rated.rd_aged == pytest.approx(110, abs=0.02)


def test_first_and_late_games_age_nobody() -> None:
    a, b = Glicko2().rate(duel(PlayerState(1500, 350, 0.06), PlayerState(1500, 350, 0.06), 0))

    # Of the tests of lichess, whose games age nobody.
    assert (a.rd, b.rd) == pytest.approx((290.2305, 290.2305), abs=5e-5)
    assert (a.rd_aged, b.rd_aged) == (350, 350)


@given(deviations, st.floats(0.01, 0.15), st.floats(0, 1000), st.floats(0, 1000))
def test_two_waits_age_like_one(RD: float, sigma: float, first: float, second: float) -> None:
    in_two = aged_rd(aged_rd(RD, sigma, first, 350), sigma, second, 350)

    assert in_two == pytest.approx(aged_rd(RD, sigma, first + second, 350), rel=CLOSE)


@given(players)
def test_waiting_never_makes_a_player_surer_nor_less_sure_than_a_stranger(player: PlayerState) -> None:
    rated, _ = Glicko2().rate(duel(player, PlayerState(1500, 60)))

    assert player.rd <= rated.rd_aged <= 350


def test_last_period_is_not_yet_seen_by_the_opponent() -> None:
    rested = PlayerState(1500, 60, 0.15)
    waited = rested._replace(days=DAYS_OF_A_PERIOD)
    opponent = PlayerState(1550, 80, 0.06)

    _, against_rested = Glicko2().rate(duel(rested, opponent))
    _, against_waited = Glicko2().rate(duel(waited, opponent))

    assert exactly([against_waited]) == exactly([against_rested])


@pytest.mark.parametrize("idle_periods", [0.5, 50])
def test_idle_periods_before_the_last_are_seen_by_everybody(idle_periods: float) -> None:
    system = Glicko2(periods_per_day=1)
    idle = PlayerState(1500, 60, 0.15, days=idle_periods + 1)
    grown = PlayerState(1500, math.sqrt(60**2 + idle_periods * (173.7178 * 0.15) ** 2), 0.15, days=1)
    opponent = PlayerState(1550, 80, 0.06)

    rated_idle, against_idle = system.rate(duel(idle, opponent))
    rated_grown, against_grown = system.rate(duel(grown, opponent))

    assert_same(rated_idle, rated_grown)
    assert_same(against_idle, against_grown)
    assert_same(against_idle, by_the_paper(opponent, [(1500, grown.rd, 0)], 0))


def test_player_of_a_team_ages_before_the_team_is_measured() -> None:
    system = Glicko2(periods_per_day=1)
    rested, idle = PlayerState(1500, 60), PlayerState(1500, 60, days=51)
    grown = PlayerState(1500, math.sqrt(60**2 + 50 * (173.7178 * 0.06) ** 2), days=1)

    waited = system.rate(Game([GameSide([rested, idle], 1), GameSide([rested], 2)]))
    known = system.rate(Game([GameSide([rested, grown], 1), GameSide([rested], 2)]))

    for one, other in zip(waited, known, strict=True):
        assert_same(one, other)


def test_prediction_is_made_for_players_aged_to_the_day() -> None:
    system = Glicko2(periods_per_day=1)
    a, b = PlayerState(1700, 60, 0.1, days=30), PlayerState(1500, 70, days=0.5)
    grown_a = PlayerState(1700, math.sqrt(60**2 + 30 * (173.7178 * 0.1) ** 2))
    grown_b = PlayerState(1500, math.sqrt(70**2 + 0.5 * (173.7178 * 0.06) ** 2))

    assert system.expected(a, b) == pytest.approx(system.expected(grown_a, grown_b), abs=1e-12)
    assert system.expected(a, b) < system.expected(a._replace(days=0), b)


# --- Periods ------------------------------------------------------------------------------------------------


def test_glicko2_knows_periods() -> None:
    assert isinstance(Glicko2(), PeriodSystem)


@given(st.lists(st.tuples(players, scores), min_size=2, max_size=12), players, st.data())
def test_order_of_the_results_of_a_period_does_not_matter_to_the_bit(
    games: list[tuple[PlayerState, float]], player: PlayerState, data: st.DataObject
) -> None:
    system = Glicko2(period=7)
    results = [terms for opponent, s in games for terms in system.results(duel(player, opponent, s))[0]]
    moved = data.draw(st.permutations(results))

    in_order = system.rate_period(player, sum_terms(results))
    out_of_order = system.rate_period(player, sum_terms(moved))

    assert exactly([out_of_order]) == exactly([in_order])


@pytest.mark.parametrize(
    "system", [Glicko2(period=7), Glicko2(periods_per_day=0.2), Glicko2(periods_per_day=0)]
)
@pytest.mark.parametrize("days", [0, 1, 4])
def test_period_counts_as_one_however_short_ago_the_last_was(system: Glicko2, days: float) -> None:
    player = PlayerState(1500, 200, 0.06, days=days)
    results = [terms for game in EXAMPLE_GAMES for terms in system.results(game)[0]]

    rated = system.rate_period(player, sum_terms(results))

    assert rated.rating == pytest.approx(1464.0506705393013, abs=CLOSE)
    assert rated.rd == pytest.approx(151.51652412385727, abs=CLOSE)
    assert rated.rd_aged == pytest.approx(200.27141669877065, abs=CLOSE)


def test_periods_that_were_sat_out_age_the_player_and_what_opponents_see() -> None:
    system = Glicko2(period=7)
    idle = PlayerState(1500, 60, 0.14, days=7 * 31)
    grown = math.sqrt(60**2 + 30 * (173.7178 * 0.14) ** 2)
    opponent = PlayerState(1550, 80, 0.06, days=7)

    of_idle, of_opponent = system.results(duel(idle, opponent))
    rated_idle = system.rate_period(idle, sum_terms(of_idle))
    rated_opponent = system.rate_period(opponent, sum_terms(of_opponent))

    assert_same(rated_idle, by_the_paper(PlayerState(1500, grown, 0.14), [(1550, 80, 1)], 1))
    assert_same(rated_opponent, by_the_paper(opponent, [(1500, grown, 0)], 1))


@given(players, players, scores)
def test_period_of_one_game_is_that_game_a_period_later(a: PlayerState, b: PlayerState, s: float) -> None:
    days = {"days": 7.0}
    game = duel(a._replace(**days), b._replace(**days), s)
    system = Glicko2(period=7)

    closed = [
        system.rate_period(side.players[0], sum_terms(terms))
        for side, terms in zip(game.sides, system.results(game), strict=True)
    ]

    assert exactly(closed) == exactly(Glicko2(periods_per_day=1 / 7).rate(game))


# --- At home ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("home", [None, False, True])
def test_advantage_is_for_those_at_home_alone(home: bool | None) -> None:
    a, b = PlayerState(1500, 60), PlayerState(1520, 90)

    neutral = Glicko2().rate(duel(a, b))
    even = Glicko2(home_advantage=40).rate(duel(a, b, 1, home, home))

    assert exactly(even) == exactly(neutral)


@pytest.mark.parametrize("away", [None, False])
@pytest.mark.parametrize("s", [0, 0.5, 1])
def test_side_at_home_is_expected_to_score_as_if_it_were_rated_higher(s: float, away: bool | None) -> None:
    a, b = PlayerState(1500, 60), PlayerState(1520, 90)

    at_home, guest = Glicko2(home_advantage=40).rate(duel(a, b, s, True, away))
    higher, lower = Glicko2().rate(duel(a._replace(rating=1540), b, s))

    assert at_home.expected == higher.expected
    assert guest.expected == pytest.approx(lower.expected, abs=1e-15)
    assert at_home.rating == pytest.approx(higher.rating - 40, abs=CLOSE)
    assert guest.rating == pytest.approx(lower.rating, abs=CLOSE)


def test_advantage_goes_to_the_second_side_when_that_is_at_home() -> None:
    system = Glicko2(home_advantage=40)
    a, b = PlayerState(1500, 60), PlayerState(1520, 90)

    forth, back = system.rate(duel(a, b, 1, True, False)), system.rate(duel(b, a, 0, False, True))

    assert exactly(forth) == exactly(back[::-1])


def test_team_at_home_has_the_advantage_over_each_of_the_others() -> None:
    team = [PlayerState(1500, 60), PlayerState(1400, 80)]
    guest, other_guest = PlayerState(1520, 90), PlayerState(1450, 70)
    field = [GameSide(team, 1, home=True), GameSide([guest], 2), GameSide([other_guest], 3, home=False)]

    rated = Glicko2(home_advantage=40).rate(Game(field))

    higher = [player._replace(rating=player.rating + 40) for player in team]
    neutral = Glicko2().rate(Game([GameSide(higher, 1), *(side._replace(home=None) for side in field[1:])]))
    assert [player.expected for player in rated] == pytest.approx(
        [player.expected for player in neutral], abs=1e-12
    )


def test_prediction_is_for_neutral_ground() -> None:
    a, b = PlayerState(1500, 60), PlayerState(1520, 90)

    assert Glicko2(home_advantage=40).expected(a, b) == Glicko2().expected(a, b)


# --- What must hold for all players -------------------------------------------------------------------------


@given(players, players, scores, homes, homes, st.sampled_from([0, 7]))
def test_duel_is_a_field_of_two_bit_for_bit(
    a: PlayerState, b: PlayerState, s: float, home_a: bool | None, home_b: bool | None, period: int
) -> None:
    system = Glicko2(home_advantage=33, period=period)
    game = duel(a, b, s, home_a, home_b)

    assert exactly(system.rate(game)) == exactly(system.rate_field(game.sides))


@given(players, players, scores)
def test_who_is_named_first_makes_no_difference(a: PlayerState, b: PlayerState, s: float) -> None:
    system = Glicko2()

    forth, back = system.rate(duel(a, b, s)), system.rate(duel(b, a, 1 - s))

    assert exactly(forth) == exactly(back[::-1])


@given(st.permutations(range(4)), st.lists(sides, min_size=4, max_size=4))
def test_order_of_many_sides_makes_no_difference(order: list[int], field: list[GameSide]) -> None:
    system = Glicko2(home_advantage=33)
    ends = [sum(len(side.players) for side in field[: i + 1]) for i in range(4)]

    rated = system.rate(Game(field))
    moved = system.rate(Game([field[i] for i in order]))

    by_side = [rated[ends[i] - len(field[i].players) : ends[i]] for i in range(4)]
    assert exactly(moved) == exactly([player for i in order for player in by_side[i]])


@given(players, players, st.floats(0.001, 3000))
def test_higher_rating_never_expects_less(a: PlayerState, b: PlayerState, more: float) -> None:
    system = Glicko2()
    higher = a._replace(rating=a.rating + more)

    assert system.expected(higher, b) >= system.expected(a, b)
    assert system.rate(duel(higher, b))[0].expected >= system.rate(duel(a, b))[0].expected


@given(players, players)
def test_expectations_of_both_add_up_to_one(a: PlayerState, b: PlayerState) -> None:
    system = Glicko2()

    assert 0 <= system.expected(a, b) <= 1
    assert system.expected(a, b) + system.expected(b, a) == pytest.approx(1, abs=1e-12)


@given(players, players)
def test_win_never_lowers_and_loss_never_raises(a: PlayerState, b: PlayerState) -> None:
    winner, loser = Glicko2().rate(duel(a, b))

    assert winner.rating >= a.rating
    assert loser.rating <= b.rating


@given(players, players)
def test_draw_never_moves_the_better_player_up(a: PlayerState, b: PlayerState) -> None:
    better, worse = sorted((a, b), key=lambda player: player.rating, reverse=True)

    up, down = Glicko2().rate(duel(better, worse, 0.5))

    assert up.rating <= better.rating
    assert down.rating >= worse.rating


@given(players, players, scores)
def test_game_that_ages_nobody_makes_nobody_less_sure(a: PlayerState, b: PlayerState, s: float) -> None:
    for rated in Glicko2().rate(duel(a._replace(days=0), b._replace(days=0), s)):
        assert rated.rd <= rated.rd_aged


def test_upset_raises_the_volatility_and_the_expected_lowers_it() -> None:
    strong, weak = PlayerState(2000, 50, 0.06), PlayerState(1500, 50, 0.06)

    as_expected, upset = Glicko2().rate(duel(strong, weak)), Glicko2().rate(duel(strong, weak, 0))

    assert all(player.volatility is not None and player.volatility < 0.06 for player in as_expected)
    assert all(player.volatility is not None and player.volatility > 0.06 for player in upset)


def test_mates_of_a_team_move_by_their_own_uncertainty() -> None:
    sure, unsure, _ = Glicko2().rate(Game([side(1, (1500, 50), (1500, 300)), side(2, (1500, 100))]))

    assert 1500 < sure.rating < unsure.rating


# --- Limits -------------------------------------------------------------------------------------------------


def assert_within_the_limits(rated: Sequence[Rated], system: Glicko2) -> None:
    """Fail unless all numbers are within the limits of the system; nan never is."""
    for player in rated:
        assert system.rating_min <= player.rating <= system.rating_max
        assert system.rd_floor <= player.rd <= system.rd
        assert player.volatility is not None
        assert system.volatility_min <= player.volatility <= system.volatility_max
        assert 0 <= player.expected < math.inf
        assert 0 < player.rd_aged <= system.rd


@given(st.lists(sides, min_size=2, max_size=8))
def test_whatever_is_played_stays_within_the_limits(field: list[GameSide]) -> None:
    system = Glicko2()

    rated = system.rate(Game(field))

    assert len(rated) == sum(len(side.players) for side in field)
    assert_within_the_limits(rated, system)


@given(wild_players, wild_players, scores, st.floats(-1000, 1000), st.floats(0.05, 3))
def test_widest_pool_there_can_be_stays_finite(
    a: PlayerState, b: PlayerState, s: float, advantage: float, tau: float
) -> None:
    system = Glicko2(**WIDEST, tau=tau, home_advantage=advantage)
    game = duel(a, b, s, home_a=True)

    assert_within_the_limits(system.rate(game), system)
    assert 0 <= system.expected(a, b) <= 1
    period = [
        system.rate_period(side.players[0], sum_terms(terms * 40))
        for side, terms in zip(game.sides, system.results(game), strict=True)
    ]
    assert_within_the_limits(period, system)


@pytest.mark.parametrize("RD_low", [1, 1000])
@pytest.mark.parametrize("RD_high", [1, 1000])
@pytest.mark.parametrize("s", [0, 0.5, 1])
def test_highest_against_lowest_stays_finite(RD_high: float, RD_low: float, s: float) -> None:
    system = Glicko2(**WIDEST)

    rated = system.rate(duel(PlayerState(10_000, RD_high), PlayerState(-10_000, RD_low), s))

    assert_within_the_limits(rated, system)


def test_forty_upsets_in_a_period_move_a_player_no_further_than_the_highest_volatility_lets() -> None:
    strong, weak = PlayerState(2000, 50, 0.06), PlayerState(1500, 50, 0.06)
    upsets = Glicko2().results(duel(strong, weak, 0))[0] * 40

    rated = Glicko2().rate_period(strong, sum_terms(upsets))

    # Steps 6 to 8 with sigma' = 0.15, where the formulas alone come to −890 with 2.14.
    g_j = 1 / math.sqrt(1 + 3 * (50 / 173.7178) ** 2 / math.pi**2)
    E_j = 1 / (1 + math.exp(-g_j * 500 / 173.7178))
    phi_new = 1 / math.sqrt(1 / ((50 / 173.7178) ** 2 + 0.15**2) + 40 * g_j**2 * E_j * (1 - E_j))
    assert rated.volatility == 0.15
    assert rated.rd == pytest.approx(173.7178 * phi_new, abs=1e-6)
    assert rated.rating == pytest.approx(2000 - 173.7178 * phi_new**2 * 40 * g_j * E_j, abs=1e-6)


def test_volatility_is_cut_at_both_ends() -> None:
    system = Glicko2(volatility_min=0.06, volatility_max=0.06)

    as_expected = system.rate(duel(PlayerState(2000, 50), PlayerState(1500, 50)))
    upset = system.rate(duel(PlayerState(2000, 50), PlayerState(1500, 50), 0))

    assert [player.volatility for player in as_expected + upset] == [0.06] * 4


def test_rating_is_cut_at_both_ends() -> None:
    system = Glicko2()

    winner, loser = system.rate(duel(PlayerState(2990, 350), PlayerState(2990, 350)))
    upset, shocked = system.rate(duel(PlayerState(10, 350), PlayerState(10, 350), 0))

    assert winner.rating == 3000
    assert upset.rating == 0
    # The other one is not cut, and moves as if nobody were: 162.21 in the tests of lichess.
    assert loser.rating == pytest.approx(2990 - 162.21, abs=0.005)
    assert shocked.rating == pytest.approx(10 + 162.21, abs=0.005)


def test_deviation_is_cut_at_the_floor() -> None:
    a, b = Glicko2().rate(duel(PlayerState(1500, 30), PlayerState(1500, 30)))
    lower, _ = Glicko2(rd_floor=1).rate(duel(PlayerState(1500, 30), PlayerState(1500, 30)))

    assert (a.rd, b.rd) == (30, 30)
    assert a.rating > 1500 > b.rating
    assert 29 < lower.rd < 30


def test_deviation_is_cut_at_that_of_an_unknown_player() -> None:
    system = Glicko2(rd=200)
    stranger, idle = PlayerState(1500, 350), PlayerState(1500, 60, days=1e6)
    known = PlayerState(1500, 200)

    of_stranger, against_stranger = system.rate(duel(stranger, known))
    of_idle, against_idle = system.rate(duel(idle, known))

    assert of_stranger.rd_aged == of_idle.rd_aged == 200
    assert (
        exactly([against_stranger]) == exactly([against_idle]) == exactly(system.rate(duel(known, known))[1:])
    )


@pytest.mark.parametrize("days", [0, 1, 10_000])
def test_two_thousand_straight_wins_end_within_the_limits(days: float) -> None:
    system = Glicko2()
    a, b = system.initial(), system.initial()

    for _ in range(2_000):
        won, lost = system.rate(duel(a, b))
        assert_within_the_limits([won, lost], system)
        assert a.rating <= won.rating
        assert lost.rating <= b.rating
        a = PlayerState(won.rating, won.rd, won.volatility, days=days)
        b = PlayerState(lost.rating, lost.rd, lost.volatility, days=days)


def test_unknown_player_starts_at_1500_with_350_and_006() -> None:
    assert Glicko2().initial() == PlayerState(1500.0, 350.0, 0.06)
    assert Glicko2(rating=1200, rd=300, volatility=0.09).initial() == PlayerState(1200, 300, 0.09)


def test_lowest_opponent_has_the_lowest_rating_and_the_least_doubt() -> None:
    assert Glicko2().lowest() == PlayerState(0.0, 30.0, 0.06)
    assert Glicko2(rating_min=-500, rd_floor=45).lowest() == PlayerState(-500, 45, 0.06)


@pytest.mark.parametrize("missing", [None, 0.0])
def test_player_without_a_volatility_has_that_of_an_unknown_one(missing: float | None) -> None:
    system = Glicko2(volatility=0.09)
    without, with_one = PlayerState(1500, 60, missing, days=30), PlayerState(1500, 60, 0.09, days=30)
    opponent = PlayerState(1600, 70, 0.05)

    assert exactly(system.rate(duel(without, opponent))) == exactly(system.rate(duel(with_one, opponent)))
    assert system.expected(without, opponent) == system.expected(with_one, opponent)


@pytest.mark.parametrize(
    ("given_parameters", "names"),
    [
        ({"rd": 40, "rd_floor": 50}, ["rd_floor 50", "rd 40"]),
        ({"volatility": 0.2}, ["volatility 0.2", "volatility_min 0.01", "volatility_max 0.15"]),
        ({"volatility": 0.005}, ["volatility 0.005", "volatility_min 0.01", "volatility_max 0.15"]),
    ],
)
def test_contradicting_parameters_are_named(given_parameters: dict[str, float], names: list[str]) -> None:
    contradiction = Glicko2(**given_parameters).contradiction()

    assert contradiction is not None
    assert all(name in contradiction for name in names)


def test_defaults_do_not_contradict_each_other() -> None:
    assert Glicko2().contradiction() is None
    assert Glicko2(rd=50, rd_floor=50, volatility_min=0.06, volatility_max=0.06).contradiction() is None


def test_one_result_of_equals_is_worth_what_the_paper_says() -> None:
    information, gain, expected, actual = result(1.0, 0.0, 1.0)

    assert (information, gain, expected, actual) == (0.25, 0.5, 0.5, 1.0)
