import json
import pickle
import re
import threading
import time
import timeit
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from petard_schema import (
    MAX_EVENT_BYTES,
    DeadReason,
    EventRefused,
    FinishedGame,
    GameAbandoned,
    GameEvent,
    GameFinished,
    Identity,
    parse_event,
    read_counted,
    read_identity,
)
from petard_schema.ijson import MAX_DEPTH
from petard_schema.names import PRINTABLE_SCHEMA, check_printable
from petard_schema.parse import bad_field

MAX_INT = 2**53 - 1
DELETED = object()

FINISHED: dict[str, object] = {
    "specversion": "1.0",
    "id": "01JE",
    "source": "/servers/eu-1",
    "type": "petard.game.finished.v1",
    "time": "2026-11-30T12:00:00Z",
}
DUEL: dict[str, object] = {
    "pool": "chess-blitz",
    "game": "g-1",
    "rated": True,
    "sides": [{"players": ["alice"], "rank": 1}, {"players": ["bob"], "rank": 2}],
}
LEFT: dict[str, object] = {
    "pool": "chess-blitz",
    "game": "g-1",
    "sides": [{"players": ["alice"]}, {"players": ["bob"]}],
    "abandoned_by": ["bob"],
}


def changed(document: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in {**document, **changes}.items() if value is not DELETED}


def envelope(**changes: object) -> bytes:
    return json.dumps(changed({**FINISHED, "data": DUEL}, changes)).encode()


def finished(**changes: object) -> bytes:
    return json.dumps({**FINISHED, "data": changed(DUEL, changes)}).encode()


def abandoned(**changes: object) -> bytes:
    kind = {"type": "petard.game.abandoned.v1"}
    return json.dumps({**FINISHED, **kind, "data": changed(LEFT, changes)}).encode()


def with_meta(text: str) -> bytes:
    """Return an event with this JSON text as a member of `meta`, not read or written by json."""
    return finished(meta={"x": "HERE"}).replace(b'"HERE"', text.encode("utf-8", "surrogatepass"))


def with_rank(text: str) -> bytes:
    return finished().replace(b'"rank": 1', f'"rank": {text}'.encode())


def side(*players: object, **more: object) -> dict[str, object]:
    return {"players": list(players), "rank": 1, **more}


def reason_for(raw: bytes) -> str:
    try:
        parse_event(raw)
    except EventRefused as refusal:
        detail, reason = refusal.detail, refusal.reason
    else:
        return "accepted"
    assert len(detail) <= 400
    assert detail.isprintable()
    return reason


def padded(size: int) -> bytes:
    return finished() + b" " * (size - len(finished()))


