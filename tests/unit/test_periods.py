from datetime import UTC, datetime, timedelta, timezone

import pytest

from petard_worker.periods import (
    OpenPeriod,
    Period,
    first_day,
    period_at,
    period_closed,
    rate_in_period,
    start_of,
)
from petard_worker.postgres.open_periods import from_text, to_text
from petard_worker.ratings.glicko import Glicko
from petard_worker.ratings.system import Game, GameSide, PlayerState
from petard_worker.seasons import has_started, season


@pytest.mark.parametrize(
    ("time", "days", "first"),
    [
        ("1970-01-01T00:00:00Z", 7, "1970-01-01"),
        ("1970-01-07T23:59:59.999999Z", 7, "1970-01-01"),
        ("1970-01-08T00:00:00Z", 7, "1970-01-08"),
        ("1969-12-31T23:59:59Z", 7, "1969-12-25"),
        ("2026-11-30T12:00:00Z", 1, "2026-11-30"),
        ("2026-11-30T12:00:00Z", 30, "2026-11-03"),
        ("2026-12-01T00:30:00+01:00", 1, "2026-11-30"),
    ],
)
def test_periods_are_counted_from_1970_in_utc(time: str, days: int, first: str) -> None:
    found = first_day(datetime.fromisoformat(time), days)

    assert start_of(found).date().isoformat() == first
    assert found % days == 0


def test_a_pool_without_periods_has_none() -> None:
    assert period_at(datetime(2026, 1, 1, tzinfo=UTC), 0, 1) is None
    assert period_at(datetime(2026, 1, 3, tzinfo=UTC), 7, 3) == Period(20_454, 7, 3)


def test_the_first_period_of_all_begins_with_the_first_year() -> None:
    earliest = datetime(1, 1, 1, tzinfo=UTC)

    assert start_of(first_day(earliest, 366)) == earliest


def test_a_season_starts_in_its_month() -> None:
    assert season(datetime(2026, 7, 31, 23, 59, tzinfo=UTC), 8) == 2025
    assert season(datetime(2026, 8, 1, tzinfo=UTC), 8) == 2026
    assert season(datetime(2027, 2, 1, tzinfo=UTC), 8) == 2026
    assert season(datetime(2026, 8, 1, 1, tzinfo=timezone(timedelta(hours=2))), 8) == 2025
    assert season(datetime(2026, 1, 1, tzinfo=UTC), 1) == 2026


WEEK = Period(0, 7)
PLAYER = PlayerState(1500.0, 200.0)
OPPONENTS = [(1400.0, 30.0, 2), (1550.0, 100.0, 0), (1700.0, 300.0, 0)]


def test_the_three_games_of_glickmans_example_are_rated_together_one_by_one() -> None:
    system, open_period = Glicko(period=7), None

    for rating, rd, rank in OPPONENTS:
        game = Game([GameSide([PLAYER], 1), GameSide([PlayerState(rating, rd)], rank)])
        results = system.results(game)[0]
        rated, open_period = rate_in_period(system, WEEK, open_period, PLAYER, results)

    # "The Glicko system", p. 4, with all digits as two other implementations give them.
    assert rated.rating == pytest.approx(1464.1064627569112, abs=1e-9)
    assert rated.rd == pytest.approx(151.39890244796933, abs=1e-9)
    # The scores are those of the last game alone.
    assert rated.actual == 0
    assert rated.expected == pytest.approx(0.30284072524764, abs=1e-12)


@pytest.mark.parametrize("other", [Period(7, 7), Period(0, 14), Period(0, 7, 2)])
def test_another_period_begins_anew(other: Period) -> None:
    system = Glicko(period=7)
    game = Game([GameSide([PLAYER], 1), GameSide([PlayerState(1400.0, 30.0)], 2)])
    results = system.results(game)[0]
    _, before = rate_in_period(system, WEEK, None, PLAYER, results)

    rated, after = rate_in_period(system, other, before, PLAYER, results)

    assert (rated, after.period) == (rate_in_period(system, other, None, PLAYER, results)[0], other)


def test_an_open_period_survives_being_written_down() -> None:
    start = PlayerState(1500.1, 1 / 3, None, 7, 1600.0, 0.1 + 0.2, 3, 1, True)
    period = OpenPeriod(Period(20_454, 7), start, ((0.1, 1e-30), (), (-2.5,)))

    assert from_text(to_text(period)) == period


def test_a_period_that_was_written_down_by_an_older_version_can_be_read() -> None:
    text = (
        '{"period":{"day":20454,"days":7,"version":3},"start":{"rating":1500.5,"rd":30,"volatility":null,'
        '"games":2,"peak":1600,"days":7.0},"sums":[[0.25],[]]}'
    )

    period = from_text(text)

    start = PlayerState(1500.5, 30, None, games=2, peak=1600, days=7.0)
    assert period == OpenPeriod(Period(20_454, 7, 3), start, ((0.25,), ()))


def test_a_pool_without_seasons_starts_none() -> None:
    old, new = datetime(2020, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)

    assert not has_started(new, old, 0)
    assert has_started(new, old, 8)
    assert not has_started(new, datetime(2025, 8, 1, tzinfo=UTC), 8)


def test_the_end_of_a_period_says_what_ended_and_what_begins() -> None:
    closed = period_closed("chess", 12, Period(20_454, 7), Period(20_468, 7))

    assert closed.id == "chess/period-closed/12"
    assert closed.time == datetime(2026, 1, 15, tzinfo=UTC)
    assert closed.data.first_day.isoformat() == "2026-01-01"
    assert closed.data.next_first_day.isoformat() == "2026-01-15"
