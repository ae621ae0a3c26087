"""`petard elo pdf`."""

import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from petard_worker.cli.elo.arguments import (
    AgeOption,
    GamesOption,
    KOption,
    OpponentArgument,
    PeakOption,
    RatingArgument,
    calculator_errors,
    chosen_k,
)
from petard_worker.cli.elo.new_file import ForceOption, write_new
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.ratings.calculator import change, read_rating, read_score

Language = Literal["en", "fr"]
LANGUAGES: tuple[Language, ...] = ("en", "fr")


def pdf(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write; - is standard output.")],
    me: RatingArgument,
    opponent: OpponentArgument,
    result: Annotated[str, typer.Argument(metavar="win|draw|loss", help="Also w, d, l, 1, 0.5, 1/2, ½, 0.")],
    my_name: Annotated[str, typer.Option("--me", metavar="NAME", help="Whose rating it is.")] = "",
    opponent_name: Annotated[
        str, typer.Option("--opponent", metavar="NAME", help="Who the opponent was.")
    ] = "",
    k: KOption = "auto",
    games: GamesOption = None,
    age: AgeOption = None,
    peak: PeakOption = None,
    day: Annotated[
        str | None,
        typer.Option(
            "--date", metavar="YYYY-MM-DD", help="The date on the page.", show_default="today, in UTC"
        ),
    ] = None,
    lang: Annotated[str, typer.Option(metavar="|".join(LANGUAGES), help="The language of the page.")] = "en",
    force: ForceOption = False,
) -> None:
    """Write one page, a PDF, about one game: the numbers of `petard elo change`, the curve, the formulas.

    The same input with the same date gives the same bytes.

    Example: petard elo pdf sheet.pdf 1200 1800 win --me Ann --opponent Bob --date 2026-11-30 --lang fr
    """
    from petard_worker.sheet.elo_sheet import SheetUnavailable, sheet_bytes  # noqa: PLC0415
    from petard_worker.sheet.rated_game import Heading, sheet_of  # noqa: PLC0415

    heading = Heading(my_name, opponent_name, read_day(day), read_language(lang))
    with calculator_errors():
        choice = chosen_k(k, games, age, peak)
        found = change(
            read_rating(me), read_rating(opponent, "the opponent's rating"), read_score(result), choice
        )
    try:
        sheet = sheet_of(found, choice, heading)
    except ValueError as error:
        raise CommandFailed(str(error), USAGE) from None
    try:
        content = sheet_bytes(sheet)
    except SheetUnavailable as error:
        raise CommandFailed(str(error)) from None
    write_new(out, content, force=force)


def read_day(text: str | None) -> date:
    """Return the day that --date names, or today."""
    if text is None:
        return datetime.now(UTC).date()
    try:
        # fromisoformat alone also takes weeks, and dates without dashes.
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise CommandFailed(f"--date {text!a} is no date of the form YYYY-MM-DD, such as 2026-11-30", USAGE)


def read_language(text: str) -> Language:
    """Return the language that --lang names."""
    for language in LANGUAGES:
        if text == language:
            return language
    raise CommandFailed(f"--lang {text!a} is none of {', '.join(LANGUAGES)}", USAGE)
