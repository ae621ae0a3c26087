"""What commands need of the servers: connections from the settings, opened late and closed surely."""

from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis

from petard_worker.cli.errors import CommandFailed
from petard_worker.postgres.connect import Connection, connect_reader, connect_worker
from petard_worker.postgres.migrate import check_schema
from petard_worker.postgres.pools import Pool, get_pool
from petard_worker.redis_client import connect_redis
from petard_worker.settings import Settings, load_settings


@contextmanager
def reading() -> Iterator[Connection]:
    """Open a connection that can only read."""
    with connect_reader(database_url(load_settings()), "command") as connection:
        check_schema(connection)
        yield connection


@contextmanager
def writing() -> Iterator[Connection]:
    """Open a connection that may do what a worker may."""
    with connect_worker(database_url(load_settings()), "command") as connection:
        check_schema(connection)
        yield connection


@contextmanager
def redis_client(settings: Settings) -> Iterator[Redis]:
    """Open a client to the configured Redis."""
    with connect_redis(settings.redis_url.get_secret_value()) as client:
        yield client


def database_url(settings: Settings) -> str:
    """Return the database's URL, secrets included."""
    return settings.database_url.get_secret_value()


def require_pool(connection: Connection, name: str) -> Pool:
    """Return the pool or fail saying how to make it."""
    pool = get_pool(connection, name)
    if pool is None:
        raise no_pool(name)
    return pool


def no_pool(name: str) -> CommandFailed:
    """Return the failure that says there is no such pool."""
    return CommandFailed(f"there is no pool {name!r}: 'petard pool list' shows them")
