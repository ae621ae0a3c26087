"""What runs inside Redis: loaded by who may, called by name, there again after Redis has lost it."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import fakeredis
import psycopg
import pytest
import redis

from integration.arena import counted, finished, games, ids_of, push
from integration.dying_redis import RedisServer
from petard_schema import Keys
from petard_worker.load_functions import FUNCTIONS, LOADED, load_functions
from petard_worker.rq_worker import open_queue
from petard_worker.server_function import FunctionMissingError, ServerFunction

ECHO = ServerFunction("echo", "return {KEYS[1], ARGV[1]}")


class Commands(Protocol):
    environment: dict[str, str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]: ...

    def start(self, *arguments: str) -> subprocess.Popen[str]: ...

    def log_of(self, process: subprocess.Popen[str]) -> str: ...


@pytest.fixture
def server(petard: Commands, tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis of the test's own, which the commands use."""
    server = RedisServer(tmp_path)
    petard.environment["PETARD_REDIS_URL"] = server.url
    yield server
    server.close()


def as_caller(server: RedisServer) -> str:
    """Return the URL of a user who may do all that a worker does, but load no function and run no script."""
    server.client.acl_setuser(
        "caller",
        enabled=True,
        nopass=True,
        keys=["*"],
        channels=["*"],
        commands=["+@all", "-function|load", "-eval", "-evalsha", "-script"],
    )
    return server.url.replace("redis://", "redis://caller:any@")


def loaded(client: redis.Redis) -> set[str]:
    return {library[1].decode() for library in client.function_list()}


def test_a_function_is_loaded_with_its_first_call_and_flushall_keeps_it(server: RedisServer) -> None:
    echo = ECHO.on(server.client)

    first = echo(["a"], [1])
    server.client.flushall()

    assert first == [b"a", b"1"]
    assert loaded(server.client) == {ECHO.full_name}


def test_a_redis_that_has_lost_its_functions_is_given_them_again(server: RedisServer) -> None:
    echo = ECHO.on(server.client)
    echo(["a"], [1])

    server.kill()
    server.lose_everything()
    server.start()

    assert loaded(server.client) == set()
    assert echo(["a"], [2]) == [b"a", b"2"]


def test_functions_survive_a_restart_with_the_data(server: RedisServer) -> None:
    load_functions(server.client)

    server.kill()
    server.start()

    assert loaded(server.client) == {function.full_name for function in FUNCTIONS}


def test_two_releases_side_by_side_call_each_its_own(server: RedisServer) -> None:
    older, newer = ServerFunction("answer", "return 1"), ServerFunction("answer", "return 2")
    of_older, of_newer = older.on(server.client), newer.on(server.client)

    answers = [of_older([], []), of_newer([], []), of_older([], [])]

    assert answers == [1, 2, 1]


def test_two_that_load_the_same_function_at_once_do_not_disturb_each_other(server: RedisServer) -> None:
    assert [ECHO.load(server.client), ECHO.load(server.client)] == [True, False]


def test_a_user_who_may_not_load_is_told_the_remedy(server: RedisServer) -> None:
    with redis.Redis.from_url(as_caller(server)) as caller:
        with pytest.raises(FunctionMissingError, match=rf"{ECHO.full_name}.* run 'petard migrate'"):
            ECHO.on(caller)(["a"], [1])
        ECHO.load(server.client)

        assert ECHO.on(caller)(["a"], [1]) == [b"a", b"1"]


def test_a_user_who_may_not_load_is_told_when_redis_is_full(server: RedisServer) -> None:
    url = as_caller(server)
    server.client.config_set("maxmemory", 1)
    server.client.execute_command("ACL", "SETUSER", "caller", "+function|load")

    with redis.Redis.from_url(url) as caller, pytest.raises(FunctionMissingError, match="raise maxmemory"):
        ECHO.on(caller)(["a"], [1])


def test_a_server_without_functions_gets_a_script() -> None:
    version = (6, 2)
    client = fakeredis.FakeRedis(server=fakeredis.FakeServer(version=version), version=version)
    with pytest.raises(redis.ResponseError, match="unknown command"):
        ECHO.load(client)
    echo = ECHO.on(client)

    assert [echo(["a"], [number]) for number in (1, 2)] == [[b"a", b"1"], [b"a", b"2"]]
    assert "older than 7" in load_functions(client)


def test_a_call_can_be_asked_for_first_and_waited_for_later(server: RedisServer) -> None:
    echo = ECHO.on(server.client)
    echo(["a"], [1])

    with echo.asked(["a"], [2]) as answer:
        between = echo(["a"], [3])
        found = answer()

    assert (between, found) == ([b"a", b"3"], [b"a", b"2"])


def test_an_answer_nobody_waits_for_is_not_taken_for_another(server: RedisServer) -> None:
    echo = ECHO.on(server.client)
    echo(["a"], [1])

    with pytest.raises(ZeroDivisionError), echo.asked(["a"], [2]):
        raise ZeroDivisionError

    assert [echo(["a"], [number]) for number in (3, 4)] == [[b"a", b"3"], [b"a", b"4"]]


