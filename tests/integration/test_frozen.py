"""Ending the sessions of frozen workers, and of nobody else: the lock of a pool must come free."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from petard_worker.postgres import frozen, pools
from petard_worker.postgres.connect import Connection, connect_worker
from petard_worker.postgres.frozen import end_frozen_holders

AT_ONCE = -1


@pytest.fixture(autouse=True)
def nobody_is_given_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen, "FROZEN_AFTER_SECONDS", AT_ONCE)


@pytest.fixture
def worker_session(database_url: str) -> Iterator[Connection]:
    with connect_worker(database_url, "worker-1") as connection:
        yield connection


def create_pool(connection: Connection) -> None:
    pools.create_pool(connection, "p", "glicko", {}, {})


def test_a_worker_that_is_silent_inside_a_pipeline_loses_its_session(
    connection: Connection, worker_session: Connection, wait_until: Callable[..., None]
) -> None:
    create_pool(connection)
    with (  # noqa: PT012 - the session that is ended is noticed on leaving
        pytest.raises(psycopg.OperationalError),
        worker_session.pipeline(),
        worker_session.transaction(),
    ):
        pools.lock_pool(worker_session, "p")

        # A moment until it waits for its client.
        wait_until(lambda: end_frozen_holders(connection) == 1, "the worker to be found", 5)

    with connection.transaction():
        assert pools.lock_pool(connection, "p") is not None


def test_a_worker_that_holds_no_pool_is_left_alone(
    connection: Connection, worker_session: Connection
) -> None:
    create_pool(connection)
    with worker_session.transaction():
        worker_session.execute("SELECT 1 FROM petard.ledger")

        assert end_frozen_holders(connection) == 0


def test_an_operator_who_holds_a_pool_is_left_alone(
    connection: Connection, owner: psycopg.Connection
) -> None:
    create_pool(connection)
    with owner.transaction():
        owner.execute("SELECT 1 FROM petard.pool FOR UPDATE")

        assert end_frozen_holders(connection) == 0


def test_a_worker_within_its_time_is_left_alone(
    connection: Connection, worker_session: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frozen, "FROZEN_AFTER_SECONDS", 60)
    create_pool(connection)
    with worker_session.transaction():
        pools.lock_pool(worker_session, "p")

        assert end_frozen_holders(connection) == 0


def test_the_session_has_a_workers_rights_again_afterwards(
    connection: Connection, wait_until: Callable[..., None]
) -> None:
    end_frozen_holders(connection)

    assert connection.execute("SELECT current_user").fetchone() == ("petard_worker",)
