"""Signed elements: what was signed counts byte for byte, and nothing else does."""

import base64
import json
import os
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from hmac import compare_digest
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from petard_schema import (
    MAX_EVENT_BYTES,
    BadSigningKeyError,
    EventRefused,
    event_json,
    read_event,
    read_identity,
    sign_event,
    signing,
)
from petard_schema.signing import (
    MAX_HEADER_BYTES,
    MAX_SIGNATURES,
    is_signed,
    read_headers,
    signature,
    signed_content,
    signing_key,
    split_element,
    verify,
)
from petard_worker.batch import Arrival, read_arrival
from petard_worker.signing_keys import SigningKeys, read_signing_keys
from signed_elements import key, setting, signed

FLIPS = int(os.environ.get("PETARD_SIGNATURE_FLIPS", "6000"))
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SOURCE = "/servers/eu-1"
KNOWN = read_signing_keys(setting({SOURCE: [key(1)], "/servers/eu-2": [key(2)]}))


def event(number: int = 1, **changed: Any) -> bytes:
    sides = [{"players": ["alice"], "rank": 1}, {"players": ["bob"], "rank": 2}]
    document = {
        "specversion": "1.0",
        "id": f"event-{number}",
        "source": SOURCE,
        "type": "petard.game.finished.v1",
        "time": "2026-11-30T12:00:00Z",
        "data": {"pool": "p", "game": f"game-{number}", "sides": sides},
        **changed,
    }
    return json.dumps(document).encode()


def refusal(raw: bytes, known: SigningKeys = KNOWN) -> EventRefused:
    read = read_arrival(raw, known).read
    assert isinstance(read, EventRefused), f"accepted: {raw!r}"
    return read


def test_a_signed_event_is_read_as_the_event_it_is() -> None:
    body = event()

    arrival = read_arrival(signed(body), KNOWN)

    assert arrival.read == read_event(body)
    assert arrival.body == body


def test_the_published_test_vector_of_standard_webhooks() -> None:
    published = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    content = signed_content(b"msg_p5jXN8AQM9LWM0D4loKWxJek", b"1614265330", b'{"test": 2432232314}')

    assert signature(published, content) == b"g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_an_element_stands_as_it_is_documented() -> None:
    element = sign_event(b"{}", event_id="01JE", source=SOURCE, keys=[key(1), key(2)], at=NOON)

    one, two = (signature(signing_key(key(n)), b"01JE.1796040000.{}").decode() for n in (1, 2))
    assert element.decode() == (
        "petard-source: /servers/eu-1\nwebhook-id: 01JE\nwebhook-timestamp: 1796040000\n"
        f"webhook-signature: v1,{one} v1,{two}\n\n{{}}"
    )


def single_bit_flips(raw: bytes) -> Iterator[tuple[int, int]]:
    for position in range(len(raw)):
        for bit in range(8):
            yield position, 1 << bit


def harmless(raw: bytes) -> set[tuple[int, int]]:
    """Return the flips that only write a letter of a header's name in the other case."""
    names = re.finditer(rb"^[a-z-]+(?=: )", raw[: raw.index(b"\n\n")], re.MULTILINE)
    letters = [at for name in names for at in range(*name.span()) if raw[at] != ord("-")]
    return {(position, 0x20) for position in letters}


def test_no_flip_of_a_single_bit_is_let_in() -> None:
    """Every bit of one element after the other; a million and more with PETARD_SIGNATURE_FLIPS."""
    chance = random.Random(1)
    flipped = let_in = 0
    while flipped < FLIPS:
        body = event(chance.randrange(10**9), time=f"2026-11-{chance.randint(1, 30):02d}T12:00:00Z")
        raw = signed(body, at=NOON)
        same = harmless(raw)
        assert len(same) == len("petardsourcewebhookidwebhooktimestampwebhooksignature")
        for position, bit in single_bit_flips(raw):
            changed = bytearray(raw)
            changed[position] ^= bit
            arrival = read_arrival(bytes(changed), KNOWN)
            if (position, bit) in same:
                assert (arrival.read, arrival.body) == (read_event(body), body)
            else:
                let_in += not isinstance(arrival.read, EventRefused)
                flipped += 1

    assert let_in == 0