HOSTILE = {
    # Not JSON: what Python's json, pydantic or other readers let in.
    "nothing": (b"", "not_json"),
    "white space": (b" \t\r\n", "not_json"),
    "words": (b"hello", "not_json"),
    "NUL": (b"\0", "not_json"),
    "NaN": (with_meta("NaN"), "not_json"),
    "infinity": (with_meta("Infinity"), "not_json"),
    "minus infinity": (with_meta("-Infinity"), "not_json"),
    "NaN alone": (b"NaN", "not_json"),
    "1e999": (with_meta("1e999"), "not_json"),
    "-1e999": (with_meta("-1e999"), "not_json"),
    "1e-999, which is not zero": (with_meta("1e-999"), "not_json"),
    "0e-99999, which Postgres does not take": (with_meta("0e-99999"), "not_json"),
    "a float of 65 characters": (with_meta("0." + "1" * 63), "not_json"),
    "an integer of 4,301 digits": (with_meta("9" * 4301), "not_json"),
    "an integer of 16,000 digits": (b"9" * 16_000, "not_json"),
    "10^30": (with_rank(str(10**30)), "not_json"),
    "2^53": (with_meta(str(2**53)), "not_json"),
    "-2^53": (with_meta(str(-(2**53))), "not_json"),
    "leading zero": (with_meta("01"), "not_json"),
    "plus": (with_meta("+1"), "not_json"),
    "hexadecimal": (with_meta("0x1"), "not_json"),
    "digits of another script": (with_meta("\u0661"), "not_json"),
    "underscore": (with_meta("1_000"), "not_json"),
    "single quotes": (with_meta("'a'"), "not_json"),
    "comment": (with_meta("1 /* one */"), "not_json"),
    "trailing comma": (with_meta("[1,]"), "not_json"),
    "raw newline in a text": (with_meta('"a\nb"'), "not_json"),
    "raw NUL in a text": (with_meta('"a\0b"'), "not_json"),
    "escaped NUL": (with_meta(r'"\u0000"'), "not_json"),
    "escaped NUL in a key": (with_meta(r'{"\u0000": 1}'), "not_json"),
    "escaped NUL after an escaped backslash": (with_meta(r'"\\\u0000"'), "not_json"),
    "lone high surrogate": (with_meta(r'"\ud800"'), "not_json"),
    "lone low surrogate": (with_meta(r'"\udfff"'), "not_json"),
    "surrogates the wrong way round": (with_meta(r'"\udc00\ud83d"'), "not_json"),
    "lone surrogate in a key": (with_meta(r'{"a": [{"\uDBFF": 1}]}'), "not_json"),
    "lone surrogate in the type": (finished().replace(b"petard.", rb"\ud800."), "not_json"),
    "surrogate in UTF-8": (with_meta('"\ud800"'), "not_json"),
    "overlong UTF-8": (finished().replace(b"alice", b"\xc0\x80"), "not_json"),
    "UTF-8 beyond U+10FFFF": (finished().replace(b"alice", b"\xf4\x90\x80\x80"), "not_json"),
    "Latin-1": (finished().replace(b"alice", b"zo\xeb"), "not_json"),
    "UTF-16": (finished().decode().encode("utf-16"), "not_json"),
    "UTF-16 without a mark": (finished().decode().encode("utf-16-le"), "not_json"),
    "UTF-32": (finished().decode().encode("utf-32-be"), "not_json"),
    "byte order mark": (b"\xef\xbb\xbf" + finished(), "not_json"),
    "two events": (finished() + finished(), "not_json"),
    "garbage at the end": (finished() + b"x", "not_json"),
    "NUL at the end": (finished() + b"\0", "not_json"),
    "cut off": (finished()[:-1], "not_json"),
    "a member twice": (finished().replace(b'"rated": true', b'"rated": true, "rated": true'), "not_json"),
    "a member twice, once escaped": (finished().replace(b'"id"', rb'"\u0069d": "a", "id"'), "not_json"),
    "a member of meta twice": (with_meta('{"a": [{"b": 1, "b": 1}]}'), "not_json"),
    "an empty member twice": (with_meta('{"": 1, "": 2}'), "not_json"),
    # Too large, too deep.
    "a byte too many": (padded(MAX_EVENT_BYTES + 1), "too_large"),
    "seven megabytes": (b"[" * 7_000_000, "too_large"),
    "a level too many": (with_meta("[" * (MAX_DEPTH - 2) + "]" * (MAX_DEPTH - 2)), "too_deep"),
    "1,000 arrays": (with_meta("[" * 1000 + "]" * 1000), "too_deep"),
    "16,384 open arrays": (b"[" * 16_384, "too_deep"),
    "2,700 objects": (b'{"a":' * 2700, "too_deep"),
    "closed more often than opened, then deep": (b"]" * 100 + b"[" * 100, "not_json"),
    # No event.
    "null": (b"null", "not_an_event"),
    "number": (b"1", "not_an_event"),
    "text": (b'"petard.game.finished.v1"', "not_an_event"),
    "array": (b"[" + finished() + b"]", "not_an_event"),
    "empty object": (b"{}", "not_an_event"),
    "only the data": (json.dumps(DUEL).encode(), "not_an_event"),
    "no specversion": (envelope(specversion=DELETED), "not_an_event"),
    "specversion 0.3": (envelope(specversion="0.3"), "not_an_event"),
    "specversion as a number": (envelope(specversion=1.0), "not_an_event"),
    "specversion as an object": (envelope(specversion={"1.0": "1.0"}), "not_an_event"),
    "specversion of 10,000 marks": (envelope(specversion="\u202e" * 2000), "not_an_event"),
    "no id": (envelope(id=DELETED), "not_an_event"),
    "no source": (envelope(source=DELETED), "not_an_event"),
    "no type": (envelope(type=DELETED), "not_an_event"),
    "names in upper case": (finished().replace(b'"id"', b'"ID"'), "not_an_event"),
    # Of a type nobody knows.
    "type v2": (envelope(type="petard.game.finished.v2"), "unknown_type"),
    "type in upper case": (envelope(type="PETARD.GAME.FINISHED.V1"), "unknown_type"),
    "type with a space": (envelope(type="petard.game.finished.v1 "), "unknown_type"),
    "type null": (envelope(type=None), "unknown_type"),
    "type that cannot be hashed": (envelope(type=["petard.game.finished.v1"]), "unknown_type"),
    "type as an object": (envelope(type={}), "unknown_type"),
    "type of 10,000 letters": (envelope(type="x" * 10_000), "unknown_type"),
    "type that only Petard uses": (envelope(type="petard.rating.changed.v1"), "unknown_type"),
    # Bad fields of the envelope.
    "id as a number": (envelope(id=1), "bad_field:id"),
    "id null": (envelope(id=None), "bad_field:id"),
    "id as an object": (envelope(id={"a": 1}), "bad_field:id"),
    "source as an array": (envelope(source=[]), "bad_field:source"),
    "no time": (envelope(time=DELETED), "bad_field:time"),
    "time null": (envelope(time=None), "bad_field:time"),
    "time as a number": (envelope(time=1_796_040_000), "bad_field:time"),
    "time true": (envelope(time=True), "bad_field:time"),
    "no data": (envelope(data=DELETED), "bad_field:data"),
    "data null": (envelope(data=None), "bad_field:data"),
    "data as an array": (envelope(data=[]), "bad_field:data"),
    "data as text": (envelope(data=json.dumps(DUEL)), "bad_field:data"),
    "data in base64": (envelope(data=DELETED, data_base64="e30="), "bad_field:data"),
    # Bad fields of the data.
    "no pool": (finished(pool=DELETED), "bad_field:data.pool"),
    "pool as a number": (finished(pool=1), "bad_field:data.pool"),
    "no game": (finished(game=DELETED), "bad_field:data.game"),
    "game as a number": (finished(game=17), "bad_field:data.game"),
    "rated as a number": (finished(rated=1), "bad_field:data.rated"),
    "rated as text": (finished(rated="true"), "bad_field:data.rated"),
    "rated null": (finished(rated=None), "bad_field:data.rated"),
    "decided by a coin": (finished(decided_by="coin"), "bad_field:data.decided_by"),
    "decided by an array": (finished(decided_by=["play"]), "bad_field:data.decided_by"),
    "fault of a referee": (abandoned(fault="referee"), "bad_field:data.fault"),
    "fault as an object": (abandoned(fault={}), "bad_field:data.fault"),
    "started without a zone": (finished(started="2026-11-30T12:00:00"), "bad_field:data.started"),
    "importance below zero": (finished(importance=-0.5), "bad_field:data.importance"),
    "importance above a million": (finished(importance=1_000_001), "bad_field:data.importance"),
    "importance true": (finished(importance=True), "bad_field:data.importance"),
    "meta as an array": (finished(meta=[]), "bad_field:data.meta"),
    "meta as text": (finished(meta="{}"), "bad_field:data.meta"),
    "no sides": (finished(sides=DELETED), "bad_field:data.sides"),
    "sides null": (finished(sides=None), "bad_field:data.sides"),
    "sides as an object": (finished(sides={"alice": 1, "bob": 2}), "bad_field:data.sides"),
    "sides as text": (finished(sides="alice, bob"), "bad_field:data.sides"),
    "sides empty": (finished(sides=[]), "bad_field:data.sides"),
    "a side as text": (finished(sides=[side("alice"), "bob"]), "bad_field:data.sides.1"),
    "a side null": (finished(sides=[None, side("bob")]), "bad_field:data.sides.0"),
    "a side without players": (finished(sides=[{"rank": 1}] * 2), "bad_field:data.sides.0.players"),
    "a side with nobody": (finished(sides=[side("alice"), side()]), "bad_field:data.sides.1.players"),
    "players as text": (
        finished(sides=[{"players": "alice", "rank": 1}, side("bob")]),
        "bad_field:data.sides.0.players",
    ),
    "players as an object": (
        finished(sides=[{"players": {"alice": 1}, "rank": 1}, side("bob")]),
        "bad_field:data.sides.0.players",
    ),
    "a player as a number": (finished(sides=[side("a", 1), side("b")]), "bad_field:data.sides.0.players.1"),
    "a player null": (finished(sides=[side("a"), side(None)]), "bad_field:data.sides.1.players.0"),
    "rank zero": (with_rank("0"), "bad_field:data.sides.0.rank"),
    "rank -0": (with_rank("-0"), "bad_field:data.sides.0.rank"),
    "rank below zero": (with_rank("-1"), "bad_field:data.sides.0.rank"),
    "rank true": (with_rank("true"), "bad_field:data.sides.0.rank"),
    "rank null": (with_rank("null"), "bad_field:data.sides.0.rank"),
    "rank as text": (with_rank('"1"'), "bad_field:data.sides.0.rank"),
    "rank 1.0": (with_rank("1.0"), "bad_field:data.sides.0.rank"),
    "rank 1e0": (with_rank("1e0"), "bad_field:data.sides.0.rank"),
    "rank 1e300": (with_rank("1e300"), "bad_field:data.sides.0.rank"),
    "points true": (finished(sides=[side("a", points=True), side("b")]), "bad_field:data.sides.0.points"),
    "points as text": (finished(sides=[side("a", points="1"), side("b")]), "bad_field:data.sides.0.points"),
    "points 1e16": (finished(sides=[side("a"), side("b", points=1e16)]), "bad_field:data.sides.1.points"),
    "home as a number": (finished(sides=[side("a", home=1), side("b")]), "bad_field:data.sides.0.home"),
    "nobody abandoned": (abandoned(abandoned_by=[]), "bad_field:data.abandoned_by"),
    "no abandoned_by": (abandoned(abandoned_by=DELETED), "bad_field:data.abandoned_by"),
    "abandoned_by as text": (abandoned(abandoned_by="bob"), "bad_field:data.abandoned_by"),
    "abandoned_by nobody real": (abandoned(abandoned_by=["bob", None]), "bad_field:data.abandoned_by.1"),
    # Well-formed sides that make no game.
    "one side": (finished(sides=[side("alice")]), "one_side"),
    "one team": (finished(sides=[side("alice", "bob")]), "one_side"),
    "65 sides": (finished(sides=[side(f"p{n}") for n in range(65)]), "too_many_players"),
    "33 against 32": (
        finished(sides=[side(*(f"{team}{n}" for n in range(size))) for team, size in (("a", 33), ("b", 32))]),
        "too_many_players",
    ),
    "65 times the same one": (finished(sides=[side("alice")] * 65), "too_many_players"),
    "against oneself": (finished(sides=[side("alice"), side("alice")]), "self_match"),
    "against oneself twice": (finished(sides=[side("alice")] * 3), "self_match"),
    "abandoned by both sides of oneself": (
        abandoned(sides=[{"players": ["bob"]}] * 2, abandoned_by=["bob"]),
        "self_match",
    ),
    "twice in a team": (finished(sides=[side("a", "b", "a"), side("c")]), "player_twice"),
    "twice in a team and on both sides": (finished(sides=[side("a", "a")] * 2), "player_twice"),
    "on two sides": (finished(sides=[side("a", "b"), side("c", "a")]), "player_on_two_sides"),
    "the same team twice": (finished(sides=[side("a", "b"), side("a", "b")]), "player_on_two_sides"),
    "on two of three sides": (finished(sides=[side("a"), side("b"), side("a")]), "player_on_two_sides"),
    "abandoned by a stranger": (abandoned(abandoned_by=["bob", "mallory"]), "abandoner_not_in_game"),
    "abandoned by someone in another case": (abandoned(abandoned_by=["Bob"]), "abandoner_not_in_game"),
    "abandoned twice by the same": (abandoned(abandoned_by=["bob", "bob"]), "player_twice"),
    "abandoned 1,500 times by the same": (abandoned(abandoned_by=["bob"] * 1500), "player_twice"),
}


