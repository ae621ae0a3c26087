"""How long ago: 90s, 30m, 2h, 3d, 1w."""

import re
from datetime import timedelta

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def duration(text: str) -> timedelta:
    """Return how long that is; raises ValueError when it is no duration."""
    match = re.fullmatch(r"([0-9]{1,9})([smhdw])", text, re.ASCII)
    if match is None:
        raise ValueError("is no duration such as 90s, 30m, 2h, 3d or 1w")
    return timedelta(**{UNITS[match[2]]: int(match[1])})
