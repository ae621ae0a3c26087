"""Rows of a batch in the form in which Postgres takes an array of them: binary, of a composite type.

An array per column (columns.py) is dearer for the server where rows are wide: it unnests each of them by
itself and puts every value into a store of its own before it joins them to rows.
"""

import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, cast
from weakref import WeakKeyDictionary

from petard_worker.postgres.columns import BOOL, FLOAT8, INT4, INT8, TEXT, TIMESTAMPTZ, Column
from petard_worker.postgres.connect import Connection

Row = tuple[object, ...]
"""Its texts, then its values: numbers, booleans, and times in `columns.microseconds`."""
TextField = Callable[[str | None], bytes]
Fields = Mapping[str, "TextField | int"]
"""The fields of a type: texts first, with what makes a field of each; behind them the OIDs of the others."""

_FORMATS = {INT4: "i", INT8: "q", FLOAT8: "d", BOOL: "b", TIMESTAMPTZ: "q"}
_array_head = Struct("!iiIii").pack
_no_rows = Struct("!iiI").pack
_row_head = Struct("!ii").pack
_field_head = Struct("!Ii").pack
_NULL = -1


def text_field(text: str | None) -> bytes:
    """Return a text as one field of a row."""
    if text is None:
        return _field_head(TEXT, _NULL)
    encoded = text.encode()
    return _field_head(TEXT, len(encoded)) + encoded


known_text_field = lru_cache(maxsize=16_384)(text_field)
"""For texts that come again and again: players, sources, types."""


class RowType:
    """A composite type: texts first, then numbers, booleans and times."""

    def __init__(self, name: str, fields: Fields, nullable: Sequence[str] = ()) -> None:
        """`nullable` names the fields behind the texts that may be NULL."""
        self.name = name
        self.names = tuple(fields)
        self._texts = [kind for kind in fields.values() if not isinstance(kind, int)]
        self._oids = [kind for kind in fields.values() if isinstance(kind, int)]
        self._nullable = [self.names.index(field) for field in nullable]
        self._oid_in: WeakKeyDictionary[Connection, int] = WeakKeyDictionary()

    def array(self, connection: Connection, rows: Iterable[Row]) -> Column:
        """Return the rows as an array of this type: such together that are NULL in the same places.

        Raises OverflowError where an integer has too many bits, TypeError where a value is of another type or
        NULL and may not be.
        """
        rows = list(rows)
        if not rows:
            return Column(_no_rows(0, 0, self._oid(connection)))
        elements = b"".join(map(self._elements, self._alike(rows)))
        return Column(_array_head(1, 0, self._oid(connection), len(rows), 1) + elements)

    def _alike(self, rows: Sequence[Row]) -> Iterable[Sequence[Row]]:
        """Return the rows in groups of such that are NULL in the same places."""
        nulls = [[row[place] is None for row in rows] for place in self._nullable]
        if all(len(set(column)) == 1 for column in nulls):
            return (rows,)
        groups: defaultdict[tuple[bool, ...], list[Row]] = defaultdict(list)
        for row, places in zip(rows, zip(*nulls, strict=True), strict=True):
            groups[places].append(row)
        return groups.values()

    def _elements(self, rows: Sequence[Row]) -> bytes:
        """Return the elements of the array."""
        columns = list(zip(*rows, strict=True))
        texts = [list(map(field, column)) for field, column in zip(self._texts, columns, strict=False)]
        joined = texts[0] if len(texts) == 1 else list(map(b"".join, zip(*texts, strict=True)))
        values, size = self._values(columns)
        fields, starts = len(self.names), range(0, len(values), size)
        return b"".join(
            [
                _row_head(4 + len(text) + size, fields) + text + values[start : start + size]
                for text, start in zip(joined, starts, strict=True)
            ]
        )

    def _values(self, columns: Sequence[Sequence[Any]]) -> tuple[bytes, int]:
        """Return all that stands behind the texts, row by row, and how many bytes of it are a row.

        Made column by column and byte by byte, and not value by value.
        """
        row, places = b"", []
        for place, oid in enumerate(self._oids, len(self._texts)):
            column = columns[place]
            if column[0] is None and place in self._nullable:
                row += _field_head(oid, _NULL)
                continue
            numbers = array(_FORMATS[oid], column)
            if sys.byteorder == "little":
                numbers.byteswap()
            row += _field_head(oid, numbers.itemsize)
            places.append((len(row), numbers.itemsize, numbers.tobytes()))
            row += bytes(numbers.itemsize)
        size = len(row)
        made = bytearray(row * len(columns[0]))
        for start, width, values in places:
            for byte in range(width):
                made[start + byte :: size] = values[byte::width]
        return bytes(made), size

    def _oid(self, connection: Connection) -> int:
        """Return the type's OID, which every database chooses for itself."""
        oid = self._oid_in.get(connection)
        if oid is None:
            row = connection.execute("SELECT %(name)s::regtype::oid::bigint", {"name": self.name}).fetchone()
            assert row is not None
            oid = self._oid_in[connection] = cast("int", row[0])
        return oid
