"""What is made of counted ratings: shares, trends, bins, and what may be asked."""

import math
import statistics
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.cli.pool_stats import bar, print_histogram
from petard_worker.display import scale_of
from petard_worker.distribution import Bin, bin_edges, distribution_of
from petard_worker.pool_stats import (
    StatsQuestion,
    Trend,
    Verdict,
    ask,
    days_before,
    spread_times,
    trend_of,
    verdict_on,
)
from petard_worker.postgres.pools import Pool
from petard_worker.ratings.parameters import BadParameterError
from petard_worker.scale import AS_IT_IS, Scale

START = datetime(2026, 1, 1, tzinfo=UTC)
POOL = Pool("p", "glicko", {}, 1, 0, 1, None, {"provisional_rd": 95.0}, None, None, 0)

Ratings = st.lists(st.floats(-3000, 3000), min_size=1, max_size=60)


def yearly(*means: tuple[float, int, float | None]) -> Trend:
    """Return the trend of means at so many years from the start."""
    return trend_of(
        [(START + timedelta(days=365.25 * years), players, mean) for years, players, mean in means], 10.0
    )


@given(Ratings)
def test_summary_agrees_with_pythons_own_statistics(ratings):
    summary = distribution_of(ratings, 0, AS_IT_IS).summary

    assert summary is not None
    assert summary.mean == pytest.approx(statistics.fmean(ratings), rel=1e-12, abs=1e-9)
    assert summary.sd == pytest.approx(statistics.pstdev(ratings), rel=1e-9, abs=1e-6)
    assert (summary.lowest, summary.highest) == (min(ratings), max(ratings))
    if len(ratings) > 1:
        quartiles = (summary.lower_quartile, summary.median, summary.upper_quartile)
        assert quartiles == pytest.approx(
            statistics.quantiles(ratings, n=4, method="inclusive"), rel=1e-9, abs=1e-9
        )


@given(Ratings)
def test_every_rating_lies_in_the_one_bin_that_counts_it(ratings):
    bins = distribution_of(ratings, 0, AS_IT_IS).bins

    assert [part.players for part in bins] == [
        sum(part.low <= rating < part.high for rating in ratings) for part in bins
    ]
    assert sum(part.players for part in bins) == len(ratings)
    assert bins[0].players > 0
    assert bins[-1].players > 0


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_bins_are_15_to_25_and_round_where_there_are_points_enough(lowest, span):
    edges = bin_edges(lowest, lowest + span)

    width = edges[1] - edges[0]
    mantissa = width / 10 ** math.floor(math.log10(width) + 1e-9)
    assert any(math.isclose(mantissa, nice, rel_tol=1e-6) for nice in (1, 1.5, 2, 2.5, 3, 4, 5, 7.5))
    assert edges[0] <= lowest
    assert lowest + span < edges[-1]
    assert len(edges) - 1 <= 25
    assert len(edges) - 1 >= 15 or math.isclose(width, 1)


@pytest.mark.parametrize(
    ("lowest", "highest", "first", "width", "count"),
    [(1000, 1999, 1000, 50, 20), (1200, 1600, 1200, 20, 21), (800, 2799, 800, 100, 20), (0, 29.5, 0, 2, 15)],
)
def test_the_nicest_width_is_taken(lowest, highest, first, width, count):
    edges = bin_edges(lowest, highest)

    assert (edges[0], edges[1] - edges[0], len(edges) - 1) == (first, width, count)


def test_a_rating_that_is_nearly_0_from_below_is_in_a_bin():
    assert bin_edges(-5e-324, 28.0)[0] <= -5e-324


def test_equal_ratings_are_one_bin_without_spread():
    spread = distribution_of([1500.0] * 3, 1, AS_IT_IS)

    assert spread.bins == [Bin(1500, 1501, 3)]
    assert spread.summary is not None
    assert spread.summary.sd == 0
    assert spread.provisional_share == 1 / 3


def test_nobody_has_no_summary_and_no_share():
    spread = distribution_of([], 0, AS_IT_IS)

    assert (spread.players, spread.summary, spread.provisional_share, spread.bins) == (0, None, None, [])


