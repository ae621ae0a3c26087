"""`petard elo performance`."""

from pathlib import Path
from typing import Annotated

import typer

from petard_worker.cli.elo.arguments import calculator_errors
from petard_worker.cli.elo.facts import as_facts, print_tables, rating
from petard_worker.cli.elo.sentences import note_on
from petard_worker.cli.elo.table_file import read_table_file
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption, print_json
from petard_worker.ratings.calculator import (
    EXACT_FORMULA,
    FIDE_PERFORMANCE_FORMULA,
    LINEAR_FORMULA,
    Performance,
    PlayedGame,
    read_game,
    read_games,
)
from petard_worker.ratings.calculator import performance as performance_of

NOT_DEFINED = "none"
PERFORMANCE_COLUMNS = ("performance", "rating", "by")


def performance(
    games: Annotated[
        list[str] | None, typer.Argument(metavar="OPPONENT:RESULT", help="Such as 1800:win 1650:draw.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Games from a file; - is stdin.")] = None,
    json: JsonOption = False,
) -> None:
    """Show which rating the results of some games are worth, by three definitions.

    linear: mean of the opponents + 400 (W - L) / N. FIDE: mean + dp of table 8.1.1, where all won or all lost
    is 800 away notionally. exact: the rating whose logistic expected score equals the points; where all games
    are won or lost there is none.

    A file has lines of opponent's rating and result, or names its columns in its first line: opponent (or
    rating, elo) and result (or score), in any order. They are separated by ; or tab or comma: by whichever,
    in this order, the first line has. Where it is no comma, numbers may have a decimal comma.

    Example: petard elo performance 1800:win 1650:draw 1700:loss
    """
    with calculator_errors():
        found = performance_of(chosen_games(games, csv))
    if json:
        print_json(as_facts(found))
        return
    record = found.record
    counts = (record.games, record.wins, record.draws, record.losses, f"{record.points:g}")
    print_tables(
        (
            ("games", "won", "drawn", "lost", "points", "mean opponent"),
            [(*counts, rating(found.average_opponent))],
        ),
        (PERFORMANCE_COLUMNS, performance_rows(found)),
    )


def chosen_games(games: list[str] | None, csv: Path | None) -> list[PlayedGame]:
    """Return the games of the arguments or of the file."""
    if games and csv is not None:
        raise CommandFailed("give games as OPPONENT:RESULT or a file of them with --csv, not both", USAGE)
    if csv is not None:
        table = read_table_file(csv)
        return [game.result for game in read_games(table.rows, table.separator)]
    if not games:
        raise CommandFailed("name games as OPPONENT:RESULT, or a file of them with --csv", USAGE)
    return [read_game(game) for game in games]


def performance_rows(found: Performance) -> list[tuple[str, str, str]]:
    """Return the lines about all three definitions."""
    exact = NOT_DEFINED if found.exact is None else rating(found.exact)
    by = EXACT_FORMULA if found.exact_note is None else note_on(found, found.exact_note)
    notionally = "" if found.fide_note is None else " notionally"
    read = f"p = {found.p:.2f}, dp = {found.dp:+d}{notionally}"
    return [
        ("linear", rating(found.linear), LINEAR_FORMULA),
        ("FIDE", rating(found.fide), f"{FIDE_PERFORMANCE_FORMULA}: {read}"),
        ("exact", exact, by),
    ]