def test_no_beginning_and_no_end_of_an_element_is_let_in() -> None:
    raw = signed(event())

    for cut in range(1, len(raw)):
        refusal(raw[:cut])
        if not raw[cut:].lstrip().startswith(b"{"):  # the JSON alone is an unsigned event, and refused below
            refusal(raw[cut:])
    assert refusal(event()).detail == f"source '{SOURCE}' signs its events, and this one is not signed"


WRONG = {
    "another key": signed(event(), key(3)),
    "the key of another source": signed(event(), key(2)),
    "the header of another source": signed(event(), key(2), source="/servers/eu-2"),
    "a source without keys": signed(event(source="/s"), key(1)),
    "the same id with another body": signed(event()).replace(b'"alice"', b'"carol"'),
    "another id": signed(event()).replace(b"webhook-id: event-1", b"webhook-id: event-2"),
    "another time": re.sub(rb"(timestamp: \d+)\d", rb"\g<1>x", signed(event())),
    "a leading zero in the time": signed(event()).replace(b"timestamp: ", b"timestamp: 0"),
    "a sign in the time": signed(event()).replace(b"timestamp: ", b"timestamp: -"),
    "an endless time": signed(event()).replace(b"timestamp: ", b"timestamp: " + b"9" * 20),
    "a dot moved from the id into the time": signed(event()).replace(b"id: event-1", b"id: event-1.1"),
    "an empty id": signed(event()).replace(b"id: event-1", b"id:"),
    "a space before the JSON": signed(event()).replace(b"\n\n", b"\n\n "),
    "a line before the JSON": signed(event()).replace(b"\n\n", b"\n\n\n"),
    "a space after the JSON": signed(event()) + b" ",
    "CRLF": signed(event()).replace(b"\n", b"\r\n"),
    "CRLF in the headers": signed(event()).replace(b"\nwebhook", b"\r\nwebhook"),
    "a control character": signed(event()).replace(b"id: event-1", b"id: event\x00-1"),
    "a tab before a value": signed(event()).replace(b"id: event-1", b"id:\tevent-1"),
    "a second source": signed(event()).replace(b"\n\n", b"\npetard-source: /servers/eu-2\n\n"),
    "a second source before": b"petard-source: /servers/eu-2\n" + signed(event()),
    "the same source twice": f"petard-source: {SOURCE}\n".encode() + signed(event()),
    "a second signature line": signed(event()).replace(b"\n\n", b"\nWebhook-Signature: v1,AAAA\n\n"),
    "a second body": signed(event()) + b"\n\n" + event(2),
    "headers in the body": signed(event()).replace(b"\n\n", b"\n\nwebhook-id: event-1\n\n"),
    "an empty line between headers": signed(event()).replace(b"\nwebhook-id", b"\n\nwebhook-id"),
    "a continued header": signed(event()).replace(b"\nwebhook-id", b"\n  more\nwebhook-id"),
    "a space before a colon": signed(event()).replace(b"webhook-id:", b"webhook-id :"),
    "no source": signed(event()).partition(b"\n")[2],
    "no signature": re.sub(rb"\nwebhook-signature: \S+", b"", signed(event())),
    "an empty signature": re.sub(rb"(signature:) \S+", rb"\1", signed(event())),
    "a signature of another version": signed(event()).replace(b"v1,", b"v1a,"),
    "a signature without version": signed(event()).replace(b"v1,", b""),
    "half a signature": re.sub(rb"v1,(.{20})\S+", rb"v1,\1", signed(event())),
    "a signature without padding": signed(event()).replace(b"=\n", b"\n"),
    "too many signatures": signed(event()).replace(b"v1,", b"v1,AAAA " * MAX_SIGNATURES + b"v1,"),
    "headers beyond the limit": b"x: " + b"x" * MAX_HEADER_BYTES + b"\n" + signed(event()),
    "a source that is no UTF-8": signed(event()).replace(b"/servers", b"/\xff"),
    "only headers": signed(event()).partition(b"\n\n")[0],
}


@pytest.mark.parametrize("raw", WRONG.values(), ids=WRONG.keys())
def test_what_was_not_signed_like_this_is_refused(raw: bytes) -> None:
    assert refusal(raw).reason == "bad_signature"


def signed_by_hand(message_id: bytes, more: bytes = b"") -> bytes:
    """Return an element whose signature fits whatever stands in its headers."""
    content = signed_content(message_id, b"1796040000", event())
    given = signature(signing_key(key(1)), content)
    return (
        b"petard-source: /servers/eu-1\nwebhook-id: %b\nwebhook-timestamp: 1796040000\n"
        b"webhook-signature: v1,%b%b\n\n%b" % (message_id, given, more, event())
    )


