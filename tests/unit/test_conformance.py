"""What every rating system promises, for all of them and their main variants.

Where a system breaks a promise on purpose, the table of variants says why and where, and shows a game in
which it happens: such an exception is tested as well, so that the table cannot rot.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, fields, replace
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from petard_worker.display import displayed, displayed_width
from petard_worker.periods import OpenPeriod, Period, rate_in_period
from petard_worker.postgres.pools import Pool
from petard_worker.ratings import egf
from petard_worker.ratings.glicko2 import Glicko2
from petard_worker.ratings.parameters import BadParameterError, ParameterValue, describe
from petard_worker.ratings.pool_rules import SYSTEMS, pool_rules
from petard_worker.ratings.system import (
    Game,
    GameSide,
    GameUnsupportedError,
    PeriodSystem,
    PlayerState,
    Rated,
    RatingSystem,
    sum_terms,
)
from petard_worker.ratings.weng_lin_models import MODELS
from rating_draws import TEN_THOUSAND_YEARS, check_game, hostile_game, hostile_player

CLOSE = 1e-12
DUELS_OF_AN_EXAMPLE = 100


# --- Promises -----------------------------------------------------------------------------------------------


class Duel(NamedTuple):
    """Two players and all the circumstances of a game between them but its result."""

    a: PlayerState
    b: PlayerState
    better: float = 0.0
    """By how many points a might be better than a is."""
    home: bool = False
    margin: int = 3
    decided_by: str = "play"
    knockout: bool = False


def game_of(duel: Duel, s: float, *, neutral: bool = False) -> Game:
    """Return the game in which a scores s."""
    points = math.copysign(duel.margin, s - 0.5) if s != 0.5 else 0.0
    home = duel.home and not neutral
    sides = (
        GameSide((duel.a,), 1 if s > 0 else 2, 20 + points, home),
        GameSide((duel.b,), 1 if s < 1 else 2, 20.0, False),
    )
    return Game(sides, None, "play" if s == 0.5 else duel.decided_by, duel.knockout)


def expectations_add_up(system: RatingSystem, duel: Duel) -> bool:
    return abs(system.expected(duel.a, duel.b) + system.expected(duel.b, duel.a) - 1) <= CLOSE


def better_player_expects_no_less(system: RatingSystem, duel: Duel) -> bool:
    better = duel.a._replace(rating=min(duel.a.rating + duel.better, system.rating_max), peak=None)
    worse = duel.a._replace(peak=None)
    gain = system.expected(better, duel.b) - system.expected(worse, duel.b)
    loss = system.expected(duel.b, better) - system.expected(duel.b, worse)
    return gain >= -CLOSE and loss <= CLOSE


def win_lowers_nobody(system: RatingSystem, duel: Duel) -> bool:
    return system.rate(game_of(duel, 1))[0].rating >= duel.a.rating


def loss_raises_nobody(system: RatingSystem, duel: Duel) -> bool:
    return system.rate(game_of(duel, 0))[0].rating <= duel.a.rating


def draw_of_equals_moves_nobody(system: RatingSystem, duel: Duel) -> bool:
    equals = duel._replace(b=duel.b._replace(rating=duel.a.rating))
    rated = system.rate(game_of(equals, 0.5, neutral=True))
    return all(abs(each.rating - duel.a.rating) <= CLOSE * max(abs(duel.a.rating), 1) for each in rated)


def expected_score_is_a_score(system: RatingSystem, duel: Duel) -> bool:
    rated = [each for s in (0, 0.5, 1) for each in system.rate(game_of(duel, s))]
    return all(0 <= each.expected <= 1 for each in rated)


def actual_scores_add_up(system: RatingSystem, duel: Duel) -> bool:
    return all(math.fsum(each.actual for each in system.rate(game_of(duel, s))) == 1 for s in (0, 0.5, 1))


Promise = Callable[[RatingSystem, Duel], bool]

PROMISES: tuple[Promise, ...] = (
    expectations_add_up,
    better_player_expects_no_less,
    win_lowers_nobody,
    loss_raises_nobody,
    draw_of_equals_moves_nobody,
    expected_score_is_a_score,
    actual_scores_add_up,
)


class Exempt(NamedTuple):
    """A promise that a variant does not keep, why, in which games, and one of them."""

    promise: Promise
    why: str
    where: Callable[[Duel], bool]
    witness: Duel


# --- Exceptions ---------------------------------------------------------------------------------------------


def rated_at(rating: float, **more: Any) -> PlayerState:
    return PlayerState(rating, 0.0, **more)


def everywhere(_: Duel) -> bool:
    return True


def at_2650(duel: Duel) -> bool:
    return max(duel.a.rating + duel.better, duel.b.rating) >= 2650


def without_a_chance(duel: Duel) -> bool:
    return min(egf.expected_score(a.rating, b.rating) for a, b in itertools.permutations(duel[:2])) < 0


def in_new_season(duel: Duel) -> bool:
    return duel.a.new_season or duel.b.new_season


def among_first_games(duel: Duel) -> bool:
    return duel.a.games <= 8


def by_shootout(duel: Duel) -> bool:
    return duel.decided_by == "shootout"


EQUALS = Duel(rated_at(1500), rated_at(1500))

FROM_2650 = "a difference counts in full for players rated 2650 or more, and for nobody else (FIDE 8.3.1)"
FIDE_2650 = (
    Exempt(expectations_add_up, FROM_2650, at_2650, Duel(rated_at(2700), rated_at(2000))),
    Exempt(
        better_player_expects_no_less, FROM_2650, at_2650, Duel(rated_at(2600), rated_at(3300), better=100)
    ),
)

EPSILON = "both expected scores are epsilon/2 lower, against deflation (EGF)"
EGF_EPSILON = (
    Exempt(expectations_add_up, EPSILON, everywhere, EQUALS),
    Exempt(draw_of_equals_moves_nobody, EPSILON, everywhere, EQUALS),
    Exempt(loss_raises_nobody, EPSILON, without_a_chance, Duel(rated_at(500), rated_at(2500))),
    Exempt(expected_score_is_a_score, EPSILON, without_a_chance, Duel(rated_at(500), rated_at(2500))),
)

SEASON = "at a new season all ratings are drawn to carry_mean before the game (FiveThirtyEight)"
CARRY = (
    Exempt(win_lowers_nobody, SEASON, in_new_season, Duel(rated_at(2000, new_season=True), rated_at(1500))),
    Exempt(loss_raises_nobody, SEASON, in_new_season, Duel(rated_at(1000, new_season=True), rated_at(2000))),
    Exempt(
        draw_of_equals_moves_nobody,
        SEASON,
        in_new_season,
        Duel(rated_at(1000, new_season=True), rated_at(1000, new_season=True)),
    ),
)

SPECIAL = "the first 8 games take the mean of the opponents' ratings and 400 points for a win (US Chess)"
USCF = (
    Exempt(win_lowers_nobody, SPECIAL, among_first_games, Duel(rated_at(2000, games=4), rated_at(1000))),
    Exempt(loss_raises_nobody, SPECIAL, among_first_games, Duel(rated_at(1000, games=4), rated_at(2000))),
)

SHOOTOUT = "a penalty shoot-out gives 0.75 to who won it and 0.5 to who lost it (FIFA)"
FIFA = (
    Exempt(
        win_lowers_nobody, SHOOTOUT, by_shootout, Duel(rated_at(2000), rated_at(1000), decided_by="shootout")
    ),
    Exempt(
        loss_raises_nobody,
        SHOOTOUT,
        by_shootout,
        Duel(rated_at(1000), rated_at(2000), decided_by="shootout"),
    ),
    Exempt(
        actual_scores_add_up,
        SHOOTOUT,
        by_shootout,
        Duel(rated_at(1000), rated_at(1000), decided_by="shootout"),
    ),
)


# --- Variants -----------------------------------------------------------------------------------------------


class Variant(NamedTuple):
    """A system with parameters, which shapes of games it rates, and which promises it does not keep."""

    system: str
    parameters: Mapping[str, ParameterValue]
    shapes: frozenset[str]
    needs_points: bool = False
    exempt: Sequence[Exempt] = ()

    def build(self) -> RatingSystem:
        return pool_rules(self.system, self.parameters).system


DUELS = frozenset[str]()
TEAMS = frozenset({"teams"})
ALL = frozenset({"teams", "fields"})

FIDE: dict[str, ParameterValue] = {"expectation": "fide_table", "difference_cap": 400, "k_rule": "fide"}
LICHESS: dict[str, ParameterValue] = {
    "volatility": 0.09,
    "volatility_max": 0.1,
    "rd": 500,
    "rd_floor": 45,
    "tau": 0.75,
    "rating_min": 400,
    "rating_max": 4000,
}
EGF: dict[str, ParameterValue] = {"expectation": "egf_until_2021", "k_rule": "egf_until_2021"}
NFL: dict[str, ParameterValue] = {
    "margin": "fivethirtyeight_nfl",
    "k": 20,
    "home_advantage": 65,
    "carry": 2 / 3,
    "season_month": 9,
}
NBA: dict[str, ParameterValue] = {
    "margin": "fivethirtyeight_nba",
    "k": 20,
    "home_advantage": 100,
    "carry": 0.75,
    "season_month": 10,
}
THOUSANDS: dict[str, ParameterValue] = {
    "rating": 1500,
    "rd": 500,
    "beta": 240,
    "tau": 10,
    "rd_floor": 30,
    "rating_min": 0,
    "rating_max": 3000,
}

VARIANTS: dict[str, Variant] = {
    "glicko": Variant("glicko", {}, ALL),
    "glicko-monthly": Variant("glicko", {"period": 30, "c": 63.2}, ALL),
    "glicko-no-ageing": Variant("glicko", {"c": 0, "rd_floor": 1}, ALL),
    "glicko2": Variant("glicko2", {}, ALL),
    "glicko2-lichess": Variant("glicko2", LICHESS, ALL),
    "glicko2-monthly": Variant("glicko2", {"period": 30}, ALL),
    "glicko2-first-move": Variant("glicko2", {"home_advantage": 35}, ALL),
    "elo": Variant("elo", {}, TEAMS),
    "elo-weekly": Variant("elo", {"period": 7}, TEAMS),
    "elo-steep": Variant("elo", {"scale": 1, "k": 1000}, TEAMS),
    "elo-capped": Variant("elo", {"difference_cap": 400, "uncapped_from": 10_000}, TEAMS),
    "elo-fide": Variant("elo", FIDE, TEAMS, exempt=FIDE_2650),
    "elo-fide-until-2025": Variant("elo", {**FIDE, "uncapped_from": 10_000}, TEAMS),
    "elo-fide-monthly": Variant("elo", {**FIDE, "period": 30}, TEAMS, exempt=FIDE_2650),
    "elo-calculator": Variant("elo", {"k_rule": "calculator"}, TEAMS),
    "elo-uscf": Variant("elo", {"k_rule": "uscf", "floor": "uscf"}, TEAMS, exempt=USCF),
    "elo-uscf-no-floor": Variant("elo", {"k_rule": "uscf", "period": 1}, TEAMS, exempt=USCF),
    "elo-dwz": Variant("elo", {"k_rule": "dwz"}, TEAMS),
    "elo-egf": Variant("elo", EGF, TEAMS, exempt=EGF_EPSILON),
    "elo-egf-no-epsilon": Variant("elo", {**EGF, "egf_epsilon": 0}, TEAMS),
    "elo-nfl": Variant("elo", NFL, TEAMS, needs_points=True, exempt=CARRY),
    "elo-nba": Variant("elo", NBA, TEAMS, needs_points=True, exempt=CARRY),
    "fifa": Variant("fifa", {}, DUELS, exempt=FIFA),
    "fifa-world-cup": Variant("fifa", {"importance": 60}, DUELS, exempt=FIFA),
    "world_rugby": Variant("world_rugby", {}, DUELS, needs_points=True),
    "world_rugby-world-cup": Variant("world_rugby", {"importance": 2}, DUELS, needs_points=True),
    **{f"weng_lin-{model}": Variant("weng_lin", {"model": model}, ALL) for model in MODELS},
    "weng_lin-thousands": Variant("weng_lin", THOUSANDS, ALL),
    "weng_lin-no-draw-margin": Variant("weng_lin", {"model": "thurstone_mosteller_full", "epsilon": 0}, ALL),
}

every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
every_system = pytest.mark.parametrize("name", sorted(SYSTEMS))
every_promise = pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=4)


def declared(name: str) -> tuple[Field[Any], ...]:
    """The parameters of a system."""
    return fields(SYSTEMS[name])  # type: ignore[arg-type]


def exactly(rated: Sequence[Rated]) -> list[str]:
    """The outcome with all its bits: unlike ==, repr tells 0.0 from -0.0."""
    return [repr(each) for each in rated]


def test_every_system_and_every_choice_of_a_parameter_is_among_the_variants() -> None:
    offered = {
        (name, each.name, word)
        for name in SYSTEMS
        for each in declared(name)
        for word in each.metadata["limits"].choices
    }

    tried = {
        (variant.system, each.name, variant.parameters.get(each.name, each.default))
        for variant in VARIANTS.values()
        for each in declared(variant.system)
    }

    assert offered <= tried
    assert {variant.system for variant in VARIANTS.values()} == SYSTEMS.keys()


# --- Promises are kept, or the exception happens ------------------------------------------------------------


def check_promise(variant: Variant, promise: Promise, system: RatingSystem, duel: Duel) -> None:
    """Fail when the promise is broken, unless an exception of the variant allows it here."""
    if any(exempt.promise is promise and exempt.where(duel) for exempt in variant.exempt):
        return
    assert promise(system, duel), f"{system!r} does not keep it for {duel!r}"


def drawn_duel(random: Random, system: RatingSystem) -> Duel:
    return Duel(
        hostile_player(random, system),
        hostile_player(random, system),
        random.choice((0.0, 1e-9, 1.0, random.uniform(0, system.rating_max - system.rating_min))),
        random.random() < 0.5,
        random.choice((0, 1, 16, 2**53 - 1)),
        random.choice(("play", "play", "shootout", "forfeit")),
        random.random() < 0.5,
    )


@every_promise
@every_variant
@few
@given(seed=seeds)
def test_promise_holds_for_any_two_players(variant: Variant, promise: Promise, seed: int) -> None:
    random, system = Random(seed), variant.build()

    for _ in range(DUELS_OF_AN_EXAMPLE):
        check_promise(variant, promise, system, drawn_duel(random, system))


@every_promise
@every_variant
def test_promise_holds_all_over_the_range_of_ratings(variant: Variant, promise: Promise) -> None:
    system = variant.build()
    width = system.rating_max - system.rating_min
    grid = [system.initial()._replace(rating=system.rating_min + width * i / 24) for i in range(25)]

    for a, b in itertools.product(grid, grid):
        check_promise(variant, promise, system, Duel(a, b, better=width / 24))


@pytest.mark.parametrize(
    ("variant", "exempt"),
    [
        pytest.param(variant, exempt, id=f"{name}-{exempt.promise.__name__}-{number}")
        for name, variant in VARIANTS.items()
        for number, exempt in enumerate(variant.exempt)
    ],
)
def test_exception_from_a_promise_really_happens(variant: Variant, exempt: Exempt) -> None:
    system = variant.build()

    kept = exempt.promise(system, exempt.witness)

    assert exempt.where(exempt.witness)
    assert not kept, f"no exception any more: {exempt.why}"


# --- Same game, same bits -----------------------------------------------------------------------------------


@every_variant
@few
@given(seed=seeds)
def test_order_of_sides_and_of_team_mates_changes_no_bit(variant: Variant, seed: int) -> None:
    random, system = Random(seed), variant.build()

    for game in rateable_games(random, system):
        order = random.sample(range(len(game.sides)), len(game.sides))
        turned = game._replace(sides=[team_reversed(game.sides[at]) for at in order])

        there = [teams[::-1] for teams in by_side(turned, system.rate(turned))]

        here = by_side(game, system.rate(game))
        assert there == [here[at] for at in order], f"{system!r} {game!r}"


@every_variant
@few
@given(seed=seeds)
def test_same_game_gives_the_same_bits_again_and_in_a_system_built_again(variant: Variant, seed: int) -> None:
    system, again = variant.build(), variant.build()

    for game in rateable_games(Random(seed), system):
        rated = exactly(system.rate(game))

        assert exactly(system.rate(game)) == exactly(again.rate(game)) == rated
    assert system == again


def rateable_games(random: Random, system: RatingSystem) -> Iterator[Game]:
    """Draw games, and yield those that the system rates."""
    for _ in range(DUELS_OF_AN_EXAMPLE // 2):
        game = hostile_game(random, system)
        try:
            system.rate(game)
        except GameUnsupportedError:
            continue
        yield game


def team_reversed(side: GameSide) -> GameSide:
    weights = None if side.weights is None else side.weights[::-1]
    return side._replace(players=side.players[::-1], weights=weights)


def by_side(game: Game, rated: Sequence[Rated]) -> list[list[str]]:
    """The players after the game, side by side, with all their bits."""
    all_of_them = iter(exactly(rated))
    return [[next(all_of_them) for _ in side.players] for side in game.sides]


# --- Extremes -----------------------------------------------------------------------------------------------


def deviations(system: RatingSystem) -> set[float]:
    """The ends of the range of deviations; 0 alone where there are none."""
    return {getattr(system, "rd_floor", 0.0), getattr(system, "rd", 0.0)}


@every_variant
def test_corners_of_all_ranges_give_finite_numbers_within_the_limits(variant: Variant) -> None:
    system = variant.build()
    zero_and_3000 = {min(max(rating, system.rating_min), system.rating_max) for rating in (0.0, 3000.0)}
    corners = [
        system.initial()._replace(rating=rating, rd=rd, days=days)
        for rating in {system.rating_min, system.rating_max} | zero_and_3000
        for rd in deviations(system)
        for days in (0.0, 1e-9, TEN_THOUSAND_YEARS)
    ]

    for a, b in itertools.product(corners, corners):
        for s in (0, 0.5, 1):
            check_game(system, game_of(Duel(a, b), s))


@every_variant
def test_ten_thousand_straight_wins_stay_within_the_limits(variant: Variant) -> None:
    system = variant.build()
    winner = loser = system.initial()

    for _ in range(10_000):
        won, lost = check_game(system, game_of(Duel(winner, loser), 1))
        winner, loser = after(winner, won, wins=1), after(loser, lost, wins=0)

    # Nothing is said of where the loser stands: the EGF's rules lift who loses without a chance.
    assert winner.rating > max(system.rating, loser.rating)


def after(player: PlayerState, rated: Rated, wins: int) -> PlayerState:
    """The player as the next game finds them, a day later."""
    peak = max(rated.rating, player.rating if player.peak is None else player.peak)
    return PlayerState(
        rated.rating, rated.rd, rated.volatility, player.games + 1, peak, 1.0, player.wins + wins
    )


# --- Shapes of games ----------------------------------------------------------------------------------------


def shaped(system: RatingSystem, sizes: Sequence[int]) -> Game:
    """A game of sides of so many players of different strength; of two sides the first wins."""
    low, width = system.rating_min, system.rating_max - system.rating_min
    players = (system.initial()._replace(rating=low + width * (n * 37 % 64) / 64) for n in itertools.count(1))
    return Game(
        [
            GameSide([next(players) for _ in range(size)], 1 + (place + 1) // 2, float(-place))
            for place, size in enumerate(sizes)
        ]
    )


SHAPES = {
    "teams": [(1, 2), (2, 3), (63, 1), (32, 32)],
    "fields": [(1, 1, 1), (3, 1, 2, 2), (1,) * 64, (16,) * 4],
}


@every_variant
@pytest.mark.parametrize("shape", SHAPES)
def test_shape_is_rated_or_refused_saying_what_the_system_rates(variant: Variant, shape: str) -> None:
    system = variant.build()

    for sizes in SHAPES[shape]:
        game = shaped(system, sizes)
        if shape not in variant.shapes:
            with pytest.raises(GameUnsupportedError, match=rf"\b{variant.system}\b.* two sides"):
                system.rate(game)
            continue
        rated = check_game(system, game)

        check_scores_of(game, rated)


def check_scores_of(game: Game, rated: Sequence[Rated]) -> None:
    """Fail unless team mates score alike, and all sides together one for each pair of them."""
    scores = iter(rated)
    of_sides = [{next(scores).actual for _ in side.players} for side in game.sides]
    assert all(len(of_side) == 1 for of_side in of_sides)
    assert math.fsum(score for (score,) in of_sides) == math.comb(len(game.sides), 2)


@every_variant
def test_game_without_points_is_refused_only_where_points_count(variant: Variant) -> None:
    system = variant.build()
    game = Game([GameSide((system.initial(),), rank) for rank in (1, 2)])

    if not variant.needs_points:
        check_game(system, game)
        return
    with pytest.raises(GameUnsupportedError, match=rf"\b{variant.system}\b.* needs .*points"):
        system.rate(game)


# --- The phantom --------------------------------------------------------------------------------------------


@every_variant
def test_phantom_has_the_lowest_rating_of_the_pool_and_the_least_doubt(variant: Variant) -> None:
    system = variant.build()

    phantom = system.lowest()

    assert phantom.rating == system.rating_min
    assert phantom.rd == min(deviations(system))
    assert phantom.days == 0


@every_variant
def test_forfeit_against_the_phantom_raises_nobody(variant: Variant) -> None:
    system = variant.build()
    low, width = system.rating_min, system.rating_max - system.rating_min
    leavers = [
        system.initial()._replace(rating=low + width * step / 50, rd=rd, games=games, days=days)
        for step in range(51)
        for rd in deviations(system)
        for games in (0, 1, 8, 9, 50)
        for days in (0.0, 400.0)
    ]

    for leaver in leavers:
        forfeit = Game([GameSide((leaver,), 2), GameSide((system.lowest(),), 1)], decided_by="forfeit")
        rated = check_game(system, forfeit)[0]

        assert rated.rating <= leaver.rating, f"{leaver!r} {rated!r}"


# --- Periods ------------------------------------------------------------------------------------------------

PERIOD_VARIANTS = {
    name: variant for name, variant in VARIANTS.items() if isinstance(variant.build(), PeriodSystem)
}
every_period_variant = pytest.mark.parametrize("variant", PERIOD_VARIANTS.values(), ids=PERIOD_VARIANTS)


def as_period_of_one(system: PeriodSystem, game: Game) -> list[Rated]:
    players = [player for side in game.sides for player in side.players]
    return [
        system.rate_period(player, sum_terms(results))
        for player, results in zip(players, system.results(game), strict=True)
    ]


def test_systems_with_periods_are_those_that_declare_the_parameter() -> None:
    declaring = {name for name in SYSTEMS if any(each.name == "period" for each in declared(name))}

    assert {variant.system for variant in PERIOD_VARIANTS.values()} == declaring


@every_period_variant
@few
@given(seed=seeds)
def test_period_of_one_game_is_the_game_to_the_bit(variant: Variant, seed: int) -> None:
    random, system = Random(seed), variant.build()
    assert isinstance(system, PeriodSystem)
    if isinstance(system, Glicko2):
        # Its step 6 lets a whole period pass, however short ago the last game was.
        system = replace(system, period=1, periods_per_day=1)

    for drawn in rateable_games(random, system):
        game = days_passed(drawn, random) if isinstance(system, Glicko2) else drawn

        assert exactly(as_period_of_one(system, game)) == exactly(system.rate(game)), f"{system!r} {game!r}"


def days_passed(game: Game, random: Random) -> Game:
    """The same game of players whose last event was at least a day ago."""
    sides = [
        side._replace(players=[player._replace(days=random.choice((1.0, 2.5))) for player in side.players])
        for side in game.sides
    ]
    return game._replace(sides=sides)


def test_period_of_glicko2_lets_more_time_pass_than_two_games_of_one_hour_do() -> None:
    system = VARIANTS["glicko2-monthly"].build()
    assert isinstance(system, PeriodSystem)
    player = system.initial()._replace(rd=60.0)
    game = game_of(Duel(player, player), 1)

    period, single = as_period_of_one(system, game)[0], system.rate(game)[0]

    assert period.rd > single.rd


@every_period_variant
def test_period_without_any_result_moves_no_rating(variant: Variant) -> None:
    system = variant.build()
    assert isinstance(system, PeriodSystem)
    player = system.initial()
    one_result = system.results(game_of(Duel(player, player), 1))[0][0]

    rated = system.rate_period(player, [0.0] * len(one_result))

    assert rated.rating == player.rating
    assert (rated.expected, rated.actual) == (0, 0)


@every_period_variant
@few
@given(seed=seeds)
def test_order_of_the_games_of_a_period_changes_no_bit(variant: Variant, seed: int) -> None:
    random, system = Random(seed), variant.build()
    assert isinstance(system, PeriodSystem)
    player = hostile_player(random, system)
    games = [
        game_of(Duel(player, hostile_player(random, system)), random.choice((0, 0.5, 1))) for _ in range(12)
    ]

    played = rated_together(system, player, games)

    assert rated_together(system, player, games[::-1]) == played
    assert rated_together(system, player, random.sample(games, len(games))) == played


def rated_together(system: PeriodSystem, player: PlayerState, games: Sequence[Game]) -> str:
    """The first side's player after a period of these games, one after the other, with all the bits."""
    period: OpenPeriod | None = None
    for game in games:
        rated, period = rate_in_period(system, Period(0, 7), period, player, system.results(game)[0])
    return repr((rated.rating, rated.rd, rated.volatility, rated.rd_aged))


