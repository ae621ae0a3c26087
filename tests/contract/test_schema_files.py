import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

import petard_schema
from example_files import SCHEMA, accepted, reason_of, refused
from petard_schema import MAX_EVENT_BYTES, DeadReason, Envelope, IgnoredReason, Keys
from petard_schema.export import CONSUMED, EXAMPLES, KEPT, PRODUCED, documents, event_type, write
from petard_schema.parse import EVENT_TYPES

# Given by those who know more than one text: pools, keys, the ledger, the clock, the rules of a pool.
NOT_FROM_PARSING = {
    DeadReason.UNKNOWN_POOL,
    DeadReason.BAD_SIGNATURE,
    DeadReason.WRONG_POOL,
    DeadReason.FROM_THE_FUTURE,
    DeadReason.ID_REUSED,
    DeadReason.CONFLICTING_GAME,
    DeadReason.UNSUPPORTED_GAME,
    DeadReason.INTERNAL_ERROR,
}

ASYNCAPI = json.loads(documents()["asyncapi.json"])


def references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from references(child)
    elif isinstance(node, list):
        for child in node:
            yield from references(child)


def resolve(document: object, reference: str) -> object:
    for part in reference.removeprefix("#/").split("/"):
        assert isinstance(document, dict)
        document = document[part]
    return document


def follow(node: object) -> object:
    while isinstance(node, dict) and "$ref" in node:
        node = resolve(ASYNCAPI, node["$ref"])
    return node


@pytest.mark.parametrize("name", documents())
def test_generated_file_is_fresh(name: str) -> None:
    text = documents()[name]

    assert (SCHEMA / name).read_text(encoding="utf-8") == text, "run: python -m petard_schema.export schema"


def test_no_file_is_left_from_a_message_that_is_gone() -> None:
    written = {path.relative_to(SCHEMA).as_posix() for path in (SCHEMA / "json").iterdir()}

    assert written == {name for name in documents() if name.startswith("json/")}


def test_write_makes_the_folders_it_needs(tmp_path: Path) -> None:
    paths = write(tmp_path / "new")

    assert {path.relative_to(tmp_path / "new").as_posix() for path in paths} == set(documents())
    assert all(path.is_file() for path in paths)


@pytest.mark.parametrize("name", [name for name in documents() if name.startswith("json/")])
def test_json_schema_is_a_schema_and_complete_in_itself(name: str) -> None:
    schema = json.loads(documents()[name])

    Draft202012Validator.check_schema(schema)

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert all(resolve(schema, reference) for reference in set(references(schema)) - {"#/$defs/JsonValue"})


def test_every_message_is_exported() -> None:
    models = {
        thing
        for thing in vars(petard_schema).values()
        if isinstance(thing, type) and issubclass(thing, Envelope) and thing is not Envelope
    }

    assert models == {*CONSUMED, *PRODUCED, *KEPT} == set(EXAMPLES)
    assert set(CONSUMED) == set(EVENT_TYPES.values())


@pytest.mark.parametrize("model", [*CONSUMED, *PRODUCED, *KEPT], ids=lambda model: model.__name__)
def test_every_message_has_an_accepted_example(model: type[BaseModel]) -> None:
    types = [json.loads(path.read_bytes())["type"] for path in accepted()]

    assert event_type(model) in types


@pytest.mark.parametrize("reason", [reason for reason in DeadReason if reason not in NOT_FROM_PARSING])
def test_every_reason_that_parsing_gives_has_a_refused_example(reason: DeadReason) -> None:
    reasons = {reason_of(path).partition(":")[0] for path in refused()}

    assert reason in reasons


def test_readme_explains_every_reason() -> None:
    readme = (SCHEMA / "README.md").read_text(encoding="utf-8")

    explained = [reason for reason in (*DeadReason, *IgnoredReason) if f"| `{reason}` |" in readme]

    assert explained == [*DeadReason, *IgnoredReason]


def test_asyncapi_references_all_lead_somewhere() -> None:
    found = set(references(ASYNCAPI))

    assert found
    for reference in found:
        assert resolve(ASYNCAPI, reference) is not None


def test_asyncapi_has_the_required_parts() -> None:
    assert ASYNCAPI["asyncapi"] == "3.0.0"
    assert {"title", "version"} <= ASYNCAPI["info"].keys()
    assert all({"host", "protocol"} <= server.keys() for server in ASYNCAPI["servers"].values())


def test_asyncapi_addresses_are_the_redis_keys() -> None:
    addresses = {name: channel["address"] for name, channel in ASYNCAPI["channels"].items()}

    keys = Keys()
    assert addresses == {
        "events": keys.events("{pool}"),
        "pushed": keys.pushed(),
        "changes": keys.changes("{pool}"),
        "changed": keys.changed(),
    }


@pytest.mark.parametrize("name", ASYNCAPI["channels"])
def test_asyncapi_channel_declares_the_parameters_of_its_address(name: str) -> None:
    channel = ASYNCAPI["channels"][name]

    declared = set(channel.get("parameters", {}))

    assert declared == ({"pool"} if "{pool}" in channel["address"] else set())
    assert channel["messages"]


@pytest.mark.parametrize("name", ASYNCAPI["operations"])
def test_asyncapi_operation_uses_messages_of_its_channel(name: str) -> None:
    operation = ASYNCAPI["operations"][name]

    channel = operation["channel"]["$ref"]

    assert operation["action"] in {"send", "receive"}
    assert channel.startswith("#/channels/")
    assert operation["messages"]
    for message in operation["messages"]:
        assert message["$ref"].startswith(f"{channel}/messages/")


def test_asyncapi_channels_are_each_used_once() -> None:
    used = [operation["channel"]["$ref"] for operation in ASYNCAPI["operations"].values()]

    assert sorted(used) == sorted(f"#/channels/{name}" for name in ASYNCAPI["channels"])


@pytest.mark.parametrize("name", ASYNCAPI["components"]["messages"])
def test_asyncapi_message_has_an_example_that_fits_its_payload(name: str) -> None:
    message = ASYNCAPI["components"]["messages"][name]
    payload = follow(message["payload"])
    assert isinstance(payload, dict)

    examples = [example["payload"] for example in message.get("examples", [])] or payload["examples"]

    check = Draft202012Validator({"$ref": "#/payload", "payload": message["payload"], **ASYNCAPI})
    assert examples
    for example in examples:
        check.validate(example)


def test_asyncapi_tells_the_size_limit() -> None:
    assert str(MAX_EVENT_BYTES) in ASYNCAPI["channels"]["events"]["description"]
