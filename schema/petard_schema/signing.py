"""Signed events: who says so, and that no byte of it was changed. HMAC-SHA256, as Standard Webhooks has it.

A signed element of a list is a block of headers, an empty line and the JSON of the event:

    petard-source: /servers/eu-1
    webhook-id: 01JE0000000000000000000001
    webhook-timestamp: 1764500000
    webhook-signature: v1,BASE64 v1,BASE64

    {"specversion": "1.0", …}

What is signed is `<webhook-id>.<webhook-timestamp>.<JSON>`, byte for byte, so everything can be checked
before any of the JSON is read. The source says whose keys those are; the JSON must name the same one.
https://www.standardwebhooks.com, specification 1.0.0
"""

import hmac
import re
from base64 import b64decode
from binascii import b2a_base64
from collections.abc import Sequence
from datetime import datetime
from hmac import HMAC, compare_digest
from typing import NamedTuple
from urllib.parse import quote

from petard_schema.envelope import MAX_EVENT_BYTES
from petard_schema.ijson import shorten
from petard_schema.names import MAX_SOURCE, check_source
from petard_schema.reasons import DeadReason, EventRefused

KEY_PREFIX = "whsec_"
MIN_SECRET_BYTES, MAX_SECRET_BYTES = 24, 64
MAX_SIGNATURES = 16
"""Of one element, and keys of one source: enough for any rotation."""
MAX_HEADER_BYTES = 4 * 1024
"""Room for the longest source, the longest id and all signatures."""

SOURCE, ID, TIMESTAMP, SIGNATURE = b"petard-source", b"webhook-id", b"webhook-timestamp", b"webhook-signature"
HEADERS = (SOURCE, ID, TIMESTAMP, SIGNATURE)
EMPTY_LINE = b"\n\n"
VERSION = b"v1,"
LINES = "lines end with LF, not CRLF"

_first_header = re.compile(rb"[A-Za-z0-9-]+:")
_timestamp = re.compile(rb"[0-9]{1,15}")
_usual_headers = re.compile(
    rb"petard-source: ([^\x00-\x20\x7f][^\x00-\x1f\x7f]*+)(?<! )\n"
    rb"webhook-id: ([^\x00-\x20\x7f.][^\x00-\x1f\x7f.]*+)(?<! )\n"
    rb"webhook-timestamp: ([0-9]{1,15}+)\n"
    rb"webhook-signature: (v1,[!-~]++(?: v1,[!-~]++){0,15}+)\n\n"
)
"""The headers as `sign_event` writes them: read three times as fast, with the same result."""
_CONTROLS = bytes({*range(32), 127} - {0x0A})


class BadSigningKeyError(ValueError):
    """The text is no key; the message says why and never repeats it."""


class SignedElement(NamedTuple):
    """The parts of a signed element; that it has them says nothing about who wrote it: see `verify`."""

    source: str
    message_id: bytes
    timestamp: bytes
    signatures: list[bytes]
    """Those of versions that are unknown here fit no key."""
    body: bytes

    @property
    def signed_at(self) -> int:
        """Return when it was signed, in seconds since 1970-01-01."""
        return int(self.timestamp)


def signing_key(text: str) -> HMAC:
    """Return the key in a text of the form `whsec_<base64>`, or raise BadSigningKeyError.

    It is copied for every event, which is faster than to begin with the secret, and its repr tells nothing.
    """
    if not text.startswith(KEY_PREFIX):
        raise BadSigningKeyError(f"a key starts with {KEY_PREFIX!r}")
    try:
        secret = b64decode(text.removeprefix(KEY_PREFIX), validate=True)
    except ValueError:
        raise BadSigningKeyError(f"what follows {KEY_PREFIX!r} is not base64") from None
    if not MIN_SECRET_BYTES <= len(secret) <= MAX_SECRET_BYTES:
        raise BadSigningKeyError(
            f"a key holds {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes, this one {len(secret)}"
        )
    return hmac.new(secret, digestmod="sha256")


def sign_event(body: bytes, *, event_id: str, source: str, keys: Sequence[str], at: datetime) -> bytes:
    """Return the signed element to push for the JSON of an event, with a signature by each of the keys.

    `event_id` and `source` are those that stand in the JSON. Raises BadSigningKeyError for a key that is
    none, ValueError for a source that no event may have and for no keys at all or too many.
    """
    return sign_with([signing_key(key) for key in keys], body, event_id=event_id, source=source, at=at)