# --- One scale ----------------------------------------------------------------------------------------------


@every_variant
def test_so_many_points_as_one_of_elo_are_worth_as_much_between_equals(variant: Variant) -> None:
    system = variant.build()
    equal = PlayerState((system.rating_min + system.rating_max) / 2, 0.0, getattr(system, "volatility", None))
    step = system.elo_point() / 100
    better, worse = (equal._replace(rating=equal.rating + sign * step) for sign in (1, -1))

    slope = (system.expected(better, equal) - system.expected(worse, equal)) / 0.02

    assert system.elo_point() > 0
    if variant.parameters.get("expectation", "logistic") == "logistic":
        # Weng-Lin's tau, and the period that always passes in Glicko-2 with periods, are in `expected` also
        # where nobody has a deviation: less than 0.5 %.
        assert slope == pytest.approx(math.log(10) / 1600, rel=0.005)


# --- Names and parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_system_is_registered_by_its_name_and_cited_with_a_year(name: str) -> None:
    system = SYSTEMS[name]

    assert system.name == name
    assert re.search(r"\(((19|20)\d\d|n\.d\.)\)\.", system.citation), system.citation


def beyond(each: Field[Any]) -> list[ParameterValue]:
    """Values that the parameter cannot have."""
    limits = each.metadata["limits"]
    if isinstance(each.default, bool) or limits.choices:
        return ["no such word", 1]
    past: list[ParameterValue] = [
        math.nextafter(limits.low, -math.inf),
        math.nextafter(limits.high, math.inf),
        limits.low - 1,
        limits.high + 1,
        math.nan,
    ]
    return [*past, 0.5] if isinstance(each.default, int) else past


