"""A Redis without memory takes nothing in, but what waits in it gets out, and then work goes on."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import psycopg
import pytest
import redis

from integration.arena import counted, finished, games, ids_of, make_pool, push
from integration.dying_redis import RedisServer
from petard_schema import Keys
from petard_worker.load_functions import load_functions
from petard_worker.postgres.connect import Connection
from petard_worker.redis_client import connect_redis
from petard_worker.server_function import ALLOW_OOM, ServerFunction
from petard_worker.status import count_workers


class Commands(Protocol):
    environment: dict[str, str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]: ...

    def start(self, *arguments: str) -> subprocess.Popen[str]: ...

    def log_of(self, process: subprocess.Popen[str]) -> str: ...


@pytest.fixture
def server(petard: Commands, tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis of the test's own, which its workers use; they take short turns."""
    server = RedisServer(tmp_path)
    petard.environment |= {
        "PETARD_REDIS_URL": server.url,
        "PETARD_SLICE_SECONDS": "0.1",
        "PETARD_BATCH_SIZE": "20",
    }
    yield server
    server.close()


def fill(server: RedisServer, keys: Keys, memory: int = 1) -> list[bytes]:
    """Push a backlog to two pools and take Redis' memory away, in one go: nothing is drained before."""
    backlog = games(2_000)
    others = [finished(number, "x", "y", pool="q") for number in range(2_000)]
    with server.client.pipeline() as pipe:
        pipe.rpush(keys.events("p"), *backlog)
        pipe.rpush(keys.events("q"), *others)
        pipe.config_set("maxmemory", memory)
        pipe.execute()
    return backlog


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize("when", ["before the worker starts", "while it runs"])
def test_a_full_redis_drains_to_empty_and_then_work_goes_on(
    petard: Commands,
    server: RedisServer,
    connection: Connection,
    keys: Keys,
    owner: psycopg.Connection,
    wait_until: Callable[..., None],
    when: str,
) -> None:
    make_pool(connection, "q")
    if when == "while it runs":
        worker = petard.start("worker")
        wait_until(lambda: count_workers(server.client, keys) == 1, "the worker to be registered")
        backlog = fill(server, keys)
    else:
        backlog = fill(server, keys)
        worker = petard.start("worker")

    wait_until(lambda: not server.client.exists(keys.events("p"), keys.events("q")), "empty lists", 90)

    assert counted(owner) == ids_of(backlog)
    assert len(counted(owner, "q")) == 2_000
    assert petard.log_of(worker).count("redis_full") == 1
    server.client.config_set("maxmemory", 0)
    wait_until(lambda: count_workers(server.client, keys) == 1, "the worker to be registered again")
    push(server.client, keys, games(5, first=3_000))
    wait_until(lambda: counted(owner)[-5:] == ids_of(games(5, first=3_000)), "the next events")
    worker.terminate()
    assert worker.wait(10) == 0


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("pool")
def test_a_redis_that_its_backlog_has_filled_frees_itself(
    petard: Commands,
    server: RedisServer,
    connection: Connection,
    keys: Keys,
    owner: psycopg.Connection,
    wait_until: Callable[..., None],
) -> None:
    make_pool(connection, "q")
    load_functions(server.client)  # as they are in production: they take memory, too
    empty = int(server.client.info("memory")["used_memory"])

    backlog = fill(server, keys, empty + 1_200_000)  # about half of what the backlog takes
    petard.start("worker")

    wait_until(lambda: not server.client.exists(keys.events("p"), keys.events("q")), "empty lists", 150)
    assert counted(owner) == ids_of(backlog)
    wait_until(lambda: count_workers(server.client, keys) == 1, "the worker to be registered", 60)


@pytest.mark.usefixtures("pool")
def test_a_burst_empties_a_full_redis(
    petard: Commands, server: RedisServer, connection: Connection, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, "q")
    backlog = fill(server, keys)

    ended = petard.run("worker", "--burst")

    assert ended.returncode == 0, ended.stderr
    assert counted(owner) == ids_of(backlog)
    assert not server.client.exists(keys.events("p"), keys.events("q"))


def test_a_function_that_is_urgent_runs_on_a_full_redis_and_a_plain_one_does_not(server: RedisServer) -> None:
    text = "return redis.call('SET', KEYS[1], ARGV[1])"
    plain, urgent = ServerFunction("plain", text), ServerFunction("urgent", text, ALLOW_OOM)
    for function in (plain, urgent):
        function.load(server.client)
    server.client.config_set("maxmemory", 1)
    with connect_redis(server.url) as client:
        with pytest.raises(redis.OutOfMemoryError):
            plain.on(client)(["a"], ["plain"])
        urgent.on(client)(["a"], ["urgent"])

        assert client.get("a") == b"urgent"


def test_a_redis_too_full_to_load_a_function_runs_it_as_a_script(server: RedisServer) -> None:
    text = "return redis.call('SET', KEYS[1], ARGV[1])"
    plain, urgent = ServerFunction("plain", text), ServerFunction("urgent", text, ALLOW_OOM)
    server.client.config_set("maxmemory", 1)
    with connect_redis(server.url) as client:
        with pytest.raises(redis.OutOfMemoryError):
            plain.on(client)(["a"], ["plain"])
        urgent.on(client)(["a"], ["urgent"])

        assert client.get("a") == b"urgent"
        assert client.function_list() == []
