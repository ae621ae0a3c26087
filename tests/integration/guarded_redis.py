"""A Redis with the users of deploy/, and what it knows of its own commands."""

import hashlib
import re
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

USERS_FILE = Path(__file__).parents[2] / "deploy" / "redis" / "users.acl"
ADMIN = "admin"
FILLER = "1"


class KeySpec(NamedTuple):
    """Where a command takes a key, and what it does to it."""

    begin: int
    keyword: str | None
    count_first: bool
    flags: frozenset[str]

    @property
    def reads(self) -> bool:
        return "access" in self.flags

    @property
    def writes(self) -> bool:
        return not self.flags.isdisjoint({"insert", "update", "delete"})


class Command(NamedTuple):
    """A command as the server describes it; subcommands are commands of their own."""

    name: str
    arity: int
    key_specs: tuple[KeySpec, ...]

    def words(self, key: str = FILLER) -> list[str]:
        """Return a call with as many arguments as it needs at least, the key wherever it takes one."""
        words = self.name.split("|")
        length = abs(self.arity)
        for spec in self.key_specs:
            at = spec.begin + 1 if spec.keyword or spec.count_first else spec.begin
            length = max(length, at + 1)
        words += [FILLER] * (length - len(words))
        for spec in self.key_specs:
            if spec.keyword:
                words[spec.begin] = spec.keyword
            at = spec.begin + 1 if spec.keyword or spec.count_first else spec.begin
            words[at] = key
        return words


class GuardedRedis:
    """A server with deploy/redis/users.acl, all of its users let in with passwords of this run."""

    def __init__(self, program: str, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        users = USERS_FILE.read_text(encoding="utf-8")
        names = re.findall(r"(?m)^user (\S+)", users)
        self.passwords = {name: secrets.token_hex(16) for name in [*names, ADMIN]}
        for name in names:
            if name != "default":
                users = users.replace(f"user {name} off", f"user {name} on {self.digest(name)}")
        users += f"user {ADMIN} on {self.digest(ADMIN)} ~* &* +@all\n"
        (folder / "users.acl").write_text(users, encoding="utf-8")
        options = ["--bind", "127.0.0.1", "--aclfile", "users.acl", "--save", "", "--appendonly", "yes"]
        self.process = subprocess.Popen(
            [program, *options, "--port", str(self.port), "--dir", str(folder)], stdout=subprocess.DEVNULL
        )
        self.admin = self.client(ADMIN)
        deadline = time.monotonic() + 20
        while not self.answers():
            assert self.process.poll() is None, "the server ended at once"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.02)

    def digest(self, user: str) -> str:
        return "#" + hashlib.sha256(self.passwords[user].encode()).hexdigest()

    def url(self, user: str) -> str:
        return f"redis://{user}:{self.passwords[user]}@127.0.0.1:{self.port}/0"

    def client(self, user: str) -> redis.Redis:
        """Return a client that hands on what the server says as it is."""
        client = redis.Redis.from_url(
            self.url(user), protocol=2, driver_info=None, retry=Retry(NoBackoff(), 0)
        )
        client.response_callbacks.clear()
        return client

    def answers(self) -> bool:
        try:
            return bool(self.admin.ping())
        except redis.ConnectionError:
            return False

    def commands(self) -> dict[str, Command]:
        """Return every command that can be run: those that only hold subcommands cannot."""
        found = {}
        for described in self.admin.execute_command("COMMAND"):
            for one in described[9] or [described]:
                command = Command(one[0].decode(), one[1], tuple(map(key_spec, one[8])))
                found[command.name] = command
        return found

    def refusal(self, user: str, *words: str) -> str | None:
        """Return why this user may not run this call, None if it may."""
        try:
            answer = self.admin.execute_command("ACL", "DRYRUN", user, *words)
        except redis.ResponseError as error:
            raise AssertionError(f"{words}: {error}") from error
        return None if answer == b"OK" else answer.decode()

    def refused_calls(self) -> set[tuple[str, str]]:
        """Return user and object of everything that was refused since the start."""
        entries = [dict(zip(entry[::2], entry[1::2], strict=True)) for entry in self.admin.acl_log()]
        return {(entry[b"username"].decode(), entry[b"object"].decode()) for entry in entries}

    def close(self) -> None:
        self.admin.close()
        self.process.kill()
        self.process.wait()


@contextmanager
def guarded_redis(program: str, folder: Path) -> Iterator[GuardedRedis]:
    server = GuardedRedis(program, folder)
    try:
        yield server
    finally:
        server.close()


def key_spec(described: list[Any]) -> KeySpec:
    """Return a key specification as COMMAND tells it: lists of names and values in turn."""
    fields = named(described)
    begin, find = named(fields["begin_search"]), named(fields["find_keys"])
    where = named(begin["spec"])
    keyword = where["keyword"].decode() if begin["type"] == b"keyword" else None
    flags = frozenset(flag.decode().lower() for flag in fields["flags"])
    return KeySpec(
        where["startfrom"] if keyword else where.get("index", 1), keyword, find["type"] == b"keynum", flags
    )


def named(pairs: list[Any]) -> dict[str, Any]:
    return {name.decode(): value for name, value in zip(pairs[::2], pairs[1::2], strict=True)}
