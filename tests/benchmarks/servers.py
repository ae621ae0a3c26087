"""Where the benchmark runs: on servers of its own, or in databases of its own on yours.

With PETARD_DATABASE_URL and PETARD_REDIS_URL set, every measurement gets a new Postgres database, which is
dropped afterwards, and a Redis database number that was empty, which is emptied afterwards. Nothing that
exists is touched. Without them both servers are started for the benchmark and end with it, fsync, synchronous
commit and the append-only file on.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from petard_worker import fleet
from petard_worker.cli.errors import CommandFailed
from petard_worker.embedded import EmbeddedServers
from petard_worker.postgres.migrate import migrate
from petard_worker.redis_client import connect_redis
from petard_worker.settings import load_settings

REDIS_DATABASES = range(15, 0, -1)


class Place(NamedTuple):
    """The databases one measurement runs in."""

    database_url: str
    redis_url: str
    batch_size: int


@dataclass(frozen=True)
class Servers:
    """A Postgres in which databases can be created, and an empty Redis database."""

    database_url: str
    redis_url: str
    batch_size: int
    postgres_pid: int | None
    """Of an embedded server; what a server of yours needs is not ours to tell from what others need of it."""
    redis_pid: int | None

    @contextmanager
    def place(self) -> Iterator[Place]:
        """Yield a migrated, empty database and an empty Redis; on leaving, drop the one, empty the other."""
        name = f"petard_benchmark_{uuid.uuid4().hex[:12]}"
        url = with_path(self.database_url, name)
        with psycopg.connect(self.database_url, autocommit=True) as admin:
            admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            try:
                migrate(url)
                yield Place(url, self.redis_url, self.batch_size)
            finally:
                drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
                admin.execute(drop.format(sql.Identifier(name)))
                self.empty_redis()

    def empty_redis(self) -> None:
        """Remove everything from our Redis database."""
        with connect_redis(self.redis_url) as client:
            client.flushdb()

    def versions(self) -> dict[str, str]:
        """Return what the servers say they are."""
        with psycopg.connect(self.database_url) as connection, connect_redis(self.redis_url) as client:
            row = connection.execute("SELECT current_setting('server_version')").fetchone()
            info = client.info("server")
        return {
            "postgres": str(row[0]) if row else "unknown",
            "redis": str(info.get("valkey_version") or info["redis_version"]),
        }


@contextmanager
def open_servers(batch_size: int) -> Iterator[Servers]:
    """Yield the servers of the environment, or embedded ones where none is named."""
    with fleet.servers(load_settings(), None) as (urls, _):
        running = urls.running if isinstance(urls, EmbeddedServers) else ()
        pids = {server.name: server.pid for server in running}
        redis_url = empty_database(urls.redis_url)
        yield Servers(urls.database_url, redis_url, batch_size, pids.get("postgres"), pids.get("redis"))


def empty_database(url: str) -> str:
    """Return the URL of an empty database of that Redis: the queue of RQ knows no prefix."""
    for number in REDIS_DATABASES:
        candidate = with_path(url, str(number))
        with connect_redis(candidate) as client:
            if client.dbsize() == 0:
                return candidate
    raise CommandFailed("no empty database among 1 to 15 of the Redis in PETARD_REDIS_URL")


def with_path(url: str, path: str) -> str:
    """Return the URL with another database in it."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{path}"))
