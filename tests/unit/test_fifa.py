"""FIFA's SUM against its own examples and the numbers of other implementations."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.fifa import Fifa, expected_result
from petard_worker.ratings.parameters import BadParameterError, build
from petard_worker.ratings.system import Game, GameSide, GameUnsupportedError, PlayerState, Rated

CLOSE = 1e-9

ratings = st.floats(0, 4000)
ranks = st.sampled_from([(1, 1), (1, 2), (2, 1)])
importances = st.none() | st.floats(0.001, 1000)


def match(
    a: float,
    b: float,
    ranks: tuple[int, int] = (1, 2),
    importance: float | None = None,
    decided_by: str = "play",
    knockout: bool = False,
) -> Game:
    sides = (GameSide((PlayerState(a, 0),), ranks[0]), GameSide((PlayerState(b, 0),), ranks[1]))
    return Game(sides, importance, decided_by, knockout)


def changes(rated: Sequence[Rated], *before: float) -> list[float]:
    return [player.rating - rating for player, rating in zip(rated, before, strict=True)]


# --- The numbers of others ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "importance", "after"),
    [(1300, 1500, 25, (1317, 1483)), (600, 711, None, (606, 705)), (240, 240, None, (245, 235))],
)
def test_winner_gains_what_others_come_to(
    a: float, b: float, importance: float | None, after: tuple[float, float]
) -> None:
    rated = Fifa().rate(match(a, b, importance=importance))

    assert tuple(round(player.rating) for player in rated) == after


def test_expected_result_is_that_of_the_published_example() -> None:
    a, b = PlayerState(1720.32, 0), PlayerState(1516.18, 0)

    assert Fifa().expected(a, b) == pytest.approx(0.6864159161, abs=CLOSE)


def test_season_of_a_team_ends_where_others_end() -> None:
    system, P = Fifa(), 1380.0

    P = system.rate(match(P, 1032, (2, 1)))[0].rating
    P = system.rate(match(P, 1440, (1, 2), 60, knockout=True))[0].rating
    P = system.rate(match(P, 1320, (2, 1), 40, "shootout", knockout=True))[0].rating

    assert round(P) == 1406


# --- Shoot-outs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ranks", "W"), [((1, 2), (0.75, 0.5)), ((2, 1), (0.5, 0.75))])
def test_shootout_is_three_quarters_for_the_winner_and_a_draw_for_the_loser(
    ranks: tuple[int, int], W: tuple[float, float]
) -> None:
    # `skillratings` gives both teams 0.75 when the first one wins, and both 0.5 when it loses.
    rated = Fifa().rate(match(1500, 1500, ranks, 60, "shootout"))

    assert tuple(player.actual for player in rated) == W
    assert changes(rated, 1500, 1500) == pytest.approx([60 * (w - 0.5) for w in W], abs=CLOSE)


def test_winner_of_a_shootout_may_lose_points_to_a_much_weaker_team() -> None:
    won, lost = Fifa().rate(match(2000, 1000, (1, 2), 60, "shootout"))

    assert won.rating < 2000
    assert lost.rating > 1000


def test_shootout_without_a_winner_is_refused_by_name() -> None:
    with pytest.raises(GameUnsupportedError, match="shoot-out, but both sides have rank 1"):
        Fifa().rate(match(1500, 1500, (1, 1), 60, "shootout"))


# --- Knock-out rounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("decided_by", ["play", "shootout"])
def test_nobody_loses_points_in_a_knockout_round(decided_by: str) -> None:
    won, lost = Fifa().rate(match(1000, 2000, (1, 2), 60, decided_by, knockout=True))

    assert won.rating > 1000
    assert lost.rating == 2000


def test_favourite_that_draws_a_knockout_match_keeps_its_points() -> None:
    favourite, outsider = Fifa().rate(match(2000, 1000, (1, 1), 60, knockout=True))

    assert favourite.rating == 2000
    assert favourite.actual == 0.5
    assert outsider.rating > 1000


def test_points_are_lost_in_every_other_match() -> None:
    won, lost = Fifa().rate(match(1500, 1500, (1, 2), 60))

    assert (won.rating, lost.rating) == (1530, 1470)


# --- What counts and what does not --------------------------------------------------------------------------


def test_neither_goals_nor_home_advantage_count() -> None:
    a, b = PlayerState(1500, 0), PlayerState(1400, 0)
    plain = Game((GameSide((a,), 1), GameSide((b,), 2)))
    thrashing = Game((GameSide((a,), 1, points=9, home=True), GameSide((b,), 2, points=0, home=False)))

    assert Fifa().rate(thrashing) == Fifa().rate(plain)


def test_match_without_importance_is_a_friendly_in_a_window() -> None:
    friendly = Fifa().rate(match(1500, 1500))
    heavier = Fifa(importance=25).rate(match(1500, 1500))

    assert changes(friendly, 1500, 1500) == [5, -5]
    assert changes(heavier, 1500, 1500) == [12.5, -12.5]


def test_punished_abandon_is_a_loss_against_the_lowest_team() -> None:
    system = Fifa()
    game = Game((GameSide((PlayerState(1000, 0),), 2), GameSide((system.lowest(),), 1)), decided_by="forfeit")

    loser, _ = system.rate(game)

    We = 1 / (1 + 10 ** (-1000 / 600))
    assert loser.rating == pytest.approx(1000 - 10 * We, abs=CLOSE)
    assert (loser.actual, loser.rd, loser.rd_aged) == (0, 0, 0)


def test_volatility_of_another_system_is_left_alone() -> None:
    game = Game((GameSide((PlayerState(1500, 0, 0.06),), 1), GameSide((PlayerState(1500, 0),), 2)))

    assert [player.volatility for player in Fifa().rate(game)] == [0.06, None]


# --- What is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(1,), (2, 1), (2, 2), (1, 1, 1), ()])
def test_only_one_against_one_is_rated(sizes: tuple[int, ...]) -> None:
    sides = [GameSide([PlayerState(1500, 0)] * size, rank) for rank, size in enumerate(sizes, 1)]

    with pytest.raises(GameUnsupportedError, match="fifa rates two sides of one player each"):
        Fifa().rate(Game(sides))


@pytest.mark.parametrize("importance", [0, -5, 1001, math.nan, math.inf])
def test_importance_out_of_range_is_refused_by_its_value(importance: float) -> None:
    with pytest.raises(GameUnsupportedError, match=f"importance is {importance:g}, but must be above 0"):
        Fifa().rate(match(1500, 1500, importance=importance))


@pytest.mark.parametrize("given", [{"importance": 0}, {"importance": 1001}, {"scale": 0}])
def test_parameters_have_ranges(given: dict[str, float]) -> None:
    with pytest.raises(BadParameterError):
        build(Fifa, given)


# --- Limits, and what must hold for all teams ---------------------------------------------------------------


def test_new_team_and_lowest_team_have_no_deviation() -> None:
    assert Fifa().initial() == PlayerState(1000, 0)
    assert Fifa(rating_min=200).lowest() == PlayerState(200, 0)


def test_rating_is_cut_at_both_ends() -> None:
    won, lost = Fifa().rate(match(3990, 3990, importance=60))
    upset, shocked = Fifa().rate(match(10, 10, (2, 1), 60))

    assert (won.rating, lost.rating) == (4000, 3960)
    assert (upset.rating, shocked.rating) == (0, 40)


@given(ratings, ratings, ranks, importances, st.booleans())
def test_whatever_is_played_stays_within_the_limits(
    a: float, b: float, ranks: tuple[int, int], importance: float | None, knockout: bool
) -> None:
    for player in Fifa().rate(match(a, b, ranks, importance, knockout=knockout)):
        assert 0 <= player.rating <= 4000
        assert 0 <= player.expected <= 1


@given(st.floats(1100, 2900), st.floats(1100, 2900), ranks, importances)
def test_one_gains_what_the_other_loses(
    a: float, b: float, ranks: tuple[int, int], importance: float | None
) -> None:
    gained, lost = changes(Fifa().rate(match(a, b, ranks, importance)), a, b)

    assert gained == pytest.approx(-lost, abs=1e-8)


@given(ratings, ratings, ranks, importances, st.booleans())
def test_who_is_named_first_makes_no_difference(
    a: float, b: float, ranks: tuple[int, int], importance: float | None, knockout: bool
) -> None:
    forth = Fifa().rate(match(a, b, ranks, importance, knockout=knockout))
    back = Fifa().rate(match(b, a, ranks[::-1], importance, knockout=knockout))

    assert repr(forth) == repr(back[::-1])


@given(st.floats(-4000, 4000), st.floats(0.001, 1000))
def test_stronger_team_never_expects_less(dr: float, more: float) -> None:
    assert 0 <= expected_result(dr) <= expected_result(dr + more) <= 1


@pytest.mark.parametrize("gap", [20_000, -20_000])
def test_widest_pool_there_can_be_stays_finite(gap: float) -> None:
    system = Fifa(rating_min=-10_000, rating_max=10_000, scale=100)

    for player in system.rate(match(gap / 2, -gap / 2, importance=1000)):
        assert -10_000 <= player.rating <= 10_000
        assert 0 <= player.expected <= 1