def sign_with(keys: Sequence[HMAC], body: bytes, *, event_id: str, source: str, at: datetime) -> bytes:
    """Return what `sign_event` returns, with keys that were read before."""
    if not 1 <= len(keys) <= MAX_SIGNATURES:
        raise ValueError(f"{len(keys)} keys to sign with, an event has 1 to {MAX_SIGNATURES} signatures")
    if not 1 <= len(check_source(source)) <= MAX_SOURCE:
        raise ValueError(f"a source has 1 to {MAX_SOURCE} characters")
    # A "." would blur where the id ends, and a header is one line of ASCII.
    message_id = quote(event_id, safe="/:").replace(".", "%2E").encode()
    timestamp = str(int(at.timestamp())).encode()
    signed = signed_content(message_id, timestamp, body)
    signatures = [VERSION + signature(key, signed) for key in keys]
    values = (source.encode(), message_id, timestamp, b" ".join(signatures))
    lines = [name + b": " + value for name, value in zip(HEADERS, values, strict=True)]
    return b"\n".join(lines) + EMPTY_LINE + body


def signed_content(message_id: bytes, timestamp: bytes, body: bytes) -> bytes:
    """Return the bytes that a signature is of."""
    return b"%b.%b.%b" % (message_id, timestamp, body)


def signature(key: HMAC, signed: bytes) -> bytes:
    """Return the signature as base64."""
    mac = key.copy()
    mac.update(signed)
    return b2a_base64(mac.digest(), newline=False)


def is_signed(raw: bytes) -> bool:
    """Return whether an element begins like a block of headers, which no JSON does."""
    return raw[:1] != b"{" and _first_header.match(raw) is not None


def event_json(raw: bytes) -> bytes:
    """Return the JSON in an element, signed or not, for those who only look: nothing is verified."""
    return raw.partition(EMPTY_LINE)[2] if is_signed(raw) else raw


def split_element(raw: bytes) -> SignedElement:
    """Return the parts of a signed element, or raise EventRefused; none of its JSON is read."""
    usual = _usual_headers.match(raw, 0, MAX_HEADER_BYTES + len(EMPTY_LINE))
    if usual:
        values, body = usual.groups(), raw[usual.end() :]
    else:
        end = raw.find(EMPTY_LINE, 0, MAX_HEADER_BYTES + len(EMPTY_LINE))
        if end < 0:
            raise bad_signature(f"no empty line ends its headers within {MAX_HEADER_BYTES} bytes ({LINES})")
        values, body = read_headers(raw[:end]), raw[end + len(EMPTY_LINE) :]
    if len(body) > MAX_EVENT_BYTES:
        raise EventRefused(DeadReason.TOO_LARGE, f"{len(body)} bytes, the limit is {MAX_EVENT_BYTES}")
    source, message_id, timestamp, signatures = values
    try:
        return SignedElement(source.decode(), message_id, timestamp, signatures.split(b" "), body)
    except UnicodeDecodeError:
        raise bad_signature("petard-source is not UTF-8") from None


def read_headers(head: bytes) -> tuple[bytes, ...]:
    """Return the values of HEADERS, in whatever order and case they come, or raise EventRefused."""
    if len(head.translate(None, _CONTROLS)) < len(head):
        raise bad_signature(f"a control character stands in its headers ({LINES})")
    values: dict[bytes, bytes] = {}
    for line in head.split(b"\n"):
        name, colon, value = line.partition(b":")
        if not colon or not name.replace(b"-", b"").isalnum():
            raise bad_signature(f"{shorten(line)} is no header")
        known = name.lower()
        if known in values:
            raise bad_signature(f"{known.decode()} is given twice")
        if known in HEADERS:
            values[known] = value.strip(b" ")
    for known in HEADERS:
        if not values.get(known):
            raise bad_signature(f"there is no {known.decode()}")
    if b"." in values[ID]:
        raise bad_signature('a "." stands in webhook-id')
    if not _timestamp.fullmatch(values[TIMESTAMP]):
        raise bad_signature("webhook-timestamp is no number of seconds since 1970-01-01")
    if (count := len(values[SIGNATURE].split(b" "))) > MAX_SIGNATURES:
        raise bad_signature(f"{count} signatures, the limit is {MAX_SIGNATURES}")
    return tuple(values[known] for known in HEADERS)


def verify(element: SignedElement, keys: Sequence[HMAC]) -> bool:
    """Return whether one of the signatures was made with one of the keys.

    All are compared, each in constant time: how long it takes says neither which one fits nor how nearly.
    """
    fits = False
    signed = signed_content(element.message_id, element.timestamp, element.body)
    for key in keys:
        wanted = VERSION + signature(key, signed)
        for given in element.signatures:
            fits |= compare_digest(wanted, given)
    return fits


def bad_signature(detail: str) -> EventRefused:
    """Return the refusal of an event that is not signed as it has to be."""
    return EventRefused(DeadReason.BAD_SIGNATURE, detail)