@pytest.mark.parametrize("message_id", [b"1.2", b".", b"a\rb", b"a\x00b", b"a\x7fb", b"a\tb"])
def test_a_fitting_signature_does_not_excuse_an_id_that_is_none(message_id: bytes) -> None:
    assert refusal(signed_by_hand(message_id)).reason == "bad_signature"


@pytest.mark.parametrize("more", [b"\r", b"\nx: \r", b"\nx: \x00", b"\nno header", b"\n: x", b"\nx y: z"])
def test_a_fitting_signature_does_not_excuse_headers_that_are_none(more: bytes) -> None:
    assert refusal(signed_by_hand(b"1", more)).reason == "bad_signature"
    assert read_arrival(signed_by_hand(b"1", b"\nx: y"), KNOWN).read == read_event(event())


def test_a_signed_text_that_begins_like_headers_is_no_event() -> None:
    """Even whoever has a key gets nothing in but an event."""
    inner = signed(event())
    outer = sign_event(inner, event_id="e", source=SOURCE, keys=[key(1)], at=NOON)

    assert refusal(outer).reason == "not_json"


def test_the_event_must_name_the_source_that_signed_it() -> None:
    raw = signed(event(source="/servers/eu-2"), key(1), source=SOURCE)

    assert refusal(raw).detail == "signed by source '/servers/eu-1', but its source is '/servers/eu-2'"


def test_headers_may_come_in_any_order_and_case_with_others_among_them() -> None:
    head, _, body = signed(event()).partition(b"\n\n")
    lines = [re.sub(rb"^[^:]+", lambda name: name.group().upper(), line) for line in head.split(b"\n")]

    mixed = b"\n".join([b"content-type: application/json", *reversed(lines), b"x-y:"]) + b"\n\n" + body

    assert read_arrival(mixed, KNOWN).read == read_event(body)


def test_any_of_several_signatures_by_any_of_several_keys_will_do() -> None:
    rotating = read_signing_keys(setting({SOURCE: [key(3), key(1)]}))

    for keys in [(key(1),), (key(3),), (key(9), key(1)), (key(3), key(9)), (key(1), key(3))]:
        assert read_arrival(signed(event(), *keys), rotating).read == read_event(event())
    assert refusal(signed(event(), key(8), key(9)), rotating).reason == "bad_signature"


def test_a_source_whose_keys_are_all_gone_can_say_nothing() -> None:
    barred = read_signing_keys(setting({SOURCE: []}))

    assert refusal(signed(event()), barred).reason == "bad_signature"
    assert refusal(event(), barred).reason == "bad_signature"


def test_a_source_without_keys_speaks_unsigned() -> None:
    assert isinstance(read_arrival(event(source="/other"), KNOWN), Arrival)
    assert read_arrival(event(source="/other"), KNOWN).read == read_event(event(source="/other"))


def test_every_signature_is_compared_with_every_key_in_constant_time() -> None:
    keys = [signing_key(key(number)) for number in (1, 2, 3)]
    element = split_element(signed(event(), key(1), key(8), key(9), key(2)))

    with patch.object(signing, "compare_digest", side_effect=compare_digest) as compared:
        assert verify(element, keys)

    assert compared.call_count == len(keys) * 4


def test_the_limit_of_size_is_that_of_the_event() -> None:
    largest = event().ljust(MAX_EVENT_BYTES)

    assert read_arrival(signed(largest, *[key(1)] * MAX_SIGNATURES), KNOWN).read == read_event(event())
    assert refusal(signed(largest + b" ")).reason == "too_large"


def test_the_longest_source_and_id_fit_into_the_headers() -> None:
    source, event_id = "\U0001f3b2" * 256, "\U0001f3b2" * 128
    body = event(source=source, id=event_id)

    raw = signed(body, *[key(1)] * MAX_SIGNATURES)

    assert read_arrival(raw, read_signing_keys(setting({source: [key(1)]}))).read == read_event(body)


@pytest.mark.parametrize("event_id", ["1.2", ".", "a b", "zoë", "%2E", "x\ny"])
def test_whatever_an_id_holds_its_header_is_one_plain_word(event_id: str) -> None:
    raw = sign_event(b"{}", event_id=event_id, source=SOURCE, keys=[key(1)], at=NOON)

    assert re.fullmatch(rb"[!-~]+", split_element(raw).message_id)
    assert b"." not in split_element(raw).message_id
    assert verify(split_element(raw), KNOWN[SOURCE].keys)


