"""Columns arrive in Postgres as what they were, and agree with psycopg's own arrays."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, LiteralString

import psycopg
import pytest

from petard_worker.postgres.columns import Column, columns, int4s, int8s, texts, timestamps
from petard_worker.postgres.connect import Connection

ECHO: dict[str, LiteralString] = {
    "text": "SELECT %(column)b::text[]",
    "integer": "SELECT %(column)b::integer[]",
    "bigint": "SELECT %(column)b::bigint[]",
    "timestamptz": "SELECT %(column)b::timestamptz[]",
}
TIMES = [
    datetime(2026, 11, 30, 12, 0, 0, 1, UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1999, 12, 31, 23, 59, 59, 999_999, UTC),
    datetime(2000, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
    None,
    datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
]


def echo(connection: Connection, kind: str, column: Column) -> object:
    """Return what Postgres understood."""
    row = connection.execute(ECHO[kind], {"column": column}, binary=True).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize(
    ("kind", "make", "values"),
    [
        ("text", texts, ["", "alice", "李雷 🎲", None, "a" * 1_023, "a" * 1_024, "a" * 20_000]),
        ("integer", int4s, [0, -1, 2**31 - 1, -(2**31)]),
        ("bigint", int8s, [0, -1, 2**63 - 1, -(2**63)]),
        ("timestamptz", timestamps, TIMES),
        ("timestamptz", timestamps, [time for time in TIMES if time is not None]),
    ],
)
def test_values_arrive_as_they_were(
    connection: Connection, kind: str, make: Callable[[Iterable[Any]], Column], values: list[object]
) -> None:
    arrived = echo(connection, kind, make(values))

    assert repr(arrived) == repr([v.astimezone(UTC) if isinstance(v, datetime) else v for v in values])


@pytest.mark.parametrize(
    ("kind", "make"),
    [("text", texts), ("integer", int4s), ("bigint", int8s), ("timestamptz", timestamps)],
)
def test_column_without_values_is_an_empty_array(
    connection: Connection, kind: str, make: Callable[[Iterable[Any]], Column]
) -> None:
    assert echo(connection, kind, make([])) == []


def test_column_of_the_wrong_type_is_refused_by_postgres(connection: Connection) -> None:
    with pytest.raises(psycopg.errors.DatatypeMismatch):
        echo(connection, "bigint", texts(["1"]))


def test_rows_become_columns_by_name(connection: Connection) -> None:
    made = columns({"player": texts, "games": int4s}, [("alice", 3), ("bob", 4)])

    assert echo(connection, "text", made["player"]) == ["alice", "bob"]
    assert echo(connection, "integer", made["games"]) == [3, 4]


def test_no_rows_become_empty_columns() -> None:
    assert columns({"player": texts, "games": int4s}, []) == {"player": texts([]), "games": int4s([])}