@every_system
def test_value_beyond_its_range_is_refused_naming_parameter_range_and_default(name: str) -> None:
    for each in declared(name):
        for value in beyond(each):
            with pytest.raises(BadParameterError) as refused:
                pool_rules(name, {each.name: value})

            expectation = f"must be {describe(each)} (default {each.default})"
            assert str(refused.value) == f"{each.name} is {value!r}, but {expectation}"
            assert each.metadata["limits"].meaning


@every_system
def test_both_ends_of_every_range_and_every_word_are_accepted(name: str) -> None:
    for each in declared(name):
        limits = each.metadata["limits"]
        for value in limits.choices or (limits.low, limits.high):
            parameters = pool_rules(name, {**beside(name, each.name), each.name: value}).parameters()

            assert parameters[each.name] == value


def beside(name: str, parameter: str) -> dict[str, ParameterValue]:
    """What must stand beside a parameter for its whole range to make sense: the ends of other ranges."""
    limits = {each.name: each.metadata["limits"] for each in declared(name)}
    ends: dict[str, dict[str, str]] = {
        "rating": {"rating_min": "low", "rating_max": "high"},
        "rating_min": {"rating": "high", "rating_max": "high"},
        "rating_max": {"rating": "low", "rating_min": "low"},
        "rd": {"rd_floor": "low"},
        "rd_floor": {"rd": "high"},
        "volatility": {"volatility_min": "low", "volatility_max": "high"},
        "volatility_min": {"volatility": "high", "volatility_max": "high"},
        "volatility_max": {"volatility": "low", "volatility_min": "low"},
        "carry": {"season_month": "high"},
    }
    others = ends.get(parameter, {})
    return {other: getattr(limits[other], end) for other, end in others.items() if other in limits}


