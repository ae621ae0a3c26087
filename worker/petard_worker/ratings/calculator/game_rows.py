"""Which games the rows of a table stand for: opponent, result and, if wanted, period."""

from collections.abc import Iterable, Sequence

from petard_worker.ratings.calculator.accepted import (
    CalculatorInputError,
    PlayedGame,
    read_rating,
    read_score,
    shortened,
)
from petard_worker.ratings.calculator.tournament import PeriodGame

COLUMNS = ("opponent", "result", "period")
EXPECTED = "opponent,result or opponent,result,period, such as 1800,win,2026-01"

Row = tuple[int, Sequence[str]]
"""The number of a line, and its cells."""


def read_games(rows: Iterable[Row]) -> list[PeriodGame]:
    """Return the games of the rows; empty ones are left out, and the first may name the columns.

    Raises CalculatorInputError, which names the line, the value, and what was expected.
    """
    games: list[PeriodGame] = []
    columns: tuple[str, ...] = COLUMNS
    first = True
    for line, row in rows:
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        named = tuple(cell.lower() for cell in cells)
        if first and "opponent" in named:
            columns = check_columns(line, named)
        else:
            games.append(read_row(line, cells, columns))
        first = False
    return games


def check_columns(line: int, named: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the columns if the games can be read from them."""
    if {"opponent", "result"} <= set(named) <= set(COLUMNS) and len(set(named)) == len(named):
        return named
    raise CalculatorInputError(
        f"line {line}: columns are {shortened(','.join(named))},"
        " but must be opponent, result and, if wanted, period"
    )


def read_row(line: int, cells: Sequence[str], columns: tuple[str, ...]) -> PeriodGame:
    """Return the game of one row."""
    if not 2 <= len(cells) <= len(columns):
        raise CalculatorInputError(
            f"line {line}: {shortened(','.join(cells))} has {len(cells)} cells, but must be {EXPECTED}"
        )
    of = dict(zip(columns, cells, strict=False))
    try:
        result = PlayedGame(read_rating(of.get("opponent", ""), "opponent"), read_score(of.get("result", "")))
    except CalculatorInputError as error:
        raise CalculatorInputError(f"line {line}: {error}") from None
    return PeriodGame(result, of.get("period", ""))