@pytest.mark.parametrize("source", ["", "a\nwebhook-id: x", "/petard", " a", "x" * 257])
def test_nothing_is_signed_in_a_name_that_is_none(source: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        sign_event(b"{}", event_id="e", source=source, keys=[key(1)], at=NOON)


@pytest.mark.parametrize("count", [0, MAX_SIGNATURES + 1])
def test_nothing_is_signed_by_nobody_or_by_too_many(count: int) -> None:
    with pytest.raises(ValueError, match="1 to 16"):
        sign_event(b"{}", event_id="e", source=SOURCE, keys=[key(1)] * count, at=NOON)


BAD_KEYS = {
    "": "starts with",
    "TUZLUTlyOEdLWXFyVHdqVVBEOElMUFpJbzJMYUxhU3c=": "starts with",
    "whsec_": "24 to 64 bytes",
    "whsec_TUZL~TlyOEdLWXFyVHdqVVBEOElMUFpJbzJMYUxhU3c=": "base64",
    "whsec_zoë": "base64",
    "whsec_" + base64.b64encode(b"x" * 23).decode(): "this one 23",
    "whsec_" + base64.b64encode(b"x" * 65).decode(): "this one 65",
}


@pytest.mark.parametrize("text", BAD_KEYS)
def test_what_is_no_key_is_said_without_showing_it(text: str) -> None:
    with pytest.raises(BadSigningKeyError, match=BAD_KEYS[text]) as bad:
        signing_key(text)

    assert len(text) < 10 or text[6:] not in str(bad.value)


@pytest.mark.parametrize("size", [24, 64])
def test_keys_have_24_to_64_bytes(size: int) -> None:
    secret = os.urandom(size)

    read = signing_key("whsec_" + base64.b64encode(secret).decode())

    assert base64.b64encode(secret).decode() not in repr(read)
    assert len(signature(read, b"x")) == 44


NAMES = [b"petard-source", b"Webhook-Id", b"webhook-id", b"webhook-timestamp", b"webhook-signature", b"x"]
VALUES = [b"v1,AAAA", b"v1,", b"12", b"/s", b".", b"\r", b"\x00", b"\xff", b"{}"]
PIECES = st.sampled_from([*NAMES, *VALUES, b": ", b":", b" ", b"\n", b"\n\n"])


@given(st.lists(PIECES, max_size=25).map(b"".join))
@example(signed(event()))
@example(signed(event(), key(1), key(2)))
@example(signed(event()).replace(b"\n\n", b" \n\n"))
def test_the_fast_way_to_read_headers_gives_what_the_careful_one_gives(raw: bytes) -> None:
    usual = signing._usual_headers.match(raw)

    if usual:
        assert usual.groups() == read_headers(raw[: usual.end() - 2])


HEADS = st.lists(
    st.tuples(
        st.sampled_from(["petard-source", "webhook-id", "Webhook-Timestamp", "webhook-signature", "x-y"]),
        st.sampled_from(["/s", "e-1", "12", "v1,AAAA", "v1,A v1,B", " a", "a ", "a b", "a.b", "ö", ""]),
    ),
    max_size=6,
)


@given(HEADS, st.binary(max_size=20))
def test_whatever_comes_is_split_or_refused(headers: list[tuple[str, str]], rest: bytes) -> None:
    raw = "\n".join(f"{name}: {value}" for name, value in headers).encode() + b"\n\n" + rest

    arrival = read_arrival(raw, KNOWN)

    assert isinstance(arrival.read, EventRefused)
    read_identity(raw)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    assert isinstance(read_arrival(b"petard-source: " + raw, KNOWN).read, EventRefused)


@pytest.mark.parametrize(
    "text", ['{"a": 1}', "[1]", "null", '"a: b"', "12", " {}", "\n\n{}", "-1", "true", ""]
)
def test_no_json_is_taken_for_a_signed_element(text: str) -> None:
    assert not is_signed(text.encode())
    assert event_json(text.encode()) == text.encode()


def test_the_identity_of_a_signed_event_can_be_read_whoever_signed_it() -> None:
    assert read_identity(signed(event(), key(9))) == read_identity(event())
    assert read_identity(signed(event()).partition(b"\n\n")[0]) == (None, None, None)