@pytest.mark.parametrize(("raw", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_refused_for_its_reason(raw: bytes, reason: str) -> None:
    assert reason_for(raw) == reason


HARMLESS = {
    "white space around": b" \t\r\n" + finished() + b"\n",
    "exactly as large as allowed": padded(MAX_EVENT_BYTES),
    "exactly as deep as allowed": with_meta("[" * (MAX_DEPTH - 3) + "]" * (MAX_DEPTH - 3)),
    "brackets in texts": with_meta(json.dumps("[{" * 1000)),
    "brackets after escaped quotes": with_meta(json.dumps('"[\\' * 1000)),
    "many shallow brackets": with_meta("[" + ",".join(["[{}]"] * 1000) + "]"),
    "pair of surrogates": with_meta(r'"\ud83d\ude00"'),
    "escaped backslash before u0000": with_meta(r'"\\u0000"'),
    "escaped control characters in meta": with_meta(r'"\u0001\u001f\u007f\u202e"'),
    "names of meta that look alike": with_meta('{"\u00e9": 1, "e\u0301": 2}'),
    "largest integer": with_meta(str(MAX_INT)),
    "smallest integer": with_meta(str(-MAX_INT)),
    "largest double": with_meta("1.7976931348623157e308"),
    "smallest double": with_meta("5e-324"),
    "zeros": with_meta("[0, -0, 0.0, -0.0, 0e0, 0E+99, 0.00e-999]"),
    "a float of 64 characters": with_meta("0." + "1" * 62),
    "largest rank": with_rank(str(MAX_INT)),
    "points as a whole number": finished(sides=[side("a", points=3), side("b", points=-MAX_INT)]),
    "points null": finished(sides=[side("a", points=None, home=None), side("b")]),
    "importance at its limits": finished(importance=1_000_000),
    "64 players": finished(sides=[side(f"p{n}") for n in range(64)]),
    "63 against one": finished(sides=[side(*(f"p{n}" for n in range(63))), side("boss")]),
    "names that differ in case": finished(sides=[side("alice"), side("Alice")]),
    "names that look alike": finished(sides=[side("a"), side("\u0430"), side("\uff41")]),
    "abandoned by everybody": abandoned(abandoned_by=["alice", "bob"]),
    "unknown fields": envelope(subject="x", datacontenttype="text/plain", data_base64="", extra=[{}]),
    "null where a field may be missing": finished(started=None, importance=None, meta=None),
}


@pytest.mark.parametrize("raw", HARMLESS.values(), ids=HARMLESS)
def test_unusual_but_harmless_text_is_accepted_and_survives(raw: bytes) -> None:
    event = parse_event(raw)

    assert parse_event(event.to_json()) == event


GOOD_NAMES = ["a", "inner  spaces", "Zo\u00eb", "\u7f8e\u54b2", "\U0001f3ae", "x" * 64, "\U0001f3ae" * 64]
BAD_NAMES = {
    "empty": "",
    "too long": "x" * 65,
    "space at the start": " a",
    "space at the end": "a ",
    "only a space": " ",
    "tab": "a\tb",
    "newline at the end": "a\n",
    "escape": "\x1b[31m",
    "delete": "\x7f",
    "C1 control": "\x85",
    "no-break space": "a\u00a0b",
    "soft hyphen": "a\u00adb",
    "ideographic space": "\u3000",
    "zero width space": "a\u200bb",
    "zero width joiner": "a\u200db",
    "right-to-left override": "\u202egnp",
    "isolate": "\u2066a",
    "line separator": "a\u2028b",
    "byte order mark": "\ufeffa",
    "private use": "\ue000",
    "private use plane": "\U000f0000",
    "tag": "a\U000e0041",
    "not a character": "\uffff",
    "unassigned": "\u0378",
    "decomposed": "e\u0301",
    "Angstrom sign, whose normal form is a letter": "\u212b",
}


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_good_name_is_taken_as_it_is(name: str) -> None:
    event = parse_event(finished(game=name, sides=[side(name), side("someone else")]))

    assert event.data.game == name
    assert event.data.sides[0].players == (name,)


@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES)
def test_bad_name_is_refused_wherever_it_stands(name: str) -> None:
    assert reason_for(finished(game=name)) == "bad_field:data.game"
    assert reason_for(finished(sides=[side("a"), side("b", name)])) == "bad_field:data.sides.1.players.1"
    assert reason_for(abandoned(abandoned_by=[name])) == "bad_field:data.abandoned_by.0"
    assert reason_for(envelope(id=name * 3)) == "bad_field:id"
    assert reason_for(envelope(source=name * 5)) == "bad_field:source"


@pytest.mark.parametrize(("field", "limit"), [("id", 128), ("source", 256)])
def test_identity_is_as_long_as_it_may_be(field: str, limit: int) -> None:
    assert reason_for(envelope(**{field: "\u7f8e" * limit})) == "accepted"
    assert reason_for(envelope(**{field: "x" * (limit + 1)})) == f"bad_field:{field}"


@pytest.mark.parametrize("pool", ["a", "0", "chess-blitz", "a.b_c-d", "x" * 64])
def test_good_pool_is_accepted(pool: str) -> None:
    assert parse_event(finished(pool=pool)).data.pool == pool


@pytest.mark.parametrize(
    "pool",
    ["", "A", "-a", ".a", "_a", "a b", "a:b", "a/b", "a{b}", "*", "a\n", "\n", "\u0430", "\u0661", "x" * 65],
)
def test_bad_pool_is_refused(pool: str) -> None:
    assert reason_for(finished(pool=pool)) == "bad_field:data.pool"


def test_json_schema_of_names_never_refuses_what_the_parser_takes() -> None:
    allowed = re.compile(str(PRINTABLE_SCHEMA["pattern"]))
    printable = [chr(point) for point in range(0x11_0000) if chr(point).isprintable()]

    refused = [character for character in printable if not allowed.search(character)]

    assert refused == []


def test_json_schema_of_names_refuses_what_hides_in_a_text() -> None:
    allowed = re.compile(str(PRINTABLE_SCHEMA["pattern"]))

    for point in (0x00, 0x1F, 0x7F, 0x85, 0xA0, 0xAD, 0x200B, 0x200F, 0x202E, 0x2066, 0x3000, 0xE000, 0xFEFF):
        assert not allowed.search(chr(point))
        with pytest.raises(ValueError, match=f"U\\+{point:04X}"):
            check_printable(f"a{chr(point)}b")


TIMES = {
    "2026-11-30T12:00:00Z": datetime(2026, 11, 30, 12, tzinfo=UTC),
    "2026-11-30t12:00:00z": datetime(2026, 11, 30, 12, tzinfo=UTC),
    "2026-11-30T12:00:00-00:00": datetime(2026, 11, 30, 12, tzinfo=UTC),
    "2026-11-30T12:00:00+05:45": datetime(2026, 11, 30, 6, 15, tzinfo=UTC),
    "2026-11-30T12:00:00-23:59": datetime(2026, 12, 1, 11, 59, tzinfo=UTC),
    "2026-11-30T12:00:00.5Z": datetime(2026, 11, 30, 12, 0, 0, 500_000, tzinfo=UTC),
    "2026-11-30T12:00:00.1234567Z": datetime(2026, 11, 30, 12, 0, 0, 123_456, tzinfo=UTC),
    "2026-11-30T12:00:00.999999999Z": datetime(2026, 11, 30, 12, 0, 0, 999_999, tzinfo=UTC),
    "2024-02-29T00:00:00Z": datetime(2024, 2, 29, tzinfo=UTC),
    "0001-01-01T00:00:00Z": datetime(1, 1, 1, tzinfo=UTC),
    "0001-01-01T01:00:00+01:00": datetime(1, 1, 1, tzinfo=UTC),
    "9999-12-31T23:59:59.999999999Z": datetime.max.replace(tzinfo=UTC),
}


@pytest.mark.parametrize(("text", "expected"), TIMES.items())
def test_time_is_read_as_utc_and_written_with_z(text: str, expected: datetime) -> None:
    event = parse_event(envelope(time=text))

    assert event.time == expected
    assert event.time.utcoffset() == timedelta(0)
    assert parse_event(event.to_json()).time == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-11-30",
        "2026-11-30T12:00:00",
        "2026-11-30T12:00Z",
        "2026-11-30 12:00:00Z",
        "2026-11-30T12:00:00 Z",
        "2026-11-30T12:00:00Z\n",
        "2026-11-30T12:00:00,5Z",
        "2026-11-30T12:00:00.Z",
        "2026-11-30T12:00:00.1234567890Z",
        "2026-11-30T12:00:00+0100",
        "2026-11-30T12:00:00+01",
        "2026-11-30T12:00:00+24:00",
        "2026-11-30T12:00:00+00:60",
        "2026-11-30T12:00:00+00:99",
        "2026-11-30T12:00:00+01:00:00",
        "2026-11-30T24:00:00Z",
        "2026-11-30T12:60:00Z",
        "2026-12-31T23:59:60Z",
        "2026-02-29T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-00-01T12:00:00Z",
        "2026-W49-1T12:00:00Z",
        "20261130T120000Z",
        "0000-01-01T00:00:00Z",
        "+2026-11-30T12:00:00Z",
        "12026-11-30T12:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "\u0662\u0660\u0662\u0666-11-30T12:00:00Z",
    ],
)
def test_what_is_no_rfc_3339_time_is_refused(text: str) -> None:
    assert reason_for(envelope(time=text)) == "bad_field:time"
    assert reason_for(finished(started=text)) == "bad_field:data.started"


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize("trace", ["", "x", TRACE + "\r\nX: y", TRACE.upper(), "x" * 9000, 17, [], {}, None])
def test_broken_trace_context_is_ignored_and_costs_no_game(trace: object) -> None:
    assert parse_event(envelope(traceparent=trace)).traceparent is None


