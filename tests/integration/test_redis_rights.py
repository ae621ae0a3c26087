"""Who may do what in Redis: the users of deploy/redis/users.acl on real servers, command by command."""

import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest
import redis

from integration.arena import counted, dead_letters, finished, make_pool
from integration.guarded_redis import FILLER, USERS_FILE, GuardedRedis, guarded_redis, named
from petard_producer import Follower, Producer
from petard_schema import Keys
from petard_worker.embedded.binaries import OLDEST_REDIS, myself, redis_programs, version_of
from petard_worker.jobs import SUBMIT_EVENT
from petard_worker.load_functions import LOADED
from petard_worker.postgres.connect import Connection
from petard_worker.redis_client import connect_redis
from petard_worker.rq_worker import enqueue_job, open_queue

EXPECTED: dict[str, Any] = tomllib.loads(Path(__file__).with_name("redis_rights.toml").read_text("utf-8"))
ROLES = sorted(EXPECTED["roles"])
OWN, OTHER = EXPECTED["keys"]["own_list"], EXPECTED["keys"]["other_list"]
POOL = OWN.rpartition(":")[2]
PROGRAMS = {
    version: str(program)
    for program in redis_programs()
    if (version := version_of(program, myself())) >= max(OLDEST_REDIS, (7, 0))
}
"""Every server on this machine that knows functions, one a version."""

KEY_PATTERN = re.compile(r"(?:%([RW]+))?~(\S+)")
HARMLESS = {("worker", "config|get")}
"""Refused on purpose: a worker asks how Redis is set, and goes on without an answer."""


class Commands(Protocol):
    environment: dict[str, str]

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]: ...

    def start(self, *arguments: str) -> subprocess.Popen[str]: ...

    def log_of(self, process: subprocess.Popen[str]) -> str: ...


@pytest.fixture(scope="module", params=sorted(PROGRAMS), ids=lambda version: ".".join(map(str, version)))
def shared_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GuardedRedis]:
    """A server for those who only ask, and for one who is refused everything."""
    with guarded_redis(PROGRAMS[request.param], tmp_path_factory.mktemp("guarded")) as server:
        yield server


@pytest.fixture(params=sorted(PROGRAMS), ids=lambda version: ".".join(map(str, version)))
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GuardedRedis]:
    with guarded_redis(PROGRAMS[request.param], tmp_path) as server:
        yield server


# --- asked


def test_there_are_these_users_and_no_others(shared_server: GuardedRedis) -> None:
    users = {name.decode() for name in shared_server.admin.acl_users()}

    assert users == {*ROLES, "admin"}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_run_exactly_its_commands(shared_server: GuardedRedis, role: str) -> None:
    commands = shared_server.commands()

    allowed = {
        name
        for name, command in commands.items()
        if "permissions to run" not in (shared_server.refusal(role, *command.words()) or "")
    }

    expected = {*EXPECTED["everybody"], *EXPECTED["roles"][role]["commands"]}
    assert allowed == expected & commands.keys()


@pytest.mark.parametrize("role", ROLES)
def test_every_command_of_a_role_is_one_that_the_server_has(shared_server: GuardedRedis, role: str) -> None:
    """Else the file of users, or what is expected of it, names something that nobody has looked at."""
    assert set(EXPECTED["roles"][role]["commands"]) <= shared_server.commands().keys()


@pytest.mark.parametrize("role", ROLES)
def test_a_role_reads_and_writes_exactly_its_keys(shared_server: GuardedRedis, role: str) -> None:
    expected = EXPECTED["roles"][role]
    commands = shared_server.commands()
    takers = [commands[name] for name in expected["commands"] if commands[name].key_specs]
    wrong = []

    for command, (kind, key) in product(takers, EXPECTED["keys"].items()):
        reads, writes = kind in expected["reads"], kind in expected["writes"]
        due = all(
            (reads or writes) and (reads or not spec.reads) and (writes or not spec.writes)
            for spec in command.key_specs
        )
        if (shared_server.refusal(role, *command.words(key)) is None) != due:
            wrong.append((command.name, key, "should be allowed" if due else "should be refused"))

    assert wrong == []
    assert takers or not (expected["reads"] or expected["writes"])


@pytest.mark.parametrize("role", ROLES)
def test_the_key_patterns_of_a_role_reach_no_further_than_its_commands(
    shared_server: GuardedRedis, role: str
) -> None:
    """Else a command that is granted later would find more keys open than anybody has looked at."""
    user = named(shared_server.admin.execute_command("ACL", "GETUSER", role))
    patterns = [(rights or "RW", glob) for rights, glob in KEY_PATTERN.findall(user["keys"].decode())]

    reached = {
        access: [
            kind
            for kind, key in EXPECTED["keys"].items()
            if any(letter in rights and fnmatchcase(key, glob) for rights, glob in patterns)
        ]
        for access, letter in (("reads", "R"), ("writes", "W"))
    }

    assert reached == {access: EXPECTED["roles"][role][access] for access in reached}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_speaks_on_and_listens_to_exactly_its_channels(shared_server: GuardedRedis, role: str) -> None:
    expected = EXPECTED["roles"][role]
    calls = {"publish": [FILLER], "subscribe": [], "psubscribe": []}
    wrong = []

    for (command, rest), (kind, channel) in product(calls.items(), EXPECTED["channels"].items()):
        due = command in expected["commands"] and kind in expected["channels"]
        if (shared_server.refusal(role, command, channel, *rest) is None) != due:
            wrong.append((command, channel, "should be allowed" if due else "should be refused"))

    assert wrong == []


