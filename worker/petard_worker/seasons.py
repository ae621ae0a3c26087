"""Seasons: when a new one has started."""

from datetime import UTC, datetime


def season(time: datetime, first_month: int) -> int:
    """Return the year in which the season that the time lies in has started, on the first of a month."""
    utc = time.astimezone(UTC)
    return utc.year if utc.month >= first_month else utc.year - 1


def has_started(time: datetime, since: datetime, first_month: int) -> bool:
    """Return whether a season has started after `since`, up to the time; never where `first_month` is 0."""
    return first_month > 0 and season(time, first_month) > season(since, first_month)
