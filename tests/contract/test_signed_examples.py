"""What others rely on to sign: the examples, the code in the README, the headers of the AsyncAPI document."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from example_files import SCHEMA, reason_of
from petard_schema import EventRefused, event_json, read_event
from petard_schema.export import asyncapi
from petard_schema.signing import HEADERS, split_element
from petard_worker.batch import read_arrival
from petard_worker.signing_keys import read_signing_keys

SIGNED = SCHEMA / "examples" / "signed"
README = (SCHEMA / "README.md").read_text(encoding="utf-8")
KEYS = json.loads((SIGNED / "keys.json").read_text(encoding="utf-8"))
KNOWN = read_signing_keys(json.dumps(KEYS))
SOURCE = "/servers/eu-1"
KEY = KEYS[SOURCE]["keys"][0]
EXAMPLE = (SIGNED / "accepted" / "one_key.txt").read_bytes()
EVENT_ID, NOW = "01JE0000000000000000000001", 1796040000

ACCEPTED = sorted((SIGNED / "accepted").iterdir())
REFUSED = sorted((SIGNED / "refused").iterdir())


def code(language: str) -> str:
    """Return the README's code for signing in a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_accepted_example_is_read_as_its_event(path: Path) -> None:
    raw = path.read_bytes()

    assert read_arrival(raw, KNOWN).read == read_event(event_json(raw))


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.name)
def test_refused_example_gives_the_reason_in_its_name(path: Path) -> None:
    read = read_arrival(path.read_bytes(), KNOWN).read

    assert isinstance(read, EventRefused)
    assert read.reason == reason_of(path)


def test_python_of_the_readme_signs_like_the_example() -> None:
    names: dict[str, Any] = {}
    exec(code("python"), names)

    element = names["signed"](event_json(EXAMPLE), EVENT_ID, SOURCE, KEY, NOW)
    now = names["signed"](event_json(EXAMPLE), EVENT_ID, SOURCE, KEY)

    assert element == EXAMPLE
    assert read_arrival(now, KNOWN).read == read_event(event_json(EXAMPLE))


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript_of_the_readme_signs_like_the_example(tmp_path: Path) -> None:
    given = json.dumps([event_json(EXAMPLE).decode(), EVENT_ID, SOURCE, KEY, NOW])
    program = tmp_path / "sign.mjs"
    program.write_text(code("js") + f"process.stdout.write(signed(...{given}));\n", encoding="utf-8")

    ended = subprocess.run(["node", str(program)], capture_output=True, check=True, timeout=60)

    assert ended.stdout == EXAMPLE


def test_the_element_in_the_readme_is_the_example() -> None:
    head = EXAMPLE.partition(b"\n\n")[0].decode()

    assert f"```\n{head}\n\n{{" in README


def test_asyncapi_headers_are_those_of_the_example() -> None:
    document: Any = asyncapi()
    schema = document["components"]["messages"]["GameFinished"]["headers"]
    check = Draft202012Validator(schema)
    source, *rest = split_element(EXAMPLE)[:3]
    values = [source, *(value.decode() for value in rest), "v1,AAAA v1,BBBB"]
    headers = dict(zip([name.decode() for name in HEADERS], values, strict=True))

    check.validate(headers)
    check.validate({})

    assert list(schema["properties"]) == list(headers)
    for missing in headers:
        assert not check.is_valid({name: value for name, value in headers.items() if name != missing})
