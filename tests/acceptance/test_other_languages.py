"""Petard from another language, with workers and a publisher at work: one Redis command is all there is."""

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from integration.arena import finished
from petard_schema import RatingChanged

NODE_CLIENT = Path(__file__).parents[1] / "integration" / "node_client"
INSTALL = [
    "npm",
    "install",
    "--no-package-lock",
    "--no-audit",
    "--no-fund",
    "--ignore-scripts",
    "--prefer-offline",
]

needs_node = pytest.mark.skipif(
    shutil.which("node") is None or shutil.which("npm") is None, reason="node and npm are not installed"
)


@pytest.fixture(scope="module")
def node_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that the integration tests use, in a folder of its own: other tests run npm too."""
    folder = tmp_path_factory.mktemp("node_client")
    for name in ("package.json", "push_and_follow.mjs"):
        shutil.copy(NODE_CLIENT / name, folder)
    subprocess.run(INSTALL, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def service(petard, pool, wait_until):
    """A worker and a publisher at work."""
    worker, publisher = petard.start("worker"), petard.start("publisher")
    wait_until(lambda: "worker_started" in petard.log_of(worker), "a worker")
    wait_until(lambda: "publisher_active" in petard.log_of(publisher), "a publisher")


def node(folder: Path, petard, **environment: str) -> tuple[int, list[dict[str, object]]]:
    """Run the program to its end and return its exit code and what it said."""
    settings = {
        "REDIS_URL": petard.environment["PETARD_REDIS_URL"],
        "PREFIX": petard.environment["PETARD_KEY_PREFIX"],
        "POOL": "p",
    }
    ended = subprocess.run(
        ["node", "push_and_follow.mjs"],
        cwd=folder,
        env=petard.environment | settings | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()]


@needs_node
@pytest.mark.usefixtures("service")
def test_node_pushes_a_game_and_hears_what_it_did(petard, run, node_client):
    code, (pushed, changed) = node(node_client, petard, GAME="g-1", WINNER="Zoë", LOSER="李雷")

    assert code == 0
    message = RatingChanged.model_validate(changed["event"], strict=False)
    assert changed["changed"] == "1-1"
    assert message.data.cause.id == pushed["pushed"]["id"]
    assert message.data.outcome == "rated"
    standing = {change.player: change.after.rating for change in message.data.changes}
    board = {line["player"]: line["rating"] for line in run("leaderboard", "p", "--json").json}
    assert standing == board
    assert board["Zoë"] > 1500 > board["李雷"]


@needs_node
@pytest.mark.usefixtures("service")
def test_node_follows_from_where_it_was_and_hears_of_games_by_others(petard, run, node_client):
    run("push", stdin=b"\n".join(finished(number) for number in range(1, 51)))

    code, (_, *changes) = node(node_client, petard, AFTER="1-0", GAME="g-node")

    assert code == 0
    assert [change["changed"] for change in changes] == [f"1-{seq}" for seq in range(1, 52)]
    assert [change["event"]["data"]["cause"]["game"] for change in changes] == [
        *(f"g-{number}" for number in range(1, 51)),
        "g-node",
    ]


@contextmanager
def raw_connection(url: str) -> Iterator[socket.socket]:
    """Connect to Redis with nothing but a socket, in the database that the URL names."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(resp("SELECT", parts.path.strip("/") or "0"))
        assert connection.recv(100) == b"+OK\r\n"
        yield connection


def resp(*words: str | bytes) -> bytes:
    """Return a command as it stands on the wire: an array of counted strings."""
    encoded = [word if isinstance(word, bytes) else word.encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded)


@pytest.mark.usefixtures("service")
def test_one_rpush_over_a_bare_socket_is_all_there_is(petard, run, keys, wait_until):
    with raw_connection(petard.environment["PETARD_REDIS_URL"]) as connection:
        connection.sendall(resp("RPUSH", keys.events("p"), finished(1)))
        answer = connection.recv(100)

    wait_until(lambda: run("event", "e-1", "--json").json["outcome"] == "rated", "the game to be rated")
    assert answer == b":1\r\n"
    assert run("player", "p", "alice", "--json").json["wins"] == 1
