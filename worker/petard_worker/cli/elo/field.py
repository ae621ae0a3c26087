"""`petard elo simulate-field`."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from petard_worker.cli.elo.arguments import read_rows, usage_errors
from petard_worker.cli.elo.facts import as_facts, note, percent, rating
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption, print_json, print_table, progress
from petard_worker.ratings.calculator import (
    MOST_RUNS,
    USUAL_DRAWS,
    USUAL_RUNS,
    Entrant,
    Forecast,
    Setting,
    simulate_round_robin,
    simulate_swiss,
)
from petard_worker.ratings.calculator.entrants import read_entrant, read_entrants

FORMATS = ("single", "double", "swiss")
MOST_PLACES_SHOWN = 8


def simulate_field(
    player: Annotated[
        list[str] | None, typer.Option(metavar="NAME:RATING", help="A player; as often as needed.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Players from a file: name,rating a line; - is stdin.")
    ] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format", metavar="single|double|swiss", help="All play all, once or twice; or Swiss."
        ),
    ] = "single",
    rounds: Annotated[int | None, typer.Option(help="Rounds of a Swiss.", show_default=False)] = None,
    runs: Annotated[int, typer.Option(min=1, max=MOST_RUNS, help="Tournaments to play.")] = USUAL_RUNS,
    draws: Annotated[
        float, typer.Option(min=0, max=1, help="Share of games that equals draw.")
    ] = USUAL_DRAWS,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 1,
    json: JsonOption = False,
) -> None:
    """Play a tournament many times by chance, to see how likely which place is for whom.

    Games end by the logistic expected scores; fewer are drawn the less equal two players are. Equal points
    share their places. In a Swiss, players of equal points meet, the upper half against the lower by rating,
    nobody twice if it can be avoided; without colours, so a simpler pairing than FIDE's.

    Example: petard elo simulate-field --player Ann:1900 --player Bob:1800 --player Cem:1750 --format double
    """
    with usage_errors():
        entrants = [
            *(read_entrant(text) for text in player or ()),
            *(() if csv is None else read_entrants(read_rows(csv))),
        ]
        play = simulation(format_, rounds)
        uniform = random.Random(seed).random  # noqa: S311 - a forecast is no secret
        with progress("tournaments") as bar:
            found = play(entrants, Setting(runs, draws), uniform, lambda done: bar.show(done, runs))
    if json:
        print_json({"format": format_, "seed": seed, **found._asdict(), "players": as_facts(found.players)})
    else:
        show(found)


Simulation = Callable[[list[Entrant], Setting, Callable[[], float], Callable[[int], None]], Forecast]


def simulation(format_: str, rounds: int | None) -> Simulation:
    """Return what plays a format."""
    if format_ not in FORMATS:
        raise CommandFailed(f"--format {format_!a} is none of {', '.join(FORMATS)}", USAGE)
    if (format_ == "swiss") != (rounds is not None):
        raise CommandFailed("--rounds goes with --format swiss, which needs it", USAGE)
    if rounds is not None:
        return lambda entrants, setting, uniform, report: simulate_swiss(
            entrants, rounds, setting, uniform, report
        )
    games = FORMATS.index(format_) + 1
    return lambda entrants, setting, uniform, report: simulate_round_robin(
        entrants, setting, uniform, report, games=games
    )


def show(found: Forecast) -> None:
    """Print the chances of all players."""
    listed = min(len(found.players), MOST_PLACES_SHOWN)
    print_table(
        ("player", "rating", "points", "mean place", *(f"place {place}" for place in range(1, listed + 1))),
        (
            (
                line.name,
                rating(line.rating),
                f"{line.points:.2f}",
                f"{line.mean_place:.2f}",
                *(percent(chance) for chance in line.places[:listed]),
            )
            for line in found.players
        ),
    )
    note(
        f"{found.runs} tournaments of {found.rounds} rounds; equals draw {100 * found.draws:g} % of games;"
        f" chances are right within {100 * found.margin:.2g} percentage points 19 times in 20"
    )
    if listed < len(found.players):
        note(f"places after {listed}: --json has all")
