"""Whatever bytes come: an event, or a refusal with a reason from the closed list. Never anything else."""

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from example_files import SCHEMA, accepted, reason_of, refused
from mutants import mutants
from parse_oracle import outcome
from petard_schema import DeadReason, Identity, read_identity
from petard_schema.parse import EVENT_TYPES

MUTANTS = 10_000
FROM_PARSING = {reason_of(path).partition(":")[0] for path in refused()}

SCHEMAS = {
    kind: Draft202012Validator(json.loads((SCHEMA / "json" / f"{kind}.json").read_text(encoding="utf-8")))
    for kind in EVENT_TYPES
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
names = st.text(min_size=1, max_size=8) | st.sampled_from(["alice", "bob", "carol"])
numbers = st.integers(-2, 2**53) | st.floats() | json_values
sides = st.fixed_dictionaries(
    {"players": st.lists(names, max_size=3) | json_values},
    optional={"rank": st.integers(1, 9) | numbers, "points": numbers, "home": st.booleans() | json_values},
)
times = st.datetimes().map(lambda time: f"{time.isoformat()}Z") | st.text(max_size=30)
data = st.fixed_dictionaries(
    {
        "pool": st.sampled_from(["chess-blitz", "a"]) | names,
        "game": names,
        "sides": st.lists(sides, max_size=4),
    },
    optional={
        "abandoned_by": st.lists(names, max_size=3),
        "rated": st.booleans() | json_values,
        "started": times,
        "importance": numbers,
        "meta": st.dictionaries(st.text(max_size=8), json_values, max_size=3) | json_values,
        "fault": st.sampled_from(["player", "server"]) | json_values,
        "decided_by": st.sampled_from(["play", "shootout", "forfeit"]) | json_values,
    },
)
events = st.fixed_dictionaries(
    {
        "specversion": st.just("1.0"),
        "id": names,
        "source": names,
        "type": st.sampled_from(list(EVENT_TYPES)),
        "time": times,
        "data": data,
    },
    optional={"traceparent": json_values, "extra": json_values},
)

quick = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@quick
@given(st.binary(max_size=300))
def test_any_bytes_are_refused(raw: bytes) -> None:
    assert outcome(raw) in set(DeadReason)


@quick
@given(json_values)
def test_any_json_is_no_event(value: object) -> None:
    raw = json.dumps(value).encode()

    assert outcome(raw) in {"not_an_event", "not_json", "too_deep"}


@quick
@given(events, st.booleans())
def test_any_content_of_an_event_is_taken_or_refused(event: object, ascii_only: bool) -> None:
    raw = json.dumps(event, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")

    outcome(raw)


@pytest.mark.parametrize("seed", range(2))
def test_mutants_of_the_examples_are_taken_or_refused(seed: int) -> None:
    outcomes: Counter[str] = Counter()

    for raw in mutants(seed, MUTANTS):
        result = outcome(raw)
        outcomes[result.partition(":")[0] if isinstance(result, str) else "accepted"] += 1

    assert outcomes["accepted"] > MUTANTS / 20
    assert outcomes.keys() == {"accepted", *FROM_PARSING}


def test_what_the_parser_takes_fits_the_json_schema() -> None:
    taken = [(raw, event) for raw in mutants(7, 2000) if not isinstance(event := outcome(raw), str)]

    for raw, event in taken:
        SCHEMAS[event.type].validate(json.loads(raw))
        SCHEMAS[event.type].validate(json.loads(event.to_json()))

    assert len(taken) > 100


def test_identity_that_can_be_read_is_the_one_of_the_event() -> None:
    for path in accepted():
        raw = path.read_bytes()
        document = json.loads(raw)

        identity = read_identity(raw)

        game = document["data"].get("game")
        assert identity == Identity(document["source"], document["id"], game)
