"""Servers of the test's own: these tests kill them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.fleet import Fleet
from faults.holding_proxy import HoldingProxy
from petard_worker.embedded import PostgresServer, RedisServer, embedded_postgres, embedded_redis


@pytest.fixture(scope="session")
def killable_servers() -> Iterator[tuple[PostgresServer, RedisServer]]:
    with embedded_postgres() as postgres, embedded_redis() as redis:
        yield postgres, redis


@pytest.fixture
def fleet(killable_servers: tuple[PostgresServer, RedisServer], tmp_path: Path) -> Iterator[Fleet]:
    """Running servers with an empty pool, and nobody at work yet."""
    fleet = Fleet(*killable_servers, tmp_path)
    fleet.prepare()
    try:
        yield fleet
    finally:
        fleet.end()
        print(fleet.logs())  # noqa: T201 - shown when the test failed


@pytest.fixture
def proxy(fleet: Fleet) -> Iterator[HoldingProxy]:
    """A way to Redis on which one message can be held."""
    with HoldingProxy(fleet.redis.port) as proxy:
        yield proxy
