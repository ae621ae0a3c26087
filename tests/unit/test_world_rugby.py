"""World Rugby's points exchange against its explanation and the numbers of another implementation."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.parameters import BadParameterError, build
from petard_worker.ratings.system import Game, GameSide, GameUnsupportedError, PlayerState
from petard_worker.ratings.world_rugby import WORLD_CUP, WorldRugby

CLOSE = 1e-9

ratings = st.floats(0, 200)
points = st.integers(0, 150)
homes = st.sampled_from([None, False, True])
importances = st.none() | st.floats(0.001, 1000)


def match(
    a: float,
    b: float,
    points: tuple[float, float],
    home: bool | None = None,
    importance: float | None = None,
) -> Game:
    """The match of a against b; whether a is at home."""
    first, second = points
    return Game(
        (
            GameSide((PlayerState(a, 0),), 1 + (first < second), first, home),
            GameSide((PlayerState(b, 0),), 1 + (second < first), second, False),
        ),
        importance,
    )


def forfeit(a: PlayerState, b: PlayerState, home: bool | None = None) -> Game:
    """The game that b wins because a has not come."""
    return Game((GameSide((a,), 2, home=home), GameSide((b,), 1)), decided_by="forfeit")


def exchange(game: Game) -> tuple[float, float]:
    """What both sides gain."""
    before = [side.players[0].rating for side in game.sides]
    first, second = WorldRugby().rate(game)
    return first.rating - before[0], second.rating - before[1]


# --- The numbers of others ----------------------------------------------------------------------------------

DRAW, BY_10, LOST_BY_10, BY_20, LOST_BY_20 = (50, 50), (50, 40), (40, 50), (60, 40), (40, 60)


@pytest.mark.parametrize(
    ("a", "b", "home", "world_cup", "gains"),
    [
        (100, 100, True, False, (-0.3, 0.7, -1.3, 1.05, -1.95)),
        (100, 100, False, False, (0, 1, -1, 1.5, -1.5)),
        (100, 100, True, True, (-0.6, 1.4, -2.6, 2.1, -3.9)),
        (100, 95, True, False, (-0.8, 0.2, -1.8, 0.3, -2.7)),
        (100, 95, False, False, (-0.5, 0.5, -1.5, 0.75, -2.25)),
        (100, 95, True, True, (-1.6, 0.4, -3.6, 0.6, -5.4)),
        (100, 80, True, False, (-1, 0, -2, 0, -3)),
        (100, 80, False, False, (-1, 0, -2, 0, -3)),
        (100, 80, True, True, (-2, 0, -4, 0, -6)),
    ],
)
def test_exchange_is_that_of_another_calculator(
    a: float, b: float, home: bool, world_cup: bool, gains: tuple[float, ...]
) -> None:
    importance = WORLD_CUP if world_cup else None

    got = [
        exchange(match(a, b, points, home, importance))
        for points in (DRAW, BY_10, LOST_BY_10, BY_20, LOST_BY_20)
    ]

    assert [first for first, _ in got] == pytest.approx(gains, abs=CLOSE)
    assert [second for _, second in got] == pytest.approx([-gain for gain in gains], abs=CLOSE)


def test_both_unions_end_where_others_end() -> None:
    upset = WorldRugby().rate(match(100, 95, (10, 30)))
    home_defeat = WorldRugby().rate(match(90, 85, (0, 5), home=True, importance=WORLD_CUP))

    assert [union.rating for union in upset] == pytest.approx([97.75, 97.25], abs=CLOSE)
    assert [union.rating for union in home_defeat] == pytest.approx([86.4, 88.6], abs=CLOSE)


def test_gap_of_the_published_example_is_split_on_the_sliding_scale() -> None:
    # New Zealand 93.38, Australia 87.03, on neutral ground.
    favourite_wins = exchange(match(93.38, 87.03, (20, 10)))
    outsider_wins = exchange(match(93.38, 87.03, (10, 20)))

    assert favourite_wins == pytest.approx((0.365, -0.365), abs=CLOSE)
    assert outsider_wins == pytest.approx((-1.635, 1.635), abs=CLOSE)


# --- Margin, home, importance -------------------------------------------------------------------------------


def test_win_by_exactly_fifteen_points_is_not_a_big_one() -> None:
    assert exchange(match(80, 80, (30, 15))) == (1, -1)
    assert exchange(match(80, 80, (31, 15))) == (1.5, -1.5)


def test_points_that_contradict_the_ranks_are_refused() -> None:
    game = Game((GameSide((PlayerState(80, 0),), 1, 10), GameSide((PlayerState(90, 0),), 1, 40)))

    with pytest.raises(GameUnsupportedError, match="points 10 and 40 contradict the ranks 1 and 1"):
        WorldRugby().rate(game)


def test_away_side_may_be_named_first() -> None:
    game = Game(
        (
            GameSide((PlayerState(100, 0),), 2, 40, home=False),
            GameSide((PlayerState(100, 0),), 1, 50, home=True),
        )
    )

    assert exchange(game) == pytest.approx((-0.7, 0.7), abs=CLOSE)


def test_rank_decides_a_match_won_by_kicks_after_a_draw() -> None:
    game = Game(
        (GameSide((PlayerState(80, 0),), 2, 20), GameSide((PlayerState(80, 0),), 1, 20)),
        decided_by="shootout",
    )

    assert exchange(game) == (-1, 1)


def test_parameter_weighs_matches_that_name_no_importance() -> None:
    won, lost = WorldRugby(importance=2).rate(match(80, 80, (20, 10)))

    assert (won.rating, lost.rating) == (82, 78)


# --- Forfeits -----------------------------------------------------------------------------------------------


def test_forfeit_needs_no_points_and_is_no_big_win() -> None:
    assert exchange(forfeit(PlayerState(80, 0), PlayerState(80, 0))) == (-1, 1)
    assert exchange(forfeit(PlayerState(80, 0), PlayerState(80, 0), home=True)) == pytest.approx((-1.3, 1.3))


def test_points_of_a_forfeit_are_no_margin() -> None:
    a, b = PlayerState(80, 0), PlayerState(80, 0)

    game = Game((GameSide((a,), 2, 0), GameSide((b,), 1, 28)), decided_by="forfeit")

    assert exchange(game) == (-1, 1)


def test_punished_abandon_is_a_loss_against_the_lowest_union() -> None:
    system = WorldRugby()

    loser, _ = system.rate(forfeit(PlayerState(80, 0), system.lowest()))

    assert (loser.rating, loser.expected, loser.actual) == (78, 1, 0)


def test_punished_abandon_of_the_lowest_union_stays_at_the_limit() -> None:
    system = WorldRugby()

    loser, _ = system.rate(forfeit(system.lowest(), system.lowest()))

    assert loser.rating == 0


# --- What is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("decided_by", ["play", "shootout"])
@pytest.mark.parametrize("points", [(None, None), (20, None), (None, 20)])
def test_match_without_points_is_refused(points: tuple[float | None, float | None], decided_by: str) -> None:
    sides = [GameSide((PlayerState(80, 0),), rank, n) for rank, n in enumerate(points, 1)]

    with pytest.raises(
        GameUnsupportedError, match=f"world_rugby needs the points .* are {points[0]} and {points[1]};"
    ):
        WorldRugby().rate(Game(sides, decided_by=decided_by))


@pytest.mark.parametrize("sizes", [(1,), (2, 1), (15, 15), (1, 1, 1), ()])
def test_only_one_against_one_is_rated(sizes: tuple[int, ...]) -> None:
    sides = [GameSide([PlayerState(80, 0)] * size, rank, 10) for rank, size in enumerate(sizes, 1)]

    with pytest.raises(GameUnsupportedError, match="world_rugby rates two sides of one player each"):
        WorldRugby().rate(Game(sides))


@pytest.mark.parametrize("importance", [0, -1, 1001, math.nan])
def test_importance_out_of_range_is_refused(importance: float) -> None:
    with pytest.raises(GameUnsupportedError, match=f"importance is {importance:g}, but must be above 0"):
        WorldRugby().rate(match(80, 80, BY_10, importance=importance))


@pytest.mark.parametrize("given", [{"clamp": 0}, {"importance": 0}, {"home_advantage": -1}])
def test_parameters_have_ranges(given: dict[str, float]) -> None:
    with pytest.raises(BadParameterError):
        build(WorldRugby, given)


# --- Limits, and what must hold for all unions --------------------------------------------------------------


def test_new_union_and_lowest_union_have_no_deviation() -> None:
    assert WorldRugby().initial() == PlayerState(30, 0)
    assert WorldRugby(rating_min=5).lowest() == PlayerState(5, 0)


def test_rating_is_cut_at_both_ends() -> None:
    won, lost = WorldRugby().rate(match(199.5, 199.5, BY_20))
    shocked, upset = WorldRugby().rate(match(0.5, 0.5, LOST_BY_20))

    assert (won.rating, lost.rating) == (200, 198)
    assert (shocked.rating, upset.rating) == (0, 2)


@given(ratings, ratings)
def test_expected_score_is_where_nothing_would_be_exchanged(a: float, b: float) -> None:
    system = WorldRugby()
    E = system.expected(PlayerState(a, 0), PlayerState(b, 0))

    gain, _ = exchange(match(a, b, DRAW))

    assert 0 <= E <= 1
    assert E + system.expected(PlayerState(b, 0), PlayerState(a, 0)) == pytest.approx(1, abs=1e-12)
    if 0 < a + gain < 200:
        assert gain == pytest.approx(2 * (0.5 - E), abs=CLOSE)


@given(st.floats(20, 180), st.floats(20, 180), points, points, homes)
def test_change_is_twice_the_score_less_the_expected_one(
    a: float, b: float, first: int, second: int, home: bool | None
) -> None:
    game = match(a, b, (first, second), home)

    rated = WorldRugby().rate(game)

    weight = 1.5 if abs(first - second) > 15 else 1
    for side, union in zip(game.sides, rated, strict=True):
        gain = union.rating - side.players[0].rating
        assert gain == pytest.approx(weight * 2 * (union.actual - union.expected), abs=CLOSE)


@given(st.floats(20, 180), st.floats(20, 180), points, points, homes)
def test_one_gains_what_the_other_loses(
    a: float, b: float, first: int, second: int, home: bool | None
) -> None:
    gained, lost = exchange(match(a, b, (first, second), home))

    assert gained == pytest.approx(-lost, abs=1e-12)


@given(ratings, ratings, points, points, importances)
def test_who_is_named_first_makes_no_difference(
    a: float, b: float, first: int, second: int, importance: float | None
) -> None:
    forth = WorldRugby().rate(match(a, b, (first, second), False, importance))
    back = WorldRugby().rate(match(b, a, (second, first), False, importance))

    assert repr(forth) == repr(back[::-1])


@given(ratings, ratings, points, points, homes, importances)
def test_whatever_is_played_stays_within_the_limits_and_no_winner_falls(
    a: float, b: float, first: int, second: int, home: bool | None, importance: float | None
) -> None:
    rated = WorldRugby().rate(match(a, b, (first, second), home, importance))

    for union, before in zip(rated, (a, b), strict=True):
        assert 0 <= union.rating <= 200
        assert 0 <= union.expected <= 1
        assert union.actual != 1 or union.rating >= before
        assert union.actual != 0 or union.rating <= before


@given(ratings, ratings, st.floats(0.001, 100))
def test_stronger_union_never_expects_less(a: float, b: float, more: float) -> None:
    system, opponent = WorldRugby(), PlayerState(b, 0)

    assert system.expected(PlayerState(a + more, 0), opponent) >= system.expected(PlayerState(a, 0), opponent)


def test_widest_pool_there_can_be_stays_finite() -> None:
    system = WorldRugby(rating_min=-10_000, rating_max=10_000, clamp=0.001)

    for union in system.rate(match(10_000, -10_000, LOST_BY_20, importance=1000)):
        assert -10_000 <= union.rating <= 10_000
