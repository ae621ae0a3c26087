import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from example_files import SCHEMA, accepted, read, reason_of, refused
from petard_schema import Envelope, EventRefused, parse_event
from petard_schema.export import EXAMPLES, event_type
from petard_schema.parse import ENVELOPE_FIELDS, EVENT_TYPES

# What JSON Schema has no words for, or only some validators check; the schemas' descriptions say it.
BEYOND_JSON_SCHEMA = {
    "bad_field@data.game--not_nfc.json": "normal forms",
    "bad_field@data.pool--newline_at_the_end.json": "newlines: only Python's $ skips one",
    "bad_field@data.sides.0.weights--more_than_players.json": "comparing the lengths of two arrays",
    "bad_field@time--leap_second.json": "calendars",
    "bad_field@time--year_10000.json": "calendars",
    "player_on_two_sides.json": "comparing elements of two arrays",
    "self_match.json": "comparing elements of two arrays",
    "abandoner_not_in_game.json": "comparing elements of two arrays",
}


def validator(type_: str) -> Draft202012Validator:
    text = (SCHEMA / "json" / f"{type_}.json").read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text))


@pytest.mark.parametrize("path", accepted(), ids=lambda path: path.stem)
def test_accepted_example_survives_being_written_and_read(path: Path, tmp_path: Path) -> None:
    event = read(path.read_bytes())

    (tmp_path / "written").write_bytes(event.to_json())

    assert read((tmp_path / "written").read_bytes()) == event


@pytest.mark.parametrize("path", accepted(), ids=lambda path: path.stem)
def test_accepted_example_fits_its_json_schema(path: Path) -> None:
    event = read(path.read_bytes())

    check = validator(event_type(type(event)))

    check.validate(json.loads(path.read_bytes()))
    check.validate(json.loads(event.to_json()))


@pytest.mark.parametrize("path", refused(), ids=lambda path: path.name)
def test_refused_example_gives_the_reason_in_its_name(path: Path) -> None:
    raw = path.read_bytes()

    with pytest.raises(EventRefused) as refusal:
        parse_event(raw)

    assert refusal.value.reason == reason_of(path)


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in refused()
        if reason_of(path).startswith(("bad_field", "too_many", "player", "one_side", "self", "abandoner"))
    ],
    ids=lambda path: path.name,
)
def test_json_schema_refuses_what_it_has_words_for(path: Path) -> None:
    document = json.loads(path.read_bytes())

    fits = validator(document["type"]).is_valid(document)

    assert fits == (path.name in BEYOND_JSON_SCHEMA)


@pytest.mark.parametrize("field", [*ENVELOPE_FIELDS, "time", "data"])
def test_json_schema_requires_what_the_parser_requires(field: str) -> None:
    document = json.loads(EXAMPLES[EVENT_TYPES["petard.game.finished.v1"]].to_json())

    del document[field]

    assert not validator("petard.game.finished.v1").is_valid(document)
    with pytest.raises(EventRefused):
        parse_event(json.dumps(document).encode())


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=lambda example: example.type)
def test_example_in_the_asyncapi_document_is_one_of_the_files(example: Envelope) -> None:
    files = [read(path.read_bytes()) for path in accepted()]

    assert example in files
