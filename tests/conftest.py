"""Servers for the tests: real ones, a fresh database and key prefix for every test.

Postgres and Redis are those of PETARD_TEST_DATABASE_URL and PETARD_TEST_REDIS_URL, else those on this
machine's usual ports, else embedded ones. Tests run side by side: every process has its own template database
and its own Redis database number, since RQ's keys know no prefix.
"""

import contextlib
import getpass
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import hypothesis
import psycopg
import pytest
import redis
from psycopg import sql

from petard_schema import Keys
from petard_worker.embedded import embedded_servers
from petard_worker.postgres.connect import Connection, connect_worker
from petard_worker.postgres.migrate import migrate
from petard_worker.redis_client import connect_redis
from petard_worker.settings import Settings

# On a busy machine an example may take any time; pytest's own timeout still holds.
hypothesis.settings.register_profile("petard", deadline=None)
hypothesis.settings.load_profile("petard")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Servers:
    """Where the tests' servers are; the login may create databases."""

    database_url: str
    redis_url: str


@pytest.fixture(scope="session")
def servers(worker_number: int) -> Iterator[Servers]:
    database_url = os.environ.get("PETARD_TEST_DATABASE_URL") or local_postgres()
    redis_url = os.environ.get("PETARD_TEST_REDIS_URL") or local_redis()
    with contextlib.ExitStack() as stack:
        if database_url is None or redis_url is None:
            embedded = stack.enter_context(embedded_servers())
            database_url = database_url or embedded.database_url
            redis_url = redis_url or embedded.redis_url
        # Number 0 is left alone: something else may live there.
        yield Servers(database_url, f"{redis_url.rstrip('/').removesuffix('/0')}/{10 + worker_number}")


@pytest.fixture(scope="session")
def worker_number() -> int:
    """The number of this test process, from 0."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def local_postgres() -> str | None:
    """Return the URL of a Postgres on the usual port that lets us create databases."""
    for user in (getpass.getuser(), "postgres"):
        url = f"postgresql://{user}@127.0.0.1:5432/postgres"
        with contextlib.suppress(psycopg.Error), psycopg.connect(url, connect_timeout=2) as connection:
            row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
            if row == (True,):
                return url
    return None


def local_redis() -> str | None:
    """Return the URL of a Redis on the usual port."""
    url = "redis://127.0.0.1:6379"
    with contextlib.suppress(redis.RedisError), connect_redis(url) as client:
        client.ping()
        return url
    return None


def database_named(url: str, name: str) -> str:
    """Return the URL of another database of the same server."""
    return f"{url.rpartition('/')[0]}/{name}"


@pytest.fixture(scope="session")
def template_database(servers: Servers, worker_number: int) -> Iterator[str]:
    """The name of a migrated database to copy."""
    name = f"petard_template_{os.getpid()}_{worker_number}"
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            migrate(database_named(servers.database_url, name))
            yield name
        finally:
            drop_database(admin, name)


def drop_database(admin: psycopg.Connection, name: str) -> None:
    admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def database_url(servers: Servers, template_database: str) -> Iterator[str]:
    """A fresh migrated database."""
    name = f"petard_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        admin.execute(statement.format(sql.Identifier(name), sql.Identifier(template_database)))
        try:
            yield database_named(servers.database_url, name)
        finally:
            drop_database(admin, name)


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    """A connection with a worker's rights and limits."""
    with connect_worker(database_url, "test") as connection:
        yield connection


@pytest.fixture
def owner(database_url: str) -> Iterator[psycopg.Connection]:
    """A connection that may do everything, to look and to break things."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def redis_url(servers: Servers) -> Iterator[str]:
    """An empty Redis database."""
    with connect_redis(servers.redis_url) as client:
        client.flushdb()
        yield servers.redis_url
        client.flushdb()


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with connect_redis(redis_url) as client:
        yield client


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    """Settings of this test's servers, under a prefix of its own (channels know no database number)."""
    return Settings(database_url=database_url, redis_url=redis_url, key_prefix=f"test-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def keys(settings: Settings) -> Keys:
    return Keys(settings.key_prefix)


@dataclass
class Petard:
    """Runs `petard …` in processes of their own, and ends those that still run."""

    environment: dict[str, str]
    folder: Path
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def run(self, *arguments: str, stdin: str = "", timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self.command(*arguments),
            input=stdin,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a role; its log goes to a file that `log_of` reads."""
        log = self.folder / f"{arguments[0]}-{len(self.running)}.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                self.command(*arguments), env=self.environment, stdout=file, stderr=file, text=True
            )
        self.running.append(process)
        return process

    def log_of(self, process: subprocess.Popen[str]) -> str:
        arguments = process.args
        assert isinstance(arguments, list)
        return (self.folder / f"{arguments[3]}-{self.running.index(process)}.log").read_text()

    @staticmethod
    def command(*arguments: str) -> list[str]:
        return [sys.executable, "-c", "from petard_worker.cli import main; main()", *arguments]

    def end(self) -> None:
        for process in self.running:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


@pytest.fixture
def petard(settings: Settings, tmp_path: Path) -> Iterator[Petard]:
    """The command line with this test's servers."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PETARD_")},
        "PETARD_DATABASE_URL": settings.database_url.get_secret_value(),
        "PETARD_REDIS_URL": settings.redis_url.get_secret_value(),
        "PETARD_KEY_PREFIX": settings.key_prefix,
        "PYTHONUNBUFFERED": "1",
    }
    commands = Petard(environment, tmp_path)
    yield commands
    commands.end()


def wait_until(condition: Callable[[], object], what: str, seconds: float = 20) -> None:
    """Wait until the condition holds, or fail saying what was waited for."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.01)


@pytest.fixture(name="wait_until")
def wait_until_fixture() -> Callable[..., None]:
    return wait_until


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real games beside the checkout."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the folder of real games is not beside this checkout")
    return SHARED_DATA