def test_bins_are_round_on_the_scale_that_people_see_and_told_in_rating_points():
    tenfold = Scale(0.0, 0.0, 10.0)

    bins = distribution_of([1000.0, 1199.0], 0, tenfold).bins

    assert [part.low * 10 for part in bins] == pytest.approx(range(10_000, 12_000, 100))
    assert [(part.low, part.high, part.players) for part in (bins[0], bins[-1])] == [
        pytest.approx((1000, 1010, 1)),
        pytest.approx((1190, 1200, 1)),
    ]


def test_scale_that_turns_ratings_round_keeps_everybody_and_low_below_high():
    backwards = Scale(0.0, 3000.0, -1.0)
    ratings = [1000.0, 1100.0, 1400.0]

    bins = distribution_of(ratings, 0, backwards).bins

    assert [part.players for part in bins] == [
        sum(part.low < rating <= part.high for rating in ratings) for part in bins
    ]
    assert sum(part.players for part in bins) == 3


def test_histogram_of_a_range_turned_round_goes_up_as_it_is_seen(capsys):
    turned = {"display_low": 3000.0, "display_high": 0.0}
    pool = replace(POOL, parameters={"rating_min": 0.0, "rating_max": 3000.0}, settings=turned)
    bins = distribution_of([1000.0, 1100.0, 1400.0], 0, scale_of(pool)).bins

    print_histogram(pool, bins)

    rows = [line.split()[:3] for line in capsys.readouterr().out.splitlines() if line.strip()[:1].isdigit()]
    seen = [(float(low), float(high), int(players)) for low, high, players in rows]
    assert [(low, high) for low, high, _ in seen] == sorted((min(edges), max(edges)) for *edges, _ in seen)
    assert [players for _, _, players in seen] == [
        sum(low <= 3000 - rating < high for rating in (1000, 1100, 1400)) for low, high, _ in seen
    ]
    assert sum(players for *_, players in seen) == 3


def test_points_lie_at_even_distances_with_both_ends():
    times = spread_times(START, START + timedelta(days=9), 4)

    assert [(time - START).days for time in times] == [0, 3, 6, 9]


def test_one_moment_is_one_point_and_an_end_before_the_beginning_none():
    assert spread_times(START, START, 12) == [START]
    assert spread_times(START + timedelta(days=1), START, 12) == []


@given(st.datetimes(timezones=st.just(UTC)), st.integers(1, 10**9), st.integers(2, 200))
def test_the_last_point_is_the_end_itself(first, microseconds, count):
    first = min(first, datetime(9990, 1, 1, tzinfo=UTC))
    last = first + timedelta(microseconds=microseconds)

    times = spread_times(first, last, count)

    assert (times[0], times[-1], len(times)) == (first, last, count)
    assert times == sorted(times)


def test_window_that_would_begin_before_all_times_begins_with_them():
    assert days_before(START, 90) == START - timedelta(days=90)
    assert days_before(datetime(200, 1, 1, tzinfo=UTC), 100_000) == datetime(1, 1, 1, tzinfo=UTC)
    assert days_before(datetime(1, 1, 1, tzinfo=UTC), 1) == datetime(1, 1, 1, tzinfo=UTC)


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 20), st.floats(1000, 2000)),
        min_size=2,
        max_size=20,
        unique_by=lambda point: point[0],
    )
)
def test_trend_is_the_regression_in_which_every_point_stands_once_for_each_of_its_players(points):
    points.sort()
    spelled_out = [(years, mean) for years, players, mean in points for _ in range(players)]
    line = statistics.linear_regression(*zip(*spelled_out, strict=True))

    trend = yearly(*points)

    assert trend.change_per_year == pytest.approx(line.slope, rel=1e-6, abs=1e-6)


def test_points_without_players_do_not_move_the_trend():
    assert yearly((0, 0, None), (1, 5, 1500.0), (2, 0, None), (3, 5, 1540.0)).change_per_year == (
        pytest.approx(20)
    )


@pytest.mark.parametrize(
    "means",
    [
        (),
        ((0.0, 3, 1500.0),),
        ((0.0, 0, None), (9.0, 0, None)),
        ((0.0, 3, 1500.0), (29.9 / 365.25, 3, 1600.0)),
    ],
)
def test_too_little_has_no_trend(means):
    assert yearly(*means) == Trend(None, None)


@pytest.mark.parametrize(("players", "verdict"), [(19, None), (20, Verdict.INFLATION)])
def test_the_mean_of_a_few_is_no_drift_of_the_pool(players, verdict):
    assert yearly((0.0, players, 1500.0), (1.0, players, 1600.0)) == Trend(pytest.approx(100), verdict)


