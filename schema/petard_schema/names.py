"""Names of pools, games, players and events: what may stand in them.

Names are compared byte by byte. They are never case-folded or compatibility-folded: two players whose names
look alike stay two players.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic.config import JsonDict

MAX_NAME = 64
MAX_ID = 128
MAX_SOURCE = 256
OWN_SOURCE = "/petard"
"""The source of everything that Petard itself says; nobody else may use it."""

POOL_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
_pool = re.compile(POOL_PATTERN[:-1] + r"\Z")  # "$" alone would let a trailing newline in

# What JSON Schema can say about a printable text in a way that every language reads alike: nothing above
# U+FFFF, no Unicode properties. It never refuses what check_printable lets through.
PRINTABLE_SCHEMA: JsonDict = {
    "pattern": r"^[^\u0000-\u001f\u007f-\u00a0\u00ad\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    r"\u3000\ue000-\uf8ff\ufeff]+$",
    "not": {"pattern": "^ | $"},
}
SOURCE_SCHEMA: JsonDict = {**PRINTABLE_SCHEMA, "not": {"pattern": f"^ | $|^{OWN_SOURCE}$"}}
PRINTABLE_WORDS = (
    "printable characters in Unicode normal form C (no control, format, surrogate, private-use or unassigned"
    " ones), no space but U+0020 and none at the ends; compared byte by byte"
)


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


def check_source(value: str) -> str:
    """Return the source, or raise ValueError where it is no printable text or Petard's own."""
    if value == OWN_SOURCE:
        raise ValueError(f"is reserved: {OWN_SOURCE} is the source of what Petard itself says")
    return check_known(value)


PoolName = Annotated[str, Field(json_schema_extra={"pattern": POOL_PATTERN}), AfterValidator(check_pool)]
GameName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_NAME,
        description=f"The game's name in its pool: 1-{MAX_NAME} {PRINTABLE_WORDS}.",
        json_schema_extra=PRINTABLE_SCHEMA,
    ),
    AfterValidator(check_printable),
]
# Players and sources come again and again, ids and games do not.
check_known = lru_cache(maxsize=16_384)(check_printable)

PlayerName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_NAME,
        description=f"A player's name: 1-{MAX_NAME} {PRINTABLE_WORDS}.",
        json_schema_extra=PRINTABLE_SCHEMA,
    ),
    AfterValidator(check_known),
]
EventId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_ID,
        description=f"With the source the identity of the event: 1-{MAX_ID} {PRINTABLE_WORDS}.",
        json_schema_extra=PRINTABLE_SCHEMA,
    ),
    AfterValidator(check_printable),
]
EventSource = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_SOURCE,
        description=f"Who says so, best a URI reference: 1-{MAX_SOURCE} {PRINTABLE_WORDS}."
        f" {OWN_SOURCE} is Petard's own.",
        json_schema_extra=SOURCE_SCHEMA,
    ),
    AfterValidator(check_source),
]
