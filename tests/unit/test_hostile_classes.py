"""Every class of hostile text is refused for its own reason, whatever the text, and costs what it weighs."""

import timeit
from collections import Counter
from datetime import UTC, datetime
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostile.draw import POOL
from hostile.payloads import KINDS, NAMES, REFUSED_BY_PARSER, hostile, payload
from parse_oracle import outcome
from petard_schema import MAX_EVENT_BYTES, DeadReason, EventRefused, parse_event
from petard_worker.batch import check_arrival, read_arrival

EACH = 30
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SECONDS = 0.05
"""A few milliseconds is what 16 KiB take; what looks again at what it has seen takes half a second."""

FROM_THE_PARSER = {
    *(DeadReason.TOO_LARGE, DeadReason.NOT_JSON, DeadReason.TOO_DEEP, DeadReason.NOT_AN_EVENT),
    *(DeadReason.UNKNOWN_TYPE, DeadReason.BAD_FIELD, DeadReason.TOO_MANY_PLAYERS, DeadReason.ONE_SIDE),
    *(DeadReason.SELF_MATCH, DeadReason.PLAYER_ON_TWO_SIDES, DeadReason.PLAYER_TWICE),
    DeadReason.ABANDONER_NOT_IN_GAME,
}


def refusal_at_the_door(raw: bytes) -> EventRefused | None:
    """Return why the drain of the pool would not take the text, before it looks at what has counted."""
    try:
        check_arrival(POOL, NOW, read_arrival(raw))
    except EventRefused as refused:
        return refused
    return None


@pytest.mark.parametrize("kind", NAMES)
def test_every_text_of_the_class_is_refused_for_its_reason(kind: str) -> None:
    for number in range(EACH):
        due = payload(1, kind, number)

        refused = refusal_at_the_door(due.raw)

        assert refused is not None, due.raw
        assert refused.reason == due.reason, (refused.detail, due.raw)
        assert refused.detail.isascii(), due.raw
        assert refused.detail.isprintable(), due.raw
        assert 0 < len(refused.detail) <= 400, due.raw


def test_the_classes_are_many_and_cover_every_reason_of_the_parser() -> None:
    reasons = {payload(1, kind, 0).reason.partition(":")[0] for kind in REFUSED_BY_PARSER}

    assert len(NAMES) > 90
    assert reasons == FROM_THE_PARSER


def test_no_two_texts_are_the_same_and_a_seed_makes_the_same_ones_again() -> None:
    texts = [payload.raw for payload in hostile(1, 20 * len(NAMES))]

    assert len(set(texts)) == len(texts)
    assert texts[-7:] == [payload.raw for payload in hostile(1, 7, start=len(texts) - 7)]
    assert len(set(texts) & {payload.raw for payload in hostile(2, len(NAMES))}) < len(NAMES) / 5


@settings(max_examples=300)
@given(st.sampled_from(NAMES), st.integers(0, 2**32), st.integers(0, 10**8))
def test_any_text_of_any_class_holds_what_the_oracle_asks(kind: str, seed: int, number: int) -> None:
    due = payload(seed, kind, number)

    found = outcome(due.raw)

    assert found == due.reason if kind in REFUSED_BY_PARSER else not isinstance(found, str)


@settings(max_examples=300)
@given(st.sampled_from(NAMES), st.integers(0, 2**32), st.data())
def test_any_text_spoiled_further_holds_what_the_oracle_asks(
    kind: str, seed: int, data: st.DataObject
) -> None:
    text = payload(seed, kind, 1).raw[: 2 * MAX_EVENT_BYTES]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 50)))
    piece = data.draw(st.binary(max_size=20) | st.just(text[start:end] * 2))

    outcome(text[:start] + piece + text[end:])


@settings(max_examples=50)
@given(st.binary(min_size=1000, max_size=MAX_EVENT_BYTES + 10))
def test_long_bytes_hold_what_the_oracle_asks(raw: bytes) -> None:
    outcome(raw)


def blown_up(raw: bytes) -> list[bytes]:
    """Return texts as long as is allowed, made of many of these: in a row, in an array, as members."""
    raw = raw[:2_000]
    count = MAX_EVENT_BYTES // (len(raw) + 10)
    members = b",".join(b'"%d":%s' % (number, raw) for number in range(count))
    texts = [
        raw * (MAX_EVENT_BYTES // max(1, len(raw))),
        b"[" + b",".join([raw] * count) + b"]",
        b"{" + members + b"}",
        b'{"specversion":"1.0","id":"a","source":"a","type":"a","data":{' + members + b"}}",
        b'"' + raw.replace(b'"', b'\\"') * count + b'"',
    ]
    return [text[:MAX_EVENT_BYTES] for text in texts]


@pytest.mark.parametrize("kind", NAMES)
def test_the_longest_texts_of_the_class_cost_no_more_than_their_length(kind: str) -> None:
    texts = [payload(3, kind, number).raw for number in range(20)]
    longest = sorted((text for text in texts if len(text) <= MAX_EVENT_BYTES), key=len)[-1:]

    for raw in [*longest, *blown_up(texts[0])]:
        seconds = min(
            timeit.repeat(lambda raw=raw: read_arrival(raw), timer=process_time, number=1, repeat=3)
        )

        assert seconds < SECONDS, raw[:200]


def test_times_of_the_years_1_and_9999_are_read_and_judged() -> None:
    """The first is long ago and counts, the second is from the future: neither is an error."""
    first, last = (
        b'{"specversion":"1.0","id":"a","source":"/a","type":"petard.game.finished.v1","time":"%s",'
        b'"data":{"pool":"p","game":"g","sides":[{"players":["a"],"rank":1},{"players":["b"],"rank":2}]}}'
        % time
        for time in (b"0001-01-01T00:00:00Z", b"9999-12-31T23:59:59.999999999Z")
    )

    assert refusal_at_the_door(first) is None
    assert parse_event(first).time.year == 1
    refused = refusal_at_the_door(last)
    assert refused is not None
    assert refused.reason == "from_the_future"


def test_reasons_are_spread_over_the_classes_as_the_counts_say() -> None:
    """A harness that always expects the same reason would be no harness."""
    counts = Counter(payload.reason.partition(":")[0] for payload in hostile(5, len(NAMES)))

    assert sum(counts.values()) == len(KINDS)
    assert max(counts.values()) < len(KINDS) / 2