CONTRADICTIONS: list[tuple[str, dict[str, ParameterValue], tuple[str, ...]]] = [
    *(
        (name, given, ("rating_min", "rating_max"))
        for name in SYSTEMS
        for given in ({"rating_min": 9_000}, {"rating_max": -9_000}, {"rating": -10_000}, {"rating": 10_000})
    ),
    *((name, {"rd": 1, "rd_floor": 2}, ("rd_floor 2", "rd 1")) for name in ("glicko", "glicko2", "weng_lin")),
    ("glicko2", {"volatility": 0.2}, ("volatility 0.2", "volatility_min", "volatility_max 0.15")),
    ("glicko2", {"volatility": 0.001}, ("volatility 0.001", "volatility_min 0.01", "volatility_max")),
    ("elo", {"margin": "fivethirtyeight_nfl", "period": 7}, ("margin", "period", "7")),
    ("elo", {"margin": "fivethirtyeight_nba", "k_rule": "uscf"}, ("margin", "k_rule uscf")),
    ("elo", {"carry": 0.5}, ("carry 0.5", "season_month")),
    ("elo", {"carry": 0.5, "season_month": 1, "carry_mean": -1}, ("carry_mean -1", "rating_min 0")),
]


@pytest.mark.parametrize(("name", "parameters", "named"), CONTRADICTIONS)
def test_contradiction_is_refused_naming_what_contradicts(
    name: str, parameters: dict[str, ParameterValue], named: tuple[str, ...]
) -> None:
    with pytest.raises(BadParameterError) as refused:
        pool_rules(name, parameters)

    assert all(part in str(refused.value) for part in named), str(refused.value)


