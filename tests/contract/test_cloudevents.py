"""The SDK of the CloudEvents project reads what we write, and we read what it writes."""

import json
from pathlib import Path

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from example_files import accepted, read


@pytest.mark.parametrize("path", accepted(), ids=lambda path: path.stem)
def test_sdk_reads_the_same_attributes(path: Path) -> None:
    event = read(path.read_bytes())

    theirs = JSONFormat().read(None, event.to_json())

    assert isinstance(theirs, CloudEvent)
    assert theirs.get_specversion() == event.specversion
    assert theirs.get_id() == event.id
    assert theirs.get_source() == event.source
    assert theirs.get_type() == event.type
    assert theirs.get_time() == event.time
    assert theirs.get_subject() == getattr(event, "subject", None)
    assert theirs.get_extension("traceparent") == event.traceparent
    assert theirs.get_data() == json.loads(event.to_json())["data"]


@pytest.mark.parametrize("path", accepted(), ids=lambda path: path.stem)
def test_we_read_what_the_sdk_writes(path: Path) -> None:
    event = read(path.read_bytes())

    theirs = JSONFormat().write(JSONFormat().read(None, path.read_bytes()))

    assert read(theirs) == event


def test_sdk_takes_our_event_as_a_structured_http_message() -> None:
    event = read(accepted()[0].read_bytes())
    message = HTTPMessage({"content-type": "application/cloudevents+json"}, event.to_json())

    theirs = from_http_event(message, JSONFormat())

    assert (theirs.get_source(), theirs.get_id()) == (event.source, event.id)