def test_trace_context_is_kept() -> None:
    assert parse_event(envelope(traceparent=TRACE)).traceparent == TRACE


def test_meta_is_kept_to_the_last_null() -> None:
    meta = {"a": None, "b": [None, {"c": None}], "": "", "d": {"e": [1, 2.5, True, "x\u0001"]}}

    event = parse_event(finished(meta=meta))

    assert event.data.meta == meta
    assert json.loads(event.to_json())["data"]["meta"] == meta


def test_first_bad_field_is_the_one_that_is_named() -> None:
    raw = envelope(id="", time="now", data={})

    assert reason_for(raw) == "bad_field:id"


def test_reason_never_holds_what_a_user_chose() -> None:
    data = {**DUEL, "meta": {"drop table": {"x": object()}}}

    with pytest.raises(ValidationError) as error:
        FinishedGame.model_validate(data)

    assert bad_field(error.value).reason == "bad_field:meta"


def test_details_speak_of_json_and_not_of_python() -> None:
    details = []

    for sides in ({}, ["alice"], [{"players": "alice"}], [{}], []):
        with pytest.raises(EventRefused) as refusal:
            parse_event(finished(sides=sides))
        details.append(refusal.value.detail)

    assert not [detail for detail in details if "tuple" in detail.lower() or "instance" in detail]


