"""One life of a game server's spool, step by step, in which one step of its I/O can end badly.

A step is whatever goes to SQLite (connect, each statement, close) and each message from and to Redis. After a
death nothing more of that life reaches a file or a server, whatever its `except` and `finally` still try; the
files are taken as they were at that moment, which is what kill -9 leaves.
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import redis
from redis import Redis
from redis.backoff import NoBackoff
from redis.connection import Connection, ConnectionPool
from redis.retry import Retry

from petard_producer.file_lock import FileLock
from petard_producer.rpush import Lists
from petard_producer.send_spool import SpoolSender
from petard_producer.spool import Spool
from petard_producer.spool_errors import SpoolError
from petard_producer.waker import Waker
from petard_producer.write_spool import SpoolWriter
from petard_schema import Keys

Result = TypeVar("Result")
REAL_CONNECT = sqlite3.connect
NAME = "spool.db"


class End(Enum):
    """How the chosen step ends."""

    DIES_BEFORE = "dies before it"
    DIES_AFTER = "dies after it"
    ANSWER_LOST = "its answer is lost"
    FAILS = "it fails without having been done"


class Died(BaseException):
    """The process is gone; no `except Exception` sees that."""


@dataclass
class Steps:
    """Counts the steps of a life and lets one of them, `at`, end badly; the first is 1."""

    folder: Path
    at: int | None = None
    end: End = End.DIES_BEFORE
    names: list[str] = field(default_factory=list)
    dead: bool = False
    opened: list[sqlite3.Connection] = field(default_factory=list)

    @property
    def remains(self) -> Path:
        """The folder in which the next process finds the spool."""
        return self.folder / "remains" if self.dead else self.folder

    def take(self, name: str, do: Callable[[], Result], error: Callable[[], Exception]) -> Result:
        if self.dead:
            raise Died
        self.names.append(name)
        if len(self.names) != self.at:
            return do()
        if self.end is End.DIES_BEFORE:
            self.die()
        if self.end is End.FAILS:
            raise error()
        do()
        if self.end is End.DIES_AFTER:
            self.die()
        raise error()

    def die(self) -> None:
        self.dead = True
        self.remains.mkdir()
        for file in self.folder.glob(f"{NAME}*"):
            # The wal-index is rebuilt from the log, as after a kill of the last process.
            if file.is_file() and not file.name.endswith("-shm"):
                shutil.copy(file, self.remains)
        raise Died

    def bury(self) -> None:
        """Let go of what a dead process cannot hold."""
        for connection in self.opened:
            sqlite3.Connection.close(connection)


def disk_error() -> Exception:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return error


def lost_connection() -> Exception:
    return redis.ConnectionError("Connection closed by server.")


def steps_to_sqlite(steps: Steps) -> Callable[..., sqlite3.Connection]:
    """Return what takes the place of sqlite3.connect."""

    class SteppedConnection(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            return steps.take(
                f"sqlite: {sql}", lambda: super(type(self), self).execute(sql, *arguments), disk_error
            )

        def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
            return steps.take(
                f"sqlite: {sql}", lambda: super(type(self), self).executemany(sql, rows), disk_error
            )

        def rollback(self) -> None:
            steps.take("sqlite: rollback", super().rollback, disk_error)

        def close(self) -> None:
            steps.take("sqlite: close", super().close, disk_error)

    def connect(*arguments: Any, **settings: Any) -> sqlite3.Connection:
        def do() -> sqlite3.Connection:
            steps.opened.append(REAL_CONNECT(*arguments, factory=SteppedConnection, **settings))
            return steps.opened[-1]

        return steps.take("sqlite: connect", do, disk_error)

    return connect


def steps_to_redis(steps: Steps, url: str) -> Redis:
    """Return a client each of whose messages is a step."""

    class SteppedConnection(Connection):
        def send_packed_command(self, *arguments: Any, **settings: Any) -> None:
            send = partial(super().send_packed_command, *arguments, **settings)
            steps.take("redis: send", send, lost_connection)

        def read_response(self, *arguments: Any, **settings: Any) -> Any:
            return steps.take(
                "redis: read", partial(super().read_response, *arguments, **settings), lost_connection
            )

    pool = ConnectionPool.from_url(
        url, connection_class=SteppedConnection, protocol=2, driver_info=None, retry=Retry(NoBackoff(), 0)
    )
    return Redis(connection_pool=pool)


@dataclass
class Life:
    """A process with a spool, whose writer and sender are worked by hand, and what it was promised."""

    writer: SpoolWriter
    sender: SpoolSender
    asked: list[tuple[str, bytes]] = field(default_factory=list)
    acknowledged: list[tuple[str, bytes]] = field(default_factory=list)

    def push(self, *calls: dict[str, list[bytes]]) -> None:
        """Push by calls at the same time, each of them again until it is acknowledged."""
        for call in calls:
            self.asked += pairs(call)
        waiting = list(calls)
        for _ in range(3):
            requests = [(call, self.writer.ask(call)) for call in waiting]
            self.writer.write_once()
            for call, request in requests:
                assert request.settled.is_set()
                try:
                    request.result()
                except SpoolError:
                    continue
                self.acknowledged += pairs(call)
                waiting.remove(call)
            if not waiting:
                return
        raise AssertionError("one bad step made three pushes fail")

    def send(self) -> None:
        """Send one chunk, again until it works."""
        for _ in range(3):
            try:
                self.sender.send_once()
            except (SpoolError, redis.RedisError):
                continue
            return
        raise AssertionError("one bad step made three attempts fail")


@contextmanager
def process(folder: Path, client: Redis, keys: Keys) -> Iterator[Life]:
    """Open the spool as a process does."""
    path = folder / NAME
    lock, waker = FileLock(path, "sending"), Waker(path)
    with ExitStack() as at_its_end:
        at_its_end.callback(lock.close)
        at_its_end.callback(waker.close)
        spool = opened(path, keys)
        at_its_end.callback(spool._write_lock.close)  # as the end of a process does
        yield Life(SpoolWriter(spool), SpoolSender(spool, Lists(client, keys, poke=True), lock, waker))
        spool.close()


def opened(path: Path, keys: Keys) -> Spool:
    """Open the spool; whoever fails to does it again."""
    for _ in range(2):
        try:
            return Spool(path, prefix=keys.prefix, limit=1 << 20)
        except SpoolError:
            continue
    return Spool(path, prefix=keys.prefix, limit=1 << 20)


def pairs(call: dict[str, list[bytes]]) -> list[tuple[str, bytes]]:
    return [(pool, element) for pool, elements in call.items() for element in elements]
