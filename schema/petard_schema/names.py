"""Names of pools, games, players and events: what may stand in them.

Names are compared byte by byte. They are never case-folded or compatibility-folded: two players whose names
look alike stay two players.
"""

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator, Field

MAX_NAME = 64
MAX_ID = 128
MAX_SOURCE = 256

POOL_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
_pool = re.compile(POOL_PATTERN[:-1] + r"\Z")  # "$" alone would let a trailing newline in


def check_pool(value: str) -> str:
    """Return the pool name, or raise ValueError saying what a pool name looks like."""
    if _pool.match(value):
        return value
    raise ValueError("a pool is 1-64 of a-z 0-9 . _ - and starts with a letter or a digit")


def check_printable(value: str) -> str:
    """Return the text, or raise ValueError naming the first character that may not stand in a name."""
    if value.isascii() and value.isprintable() and value[:1] != " " and value[-1:] != " ":
        return value
    # isprintable() is false for control, format, surrogate, private-use and unassigned characters and for
    # every space but the ASCII one: just what a name must not hold.
    bad = next((character for character in value if not character.isprintable()), None)
    if bad is not None:
        raise ValueError(f"holds U+{ord(bad):04X} ({unicodedata.category(bad)}), which is not printable")
    if value != value.strip(" "):
        raise ValueError("starts or ends with a space")
    if not unicodedata.is_normalized("NFC", value):
        raise ValueError("is not in Unicode normal form C")
    return value


PoolName = Annotated[str, Field(json_schema_extra={"pattern": POOL_PATTERN}), AfterValidator(check_pool)]
GameName = Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(check_printable)]
PlayerName = Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(check_printable)]
EventId = Annotated[str, Field(min_length=1, max_length=MAX_ID), AfterValidator(check_printable)]
EventSource = Annotated[str, Field(min_length=1, max_length=MAX_SOURCE), AfterValidator(check_printable)]
