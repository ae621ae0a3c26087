"""JSON that is no event, or an event with one wrong field. What each must be refused for is said by hand."""

from collections.abc import Callable

from hostile.draw import Draw, Json, Spoiled, change_data, data_of, names_of, sides_of

NOT_AN_EVENT = "not_an_event"
UNKNOWN_TYPE = "unknown_type"
NO_TEXTS: tuple[object, ...] = (None, True, False, 0, 1.5, [], {}, ["a"], {"a": "b"})
MAX_INT = 2**53 - 1


def bare_value(draw: Draw) -> object:
    return draw.one(
        draw.number,
        -draw.number - 0.5,
        f"petard.game.finished.v1 {draw.number}",
        [draw.number, draw.value()],
        ["alice", "bob", draw.number],
    )


def array_of_events(draw: Draw) -> object:
    return [draw.envelope() for _ in range(draw.between(1, 2))]


def other_object(draw: Draw) -> object:
    """What others might send: only the data, a job of RQ's, a JSON-RPC call, GraphQL."""
    return draw.one(
        draw.finished_data(),
        {"winner": "alice", "loser": "bob", "game": draw.number},
        {"func": "os.system", "args": [f"echo {draw.number}"]},
        {"jsonrpc": "2.0", "method": "rate", "params": draw.value(), "id": draw.number},
        {"query": "{ players { rating } }", "variables": {"n": draw.number}},
        {"event": draw.envelope()},
    )


def member_missing(draw: Draw) -> object:
    event = draw.envelope()
    del event[draw.one("specversion", "id", "source", "type")]
    return event | {"comment": draw.number}


def member_misnamed(draw: Draw) -> object:
    event = draw.envelope(comment=draw.number)
    name = draw.one("specversion", "id", "source", "type")
    wrong = draw.one(
        name.upper(), f" {name}", f"{name}\u200b", f"\u202e{name}", f"{name}\n", f"cloudEvents:{name}"
    )
    event[wrong] = event.pop(name)
    return event


def other_specversion(draw: Draw) -> object:
    other = (
        "0.3",
        "1",
        "1.0.0",
        "1.1",
        "2.0",
        "1.0 ",
        "\u0661.0",
        "v1.0",
        "",
        1,
        1.0,
        None,
        True,
        ["1.0"],
        {},
    )
    return draw.envelope(specversion=draw.of(other))


def other_type(draw: Draw) -> object:
    kind = draw.one("petard.game.finished", "petard.game.abandoned")
    return draw.envelope(
        type=draw.one(
            *(
                f"{kind}.v{draw.size(2, 99)}",
                f"{kind}",
                f"{kind}.v1 ",
                f" {kind}.v1",
                f"{kind}.v1\0"[:-1] + "\n",
            ),
            *(
                f"{kind}.v1".upper(),
                f"com.{kind}.v1",
                kind.replace("a", "\u0430") + ".v1",
                f"{kind}.v1\u200b",
            ),
            *("", "x" * draw.size(1, 2_000), draw.name(), "\x1b]0;pwned\x07", "../../etc/passwd"),
        )
    )


def type_that_is_no_text(draw: Draw) -> object:
    return draw.envelope(type=draw.one(*NO_TEXTS, ["petard.game.finished.v1"]))


def type_that_petard_says_itself(draw: Draw) -> object:
    return draw.envelope(type=draw.one("petard.rating.changed.v1", "petard.period.closed.v1"))


# Names: of events, sources, games and players.


def name_spoiled(draw: Draw, bad: object) -> Spoiled:
    """Put it where a name is due."""
    place = draw.between(0, 4)
    if place == 0:
        return draw.envelope(id=bad, comment=draw.number), "id"
    if place == 1:
        return draw.envelope(source=bad), "source"
    if place == 2:
        return draw.with_data(game=bad), "data.game"
    if place == 3:
        event = draw.abandoned()
        leavers = list(data_of(event)["abandoned_by"])  # type: ignore[call-overload]
        index = draw.between(0, len(leavers))
        return change_data(event, abandoned_by=[*leavers[:index], bad]), f"data.abandoned_by.{index}"
    event = draw.envelope()
    number = draw.between(0, len(sides_of(event)) - 1)
    players = names_of(sides_of(event)[number])
    index = draw.between(0, len(players) - 1)
    players[index] = bad  # type: ignore[call-overload]
    return event, f"data.sides.{number}.players.{index}"


def control_characters(draw: Draw) -> Spoiled:
    """Titles of windows, faked lines of logs, and every single control character but NUL."""
    bad = draw.one(
        *(
            "\x1b]0;pwned\x07",
            "\x1b[31m",
            "\x1b[2J\x1b[H",
            '\r\n{"event": "forged"}',
            "\n",
            "\r",
            "\t",
            "\x7f",
        ),
        *(chr(draw.between(1, 31)), chr(draw.between(0x7F, 0x9F)), "\x9b31m", "\x9d0;pwned\x9c", "\b\b\b"),
    )
    return name_spoiled(draw, draw.spoiled(bad))


