"""`petard elo simulate-field`."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from petard_worker.cli.elo.arguments import calculator_errors
from petard_worker.cli.elo.facts import as_facts, note, percent, rating
from petard_worker.cli.elo.table_file import read_table_file
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption, print_json, print_table, progress
from petard_worker.ratings.calculator import (
    MOST_PLAYERS,
    USUAL_DRAWS,
    USUAL_RUNS,
    Entrant,
    Forecast,
    Setting,
    check_count,
    check_setting,
    read_count,
    read_entrant,
    read_entrants,
    read_number,
    simulate_round_robin,
    simulate_swiss,
)

if TYPE_CHECKING:
    from petard_worker.pool_field import PoolField

FORMATS = ("single", "double", "swiss")
USUAL_TOP = 16
MOST_PLACES_SHOWN = 8
NOBODY = (
    "who plays? Name at least two players with --player NAME:RATING, a file of them with --csv, or a pool"
    " with --pool"
)
LARGEST_SEED = 2**53
"""Whole numbers beyond it are not all told apart when they are read."""


def simulate_field(
    player: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:RATING", help="A player; as often as needed. With --pool NAME alone will do."
        ),
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Players from a file; - is stdin.")] = None,
    pool: Annotated[
        str | None, typer.Option(metavar="POOL", help="Players with their ratings from this pool.")
    ] = None,
    top: Annotated[
        str | None,
        typer.Option(metavar="N", help="The first so many of the pool's board.", show_default=str(USUAL_TOP)),
    ] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format", metavar="single|double|swiss", help="All play all, once or twice; or Swiss."
        ),
    ] = "single",
    rounds: Annotated[
        str | None, typer.Option(metavar="N", help="Rounds of a Swiss.", show_default=False)
    ] = None,
    runs: Annotated[str, typer.Option(metavar="N", help="Tournaments to play.")] = str(USUAL_RUNS),
    draws: Annotated[
        str, typer.Option(metavar="SHARE", help="Share of games that equals draw, 0 to 1.")
    ] = str(USUAL_DRAWS),
    seed: Annotated[str, typer.Option(metavar="N", help="The same seed gives the same numbers.")] = "1",
    json: JsonOption = False,
) -> None:
    """Play a tournament many times by chance, to see how likely which place is for whom.

    Games end by the logistic expected scores; fewer are drawn the less equal two players are. Equal points
    share their places. In a Swiss, players of equal points meet, the upper half against the lower by rating,
    nobody twice if it can be avoided; without colours, so a simpler pairing than FIDE's. If their number is
    odd, in every round the last by points and rating who has had none yet gets a bye: no game, and a full
    point. Lots, drawn anew in every tournament, order those of the same rating.

    With --pool the players are the first of its board, or those named by --player, as if their ratings were
    known exactly. Ratings are shown, and typed as NAME:RATING, as the pool shows them (JSON: in its points).
    The odds are ten to one for as many points as weigh as much as 400 of Elo in the pool's system (JSON:
    `elo_point` is what one point of Elo comes to).

    A file has lines of name and rating, or names its columns in its first line: name (or player) and rating
    (or elo), in any order. They are separated by ; or tab or comma: by whichever, in this order, the first
    line has. Where it is no comma, numbers may have a decimal comma.

    Example: petard elo simulate-field --player Ann:1900 --player Bob:1800 --player Cem:1750 --format double
    """
    with calculator_errors():
        setting = read_setting(runs, draws)
        number = check_count(read_count(seed, "the seed"), 0, LARGEST_SEED, "the seed")
        play = simulation(format_, None if rounds is None else read_count(rounds, "the number of rounds"))
        first = None if top is None else check_count(read_count(top, "--top"), 2, MOST_PLAYERS, "--top")
        field = chosen_field(pool, player, csv, first)
        entrants = typed_entrants(player, csv) if field is None else list(field.players)
        if field is not None:
            setting = setting._replace(scale=field.scale)
        uniform = random.Random(number).random  # noqa: S311 - a forecast is no secret
        with progress("tournaments") as bar:
            found = play(entrants, setting, uniform, lambda done: bar.show(done, setting.runs))
    if json:
        facts = {"format": format_, "seed": number, **found._asdict(), "players": as_facts(found.players)}
        print_json(
            facts if field is None else facts | {"pool": field.pool.name, "elo_point": field.elo_point}
        )
    else:
        show(found, shown_ratings(field, found))


def read_setting(runs: str, draws: str) -> Setting:
    """Return how to play, as the options say. Raises CalculatorInputError."""
    count, share = read_count(runs, "the number of runs"), read_number(draws, "the share of draws")
    return check_setting(Setting(count, share))


def chosen_field(
    pool: str | None, players: list[str] | None, csv: Path | None, top: int | None
) -> "PoolField | None":
    """Return the players of the pool, or None where none is named."""
    if pool is None:
        if top is not None:
            raise CommandFailed("--top goes with --pool, whose board it is of", USAGE)
        return None
    if csv is not None:
        raise CommandFailed("--csv goes without --pool: the file has the ratings", USAGE)
    if players and top is not None:
        raise CommandFailed("give --top or --player, not both", USAGE)
    from petard_worker.cli.elo.in_pool import named_in_pool, top_of_pool  # noqa: PLC0415

    return named_in_pool(pool, players) if players else top_of_pool(pool, top or USUAL_TOP)


def typed_entrants(players: list[str] | None, csv: Path | None) -> list[Entrant]:
    """Return the players of the options and of the file."""
    typed = [read_entrant(text) for text in players or ()]
    if csv is None:
        if not typed:
            raise CommandFailed(NOBODY, USAGE)
        return typed
    table = read_table_file(csv)
    return [*typed, *read_entrants(table.rows, table.separator)]


def shown_ratings(field: "PoolField | None", found: Forecast) -> list[str]:
    """Return the ratings of the players as people see them."""
    if field is None:
        return [rating(line.rating) for line in found.players]
    from petard_worker.display import displayed  # noqa: PLC0415

    return [rating(displayed(field.pool, line.rating)) for line in found.players]


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


def show(found: Forecast, ratings: list[str]) -> None:
    """Print the chances of all players, whose ratings are shown as these."""
    listed = min(len(found.players), MOST_PLACES_SHOWN)
    print_table(
        ("player", "rating", "points", "mean place", *(f"place {place}" for place in range(1, listed + 1))),
        (
            (
                line.name,
                shown,
                f"{line.points:.2f}",
                f"{line.mean_place:.2f}",
                *(percent(chance) for chance in line.places[:listed]),
            )
            for line, shown in zip(found.players, ratings, strict=True)
        ),
    )
    note(
        f"{found.runs} tournaments of {found.rounds} rounds; equals draw {100 * found.draws:g} % of games;"
        f" chances are right within {100 * found.margin:.2g} percentage points 19 times in 20"
    )
    if listed < len(found.players):
        note(f"places after {listed}: --json has all")
