"""Hostile texts made from the example files by random changes: the same texts for the same seed."""

import json
import random
from collections.abc import Iterator

from example_files import accepted, refused

PIECES = [
    *(b"NaN", b"Infinity", b"[]", b"{}", b"[[]]", b'""', b'"a"', b'"alice"', b'"bob"', b'" "', b'"1.0"'),
    *(b"null", b"true", b"false", b"0", b"-0", b"-0.0", b"1", b"1.0", b"1e0", b"65", b"1e15", b"5e-324"),
    *(b"9007199254740991", b"9007199254740992", b"-9007199254740991", b"1e308", b"1e309", b"1e-400"),
    *(b"0e-999", b"0e-9999", rb"\u0000", rb"\u0001", rb"\u00e9", rb"\u202e", rb"\ud800", rb"\udc00"),
    *(rb"\ud83d\ude00", rb"\n", rb"\\", rb"\"", b"\x00", b"\x7f", b"\xff", b"\xc0\x80", b"\xed\xa0\x80"),
    *(b"\xef\xbb\xbf", b"\xc2\xa0", b"\xc2\x85", "é".encode(), "e\u0301".encode(), "\u202e".encode()),
    *("\u200b".encode(), "美".encode(), "🎮".encode(), b"[" * 20, b"]" * 20, b" " * 17_000),
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b" ", b"\n", b"-", b"+", b"e", b"."),
    *(b'"rank": 2', b'"rank": 1,', b'"meta": {"\\u0041": null},', b'"points": 0.1,', b'"home": true,'),
]
VALUES: list[object] = [
    *(None, True, False, 0, -0.0, 1, 1.0, 2, 0.1, 1e15, 5e-324, 1e308, 2**53 - 1, 2**53, -(2**53), 10**30),
    *("", " ", "a", "alice", "bob", "é", "e\u0301", "a\u202eb", "a\0b", "a\nb", "\ud800", "🎮", "x" * 64),
    *("x" * 65, "x" * 257, [], {}, [[]], {"": None}, ["bob"], ["alice", "alice"], ["carol"], [1, 2]),
    *("2026-11-30T12:00:00.123456789+23:59", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59Z"),
    *("petard.game.finished.v1", "petard.game.abandoned.v1", [f"player-{n}" for n in range(65)]),
    *({"players": ["carol"], "rank": 3}, {"players": ["alice"], "rank": 1}, {"players": ["dave"]}),
]


def mutants(seed: int, count: int) -> Iterator[bytes]:
    """Yield texts: half are JSON that differs in a value or two, half differ in their bytes."""
    choose = random.Random(seed)
    good = [path.read_bytes() for path in accepted()]
    bad = [path.read_bytes() for path in refused()]
    for _ in range(count):
        if choose.random() < 0.5:
            yield other_values(choose, json.loads(choose.choice(good)))
        else:
            yield other_bytes(choose, choose.choice(good + bad))


def other_values(choose: random.Random, document: object) -> bytes:
    """Return a JSON text with one or two values replaced, removed or added."""
    for _ in range(choose.choice((1, 1, 2))):
        places = [*holders(document)]
        if places:
            change(choose, choose.choice(places))
    text = json.dumps(document, ensure_ascii=choose.random() < 0.5)
    return text.encode("utf-8", "surrogatepass")


def holders(value: object) -> Iterator[dict[str, object] | list[object]]:
    """Yield every object and array in the value."""
    if isinstance(value, dict):
        yield value
        for child in value.values():
            yield from holders(child)
    elif isinstance(value, list):
        yield value
        for child in value:
            yield from holders(child)


def change(choose: random.Random, holder: dict[str, object] | list[object]) -> None:
    """Replace, remove or add one member of an object or one element of an array."""
    value = json.loads(json.dumps(choose.choice(VALUES)))
    if isinstance(holder, list):
        start = choose.randrange(len(holder) + 1)
        holder[start : start + choose.randrange(2)] = [value] * choose.randrange(3)
    elif not holder or choose.random() < 0.2:
        holder[
            choose.choice(("meta", "points", "home", "importance", "started", "x", "\u202e", "\ud800"))
        ] = value
    elif choose.random() < 0.2:
        del holder[choose.choice(list(holder))]
    else:
        holder[choose.choice(list(holder))] = value


def other_bytes(choose: random.Random, text: bytes) -> bytes:
    """Return the text with some of its bytes replaced, removed, repeated or added."""
    for _ in range(choose.choice((1, 1, 1, 2, 2, 3, 10))):
        start = choose.randrange(len(text) + 1)
        end = min(len(text), start + choose.choice((0, 1, 1, 2, 8, 64)))
        pieces = (bytes([choose.randrange(256)]), b"", text[start:end] * 2, choose.choice(PIECES))
        text = text[:start] + choose.choice(pieces) + text[end:]
    return text