def test_the_documented_user_of_several_pools_may_push_to_those(shared_server: GuardedRedis) -> None:
    readme = USERS_FILE.parents[1].joinpath("README.md").read_text(encoding="utf-8")
    (line,) = [line for line in readme.splitlines() if line.startswith("user eu-1 ")]

    shared_server.admin.execute_command("ACL", "SETUSER", *line.split()[1:])
    pools = ("chess-blitz", "chess-rapid", "chess", "go")
    may = [pool for pool in pools if not shared_server.refusal("eu-1", "rpush", f"petard:events:{pool}", "x")]
    shared_server.admin.acl_deluser("eu-1")

    assert may == ["chess-blitz", "chess-rapid"]


# --- tried


def test_nobody_gets_in_without_a_password(shared_server: GuardedRedis) -> None:
    for login in ("", "default:any@", "producer@", "producer:@", "producer:wrong@"):
        with (
            redis.Redis.from_url(f"redis://{login}127.0.0.1:{shared_server.port}/0") as client,
            pytest.raises(redis.AuthenticationError),
        ):
            client.ping()


def test_a_stolen_producer_password_can_push_to_its_own_pools_and_do_nothing_else(
    shared_server: GuardedRedis,
) -> None:
    keys = EXPECTED["keys"]
    admin = shared_server.admin
    admin.flushall()
    for kind in ("own_list", "other_list", "rq_queue"):
        admin.rpush(keys[kind], "waiting")
    admin.xadd(keys["changes"], {"event": "{}"}, id="1-1")
    admin.zadd(keys["leaderboard"], {"alice": 1500})
    admin.hset(keys["rq_job"], "data", "[]")
    before = {name: admin.dump(name) for name in admin.keys("*")}
    may = {*EXPECTED["everybody"], *EXPECTED["roles"]["producer"]["commands"]}
    not_refused = []

    with shared_server.client("producer") as thief:
        for name, command in shared_server.commands().items():
            for key in (keys.values() if command.key_specs else [FILLER]) if name not in may else []:
                try:
                    thief.execute_command(*command.words(key))
                except redis.ResponseError as error:
                    # DEBUG and MODULE are refused to everybody, before rights are looked at.
                    if "no permissions" in str(error) or "not allowed. If" in str(error):
                        continue
                not_refused.append(name)
        for kind, key in keys.items():
            if kind != "own_list":
                with pytest.raises(redis.exceptions.NoPermissionError):
                    thief.rpush(key, "junk")
        for channel in set(EXPECTED["channels"].values()) - {EXPECTED["channels"]["pushed"]}:
            with pytest.raises(redis.exceptions.NoPermissionError):
                thief.publish(channel, "junk")
        unchanged = {name: admin.dump(name) for name in admin.keys("*")}
        pushed = thief.rpush(OWN, "junk")

    assert not_refused == []
    assert unchanged == before
    assert pushed == 2


@pytest.mark.timeout(300)
def test_the_whole_service_runs_with_a_user_for_each_role(
    petard: Commands,
    server: GuardedRedis,
    connection: Connection,
    owner: psycopg.Connection,
    wait_until: Callable[..., None],
) -> None:
    make_pool(connection, POOL)
    petard.environment["PETARD_KEY_PREFIX"] = "petard"

    def acting_as(user: str) -> Commands:
        petard.environment["PETARD_REDIS_URL"] = server.url(user)
        return petard

    migrated = acting_as("ops").run("migrate")
    worker = acting_as("worker").start("worker")
    publisher = acting_as("publisher").start("publisher")
    with Producer.from_url(server.url("producer"), source="/test") as producer:
        for number in range(5):
            producer.push_json(finished(number, pool=POOL))
        with pytest.raises(redis.exceptions.NoPermissionError):
            producer.push_json(finished(0, pool="go"))
    with connect_redis(server.url("producer")) as client:
        client.rpush(OWN, b"junk")
    with connect_redis(server.url("worker")) as client:
        queue = open_queue(client, {}, "petard")
        enqueue_job(queue, SUBMIT_EVENT, finished(5, pool=POOL).decode())
        enqueue_job(queue, SUBMIT_EVENT, "junk")
        enqueue_job(queue, "os.system", "true")
    with Follower.from_url(server.url("follower"), pool=POOL) as follower:
        followed = [change.data.seq for _, change in zip(range(6), follower.follow(), strict=False)]
        newest = follower.newest()
    wait_until(lambda: len(dead_letters(owner, POOL)) == 1, "the junk to be a dead letter")
    wait_until(lambda: server.admin.zcard("rq:failed:petard") == 1, "the junk to fail as a job")
    status = acting_as("ops").run("status", "--json")
    ended = [
        petard.run("dead", "replay", "--all", "--yes"),
        petard.run("push", stdin=finished(6, pool=POOL).decode()),
        petard.run("event", "e-404", "--json"),
        petard.run("reingest", POOL, "--since", "1h", "--anyway", "--yes"),
    ]
    wait_until(lambda: len(counted(owner, POOL)) == 7, "what was pushed by ops to be applied")
    for role in (worker, publisher):
        role.terminate()
        assert role.wait(30) == 0
    ended.append(acting_as("worker").run("worker", "--burst"))
    ended.append(acting_as("publisher").run("publisher", "--once"))
    ended.append(acting_as("ops").run("verify"))

    assert migrated.stderr.endswith(f"{LOADED}\n")
    assert followed == [1, 2, 3, 4, 5, 6]
    assert newest is not None
    assert [one.returncode for one in ended] == [0] * 7, [one.stderr for one in ended]
    assert json.loads(status.stdout)["workers"] == 1
    assert server.admin.xlen(Keys().changes(POOL)) == 7
    assert server.admin.zcard(Keys().leaderboard(POOL)) == 2
    refused = {call for call in server.refused_calls() if call[1] != "client|setinfo"}
    assert refused == HARMLESS | {("producer", OTHER)}
