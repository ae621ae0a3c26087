"""Which cell of a table is which: by the names of the columns in its first row, else by where it stands.

The first row that is not empty names the columns if one of its cells is a name that is looked for and none is
a number. Then the order is free, and columns of other names are left out. Names are read in small or capital
letters.

A comma in a number is a decimal comma where the cells are separated by something else: `1500,5` there is 1500
and a half. What could mean thousands there, `1,500` or `1.500`, is refused.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from petard_worker.ratings.calculator.accepted import CalculatorInputError, shortened
from petard_worker.ratings.parameters import as_number

Row = tuple[int, Sequence[str]]
"""The number of a line, and its cells."""
Cells = Mapping[str, str]
"""What stands in a row, by the first name of its column; empty where the row ends before."""
Found = TypeVar("Found")

COMMA = ","
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")
HALVES = {("0", "5"), ("0", "50")}
"""Cells that a decimal comma makes of one half where commas separate."""
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}[,.][0-9]{3}")


class Column(NamedTuple):
    """A column that is looked for."""

    name: str
    others: tuple[str, ...] = ()
    """Other names of it."""
    rather: tuple[str, ...] = ()
    """Names that it goes by where they are there, before all others."""
    needed: bool = True

    @property
    def described(self) -> str:
        """Return its names in words."""
        also = " or ".join((*self.others, *self.rather))
        return f"{self.name} (or {also})" if also else self.name


class Layout(NamedTuple):
    """What a table is expected to hold."""

    columns: tuple[Column, ...]
    """In the order they stand in where nothing names them; those that are needed first."""
    example: tuple[str, ...]

    def described(self, separator: str) -> str:
        """Return the order of the cells and a row as it could be, in words."""
        least = [column.name for column in self.columns if column.needed]
        names = [column.name for column in self.columns]
        orders = [separator.join(least)] + ([separator.join(names)] if names != least else [])
        shown = " or ".join(orders).replace("\t", "<tab>")
        return f"{shown}, such as {separator.join(self.example)}".replace("\t", "<tab>")

    def names_described(self) -> str:
        """Return the names that a first row may give the columns, in words."""
        needed = ", ".join(column.described for column in self.columns if column.needed)
        others = ", ".join(column.described for column in self.columns if not column.needed)
        return f"{needed} and, if wanted, {others}" if others else needed


class Header(NamedTuple):
    """What the first row says."""

    places: dict[str, int]
    """Where a column stands."""
    width: int
    """How many columns there are."""


def read_table(
    rows: Iterable[Row], layout: Layout, read: Callable[[Cells], Found], separator: str = COMMA
) -> list[Found]:
    """Return what `read` makes of the rows; empty ones are left out, and the first may name the columns.

    Raises CalculatorInputError, which names the line, what was there, and what was expected.
    """
    found: list[Found] = []
    header: Header | None = None
    first = True
    for line, row in rows:
        cells = without_empty_end([cell.strip() for cell in row])
        if not cells:
            continue
        try:
            if first and is_header(cells, layout):
                header = Header(header_places(cells, layout, separator), len(cells))
            elif header is None:
                found.append(read(by_place(cells, layout, separator)))
            else:
                found.append(read(by_name(cells, layout, header, separator)))
        except CalculatorInputError as error:
            names = first and not holds_number(cells) and not is_header(cells, layout)
            hint = f"; to name the columns it needs {layout.names_described()}" if names else ""
            raise CalculatorInputError(f"line {line}: {error}{hint}") from None
        first = False
    return found


def number_text(cell: str, separator: str) -> str:
    """Return a number as the calculator reads it: with a point where the table has a decimal comma."""
    if separator == COMMA:
        return cell
    if THOUSANDS.fullmatch(cell):
        plain = cell.replace(COMMA, "").replace(".", "")
        raise CalculatorInputError(
            f"{shortened(cell)} could be {plain} or {cell.replace(COMMA, '.')}: write {plain}, or one with"
            " other decimals"
        )
    return cell.replace(COMMA, ".") if DECIMAL_COMMA.fullmatch(cell) else cell


def without_empty_end(cells: list[str]) -> list[str]:
    """Return the cells up to the last that is not empty: spreadsheets write as many in every row."""
    while cells and not cells[-1]:
        cells = cells[:-1]
    return cells


def is_header(cells: Sequence[str], layout: Layout) -> bool:
    """Return whether the first row names the columns."""
    known = {name for column in layout.columns for name in (column.name, *column.others, *column.rather)}
    return not holds_number(cells) and any(cell.lower() in known for cell in cells)


def holds_number(cells: Sequence[str]) -> bool:
    """Return whether one of the cells is a number."""
    return any(as_number(cell.replace(COMMA, "."), whole=False) is not None for cell in cells)


def header_places(cells: Sequence[str], layout: Layout, separator: str) -> dict[str, int]:
    """Return where every column stands that the first row names."""
    named = [cell.lower() for cell in cells]
    places: dict[str, int] = {}
    for column in layout.columns:
        rather = [place for place, name in enumerate(named) if name in column.rather]
        there = rather or [place for place, name in enumerate(named) if name in (column.name, *column.others)]
        if len(there) > 1:
            raise CalculatorInputError(
                f"columns are {shortened(separator.join(cells))}, but only one may be {column.described}"
            )
        if there:
            places[column.name] = there[0]
    if not all(column.name in places for column in layout.columns if column.needed):
        raise CalculatorInputError(
            f"columns are {shortened(separator.join(cells))}, but must be {layout.names_described()}"
        )
    return places


def by_place(cells: Sequence[str], layout: Layout, separator: str) -> dict[str, str]:
    """Return the cells of a row by the columns in which they stand."""
    least = len([column for column in layout.columns if column.needed])
    if separator == COMMA and len(cells) > least:
        refuse_halves(cells, len(cells) - 2)
    if least <= len(cells) <= len(layout.columns):
        return {
            column.name: cells[place] if place < len(cells) else ""
            for place, column in enumerate(layout.columns)
        }
    raise CalculatorInputError(
        f"{shortened(separator.join(cells))} has {counted(len(cells))},"
        f" but must be {layout.described(separator)}"
    )


def refuse_halves(cells: Sequence[str], place: int) -> None:
    """Refuse a row in which two cells may be one half, cut in two at its decimal comma."""
    if tuple(cells[place : place + 2]) in HALVES:
        half = COMMA.join(cells[place : place + 2])
        raise CalculatorInputError(
            f"{shortened(COMMA.join(cells))} could have one cell {half}, or two: write 0.5 or loss,"
            " or separate cells by ;"
        )


def by_name(cells: Sequence[str], layout: Layout, header: Header, separator: str) -> dict[str, str]:
    """Return the cells of a row by the columns that the first row named."""
    row = shortened(separator.join(cells))
    # More cells than names are a comma too many: of a number, say.
    if len(cells) > header.width:
        raise CalculatorInputError(f"{row} has {counted(len(cells))}, but the first row names {header.width}")
    if separator == COMMA and "result" in header.places:
        refuse_halves(cells, header.places["result"])
    found = {name: cells[place] if place < len(cells) else "" for name, place in header.places.items()}
    empty = [column.name for column in layout.columns if column.needed and not found[column.name]]
    if empty:
        raise CalculatorInputError(f"{row} has nothing for {empty[0]}, as the first row names the columns")
    return found


def counted(cells: int) -> str:
    """Return how many cells there are, in words."""
    return "1 cell" if cells == 1 else f"{cells} cells"
