"""Texts that are no I-JSON, too deep or too large. What each must be refused for is said by hand.

The rules, in the order in which they are asked: at most 16 KiB; brackets nested at most 16 deep; UTF-8; JSON
(RFC 8259) with unique names, integers within ±(2^53 - 1), numbers of at most 64 characters that a double can
hold, and neither lone surrogates nor NUL.
"""

import json
from collections.abc import Callable

from hostile.draw import Draw

MAX_BYTES = 16 * 1024
MAX_DEPTH = 16
NOT_JSON = "not_json"
TOO_DEEP = "too_deep"
TOO_LARGE = "too_large"


def white_space(draw: Draw) -> bytes:
    """Nothing else: its number, written in four kinds of it."""
    digits = []
    rest = draw.number
    while rest:
        rest, digit = divmod(rest, 4)
        digits.append(b" \t\r\n"[digit : digit + 1])
    return b"".join(digits)


def plain_words(draw: Draw) -> bytes:
    word = draw.one("hello", "GET /events HTTP/1.1", "null", "<event>", "id=1&source=", "---\nid: 1\n", "'a'")
    return f"{word} {draw.number} {draw.name()}".encode()


def other_formats(draw: Draw) -> bytes:
    magic = draw.one(b"\x80\x04\x95", b"\x1f\x8b\x08", b"\xff\xfb", b"\x93NUMPY", b"\xca\xfe\xba\xbe")
    return magic + draw.number.to_bytes(8, "big") + draw.chance.randbytes(draw.between(0, 60))


def not_a_number(draw: Draw) -> bytes:
    return draw.filled(draw.one(b"NaN", b"-NaN", b"nan", b"NAN"))


def infinity(draw: Draw) -> bytes:
    return draw.filled(draw.one(b"Infinity", b"-Infinity", b"inf", b"-inf", b"+Infinity"))


def beyond_a_double(draw: Draw) -> bytes:
    number = f"{draw.one('', '-')}{draw.between(1, 9)}{draw.one('', '.5')}"
    return draw.filled(f"{number}{draw.one('e', 'E', 'e+')}{draw.size(309, 99999)}".encode())


def below_a_double(draw: Draw) -> bytes:
    number = draw.one("1", "-1", "0.001", "9.9")
    return draw.filled(f"{number}e-{draw.size(400, 99999)}".encode())


def zero_that_postgres_refuses(draw: Draw) -> bytes:
    return draw.filled(
        f"{draw.one('', '-')}0{draw.one('', '.0')}e{draw.one('', '-', '+')}{draw.size(1000, 99999)}".encode()
    )


def integer_of_many_digits(draw: Draw) -> bytes:
    """10^400, and more digits than int() would take."""
    digits = draw.size(18, 8_000)
    return draw.filled(draw.one(b"", b"-") + draw.one(b"1", b"9") + draw.one(b"0", b"9") * digits)


def integer_beyond_2_53(draw: Draw) -> bytes:
    return draw.filled(f"{draw.one('', '-')}{2**53 + draw.size(1, 2**60) - 1}".encode())


def number_of_many_characters(draw: Draw) -> bytes:
    digits = draw.of("123456789") * draw.size(65, 4_000)
    return draw.filled(draw.one(f"0.{digits}", f"-1.{digits}e5", f"1e{'0' * len(digits)}1").encode())


def malformed_number(draw: Draw) -> bytes:
    return draw.filled(
        draw.one(
            *("01", "-01", "+1", ".5", "5.", "1e", "1e+", "--1", "-", "0x1F", "0b1", "1_000", "1.2.3"),
            *("\u0661", "\uff11", "1\u00a0000", "1f", "1L", "1/2", "- 1"),
        ).encode()
    )


def words_of_other_languages(draw: Draw) -> bytes:
    return draw.filled(draw.one(b"None", b"True", b"undefined", b"nil", b"TRUE", b"nulL", b"Null", b"yes"))


def member_twice(draw: Draw) -> bytes:
    """Of the envelope; the second one under its own name, or under an escaped one."""
    event = draw.envelope()
    name = draw.of(sorted(event))
    text = draw.text(event)
    escaped = rf"\u{ord(name[0]):04x}{name[1:]}"
    again = draw.one(json.dumps(name), f'"{escaped}"').encode()
    value = draw.one(json.dumps(event[name], ensure_ascii=True).encode(), b"null", b'""', b"0")
    if draw.likely(0.5):
        return b"{" + again + b":" + value + b"," + text[1:]
    return text[:-1] + b"," + again + b":" + value + b"}"


def member_of_data_twice(draw: Draw) -> bytes:
    name = draw.one("game", "sides", "pool")
    event = draw.envelope()
    data = event["data"]
    assert isinstance(data, dict)
    inside = draw.text(data)
    again = json.dumps(name).encode() + b":" + json.dumps(data[name]).encode()
    event["data"] = "@hole@"
    return draw.text(event).replace(b'"@hole@"', inside[:-1] + b"," + again + b"}")


