"""Rows arrive in Postgres as what they were, whichever of their values are NULL."""

import struct
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from petard_worker.postgres.columns import BOOL, FLOAT8, INT4, INT8, TIMESTAMPTZ, microseconds
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.row_arrays import RowType, known_text_field, text_field

THING = RowType(
    "pg_temp.thing",
    {
        "name": known_text_field,
        "words": text_field,
        "small": INT4,
        "large": INT8,
        "real": FLOAT8,
        "maybe": FLOAT8,
        "yes": BOOL,
        "at": TIMESTAMPTZ,
    },
    nullable=("maybe", "at"),
)
ONE_TEXT = RowType("pg_temp.one_text", {"name": text_field, "small": INT4})
LAST = (2**31 - 1, 2**63 - 1, 1.7976931348623157e308)
FIRST = (-(2**31), -(2**63), 5e-324)

texts = st.none() | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=300)
rows = st.tuples(
    texts,
    texts,
    st.integers(*sorted((FIRST[0], LAST[0]))),
    st.integers(*sorted((FIRST[1], LAST[1]))),
    st.floats(allow_nan=False),
    st.none() | st.floats(allow_nan=False),
    st.booleans(),
    st.none() | st.datetimes(timezones=st.just(UTC)).map(lambda time: time.replace(fold=0)),
)


@pytest.fixture
def database(connection: Connection) -> Connection:
    connection.execute(
        """
        CREATE TYPE pg_temp.thing AS (
            name text, words text, small integer, large bigint, real double precision, maybe double precision,
            yes boolean, at timestamptz
        );
        CREATE TYPE pg_temp.one_text AS (name text, small integer);
        """
    )
    return connection


def echo(database: Connection, made: list[tuple[Any, ...]]) -> list[tuple[object, ...]]:
    """Return what Postgres understood, in its order."""
    sent = THING.array(database, [(*row[:7], microseconds(row[7])) for row in made])
    sql = "SELECT * FROM unnest(%(rows)b::pg_temp.thing[])"
    return database.execute(sql, {"rows": sent}, binary=True).fetchall()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)
@given(st.lists(rows, max_size=12))
def test_rows_arrive_as_they_were(database: Connection, made: list[tuple[Any, ...]]) -> None:
    assert sorted(map(repr, echo(database, made))) == sorted(map(repr, made))


def test_rows_that_are_null_in_the_same_places_come_together(database: Connection) -> None:
    at = datetime(2026, 11, 30, tzinfo=UTC)
    made = [(f"row {number}", None, *LAST, None, True, None if number % 2 else at) for number in range(30)]

    assert echo(database, made) == [*made[::2], *made[1::2]]


def test_a_type_with_one_text(database: Connection) -> None:
    sent = ONE_TEXT.array(database, [("alice", 1), ("李雷", -2)])

    got = database.execute("SELECT * FROM unnest(%(rows)b::pg_temp.one_text[])", {"rows": sent})

    assert got.fetchall() == [("alice", 1), ("李雷", -2)]


@pytest.mark.parametrize("place", [2, 3])
@pytest.mark.parametrize("beyond", [2**63, -(2**63) - 1])
def test_integers_that_do_not_fit_are_never_sent(database: Connection, place: int, beyond: int) -> None:
    row: list[object] = ["alice", None, *FIRST, None, False, None]
    row[place] = beyond

    with pytest.raises((OverflowError, struct.error)):
        echo(database, [tuple(row)])


@pytest.mark.parametrize("others", [[], [("bob", None, *FIRST, None, False, None)]])
def test_a_null_that_may_not_be_is_never_sent(database: Connection, others: list[tuple[Any, ...]]) -> None:
    with pytest.raises(TypeError):
        echo(database, [("alice", None, None, *FIRST[1:], None, False, None), *others])


def test_rows_of_another_type_are_refused_by_postgres(database: Connection) -> None:
    sent = ONE_TEXT.array(database, [("alice", 1)])

    with pytest.raises(psycopg.errors.DatatypeMismatch):
        database.execute("SELECT * FROM unnest(%(rows)b::pg_temp.thing[])", {"rows": sent})