def test_refusal_survives_pickling() -> None:
    refusal = EventRefused(DeadReason.BAD_FIELD, "is missing", "data.pool")

    copy = pickle.loads(pickle.dumps(refusal))

    assert (copy.reason, copy.detail, str(copy)) == (refusal.reason, refusal.detail, str(refusal))


def in_thread(stack: int, call: Callable[[], str]) -> str:
    answers: list[str] = []
    before = threading.stack_size(stack)
    try:
        thread = threading.Thread(target=lambda: answers.append(call()))
        thread.start()
        thread.join(timeout=30)
    finally:
        threading.stack_size(before)
    return answers[0]


def nested_call(levels: int, raw: bytes) -> str:
    return nested_call(levels - 1, raw) if levels else reason_for(raw)


def test_depth_is_judged_alike_on_a_small_stack() -> None:
    assert in_thread(256 * 1024, lambda: reason_for(b"[" * 16_384)) == "too_deep"
    assert in_thread(256 * 1024, lambda: reason_for(finished())) == "accepted"


def test_depth_is_judged_alike_far_down_the_stack() -> None:
    assert nested_call(700, HARMLESS["exactly as deep as allowed"]) == "accepted"
    assert nested_call(700, b"[" * 100 + b"]" * 100) == "too_deep"