def bidi_characters(draw: Draw) -> Spoiled:
    marks = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    return name_spoiled(draw, draw.spoiled(draw.of(marks) * draw.size(1, 20)))


def invisible_characters(draw: Draw) -> Spoiled:
    """Zero-width ones, soft hyphens, tags, and marks of the byte order."""
    marks = "\u00ad\u200b\u200c\u200d\u2060\u2061\u2064\ufeff\u180e\ufff9\U000e0001\U000e0041\U0001d173"
    return name_spoiled(draw, draw.spoiled(draw.of(marks)))


def other_spaces(draw: Draw) -> Spoiled:
    spaces = "\u00a0\u1680\u2000\u2003\u2007\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
    return name_spoiled(draw, draw.spoiled(draw.of(spaces)))


def space_at_an_end(draw: Draw) -> Spoiled:
    space = " " * draw.between(1, 4)
    return name_spoiled(draw, draw.one(space + draw.name(), draw.name() + space, space))


def private_and_unassigned(draw: Draw) -> Spoiled:
    points = (0xE000, 0xF8FF, 0xF0000, 0x10FFFD, 0xFFFE, 0xFFFF, 0x1FFFF, 0x10FFFF, 0xFDD0, 0x0378, 0xE0FFF)
    return name_spoiled(draw, draw.spoiled(chr(draw.of(points))))


def not_composed(draw: Draw) -> Spoiled:
    bad = draw.one(
        "e\u0301", "A\u030a", "\u212b", "\u2126", "\u1100\u1161", "\uf900", "n\u0303", "a\u0323\u0302"[:2]
    )
    return name_spoiled(draw, draw.spoiled(f"x{bad}"))


def name_too_long(draw: Draw) -> Spoiled:
    letter = draw.one("x", "é", "美", "🎮", "%", "'")
    return name_spoiled(draw, letter * draw.size(257, 1_000))


def name_empty(draw: Draw) -> Spoiled:
    return name_spoiled(draw, "")


def name_that_is_no_text(draw: Draw) -> Spoiled:
    return name_spoiled(draw, draw.one(*NO_TEXTS, 10**15, [["alice"]], {"$ne": None}))


def source_of_petard(draw: Draw) -> Spoiled:
    return draw.envelope(source="/petard"), "source"


def pool_name(draw: Draw) -> Spoiled:
    bad = (
        *("", "P", "Chess", "-a", ".a", "_a", "a b", "a:b", "a/b", "../etc/passwd", "a\\b", "*", "a*", "{p}"),
        *(
            "p'; DROP TABLE petard.ledger; --",
            "p\n",
            "\n",
            "p\r\nFLUSHALL\r\n",
            "p\u200b",
            "\u0440",
            "\u0661",
        ),
        *("p" * draw.size(65, 1_000), "%s", "%(pool)s", "${p}", "p\x1b[31m", "p\u202e", "é", *NO_TEXTS),
    )
    return draw.with_data(pool=draw.of(bad)), "data.pool"


# Numbers and truths.


def side_spoiled(draw: Draw, member: str, bad: object, *, event: Json | None = None) -> Spoiled:
    """Put it into a member of one of the sides."""
    event = draw.envelope() if event is None else event
    number = draw.between(0, len(sides_of(event)) - 1)
    sides_of(event)[number][member] = bad
    return event, f"data.sides.{number}.{member}"


def truth_as_a_rank(draw: Draw) -> Spoiled:
    return side_spoiled(draw, "rank", draw.likely(0.5))


def rank_out_of_range(draw: Draw) -> Spoiled:
    return side_spoiled(draw, "rank", draw.one(0, -1, -draw.size(1, MAX_INT)))


def rank_that_is_no_integer(draw: Draw) -> Spoiled:
    return side_spoiled(draw, "rank", draw.one(1.0, 1.5, -0.0, 1e300, "1", "first", [], [1], {}, {"rank": 1}))


def rank_missing(draw: Draw) -> Spoiled:
    event = draw.finished()
    number = draw.between(0, len(sides_of(event)) - 1)
    del sides_of(event)[number]["rank"]
    return event, f"data.sides.{number}.rank"


def points_wrong(draw: Draw) -> Spoiled:
    return side_spoiled(
        draw, "points", draw.one(True, False, "1", "NaN", [], {}, 1e16, -1e16, 1e308, 2.0**53)
    )


def home_wrong(draw: Draw) -> Spoiled:
    return side_spoiled(draw, "home", draw.one(0, 1, "true", "", [], {}, 0.0))


