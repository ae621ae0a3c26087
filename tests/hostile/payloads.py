"""Every class of hostile text, and as many different texts as one likes.

What a text must be refused for is known from how it was made, and was written down from the rules: the parser
has no say in it. A reason stands beside every class, the path of a wrong field comes from where it was put.
"""

from collections.abc import Callable, Iterator
from functools import partial

from hostile.bad_fields import BAD_FIELDS, NO_EVENTS
from hostile.bad_times import BAD_TIMES
from hostile.draw import Draw, Json, Payload, Spoiled
from hostile.no_games import NO_GAMES, NOT_HERE_AND_NOW
from hostile.no_json import NO_JSON, TOO_LARGE
from petard_schema.envelope import MAX_EVENT_BYTES

Made = tuple[bytes, str]


def raw_text(make: Callable[[Draw], bytes], reason: str, draw: Draw) -> Made:
    return make(draw), reason


def document(make: Callable[[Draw], object], reason: str, draw: Draw) -> Made:
    return draw.text(make(draw)), reason


def bad_field(make: Callable[[Draw], Spoiled], draw: Draw) -> Made:
    event, path = make(draw)
    return draw.text(event), f"bad_field:{path}"


def game(make: Callable[[Draw], Json], reason: str, draw: Draw) -> Made:
    return draw.text(make(draw)), reason


REFUSED_BY_PARSER: dict[str, Callable[[Draw], Made]] = {
    **{make.__name__: partial(raw_text, make, reason) for make, reason in NO_JSON.items()},
    **{make.__name__: partial(document, make, reason) for make, reason in NO_EVENTS.items()},
    **{make.__name__: partial(bad_field, make) for make in (*BAD_FIELDS, *BAD_TIMES)},
    **{make.__name__: partial(game, make, reason) for make, reason in NO_GAMES.items()},
}
"""What no pool takes, by the name of the class."""

KINDS: dict[str, Callable[[Draw], Made]] = {
    **REFUSED_BY_PARSER,
    **{make.__name__: partial(game, make, reason) for make, reason in NOT_HERE_AND_NOW.items()},
}
"""And what the pool `p` does not take today."""

NAMES = tuple(KINDS)


def hostile(seed: int, count: int, start: int = 0) -> Iterator[Payload]:
    """Yield hostile texts of all classes in turn, no two of them the same."""
    for number in range(start, start + count):
        yield payload(seed, NAMES[number % len(NAMES)], number)


def payload(seed: int, kind: str, number: int) -> Payload:
    """Return a text of this class; numbers begin at 0, and each makes another text."""
    # Numbers of one length: none is the start of another, so a text that was cut off is still its own.
    draw = Draw(seed, 1_000_000_000 + number)
    raw, reason = KINDS[kind](draw)
    while len(raw) > MAX_EVENT_BYTES and reason != TOO_LARGE:  # size is looked at first
        raw, reason = KINDS[kind](draw)
    return Payload(kind, raw, reason)
