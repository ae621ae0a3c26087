"""Which players take part, read from text: `NAME:RATING`, or the rows name and rating of a table."""

from collections.abc import Iterable

from petard_worker.ratings.calculator.accepted import CalculatorInputError, read_rating, shortened
from petard_worker.ratings.calculator.field import Entrant
from petard_worker.ratings.calculator.game_rows import Row

COLUMNS = ("name", "rating")
EXPECTED = "name,rating, such as Alice,1850"


def read_entrant(text: str) -> Entrant:
    """Return the player that `NAME:RATING` stands for; a name may hold colons itself."""
    name, colon, rating = text.rpartition(":")
    if not colon:
        raise CalculatorInputError(f"player is {shortened(text)}, but must be NAME:RATING such as Alice:1850")
    return Entrant(name.strip(), read_rating(rating, f"the rating of {shortened(name)}"))


def read_entrants(rows: Iterable[Row]) -> list[Entrant]:
    """Return the players of the rows; empty ones are left out, and the first may name the columns.

    Raises CalculatorInputError, which names the line, the value, and what was expected.
    """
    entrants: list[Entrant] = []
    columns: tuple[str, ...] = COLUMNS
    first = True
    for line, row in rows:
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        named = tuple(cell.lower() for cell in cells)
        if first and sorted(named) == sorted(COLUMNS):
            columns = named
        else:
            entrants.append(read_row(line, cells, columns))
        first = False
    return entrants


def read_row(line: int, cells: list[str], columns: tuple[str, ...]) -> Entrant:
    """Return the player of one row."""
    if len(cells) != len(columns):
        raise CalculatorInputError(
            f"line {line}: {shortened(','.join(cells))} has {len(cells)} cells, but must be {EXPECTED}"
        )
    of = dict(zip(columns, cells, strict=True))
    try:
        return Entrant(of["name"], read_rating(of["rating"], f"the rating of {shortened(of['name'])}"))
    except CalculatorInputError as error:
        raise CalculatorInputError(f"line {line}: {error}") from None
