"""Looks for signed elements that are taken apart or believed wrongly.

    python tests/fuzz/fuzz_element.py -max_total_time=60

Of every element: it is taken apart or refused with a reason from the closed list; its parts are those that a
second, slow reader finds; and it is believed exactly if who has the secret computes the same signature.
"""

import base64
import hashlib
import hmac
import random
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import atheris

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
with atheris.instrument_imports(include=["petard_schema"]):
    from petard_schema import MAX_EVENT_BYTES, EventRefused
    from petard_schema.signing import (
        SignedElement,
        event_json,
        is_signed,
        sign_event,
        signing_key,
        split_element,
        verify,
    )

import mutants  # noqa: E402 - these use the parser, which must have been imported as above
from example_files import SCHEMA, accepted  # noqa: E402
from parse_oracle import check_refusal, outcome  # noqa: E402

SECRET = bytes(range(24))
KEY = "whsec_" + base64.b64encode(SECRET).decode()
OTHER_KEY = "whsec_" + base64.b64encode(bytes(24)).decode()
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
MAX_HEADER_BYTES = 4 * 1024
NAMES = (b"petard-source", b"webhook-id", b"webhook-timestamp", b"webhook-signature")

Parts = tuple[bytes, bytes, bytes, list[bytes], bytes]


def check(raw: bytes) -> None:
    """Fail where anything does not hold that must hold for any element."""
    if not is_signed(raw):
        assert event_json(raw) == raw
        outcome(raw)
        return
    slowly = read_slowly(raw)
    element = take_apart(raw)
    if element is None:
        assert slowly is None
        return
    parts = (element.source.encode(), *element[1:])
    assert parts == slowly
    assert verify(element, [signing_key(KEY)]) == is_believable(*parts)
    assert not verify(element, [signing_key(OTHER_KEY)])
    assert not verify(element, [])
    assert event_json(raw) == element.body
    outcome(element.body)


def take_apart(raw: bytes) -> SignedElement | None:
    """Return the parts of the element, or None where it is refused as it should be."""
    try:
        return split_element(raw)
    except EventRefused as refused:
        refusal = refused
    check_refusal(refusal)
    assert refusal.reason in {"bad_signature", "too_large"}
    return None


def read_slowly(raw: bytes) -> Parts | None:
    """Return source, id, timestamp, signatures and body by the rules of the README, or None."""
    head, empty, body = raw.partition(b"\n\n")
    if not empty or len(head) > MAX_HEADER_BYTES or len(body) > MAX_EVENT_BYTES:
        return None
    found: dict[bytes, bytes] = {}
    for line in head.split(b"\n"):
        name, colon, value = line.partition(b":")
        letters = name.replace(b"-", b"")
        if not colon or not letters.isalnum() or name.lower() in found:
            return None
        if any(byte < 32 or byte == 127 for byte in line):
            return None
        found[name.lower()] = value.strip(b" ")
    source, message_id, timestamp, signatures = (found.get(name, b"") for name in NAMES)
    if not (source and message_id and timestamp and signatures) or b"." in message_id:
        return None
    if not timestamp.isdigit() or len(timestamp) > 15 or signatures.count(b" ") > 15:
        return None
    try:
        source.decode()
    except UnicodeDecodeError:
        return None
    return source, message_id, timestamp, signatures.split(b" "), body


def is_believable(
    _: bytes, message_id: bytes, timestamp: bytes, signatures: list[bytes], body: bytes
) -> bool:
    """Return whether one of the signatures is the one that the secret makes."""
    digest = hmac.digest(SECRET, b".".join((message_id, timestamp, body)), hashlib.sha256)
    return b"v1," + base64.b64encode(digest) in signatures


def mutate(raw: bytes, most: int, seed: int) -> bytes:
    """Return another element: another body that is signed again, other bytes, or what libFuzzer likes."""
    choose = random.Random(seed)
    chance = choose.random()
    if chance < 0.3:
        body = mutants.other_bytes(choose, event_json(raw))
        return signed(body)[:most]
    if chance < 0.6:
        return mutants.other_bytes(choose, raw)[:most]
    mutated: bytes = atheris.Mutate(raw, most)
    return mutated


def signed(body: bytes) -> bytes:
    return sign_event(body, event_id="e.1", source="/servers/1", keys=[KEY], at=AT)


def write_corpus(folder: Path) -> None:
    """Write the elements to begin with."""
    bodies = [path.read_bytes() for path in accepted()]
    examples = sorted((SCHEMA / "examples" / "signed").rglob("*.[bt][ix][nt]"))
    texts = [*bodies, *map(signed, bodies), *(path.read_bytes() for path in examples)]
    for number, text in enumerate(texts):
        (folder / f"{number:04}").write_bytes(text)


def main() -> None:
    files = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder))
        corpus = [] if files else [folder, f"-max_len={MAX_EVENT_BYTES + MAX_HEADER_BYTES + 64}"]
        atheris.Setup([*sys.argv, *corpus], check, custom_mutator=mutate)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
