"""Petard from another language: no library of ours, one Redis command to push, one to follow."""

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis

from petard_schema import (
    Cause,
    Change,
    Explanation,
    Keys,
    LedgerEntry,
    RatingChanged,
    Side,
    Standing,
    parse_event,
)

URL = "redis://127.0.0.1:6379/8"
POOL = "chess-blitz"
FOLDER = Path(__file__).parent / "node_client"

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or shutil.which("npm") is None, reason="node and npm are not installed"
)


@pytest.fixture(scope="module", autouse=True)
def _packages() -> None:
    if not (FOLDER / "node_modules").is_dir():
        command = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(command, cwd=FOLDER, check=True)


@pytest.fixture
def server() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(URL) as client:
        yield client


@pytest.fixture
def keys(server: redis.Redis) -> Iterator[Keys]:
    keys = Keys(f"test-{uuid.uuid4().hex}")
    yield keys
    server.delete(keys.events(POOL), keys.changes(POOL))


class NodeClient:
    """The running program, and the lines it prints."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def line(self) -> dict[str, object]:
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        assert text, f"the program ended with {self.process.wait()} before it said anything"
        line: dict[str, object] = json.loads(text)
        return line


@contextmanager
def node_client(keys: Keys, **environment: str) -> Iterator[NodeClient]:
    settings = {"REDIS_URL": URL, "POOL": POOL, "PREFIX": keys.prefix} | environment
    command = ["node", "push_and_follow.mjs"]
    with subprocess.Popen(
        command, cwd=FOLDER, env=os.environ | settings, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield NodeClient(process)
        finally:
            process.kill()


def publish(server: redis.Redis, keys: Keys, seq: int, event_id: str) -> RatingChanged:
    winner = Change(
        player="alice",
        player_seq=seq,
        before=Standing(rating=1500.0, rd=350.0, bomb=0, games=0),
        after=Standing(rating=1662.25, rd=290.25, bomb=0, games=1),
        explanation=Explanation(expected=0.5, actual=1.0),
    )
    entry = LedgerEntry(
        pool=POOL,
        epoch=1,
        seq=seq,
        cause=Cause(id=event_id, source="/servers/node", type="petard.game.finished.v1", game="g-1"),
        outcome="rated",
        changes=(winner,),
    )
    changed = RatingChanged(
        id=f"{POOL}/1-{seq}",
        source="/petard",
        time=datetime(2026, 11, 30, tzinfo=UTC),
        subject=POOL,
        data=entry,
    )
    server.xadd(keys.changes(POOL), {"event": changed.to_json()}, id=f"1-{seq}")
    return changed


def test_game_pushed_by_node_is_an_event_and_its_change_reaches_node(server, keys):
    with node_client(keys, GAME="g-1") as node:
        pushed = node.line()["pushed"]
        (text,) = server.lrange(keys.events(POOL), 0, -1)
        event = parse_event(text)
        changed = publish(server, keys, 1, event.id)
        heard = node.line()
        ended_with = node.process.wait(20)

    assert json.loads(text) == pushed
    assert event.data.game == "g-1"
    assert event.data.sides == (Side(players=("alice",), rank=1), Side(players=("bob",), rank=2))
    assert heard["changed"] == "1-1"
    assert RatingChanged.model_validate_json(json.dumps(heard["event"])) == changed
    assert ended_with == 0


def test_node_notices_a_gap(server, keys):
    with node_client(keys, AFTER="1-41") as node:
        node.line()
        publish(server, keys, 43, "another event")
        heard = node.line()
        ended_with = node.process.wait(20)

    assert heard == {"error": "after 1-41 comes 1-43: take a fresh snapshot"}
    assert ended_with == 1