def weights_wrong(draw: Draw) -> Spoiled:
    """The array itself."""
    event = draw.envelope()
    number = draw.between(0, len(sides_of(event)) - 1)
    side = sides_of(event)[number]
    count = len(names_of(side))
    side["weights"] = draw.one([0] * count, [1] * (count + draw.size(1, 500)), [], "1", 1, {}, True)
    return event, f"data.sides.{number}.weights"


def weight_wrong(draw: Draw) -> Spoiled:
    """One of its elements, the first that is wrong."""
    event = draw.envelope()
    number = draw.between(0, len(sides_of(event)) - 1)
    side = sides_of(event)[number]
    index = draw.between(0, len(names_of(side)) - 1)
    bad = draw.one(-0.1, 1.1, 2, True, None, "1", [1], 1e308, -MAX_INT)
    side["weights"] = [1] * index + [bad] * (len(names_of(side)) - index)
    return event, f"data.sides.{number}.weights.{index}"


def truth_wrong(draw: Draw) -> Spoiled:
    name = draw.one("rated", "knockout")
    bad = draw.one(0, 1, "true", "no", None, [], {}, 1.0)
    return change_data(draw.finished(), **{name: bad}), f"data.{name}"


def importance_wrong(draw: Draw) -> Spoiled:
    bad = draw.one(-1, -0.001, 1_000_000.5, 1e15, 1e308, True, False, "1", [], {}, MAX_INT)
    return draw.with_data(importance=bad), "data.importance"


def choice_wrong(draw: Draw) -> Spoiled:
    bad = draw.one("", "coin", "Play", "player ", "\u202eplay", None, True, 1, [], ["play"], {})
    if draw.likely(0.5):
        return change_data(draw.finished(), decided_by=bad), "data.decided_by"
    return change_data(draw.abandoned(), fault=bad), "data.fault"


# Things that are not what they should be.


def member_of_data_missing(draw: Draw) -> Spoiled:
    event = draw.envelope()
    name = draw.of([name for name in ("pool", "game", "sides", "abandoned_by") if name in data_of(event)])
    del data_of(event)[name]
    return event, f"data.{name}"


def data_wrong(draw: Draw) -> Spoiled:
    event = draw.envelope(data=draw.one(None, [], "{}", "", 1, True, [{}], "eyJwb29sIjoicCJ9"))
    if draw.likely(0.2):
        del event["data"]
    return event, "data"


def meta_wrong(draw: Draw) -> Spoiled:
    return draw.with_data(meta=draw.one([], [{}], "{}", "", 0, 1.5, True, False)), "data.meta"


def sides_wrong(draw: Draw) -> Spoiled:
    bad = draw.one(None, [], {}, "alice, bob", 2, True, {"alice": 1, "bob": 2})
    return draw.with_data(sides=bad), "data.sides"


def side_wrong(draw: Draw) -> Spoiled:
    event = draw.envelope()
    number = draw.between(0, len(sides_of(event)) - 1)
    sides_of(event)[number] = draw.one(None, [], ["alice"], "alice", 1, True)  # type: ignore[call-overload]
    return event, f"data.sides.{number}"


def players_wrong(draw: Draw) -> Spoiled:
    return side_spoiled(draw, "players", draw.one(None, [], {}, "alice", 1, True, {"0": "alice"}))


def leavers_wrong(draw: Draw) -> Spoiled:
    bad = draw.one(None, [], {}, "alice", 1, True)
    return change_data(draw.abandoned(), abandoned_by=bad), "data.abandoned_by"


def thousands_of_sides(draw: Draw) -> Spoiled:
    """As many as fit, with nobody on them."""
    return draw.with_data(sides=[{}] * draw.size(65, 2_500)), "data.sides.0.players"


NO_EVENTS: dict[Callable[[Draw], object], str] = {
    **dict.fromkeys(
        (bare_value, array_of_events, other_object, member_missing, member_misnamed, other_specversion),
        NOT_AN_EVENT,
    ),
    **dict.fromkeys((other_type, type_that_is_no_text, type_that_petard_says_itself), UNKNOWN_TYPE),
}
"""Classes of JSON that is no event of a known type, and the reason."""

BAD_FIELDS: tuple[Callable[[Draw], Spoiled], ...] = (
    *(control_characters, bidi_characters, invisible_characters, other_spaces, space_at_an_end),
    *(private_and_unassigned, not_composed, name_too_long, name_empty, name_that_is_no_text),
    *(source_of_petard, pool_name, truth_as_a_rank, rank_out_of_range, rank_that_is_no_integer),
    *(rank_missing, points_wrong, home_wrong, weights_wrong, weight_wrong, truth_wrong, importance_wrong),
    *(choice_wrong, member_of_data_missing, data_wrong, meta_wrong, sides_wrong, side_wrong, players_wrong),
    *(leavers_wrong, thousands_of_sides),
)
"""Classes of events with one wrong field; the reason is `bad_field:` and its path."""