HARD_WORK = {
    "quotes that never end": b'"' + b'\\"' * 8000 + b"[" * 17,
    "brackets and quotes": b'["' * 8192,
    "sides that are none": finished(sides=[{}] * 3900),
    "players that are none": finished(sides=[side(*[0] * 5000)]),
    "too many sides": finished(sides=[side(f"{n:x}") for n in range(400)]),
    "too many players": finished(sides=[side(*(f"{n:x}" for n in range(1500))), side("bob")]),
    "many members": b"{" + b",".join(b'"%d":0' % n for n in range(1500)) + b',"1":0}',
    "many escapes": with_meta('"' + r"\u00e9" * 2600 + '"'),
    "a type of many parts": envelope(type=[0] * 5000),
}


@pytest.mark.parametrize("raw", HARD_WORK.values(), ids=HARD_WORK)
def test_no_text_costs_more_than_its_length(raw: bytes) -> None:
    assert len(raw) <= MAX_EVENT_BYTES

    seconds = min(timeit.repeat(lambda: reason_for(raw), timer=time.process_time, number=1, repeat=5))

    # A few milliseconds each; a pattern that looks again at what it has seen takes half a second.
    assert seconds < 0.05


@pytest.mark.parametrize("sides", [[{}] * 3900, [side(*[0] * 5000)]])
def test_checking_ends_with_the_first_wrong_element(sides: list[object]) -> None:
    data = {**DUEL, "sides": sides}

    with pytest.raises(ValidationError) as error:
        FinishedGame.model_validate(data)

    assert error.value.error_count() < 10


