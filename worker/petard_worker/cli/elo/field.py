"""`petard elo simulate-field`."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from petard_worker.ratings.calculator.field import MOST_PLAYERS

if TYPE_CHECKING:
    from petard_worker.cli.elo.in_pool import PoolField

FORMATS = ("single", "double", "swiss")
USUAL_TOP = 16
MOST_PLACES_SHOWN = 8


def simulate_field(
    player: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:RATING", help="A player; as often as needed. With --pool NAME alone will do."
        ),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Players from a file: name,rating a line; - is stdin.")
    ] = None,
    pool: Annotated[
        str | None, typer.Option(metavar="POOL", help="Players with their ratings from this pool.")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=MOST_PLAYERS,
            help="The first so many of the pool's board.",
            show_default=str(USUAL_TOP),
        ),
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

    With --pool the players are the first of its board, or those named by --player, as if their ratings were
    known exactly. Ratings are shown, and typed as NAME:RATING, as the pool shows them (JSON: in its points).
    For the chances they are divided by what weighs as much as one point of Elo in the pool's system (JSON:
    `elo_point`), since the expected scores are those of Elo's scale of 400.

    Example: petard elo simulate-field --player Ann:1900 --player Bob:1800 --player Cem:1750 --format double
    """
    play = simulation(format_, rounds)
    field = chosen_field(pool, player, csv, top)
    with usage_errors():
        entrants = typed_entrants(player, csv) if field is None else elo_entrants(field)
        uniform = random.Random(seed).random  # noqa: S311 - a forecast is no secret
        with progress("tournaments") as bar:
            found = play(entrants, Setting(runs, draws), uniform, lambda done: bar.show(done, runs))
    if json:
        facts = {"format": format_, "seed": seed, **found._asdict(), "players": as_facts(found.players)}
        print_json(facts if field is None else facts | pool_facts(field, found))
    else:
        show(found, shown_ratings(field, found))


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
    return [
        *(read_entrant(text) for text in players or ()),
        *(() if csv is None else read_entrants(read_rows(csv))),
    ]


def elo_entrants(field: "PoolField") -> list[Entrant]:
    """Return the players of a pool with ratings in points of Elo; only their differences mean anything."""
    return [Entrant(name, points / field.elo_point) for name, points in field.ratings.items()]


def pool_facts(field: "PoolField", found: Forecast) -> dict[str, object]:
    """Return what JSON says of a forecast for a pool's players, with ratings in the pool's own points."""
    players = [line._replace(rating=field.ratings[line.name]) for line in found.players]
    return {"pool": field.pool.name, "elo_point": field.elo_point, "players": as_facts(players)}


def shown_ratings(field: "PoolField | None", found: Forecast) -> list[str]:
    """Return the ratings of the players as people see them."""
    if field is None:
        return [rating(line.rating) for line in found.players]
    from petard_worker.display import displayed  # noqa: PLC0415

    return [rating(displayed(field.pool, field.ratings[line.name])) for line in found.players]


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
