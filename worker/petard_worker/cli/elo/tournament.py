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
    read_rows,
    usage_errors,
)
from petard_worker.cli.elo.drawing import sparkline
from petard_worker.cli.elo.facts import as_facts, percent, points, rating
from petard_worker.cli.elo.performance import performance_rows
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption, print_json, print_table
from petard_worker.ratings.calculator import (
    RESULTS,
    PeriodGame,
    Tournament,
    fide_tournament,
    plain_tournament,
    read_game,
    read_games,
    read_k,
    read_rating,
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
        typer.Option(
            "--csv", help="Games from a file instead: opponent,result or opponent,result,period; - is stdin."
        ),
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

    plain: the rating moves after every game. fide: rating and K hold for a period, K times games is at most
    700, the difference counts at most 400 (the true one from 2650 on), E is from table 8.1.2, and the sum of
    a period is rounded to whole points, halves away from zero. All games are one period unless the file names
    periods.

    Example: petard elo tournament 1600 --game 1800:win --game 1650:draw --game 1500:win --mode fide
    """
    if mode not in MODES:
        raise CommandFailed(f"--mode {mode!a} is none of {', '.join(MODES)}", USAGE)
    with usage_errors():
        choice = read_k(k, games, age, None if peak is None else read_rating(peak, "the highest rating"))
        found = MODES[mode](read_rating(start, "the starting rating"), chosen_games(game, csv), choice)
    if json:
        print_json({"mode": mode, **found._asdict(), **lists(found)})
    else:
        show(found)


def lists(found: Tournament) -> dict[str, object]:
    """Return the parts of a tournament that JSON has as objects."""
    return {name: as_facts(getattr(found, name)) for name in ("games", "periods", "record", "performance")}


def chosen_games(games: list[str] | None, csv: Path | None) -> list[PeriodGame]:
    """Return the games of the options or of the file."""
    if bool(games) == (csv is not None):
        raise CommandFailed("name games with --game OPPONENT:RESULT, or a file of them with --csv", USAGE)
    if csv is not None:
        return read_games(read_rows(csv))
    return [PeriodGame(read_game(game)) for game in games or ()]


def show(found: Tournament) -> None:
    """Print the games, the periods if ratings hold for them, and what it comes to."""
    print_table(
        ("game", "period", "opponent", "result", "rated as", "expected", "change", "rating", "K"),
        (
            (
                line.number,
                line.period or None,
                rating(line.opponent),
                RESULTS[line.score],
                rating(line.rated_as),
                percent(line.expected),
                points(line.change),
                rating(line.after),
                line.k.why,
            )
            for line in found.games
        ),
    )
    if found.periods:
        print_table(
            ("period", "games", "start", "change", "rounded", "end", "K"),
            (
                (
                    line.period or "all games",
                    line.games,
                    rating(line.start),
                    points(line.change),
                    f"{line.rounded:+d}",
                    rating(line.end),
                    line.k.why,
                )
                for line in found.periods
            ),
        )
    record = found.record
    print_table(
        ("", "all games"),
        [
            ("record", f"{record.wins} won, {record.draws} drawn, {record.losses} lost"),
            ("points", f"{record.points:g} of {record.games}"),
            ("net change", points(found.net)),
            ("final rating", rating(found.final)),
            ("ratings", sparkline(found.ratings)),
            *([("assumed", found.assumed)] if found.assumed else []),
        ],
    )
    print_table(("performance", "rating", "by"), performance_rows(found.performance))