def test_identity_is_read_from_an_event_that_is_refused() -> None:
    raw = finished(game="g-1", sides=[])

    assert read_identity(raw) == Identity("/servers/eu-1", "01JE", "g-1")


@pytest.mark.parametrize(
    ("raw", "identity"),
    [
        (b"\xff", Identity(None, None, None)),
        (b"[" * 16_384, Identity(None, None, None)),
        (b"[1]", Identity(None, None, None)),
        (b'{"id": 1, "source": ["x"], "data": []}', Identity(None, None, None)),
        (b'{"id": "a", "data": {"game": {}}}', Identity(None, "a", None)),
        (json.dumps({"source": "x" * 257, "id": "y" * 256}).encode(), Identity(None, "y" * 256, None)),
        (rb'{"id": "\u0000"}', Identity(None, None, None)),
    ],
)
def test_identity_holds_only_texts_that_can_be_stored(raw: bytes, identity: Identity) -> None:
    assert read_identity(raw) == identity


def test_parsed_event_has_the_type_it_names() -> None:
    events: list[GameEvent] = [parse_event(finished()), parse_event(abandoned())]

    assert [type(event) for event in events] == [GameFinished, GameAbandoned]


@pytest.mark.parametrize(
    "weights", ["heavy", 5, None, [[1]], [None], {"a": 1}, [1, 2, 3], [2], [True], ["1"]], ids=ascii
)
def test_fields_that_came_before_they_meant_anything_are_forgotten(weights: object) -> None:
    event = json.loads(finished())
    event["data"]["sides"][0]["weights"] = weights
    event["data"]["knockout"] = "yes"

    counted = read_counted(json.dumps(event))

    assert counted.data.sides[0].weights is None
    assert counted.data.knockout is False
