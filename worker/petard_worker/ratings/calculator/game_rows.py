"""Which games the rows of a table stand for: opponent's rating, result and, if wanted, period."""

from collections.abc import Iterable

from petard_worker.ratings.calculator.accepted import (
    CalculatorInputError,
    PlayedGame,
    read_rating,
    read_score,
    shortened,
)
from petard_worker.ratings.calculator.columns import (
    COMMA,
    Cells,
    Column,
    Layout,
    Row,
    number_text,
    read_table,
)
from petard_worker.ratings.calculator.tournament import PeriodGame

LONGEST_LABEL = 64
GAMES = Layout(
    columns=(
        # Where a column has the opponent's rating, one named opponent has the opponent's name.
        Column("opponent", rather=("rating", "elo")),
        Column("result", others=("score",)),
        Column("period", needed=False),
    ),
    example=("1800", "win", "2026-01"),
)


def read_games(rows: Iterable[Row], separator: str = COMMA) -> list[PeriodGame]:
    """Return the games of the rows, whose cells were separated so; the first row may name the columns.

    Raises CalculatorInputError, which names the line, what was there, and what was expected.
    """

    def read(cells: Cells) -> PeriodGame:
        opponent = read_rating(number_text(cells["opponent"], separator), "opponent")
        return PeriodGame(
            PlayedGame(opponent, read_score(cells["result"])), read_label(cells.get("period", ""))
        )

    return read_table(rows, GAMES, read, separator)


def read_label(text: str) -> str:
    """Return the name of a period, which is shown as it is."""
    if len(text) > LONGEST_LABEL or not text.isprintable():
        raise CalculatorInputError(
            f"the period is {shortened(text)}, but must be up to {LONGEST_LABEL} printable characters"
        )
    return text
