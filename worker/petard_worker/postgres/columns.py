"""Columns of values in the form in which Postgres takes arrays: binary, and made in one go.

For statements that unnest one array per column; wide rows are cheaper as rows (row_arrays.py). psycopg makes
such arrays too, but it looks at every element's type.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from struct import Struct
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

# OIDs of the elements' types; they are part of Postgres' protocol and never change.
BOOL, BYTEA, INT8, INT4, TEXT, FLOAT8, TIMESTAMPTZ = 16, 17, 20, 23, 25, 701, 1184

_head = Struct("!iiIii").pack
_no_elements = Struct("!iiI").pack
_length = Struct("!i").pack
_int4 = Struct("!ii").pack
_int8 = Struct("!iq").pack

_NULL = _length(-1)
_LENGTHS = [_length(size) for size in range(1_024)]
"""What stands before most texts."""
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Column(bytes):
    """One column of a batch; give it to a statement as `%(name)b::type[]`."""

    __slots__ = ()


Kinds = Mapping[str, Callable[[Iterable[Any]], Column]]
"""The names of columns, and the function below that makes each of them."""


def texts(values: Iterable[str | None]) -> Column:
    """Return a column of type text."""
    return _column(TEXT, [_NULL if value is None else _text(value.encode()) for value in values])


def _text(encoded: bytes) -> bytes:
    size = len(encoded)
    return (_LENGTHS[size] if size < len(_LENGTHS) else _length(size)) + encoded


def byteas(values: Iterable[bytes]) -> Column:
    """Return a column of type bytea."""
    return _column(BYTEA, [_length(len(value)) + value for value in values])


def int4s(values: Iterable[int]) -> Column:
    """Return a column of type integer; raises struct.error beyond 32 bits."""
    return _column(INT4, [_int4(4, value) for value in values])


def int8s(values: Iterable[int]) -> Column:
    """Return a column of type bigint; raises struct.error beyond 64 bits."""
    return _column(INT8, [_int8(8, value) for value in values])


def timestamps(values: Iterable[datetime | None]) -> Column:
    """Return a column of type timestamptz."""
    times = map(microseconds, values)
    return _column(TIMESTAMPTZ, [_NULL if time is None else _int8(8, time) for time in times])


def microseconds(time: datetime | None) -> int | None:
    """Return a time as Postgres counts it."""
    return None if time is None else (time - _EPOCH) // _MICROSECOND


def columns(kinds: Kinds, rows: Sequence[tuple[object, ...]]) -> dict[str, Column]:
    """Return rows as columns by their names; `kinds` says what each place in a row is."""
    transposed = zip(*rows, strict=True) if rows else ((),) * len(kinds)
    return {name: kind(values) for (name, kind), values in zip(kinds.items(), transposed, strict=True)}


def _column(oid: int, elements: Sequence[bytes]) -> Column:
    if not elements:
        return Column(_no_elements(0, 0, oid))
    return Column(_head(1, 0, oid, len(elements), 1) + b"".join(elements))


class _ColumnDumper(Dumper):
    """Sends a column as it is; its type is left to the cast that stands in the statement."""

    format = Format.BINARY
    oid = 0

    def dump(self, obj: Column) -> Buffer:
        return obj


psycopg.adapters.register_dumper(Column, _ColumnDumper)
