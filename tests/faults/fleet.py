"""Servers and processes of one test, all of which can be killed, frozen and started again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

import psycopg
import redis
from psycopg.rows import TupleRow
from rq.job import Job
from rq.registry import FailedJobRegistry
from rq.serializers import JSONSerializer

from faults.audit import Pushed, assert_nothing_lost_nothing_twice, gathered
from petard_schema import Keys
from petard_worker.apply import apply_batch
from petard_worker.breaker import Breaker
from petard_worker.embedded import PostgresServer, RedisServer
from petard_worker.intake import Intake
from petard_worker.pool_settings import PoolSettings, as_given
from petard_worker.postgres import pools
from petard_worker.postgres.connect import connect_worker
from petard_worker.postgres.migrate import migrate
from petard_worker.ratings.pool_rules import pool_rules
from petard_worker.redis_client import connect_redis
from petard_worker.rq_worker import open_queue
from petard_worker.run_publisher import publish_rest

POOL = "p"
RULES = pool_rules("glicko", {})
SETTINGS = PoolSettings(stream_length=10_000_000)
"""The whole ledger stays in the stream, so that all of it can be compared."""
MAIN = "from petard_worker.cli import main; main()"
PUSH_CHUNK = 500
Item = TypeVar("Item")


def wait_until(condition: Callable[[], object], what: str, seconds: float = 20) -> None:
    """Wait until the condition holds, or fail saying what was waited for."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.005)