def member_of_meta_twice(draw: Draw) -> bytes:
    name = draw.one("", "a", "meta", "é", "constructor", "__proto__")
    first, again = json.dumps(name), json.dumps(name, ensure_ascii=draw.likely(0.5))
    between = draw.one("", '"b":{},')
    return draw.filled(f"{{{first}:1,{between}{again}:2}}".encode())


def lone_surrogate(draw: Draw) -> bytes:
    high, low = rf"\u{draw.between(0xD800, 0xDBFF):04x}", rf"\u{draw.between(0xDC00, 0xDFFF):04X}"
    return draw.with_text(
        draw.one(high, low, low + high, high + high, high + "x" + low, high + r"\n" + low).encode()
    )


def surrogate_in_utf_8(draw: Draw) -> bytes:
    return draw.with_text(chr(draw.between(0xD800, 0xDFFF)).encode("utf-8", "surrogatepass"))


def escaped_nul(draw: Draw) -> bytes:
    return draw.with_text(draw.one(rb"\u0000", rb"\\\u0000", rb"\u0000\u0000", rb"a\u0000b"))


def raw_control_in_a_text(draw: Draw) -> bytes:
    return draw.with_text(bytes([draw.between(0, 31)]))


def nul_around(draw: Draw) -> bytes:
    nuls = b"\0" * draw.size(1, 500)
    text = draw.text(draw.envelope())
    return draw.one(nuls + text, text + nuls, text[:1] + nuls + text[1:])