def test_a_function_that_is_missing_when_asked_for_is_loaded(server: RedisServer) -> None:
    with ECHO.on(server.client).asked(["a"], [1]) as answer:
        assert answer() == [b"a", b"1"]

    assert loaded(server.client) == {ECHO.full_name}
    assert server.client.ping()


def test_a_redis_that_is_away_is_said_to_be_when_the_answer_is_waited_for(server: RedisServer) -> None:
    echo = ECHO.on(server.client)
    echo(["a"], [1])

    os.kill(server.process.pid, signal.SIGSTOP)  # else it may have answered already
    with echo.asked(["a"], [2]) as answer:
        server.kill()
        with pytest.raises(redis.ConnectionError):
            answer()
    with echo.asked(["a"], [3]) as answer, pytest.raises(redis.ConnectionError):
        answer()
    server.start()

    assert echo(["a"], [4]) == [b"a", b"4"]


def test_a_redis_that_hangs_is_waited_for_once(server: RedisServer) -> None:
    with redis.Redis.from_url(server.url, socket_timeout=0.5) as client:
        echo = ECHO.on(client)
        echo(["a"], [1])
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            started = time.monotonic()
            with echo.asked(["a"], [2]) as answer, pytest.raises(redis.TimeoutError):
                answer()
            took = time.monotonic() - started
        finally:
            os.kill(server.process.pid, signal.SIGCONT)

        assert 0.4 < took < 1.0
        assert echo(["a"], [3]) == [b"a", b"3"]


def test_a_server_without_functions_is_asked_for_a_script() -> None:
    version = (6, 2)
    client = fakeredis.FakeRedis(server=fakeredis.FakeServer(version=version), version=version)
    echo = ECHO.on(client)

    answers = []
    for number in (1, 2):
        with echo.asked(["a"], [number]) as answer:
            answers.append(answer())

    assert answers == [[b"a", b"1"], [b"a", b"2"]]


@pytest.mark.usefixtures("pool")
def test_migrate_loads_all_that_the_roles_call(petard: Commands, server: RedisServer, keys: Keys) -> None:
    push(server.client, keys, games(5))

    for role in (("worker", "--burst"), ("publisher", "--once")):
        assert petard.run(*role).returncode == 0
    called = loaded(server.client)

    migrated = petard.run("migrate")

    assert migrated.stderr.endswith(f"{LOADED}\n")
    assert called < loaded(server.client) == {function.full_name for function in FUNCTIONS}


@pytest.mark.parametrize("redis_is", ["away", "forbidding"])
def test_migrate_succeeds_without_functions_and_says_so(
    petard: Commands, server: RedisServer, redis_is: str
) -> None:
    petard.environment["PETARD_REDIS_URL"] = {
        "away": "redis://127.0.0.1:1/0",
        "forbidding": as_caller(server),
    }[redis_is]

    migrated = petard.run("migrate")

    assert migrated.returncode == 0, migrated.stderr
    assert "Redis was given no functions: " in migrated.stderr
    assert loaded(server.client) == set()


@pytest.mark.usefixtures("pool")
def test_roles_that_may_not_load_wait_until_somebody_has(
    petard: Commands,
    server: RedisServer,
    keys: Keys,
    owner: psycopg.Connection,
    wait_until: Callable[..., None],
) -> None:
    """And so they do when Redis was replaced by an empty one."""
    petard.environment["PETARD_REDIS_URL"] = as_caller(server)
    worker, publisher = petard.start("worker"), petard.start("publisher")
    push(server.client, keys, [finished(1)])
    for role in (worker, publisher):
        wait_until(lambda role=role: "run 'petard migrate'" in petard.log_of(role), "the role to say why")

    load_functions(server.client)
    wait_until(lambda: server.client.exists(keys.changes("p")), "the change to be published")
    server.client.function_flush()
    push(server.client, keys, [finished(2)])
    before = petard.log_of(worker).count("run 'petard migrate'")
    wait_until(
        lambda: petard.log_of(worker).count("run 'petard migrate'") > before, "the worker to miss them"
    )
    load_functions(server.client)
    wait_until(lambda: server.client.xlen(keys.changes("p")) == 2, "the second change to be published")

    assert counted(owner) == ids_of([finished(1), finished(2)])
    assert open_queue(server.client, {}, keys.prefix).failed_job_registry.get_job_count(cleanup=False) == 0
    for role in (worker, publisher):
        role.terminate()
        assert role.wait(20) == 0


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize("role", [("worker", "--burst"), ("publisher", "--once")])
def test_what_runs_once_says_that_a_function_is_missing(
    petard: Commands, server: RedisServer, keys: Keys, role: tuple[str, ...]
) -> None:
    push(server.client, keys, [finished(1)])
    if role[0] == "publisher":
        assert petard.run("worker", "--burst").returncode == 0
        server.client.function_flush()
    petard.environment["PETARD_REDIS_URL"] = as_caller(server)

    ended = petard.run(*role)

    assert ended.returncode == 69, ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("petard: Redis lacks the function petard_")
