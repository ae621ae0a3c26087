"""The allowed RQ call: a game server that has RQ at hand may enqueue a submission."""

import json
import subprocess
from typing import Protocol

import psycopg
import pytest
from redis import Redis
from rq import Queue
from rq.registry import FailedJobRegistry
from rq.serializers import JSONSerializer

from integration.arena import counted, finished
from petard_schema import EventRefused, Keys
from petard_worker.jobs import SUBMIT_EVENT, Workshop, submit_event

pytestmark = pytest.mark.usefixtures("pool")


class Commands(Protocol):
    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]: ...


def test_a_submitted_event_is_applied(
    petard: Commands, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    queue = Queue(keys.prefix, connection=client, serializer=JSONSerializer)
    queue.enqueue(SUBMIT_EVENT, finished(1).decode())
    queue.enqueue(SUBMIT_EVENT, json.loads(finished(2)))
    queue.enqueue(SUBMIT_EVENT, event=finished(3).decode())

    ended = petard.run("worker", "--burst")

    assert ended.returncode == 0, ended.stderr
    assert counted(owner) == ["e-1", "e-2", "e-3"]
    assert not client.exists(keys.events("p"))


def test_what_is_no_event_fails_as_a_job_and_is_not_pushed(
    petard: Commands, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    queue = Queue(keys.prefix, connection=client, serializer=JSONSerializer)
    bad = queue.enqueue(SUBMIT_EVENT, '{"no": "event"}')
    queue.enqueue(SUBMIT_EVENT, finished(1).decode())

    ended = petard.run("worker", "--burst")

    assert ended.returncode == 0, ended.stderr
    assert counted(owner) == ["e-1"]
    registry = FailedJobRegistry(keys.prefix, connection=client, serializer=JSONSerializer)
    assert registry.get_job_ids(cleanup=False) == [bad.id]


def test_submitting_twice_counts_once(
    petard: Commands, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    queue = Queue(keys.prefix, connection=client, serializer=JSONSerializer)
    for _ in range(2):
        queue.enqueue(SUBMIT_EVENT, finished(1).decode())

    petard.run("worker", "--burst")

    assert counted(owner) == ["e-1"]


def test_a_text_is_pushed_byte_for_byte_and_poked(workshop: Workshop, client: Redis, keys: Keys) -> None:
    text = json.dumps(json.loads(finished(1, "zoë")), indent=2, ensure_ascii=False)
    with client.pubsub(ignore_subscribe_messages=True) as pokes:  # type: ignore[no-untyped-call]
        pokes.subscribe(keys.pushed())
        pokes.get_message(timeout=1)

        submit_event(text, workshop=workshop)

        assert client.lrange(keys.events("p"), 0, -1) == [text.encode()]
        assert pokes.get_message(timeout=5)["data"] == b"p"


@pytest.mark.parametrize("text", ["", "\ud800", '{"a": "\ud800"}', "[]", "null", "x" * 20_000])
def test_a_text_that_is_no_event_is_refused(workshop: Workshop, client: Redis, text: str) -> None:
    with pytest.raises(EventRefused):
        submit_event(text, workshop=workshop)

    assert client.keys("*") == []


@pytest.mark.parametrize("value", [{}, {"a": float("nan")}, {"a": "\ud800"}, {"a": "\0"}])
def test_an_object_that_is_no_event_is_refused(
    workshop: Workshop, client: Redis, value: dict[str, object]
) -> None:
    with pytest.raises(EventRefused):
        submit_event(value, workshop=workshop)

    assert client.keys("*") == []