def overlong_utf_8(draw: Draw) -> bytes:
    return draw.with_text(
        draw.one(b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xc0\xaf")
    )


def beyond_unicode(draw: Draw) -> bytes:
    return draw.with_text(draw.one(b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xff", b"\xfe"))


def broken_utf_8(draw: Draw) -> bytes:
    """Latin-1, a sequence cut off, a continuation of nothing."""
    return draw.with_text(draw.one(b"zo\xeb", b"\xe2\x82", b"\x80", b"\xf0\x9f\x8e", b"\xa0\xa1", b"\xc3("))


def utf_16(draw: Draw) -> bytes:
    text = draw.text(draw.envelope(), ascii_only=True).decode()
    return text.encode(draw.one("utf-16", "utf-16-le", "utf-16-be"))


def utf_32(draw: Draw) -> bytes:
    text = draw.text({"id": draw.number, **draw.sides(1, ranked=True)[0]}, ascii_only=True).decode()
    return text.encode(draw.one("utf-32", "utf-32-le", "utf-32-be"))


def byte_order_mark(draw: Draw) -> bytes:
    return b"\xef\xbb\xbf" * draw.between(1, 3) + draw.text(draw.envelope())


def two_events(draw: Draw) -> bytes:
    first, second = draw.text(draw.envelope()), draw.text(draw.envelope())
    return first + draw.one(b"", b"\n", b",", b"\x1e", b" ") + second


def garbage_behind(draw: Draw) -> bytes:
    return draw.text(draw.envelope()) + draw.one(
        b"x", b"}", b"]", b",", b";", b"//", b'"', b"0", b"\xc2\xa0", b"\\"
    )


def garbage_before(draw: Draw) -> bytes:
    return draw.one(
        b"x", b"}", b"]", b",", b")]}',\n", b"\xc2\xa0", b"callback(", b"data ", b"\x0c"
    ) + draw.text(draw.envelope())


def cut_off(draw: Draw) -> bytes:
    text = draw.text({"comment": str(draw.number), **draw.envelope()})
    # Behind its number: texts that are cut off before it could be the same.
    start = text.index(str(draw.number).encode()) + len(str(draw.number))
    return text[: draw.between(start, len(text) - 1)]


def grammar_broken(draw: Draw) -> bytes:
    return draw.filled(
        draw.one(
            *(b"[1,]", b"[,1]", b"[1 2]", b"[1,,2]", b'{"a":1,}', b'{"a"}', b'{"a":}', b'{"a" 1}', b"{1:1}"),
            *(
                b"{a:1}",
                b"{'a':1}",
                b"'a'",
                b"1 /* one */",
                b"1 // one",
                b"# one",
                b'"a" "b"',
                b"(1)",
                b"<1>",
            ),
            *(b'{"a":1;"b":2}', b"[1}", b'{"a":1]', b'"a', b"`a`", b"1 .. 2"),
        )
    )


def escape_that_is_none(draw: Draw) -> bytes:
    return draw.with_text(
        draw.one(rb"\x41", rb"\u12", rb"\u12g4", rb"\U0001f3ae", rb"\'", rb"\0", rb"\e[31m", rb"\a", b"\\\n")
    )


def closed_more_than_opened(draw: Draw) -> bytes:
    """Counts of brackets that balance, or are below zero: no depth, and no JSON."""
    count = draw.size(1, 4_000)
    return b"]" * count + b"[" * draw.between(0, count) + str(draw.number).encode()


def nested(draw: Draw, depth: int) -> bytes:
    """Return brackets in brackets, of arrays, of objects or of both."""
    opened, closed = [], []
    form = draw.between(0, 2)
    for _ in range(depth):
        if form == 0 or (form == 2 and draw.likely(0.5)):
            opened.append(b"[")
            closed.append(b"]")
        else:
            opened.append(b'{"":')
            closed.append(b"}")
    return b"".join(opened) + b"0" + b"".join(reversed(closed))


def nested_too_deep(draw: Draw) -> bytes:
    """In `meta`, which is two levels down."""
    event = draw.with_data(meta={"x": "@hole@"})
    return draw.text(event).replace(b'"@hole@"', nested(draw, draw.size(MAX_DEPTH - 2, 2_000)))


def nested_around_an_event(draw: Draw) -> bytes:
    levels = draw.size(MAX_DEPTH, 2_000)
    return b"[" * levels + draw.text(draw.envelope()) + b"]" * levels


def open_brackets_only(draw: Draw) -> bytes:
    piece = draw.one(b"[", b'{"a":', b'[{"":', b"[ ", b"[\n[")
    most = (MAX_BYTES - 16) // len(piece)
    return piece * draw.size(MAX_DEPTH + 1, most) + str(draw.number).encode()


def nested_behind_texts_with_brackets(draw: Draw) -> bytes:
    """A reader that counts brackets in texts, or misses the end of one, loses count."""
    bait = draw.one('"]]]]]]]]]]"', r'"\"]]]]]]"', r'"\\"', '"}}}}{"', r'"\\\"}}}"')
    levels = draw.size(MAX_DEPTH, 300)
    inner = "".join(f"[{bait}," for _ in range(levels))
    return draw.filled(f"{inner}{draw.number}{']' * levels}".encode())


def too_large_by_white_space(draw: Draw) -> bytes:
    text = draw.text(draw.envelope())
    space = draw.one(b" ", b"\n", b"\t") * (draw.size(MAX_BYTES + 1, 3 * MAX_BYTES) - len(text))
    return draw.one(space + text, text + space, text[:1] + space + text[1:])


def too_large_by_a_text(draw: Draw) -> bytes:
    piece = draw.one("x", "🎮", "\u202e", "[", "\\", '"', "A\n")
    long = piece * (draw.size(MAX_BYTES, 2 * MAX_BYTES) // len(piece.encode()) + 1)
    return draw.text(
        draw.one(
            lambda: draw.with_data(meta={"replay": long}),
            lambda: draw.with_data(game=long),
            lambda: draw.envelope(id=long, comment=draw.number),
        )()
    )


def too_large_by_members(draw: Draw) -> bytes:
    """10,000 sides, players or members."""
    count = draw.between(9_000, 12_000)
    return draw.text(
        draw.one(
            lambda: draw.with_data(sides=[{}] * count),
            lambda: draw.with_data(sides=[{"players": ["a"], "rank": 1}] * count),
            lambda: draw.with_data(abandoned_by=["a"] * count),
            lambda: draw.with_data(meta={str(member): member for member in range(count)}),
        )()
    )


def too_large_and_worse(draw: Draw) -> bytes:
    """The size is asked first: nothing else is looked at."""
    piece = draw.one(b"[", b'{"a":', b"\xff", b"\0", b"9", b'"\\')
    count = draw.size(MAX_BYTES + 1, 5 * MAX_BYTES) // len(piece) + 1
    return str(draw.number).encode() + piece * count


NO_JSON: dict[Callable[[Draw], bytes], str] = {
    **dict.fromkeys(
        (
            *(white_space, plain_words, other_formats, not_a_number, infinity, beyond_a_double),
            *(below_a_double, zero_that_postgres_refuses, integer_of_many_digits, integer_beyond_2_53),
            *(number_of_many_characters, malformed_number, words_of_other_languages, member_twice),
            *(member_of_data_twice, member_of_meta_twice, lone_surrogate, surrogate_in_utf_8, escaped_nul),
            *(raw_control_in_a_text, nul_around, overlong_utf_8, beyond_unicode, broken_utf_8, utf_16),
            *(utf_32, byte_order_mark, two_events, garbage_behind, garbage_before, cut_off),
            *(grammar_broken, escape_that_is_none, closed_more_than_opened),
        ),
        NOT_JSON,
    ),
    **dict.fromkeys(
        (nested_too_deep, nested_around_an_event, open_brackets_only, nested_behind_texts_with_brackets),
        TOO_DEEP,
    ),
    **dict.fromkeys(
        (too_large_by_white_space, too_large_by_a_text, too_large_by_members, too_large_and_worse), TOO_LARGE
    ),
}
"""Every class of them, and its reason."""
