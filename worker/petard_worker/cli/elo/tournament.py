"""`petard elo tournament`."""

from pathlib import Path
from typing import Annotated

import typer

from petard_worker.cli.elo.arguments import (
    AgeOption,
    GamesOption,
    KOption,
    PeakOption,
    RatingArgument,
    calculator_errors,
    chosen_k,
)
from petard_worker.cli.elo.drawing import sparkline
from petard_worker.cli.elo.facts import as_facts, note, percent, points, print_reasons, print_tables, rating
from petard_worker.cli.elo.performance import PERFORMANCE_COLUMNS, performance_rows
from petard_worker.cli.elo.table_file import read_table_file
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption, print_json
from petard_worker.ratings.calculator import (
    RESULTS,
    GameLine,
    PeriodGame,
    PeriodLine,
    Tournament,
    fide_tournament,
    plain_tournament,
    read_game,
    read_games,
    read_rating,
)

BELOW_FLOOR = (
    "{period}: FIDE calls players below 1400 unrated (7.2.1), so {end} would be on no list of FIDE's;"
    " later periods go on from it all the same"
)
MODES = {"plain": plain_tournament, "fide": fide_tournament}


def tournament(
    start: RatingArgument,
    game: Annotated[
        list[str] | None,
        typer.Option(metavar="OPPONENT:RESULT", help="A game, such as 1800:win; as often as needed."),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", help="Games from a file instead; - is stdin."),
    ] = None,
    mode: Annotated[
        str, typer.Option(metavar="plain|fide", help="Rate game by game, or by FIDE's rules in periods.")
    ] = "plain",
    k: KOption = "auto",
    games: GamesOption = None,
    age: AgeOption = None,
    peak: PeakOption = None,
    json: JsonOption = False,
) -> None:
    """Show what the games of a tournament do to a rating, game by game, and the performance.

    plain: the rating moves after every game. fide: rating and K hold for a period of standard games, K times
    games is at most 700, the difference counts at most 400 (the true one from 2650 on), E is from table
    8.1.2, and the sum of a period is rounded to whole points, halves away from zero. All games are one
    period unless the file names periods. Rapid and blitz have rules of their own.

    A file has lines of opponent's rating, result and, if wanted, period, or names its columns in its first
    line: opponent (or rating, elo), result (or score), period, in any order. They are separated by ; or tab
    or comma: by whichever, in this order, the first line has. Where it is no comma, numbers may have a
    decimal comma.

    Example: petard elo tournament 1600 --game 1800:win --game 1650:draw --game 1500:win --mode fide
    """
    if mode not in MODES:
        raise CommandFailed(f"--mode {mode!a} is none of {', '.join(MODES)}", USAGE)
    with calculator_errors():
        choice = chosen_k(k, games, age, peak)
        found = MODES[mode](read_rating(start, "the starting rating"), chosen_games(game, csv), choice)
    if json:
        print_json({"mode": mode} | {name: as_facts(part) for name, part in found._asdict().items()})
    else:
        show(found)


def chosen_games(games: list[str] | None, csv: Path | None) -> list[PeriodGame]:
    """Return the games of the options or of the file."""
    if games and csv is not None:
        raise CommandFailed("give games with --game or a file of them with --csv, not both", USAGE)
    if csv is not None:
        table = read_table_file(csv)
        return read_games(table.rows, table.separator)
    if not games:
        raise CommandFailed("name games with --game OPPONENT:RESULT, or a file of them with --csv", USAGE)
    return [PeriodGame(read_game(game)) for game in games]


def show(found: Tournament) -> None:
    """Print the games, the periods if ratings hold for them, and what it comes to."""
    games = ("game", "period", "opponent", "result", "rated as", "expected", "change", "rating", "K")
    periods = ("period", "games", "start", "change", "rounded", "end", "K")
    record = found.record
    everything = [
        ("record", f"{record.wins} won, {record.draws} drawn, {record.losses} lost"),
        ("points", f"{record.points:g} of {record.games}"),
        ("net change", points(found.net)),
        ("final rating", rating(found.final)),
        ("ratings", sparkline(found.ratings)),
    ]
    print_tables(
        (games, map(game_row, found.games)),
        *([(periods, map(period_row, found.periods))] if found.periods else []),
        (("", "all games"), everything),
        (PERFORMANCE_COLUMNS, performance_rows(found.performance)),
    )
    print_reasons((line.k for line in found.games), found.assumed)
    for line in found.periods:
        if line.below_floor:
            note(BELOW_FLOOR.format(period=line.period or "all games", end=rating(line.end)))


def game_row(line: GameLine) -> tuple[object, ...]:
    """Return the line of a game."""
    return (
        line.number,
        line.period or None,
        rating(line.opponent),
        RESULTS[line.score],
        rating(line.rated_as),
        percent(line.expected),
        points(line.change),
        rating(line.after),
        f"{line.k.k:g}",
    )


def period_row(line: PeriodLine) -> tuple[object, ...]:
    """Return the line of a period."""
    return (
        line.period or "all games",
        line.games,
        rating(line.start),
        points(line.change),
        f"{line.rounded:+d}",
        rating(line.end),
        f"{line.k.k:g}",
    )