# --- Display ------------------------------------------------------------------------------------------------


def shown_pool(name: str, parameters: Mapping[str, ParameterValue], low: float, high: float) -> Pool:
    """A pool whose range is shown as low to high."""
    all_of_them = pool_rules(name, parameters).parameters()
    shown: dict[str, ParameterValue] = {"display_low": low, "display_high": high}
    return Pool("arena", name, all_of_them, 1, 0, 1, None, shown, None, None, 0)


@every_variant
@pytest.mark.parametrize(("low", "high"), [(0, 10_000), (-5, 5), (100, 0)])
def test_range_of_the_pool_is_shown_as_the_display_range(variant: Variant, low: float, high: float) -> None:
    system = variant.build()
    pool = shown_pool(variant.system, variant.parameters, low, high)

    for share in (0, 0.25, 0.5, 1):
        rating = system.rating_min + share * (system.rating_max - system.rating_min)

        assert displayed(pool, rating) == pytest.approx(low + share * (high - low), abs=1e-9)


def test_0_to_3000_shown_as_0_to_10000_shows_1500_as_5000() -> None:
    pool = shown_pool("glicko", {}, 0, 10_000)

    assert displayed(pool, 1500) == pytest.approx(5000, abs=1e-9)
    assert displayed_width(pool, 30) == pytest.approx(100, abs=1e-9)


@every_system
def test_pool_without_a_display_range_shows_ratings_as_they_are(name: str) -> None:
    pool = shown_pool(name, {}, 0, 0)

    assert displayed(pool, 12.345) == 12.345


@every_system
def test_pool_of_a_single_rating_can_be_shown(name: str) -> None:
    one: dict[str, ParameterValue] = {"rating": 7, "rating_min": 7, "rating_max": 7}

    shown = displayed(shown_pool(name, one, 0, 10_000), 7)

    assert 0 <= shown <= 10_000