@dataclass(eq=False)
class Role:
    """One worker or publisher process."""

    kind: str
    process: subprocess.Popen[bytes]
    log_file: Path

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    @property
    def name(self) -> str:
        """The name a worker gave itself, which its session in Postgres carries too."""
        _, _, rest = self.log.partition('"worker": "')
        return rest.partition('"')[0]

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def logged(self, event: str) -> bool:
        return f'"event": "{event}"' in self.log

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it as kill -9 does, frozen or not."""
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        self.send(signal.SIGCONT)

    def exit_code(self, seconds: float = 10) -> int:
        """Wait for its end."""
        return self.process.wait(seconds)


@dataclass
class Fleet:
    """Two servers, a pool, and the roles that work on it."""

    postgres: PostgresServer
    redis: RedisServer
    folder: Path
    keys: Keys = field(default_factory=lambda: Keys("faults"))
    roles: list[Role] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    """What the roles get besides, or instead of, the settings of these servers."""

    def prepare(self, settings: PoolSettings = SETTINGS) -> None:
        """Start what an earlier test has left dead or frozen, and make an empty pool."""
        for server, start in ((self.postgres, self.postgres.start), (self.redis, self.start_redis)):
            try:
                server.resume()
            except RuntimeError:  # it does not run
                start()
        with self.client as client, self.owner() as connection:
            client.flushall()
            connection.execute("DROP SCHEMA IF EXISTS petard CASCADE")
        migrate(self.postgres.url)
        with connect_worker(self.postgres.url, "test") as connection:
            pools.create_pool(connection, POOL, "glicko", RULES.parameters(), as_given(settings))

    def start_redis(self) -> None:
        """Start Redis so that what it has answered survives kill -9 even where fsync is slow.

        With `everysec` it holds writes back in its memory while an fsync takes long: a loss that the tests
        would take for ours.
        """
        self.redis.start()
        self.client.config_set("appendfsync", "no")

    @property
    def client(self) -> "redis.Redis":
        return connect_redis(self.redis.url)

    @contextmanager
    def owner(self) -> Iterator[psycopg.Connection[TupleRow]]:
        """A session that may do everything, to look and to break things."""
        with psycopg.connect(self.postgres.url, autocommit=True, application_name="test") as connection:
            yield connection

    def worker(self, redis_url: str | None = None, program: str = MAIN, **settings: str) -> Role:
        """Start a worker and wait until it looks for work."""
        role = self.start_worker(redis_url, program, **settings)
        wait_until(lambda: role.logged("worker_started"), "the worker to start")
        return role

    def start_worker(self, redis_url: str | None = None, program: str = MAIN, **settings: str) -> Role:
        return self._start("worker", redis_url, program, settings)

    def publisher(self, redis_url: str | None = None, program: str = MAIN) -> Role:
        """Start a publisher and wait until it is active or stands by."""
        role = self.start_publisher(redis_url, program)
        wait_until(
            lambda: role.logged("publisher_active") or role.logged("publisher_standing_by"),
            "the publisher to start",
        )
        return role

    def start_publisher(self, redis_url: str | None = None, program: str = MAIN) -> Role:
        return self._start("publisher", redis_url, program, {})

    def _start(self, role: str, redis_url: str | None, program: str, settings: dict[str, str]) -> Role:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PETARD_")},
            "PETARD_DATABASE_URL": self.postgres.url,
            "PETARD_REDIS_URL": redis_url or self.redis.url,
            "PETARD_KEY_PREFIX": self.keys.prefix,
            **{f"PETARD_{name.upper()}": value for name, value in settings.items()},
            **self.environment,
        }
        log_file = self.folder / f"{role}-{len(self.roles)}.log"
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", program, role], env=environment, stdout=log, stderr=log
            )
        self.roles.append(Role(role, process, log_file))
        return self.roles[-1]

    def push(self, events: Iterable[bytes]) -> None:
        with self.client as client:
            for chunk in chunks(list(events), PUSH_CHUNK):
                client.rpush(self.keys.events(POOL), *chunk)

    def waiting(self) -> int:
        with self.client as client:
            return client.llen(self.keys.events(POOL))

    def applied(self) -> int:
        """How many entries the ledger has."""
        with self.owner() as connection:
            return read_seq(connection)

    def published(self) -> int:
        """The seq of the last entry in the stream."""
        with self.client as client:
            last = cast("list[tuple[bytes, object]]", client.xrevrange(self.keys.changes(POOL), count=1))
        return int(last[0][0].partition(b"-")[2]) if last else 0

    def wait_until_applied(self, count: int, seconds: float = 30) -> None:
        """Wait until the ledger has so many entries and nothing waits any more."""
        with self.owner() as connection:
            wait_until(lambda: read_seq(connection) >= count, f"entry {count} in the ledger", seconds)
        wait_until(lambda: self.waiting() == 0, "an empty list", seconds)

    def wait_until_published(self, count: int, seconds: float = 30) -> None:
        """Wait until the stream has so many entries and the board has been put in place."""
        wait_until(lambda: self.published() >= count, f"entry {count} in the stream", seconds)
        with self.client as client:
            board = self.keys.leaderboard(POOL)
            wait_until(lambda: client.exists(board), "the leaderboard", seconds)

    def wait_until_blocked(self) -> Role:
        """Wait until a worker waits for a lock that the test holds, and return the worker."""
        found: list[Role] = []
        with self.owner() as connection:

            def blocked() -> bool:
                names = sessions_waiting_for_a_lock(connection)
                found[:] = [role for role in self.roles if role.alive and f"petard {role.name}" in names]
                return bool(found)

            wait_until(blocked, "a worker that waits for the lock")
        return found[0]

    @contextmanager
    def pool_locked(self) -> Iterator[None]:
        """Hold the pool's row: workers wait before they have written anything."""
        with self.owner() as connection, connection.transaction():
            connection.execute("SELECT 1 FROM petard.pool WHERE name = %s FOR UPDATE", (POOL,))
            yield

    @contextmanager
    def ratings_locked(self) -> Iterator[None]:
        """Hold every rating: workers wait when they have written ledger and changes."""
        with self.owner() as connection, connection.transaction():
            connection.execute("SELECT 1 FROM petard.rating WHERE pool = %s FOR UPDATE", (POOL,))
            yield

    def end_sessions(self, name: str = "petard %") -> int:
        """End the sessions with such an application name, as an operator or a failover would."""
        sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE %s"
        with self.owner() as connection:
            row = connection.execute(sql, (name,)).fetchone()
        assert row is not None
        return int(row[0])

    def apply_all(self) -> None:
        """Apply what waits, without a worker process."""
        with self.client as client, connect_worker(self.postgres.url, "test") as connection:
            intake = Intake(client, self.keys, POOL)
            while apply_batch(connection, intake, Breaker(), PUSH_CHUNK).events:
                pass

    def publish_rest(self) -> None:
        """Publish what is there, without a publisher process."""
        with self.client as client:
            publish_rest(lambda: connect_worker(self.postgres.url, "publisher"), client, self.keys)

    def audit(self, *pushed: Pushed) -> None:
        """Check everything in Postgres and Redis against what each source pushed."""
        with self.client as client, gathered(self.postgres.url, client, self.keys, POOL) as evidence:
            assert_nothing_lost_nothing_twice(evidence, RULES, pushed)

    def stranded_jobs(self) -> tuple[int, int]:
        """Return how many jobs are in RQ's queue, and how many were taken from it and never begun."""
        with self.client as client:
            queue = open_queue(client, {}, self.keys.prefix)
            return client.llen(queue.key), client.llen(queue.intermediate_queue_key)

    def failed_jobs(self) -> int:
        return len(self.failures_of_jobs())

    def failures_of_jobs(self) -> list[str]:
        """Return the last line of what RQ keeps of each failed job."""
        with self.client as client:
            registry = FailedJobRegistry(self.keys.prefix, connection=client, serializer=JSONSerializer)
            jobs = Job.fetch_many(registry.get_job_ids(cleanup=False), client, JSONSerializer)
        results = [job and job.latest_result() for job in jobs]
        return [str(result and result.exc_string).strip().splitlines()[-1] for result in results]

    def logs(self) -> str:
        """The last words of every process, for a failed test."""
        return "\n".join(f"--- {role.log_file.name}\n{role.log[-3_000:]}" for role in self.roles)

    def end(self) -> None:
        for role in self.roles:
            if role.alive:
                role.kill()


def chunks(events: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (events[start : start + size] for start in range(0, len(events), size))


def read_seq(connection: psycopg.Connection[TupleRow]) -> int:
    row = connection.execute("SELECT seq FROM petard.pool WHERE name = %s", (POOL,)).fetchone()
    assert row is not None
    return int(row[0])


def sessions_waiting_for_a_lock(connection: psycopg.Connection[TupleRow]) -> Sequence[str]:
    sql = """
        SELECT application_name FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND application_name LIKE 'petard worker%'
    """
    return [row[0] for row in connection.execute(sql)]
