"""What several commands of the calculator take, and how it is read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.ratings.calculator import (
    CalculatorInputError,
    KChoice,
    read_count,
    read_k,
    read_number,
    read_rating,
)

RatingArgument = Annotated[str, typer.Argument(metavar="RATING")]
OpponentArgument = Annotated[str, typer.Argument(metavar="OPPONENT")]
KOption = Annotated[
    str,
    typer.Option(
        "--k",
        metavar="auto|fide|calculator|N",
        help="K: by FIDE's rule (auto is the same), by that of many online calculators, or a number.",
    ),
]
GamesOption = Annotated[
    str | None,
    typer.Option("--games", metavar="N", help="Games rated before, for FIDE's K.", show_default="30 or more"),
]
AgeOption = Annotated[
    str | None,
    typer.Option(
        "--age",
        metavar="YEARS",
        help="Age at the end of the calendar year, for FIDE's K.",
        show_default="a grown-up",
    ),
]
PeakOption = Annotated[
    str | None,
    typer.Option(
        "--peak", metavar="RATING", help="Highest rating so far, for FIDE's K.", show_default="the rating"
    ),
]


@contextmanager
def calculator_errors() -> Iterator[None]:
    """Turn what the calculator refuses into a usage error."""
    try:
        yield
    except CalculatorInputError as refused:
        raise CommandFailed(str(refused), USAGE) from None


def chosen_k(k: str, games: str | None, age: str | None, peak: str | None) -> KChoice:
    """Return how K is found, as the options say. Raises CalculatorInputError."""
    return read_k(
        k,
        None if games is None else read_count(games, "the number of games"),
        None if age is None else read_number(age, "the age"),
        None if peak is None else read_rating(peak, "the highest rating"),
    )
