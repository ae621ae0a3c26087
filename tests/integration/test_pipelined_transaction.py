"""One transaction in one pipeline: all of it, or nothing."""

import time
from contextlib import suppress

import psycopg
import pytest

from petard_worker.postgres.connect import Connection, pipelined_transaction
from petard_worker.postgres.pools import list_pools

INSERT = "INSERT INTO petard.pool (name, system, parameters, settings) VALUES (%s, 'glicko', '{}', '{}')"


def names(connection: Connection) -> list[str]:
    return [pool.name for pool in list_pools(connection)]


def test_it_commits(connection: Connection) -> None:
    with pipelined_transaction(connection):
        connection.execute(INSERT, ("a",))
        connection.execute(INSERT, ("b",))

    assert names(connection) == ["a", "b"]
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_what_is_done_meanwhile_is_done_while_it_commits(
    connection: Connection, owner: psycopg.Connection
) -> None:
    seen: list[bool] = []

    def meanwhile() -> None:
        until = time.monotonic() + 10
        while time.monotonic() < until and not seen:
            seen.extend(owner.execute("SELECT true FROM petard.pool").fetchone() or ())

    with pipelined_transaction(connection, meanwhile):
        connection.execute(INSERT, ("a",))
        assert owner.execute("SELECT true FROM petard.pool").fetchone() is None

    assert seen == [True]


def test_what_fails_meanwhile_is_raised_and_undoes_nothing(connection: Connection) -> None:
    def meanwhile() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), pipelined_transaction(connection, meanwhile):
        connection.execute(INSERT, ("a",))

    assert names(connection) == ["a"]
    with pipelined_transaction(connection):
        connection.execute(INSERT, ("b",))
    assert names(connection) == ["a", "b"]


def test_a_transaction_that_fails_does_nothing_meanwhile(connection: Connection) -> None:
    done: list[str] = []

    with (
        pytest.raises(ZeroDivisionError),
        pipelined_transaction(connection, lambda: done.append("meanwhile")),
    ):
        raise ZeroDivisionError

    assert done == []


def test_an_answer_can_be_had_within(connection: Connection) -> None:
    with pipelined_transaction(connection):
        connection.execute(INSERT, ("a",))
        assert names(connection) == ["a"]
        connection.execute(INSERT, ("b",))

    assert names(connection) == ["a", "b"]


def test_an_exception_of_ours_undoes_it(connection: Connection) -> None:
    with pytest.raises(ZeroDivisionError), pipelined_transaction(connection):  # noqa: PT012
        connection.execute(INSERT, ("a",))
        raise ZeroDivisionError

    assert names(connection) == []


@pytest.mark.parametrize("asked", [True, False])
def test_a_refusal_is_raised_as_what_it_is_and_undoes_it(connection: Connection, asked: bool) -> None:
    with pytest.raises(psycopg.errors.UniqueViolation), pipelined_transaction(connection):  # noqa: PT012
        connection.execute(INSERT, ("a",))
        connection.execute(INSERT, ("a",))
        if asked:
            names(connection)
        connection.execute(INSERT, ("b",))

    assert names(connection) == []
    with pipelined_transaction(connection):
        connection.execute(INSERT, ("c",))
    assert names(connection) == ["c"]


def test_a_swallowed_refusal_does_not_pass_for_a_commit(connection: Connection) -> None:
    with pytest.raises(psycopg.OperationalError), pipelined_transaction(connection):  # noqa: PT012
        connection.execute(INSERT, ("a",))
        with suppress(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / 0").fetchone()

    assert names(connection) == []


def test_a_transaction_that_ends_as_a_rollback_does_not_pass_for_a_commit(connection: Connection) -> None:
    """What psycopg does not see: behind a synchronisation the pipeline goes on, the transaction is lost."""
    with (  # noqa: PT012
        pytest.raises(psycopg.OperationalError, match="ended with ROLLBACK"),
        pipelined_transaction(connection),
    ):
        connection.execute(INSERT, ("a",))
        with suppress(psycopg.errors.DivisionByZero), connection.pipeline() as inner:
            connection.execute("SELECT 1 / 0")
            inner.sync()

    assert names(connection) == []


def test_a_session_that_was_ended_is_said_to_be(connection: Connection, owner: psycopg.Connection) -> None:
    with pytest.raises(psycopg.OperationalError), pipelined_transaction(connection):  # noqa: PT012
        connection.execute(INSERT, ("a",))
        owner.execute("SELECT pg_terminate_backend(%s, 5000)", (connection.info.backend_pid,))

    assert owner.execute("SELECT count(*) FROM petard.pool").fetchone() == (0,)


def test_it_cannot_stand_inside_another_one(connection: Connection) -> None:
    with (
        connection.transaction(),
        pytest.raises(psycopg.ProgrammingError, match="already"),
        pipelined_transaction(connection),
    ):
        pass
