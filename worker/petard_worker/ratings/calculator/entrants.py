"""Which players take part, read from text: `NAME:RATING`, or the rows name and rating of a table."""

from collections.abc import Iterable

from petard_worker.ratings.calculator.accepted import CalculatorInputError, read_rating, shortened, stripped
from petard_worker.ratings.calculator.columns import (
    COMMA,
    Cells,
    Column,
    Layout,
    Row,
    number_text,
    read_table,
)
from petard_worker.ratings.calculator.field import Entrant

PLAYERS = Layout(
    columns=(Column("name", others=("player",)), Column("rating", others=("elo",))),
    example=("Alice", "1850"),
)


def read_entrant(text: str) -> Entrant:
    """Return the player that `NAME:RATING` stands for; a name may hold colons itself."""
    name, colon, rating = stripped(text, "player").rpartition(":")
    if not colon:
        raise CalculatorInputError(f"player is {shortened(text)}, but must be NAME:RATING such as Alice:1850")
    return Entrant(name.strip(), read_rating(rating, f"the rating of {shortened(name)}"))


def read_entrants(rows: Iterable[Row], separator: str = COMMA) -> list[Entrant]:
    """Return the players of the rows, whose cells were separated so; the first row may name the columns.

    Raises CalculatorInputError, which names the line, what was there, and what was expected.
    """

    def read(cells: Cells) -> Entrant:
        name, rating = cells["name"], number_text(cells["rating"], separator)
        return Entrant(name, read_rating(rating, f"the rating of {shortened(name)}"))

    return read_table(rows, PLAYERS, read, separator)