@pytest.mark.parametrize(
    ("change", "word"),
    [(10.0, "steady"), (-10.0, "steady"), (0.0, "steady"), (10.1, "inflation"), (-10.1, "deflation")],
)
def test_more_than_is_steady_is_inflation_or_deflation(change, word):
    assert verdict_on(change, 10.0) is Verdict(word)


def test_question_left_open_asks_what_is_usual_in_the_pool():
    assert ask(POOL, {}) == StatsQuestion(established=95.0)
    assert ask(POOL, {"established": 60.0, "games": 5}) == StatsQuestion(established=60.0, games=5)


@pytest.mark.parametrize(
    ("system", "parameters", "width"),
    [
        ("glicko", {}, 150),
        ("elo", {"scale": 800}, 300),
        ("fifa", {}, 225),
        # 0.5 + d / 20 and sqrt(2) 25 / 6 against the slope ln(10) / 1600 of Elo.
        ("world_rugby", {}, 150 * 20 * math.log(10) / 1600),
        ("weng_lin", {}, 150 * math.sqrt(2) * (25 / 6) * math.log(10) / 400),
    ],
)
def test_usual_width_is_150_points_of_elo_in_points_of_the_pool(system, parameters, width):
    pool = replace(POOL, system=system, parameters=parameters)

    assert ask(pool, {}).width == pytest.approx(width)
    assert ask(pool, {"width": 7.0}).width == 7


def test_pool_of_the_smallest_points_can_still_be_asked():
    pool = replace(POOL, system="world_rugby", parameters={"clamp": 0.001})

    assert ask(pool, {}).width == 0.001


@pytest.mark.parametrize(
    ("pool", "name", "value", "default"),
    [
        (POOL, "--established", -1.0, 95.0),
        (replace(POOL, system="fifa"), "--width", -1.0, 225.0),
        (replace(POOL, system="elo"), "--games", -1, 20),
        (POOL, "--games", -1, 0),
        (POOL, "--days", -1.0, 90.0),
    ],
)
def test_refusal_names_the_default_of_this_pool(pool, name, value, default):
    with pytest.raises(BadParameterError) as refused:
        ask(pool, {name: value}, "--")

    assert str(refused.value).endswith(f"(default {default})")


@pytest.mark.parametrize("system", ["elo", "fifa", "world_rugby"])
def test_system_without_a_deviation_is_asked_for_games_instead(system):
    pool = replace(POOL, system=system)
    words = f"--established bounds the RD, but {system} has none: give --games"

    with pytest.raises(BadParameterError, match=words):
        ask(pool, {"--established": 80.0}, "--")

    assert ask(pool, {}).games == 20
    assert ask(pool, {"--games": 3}, "--").games == 3


@pytest.mark.parametrize(
    ("name", "value", "limits"),
    [
        ("--days", 0.0, "a number from 0.001 to 100000"),
        ("--days", math.inf, "a number from 0.001 to 100000"),
        ("--width", -5.0, "a number from 0.001 to 1e+06"),
        ("--width", math.nan, "a number from 0.001 to 1e+06"),
        ("--points", 1, "a whole number from 2 to 200"),
        ("--points", 201, "a whole number from 2 to 200"),
        ("--games", -1, "a whole number from 0 to 100000"),
        ("--established", 1001.0, "a number from 0 to 1000"),
        ("--drift", "ages", "one of life, window"),
    ],
)
def test_question_out_of_limits_names_value_and_limits(name, value, limits):
    with pytest.raises(BadParameterError) as refused:
        ask(POOL, {name: value}, "--")

    assert f"{name} is {value!r}, but must be {limits}" in str(refused.value)


@pytest.mark.parametrize(
    ("columns", "part", "shown"),
    [
        (65, 1.0, "█" * 20),
        (65, 0.5, "█" * 10),
        (65, 0.51, "█" * 10 + "▎"),
        (65, 0.0, ""),
        (65, 1e-9, "▏"),
        (5, 1.0, "█" * 10),
        (500, 1.0, "█" * 60),
    ],
)
def test_bar_fills_the_room_the_terminal_has(monkeypatch, columns, part, shown):
    monkeypatch.setenv("COLUMNS", str(columns))

    assert bar(part) == shown
