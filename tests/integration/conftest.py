"""A pool and a worker's workshop for every test of the pipeline that wants them; keys without a database."""

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import structlog
from psycopg import sql
from redis import Redis

from integration.arena import POOL, make_pool, open_workshop
from petard_schema import Keys
from petard_worker.jobs import Workshop
from petard_worker.postgres.connect import Connection
from petard_worker.settings import Settings


@pytest.fixture(scope="session", autouse=True)
def plain_tracebacks() -> None:
    """As in production; structlog's own, with all locals, take longer than the tests."""
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[structlog.processors.add_log_level, renderer])


@pytest.fixture(scope="module")
def shared_database(servers: Any, template_database: str) -> Iterator[str]:
    """A migrated database for all tests of a module: those that leave no trace in it."""
    name = f"petard_shared_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        admin.execute(statement.format(sql.Identifier(name), sql.Identifier(template_database)))
        yield f"{servers.database_url.rpartition('/')[0]}/{name}"
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def keys() -> Keys:
    return Keys(f"test-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def settings(database_url: str, redis_url: str, keys: Keys) -> Settings:
    return Settings(database_url=database_url, redis_url=redis_url, key_prefix=keys.prefix)


@pytest.fixture
def pool(connection: Connection) -> str:
    """The name of a pool with default rules."""
    make_pool(connection)
    return POOL


@pytest.fixture
def workshop(database_url: str, client: Redis, keys: Keys) -> Iterator[Workshop]:
    """What a worker process has at hand, without a queue: a drain leaves as soon as nothing waits."""
    workshop = open_workshop(database_url, client, keys)
    yield workshop
    workshop.session.close()
