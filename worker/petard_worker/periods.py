"""Rating periods: to which of them a game belongs, and what a player has done in an open one.

With a period of so many days all its games are simultaneous: everybody is rated from where they stood at its
start, after each game anew, by exact sums, so that the order of the games does not matter. Days are counted
from 1970-01-01 in UTC. A period is closed by a ledger entry, written before the first rated game of a later
one: what was running until then is final. So a replay of the ledger needs no clock.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from petard_schema import ClosedPeriod, PeriodClosed
from petard_worker.ratings.exact_sums import Partials, add_terms, totals
from petard_worker.ratings.system import PeriodSystem, PlayerState, Rated, Terms, sum_terms

FIRST = datetime(1970, 1, 1, tzinfo=UTC)
YEAR_1 = (datetime(1, 1, 1, tzinfo=UTC) - FIRST).days


class Period(NamedTuple):
    """A rating period under one version of the pool's parameters.

    Whoever plays after the parameters have changed goes on from the running rating, as if a period had ended:
    what was rated stays rated as it was.
    """

    day: int
    """The first one, counted from 1970-01-01."""
    days: int
    version: int = 1


class OpenPeriod(NamedTuple):
    """What a player has done in a period: where it began for them, and the exact sums of its results."""

    period: Period
    start: PlayerState
    sums: tuple[Partials, ...]


def first_day(time: datetime, days: int) -> int:
    """Return the first day of the period of `days` that the time lies in, counted from 1970-01-01."""
    day = (time - FIRST).days
    return day - day % days


def period_at(time: datetime, days: int, version: int) -> Period | None:
    """Return the period that the time lies in; None where there are no periods."""
    return Period(first_day(time, days), days, version) if days else None


def start_of(day: int) -> datetime:
    """Return the moment at which the day begins; the first period of all may have begun before the year 1."""
    return FIRST + timedelta(days=max(day, YEAR_1))


def rate_in_period(
    system: PeriodSystem,
    period: Period,
    before: OpenPeriod | None,
    start: PlayerState,
    results: Sequence[Terms],
) -> tuple[Rated, OpenPeriod]:
    """Return the player after one more game of the period, rated with all the games before in it.

    The scores are those of this game alone; everything else is what the whole period comes to so far.
    """
    game = sum_terms(results)
    sums = before.sums if before is not None and before.period == period else ((),) * len(game)
    for terms in results:
        sums = add_terms(sums, terms)
    running = system.rate_period(start, totals(sums))
    expected, actual = system.scores(game)
    return running._replace(expected=expected, actual=actual), OpenPeriod(period, start, sums)


def period_closed(pool: str, seq: int, period: Period, following: Period) -> PeriodClosed:
    """Return ledger entry `seq`, by which a period ends because the following one begins."""
    begins = start_of(following.day)
    return PeriodClosed(
        id=f"{pool}/period-closed/{seq}",
        time=begins,
        data=ClosedPeriod(
            pool=pool,
            days=period.days,
            first_day=start_of(period.day).date(),
            next_first_day=begins.date(),
        ),
    )
