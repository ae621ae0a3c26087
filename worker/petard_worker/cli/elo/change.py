"""`petard elo change`."""

from typing import Annotated

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
from petard_worker.cli.elo.facts import as_facts, note, percent, points, print_reasons, print_tables, rating
from petard_worker.cli.elo.performance import PERFORMANCE_COLUMNS, performance_rows
from petard_worker.cli.output import JsonOption, print_json
from petard_worker.ratings.calculator import (
    RESULTS,
    GameEffect,
    Moves,
    read_k,
    read_rating,
    read_score,
)
from petard_worker.ratings.calculator import change as change_of

UNKNOWN = "what the opponent's rating does depends on the opponent's own K: --opponent-k"


def change(
    me: RatingArgument,
    opponent: OpponentArgument,
    result: Annotated[str, typer.Argument(metavar="win|draw|loss", help="Also w, d, l, 1, 0.5, 1/2, ½, 0.")],
    k: KOption = "auto",
    games: GamesOption = None,
    age: AgeOption = None,
    peak: PeakOption = None,
    opponent_k: Annotated[
        str | None,
        typer.Option(metavar="auto|fide|calculator|N", help="The opponent's K, to show that change too."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show what one game does to a rating: expected score, change, new rating, K and why, performance.

    By two formulas: plain, R + K (S - E) with the logistic E; and FIDE's for standard games, where the
    difference of ratings counts at most 400 (the true one from 2650 on), E is from table 8.1.2, and the
    change of a period is rounded. Rapid and blitz have rules of their own.

    Example: petard elo change 1200 1800 win --k 40
    """
    with calculator_errors():
        choice = chosen_k(k, games, age, peak)
        found = change_of(
            read_rating(me),
            read_rating(opponent, "the opponent's rating"),
            read_score(result),
            choice,
            None if opponent_k is None else read_k(opponent_k),
        )
    if json:
        print_json(as_facts(found))
    else:
        show(found)


def show(found: GameEffect) -> None:
    """Print what became of the player, and of the opponent if that is known."""
    by = ("plain (logistic)", "FIDE")
    sides = [found.player] if found.opponent is None else [found.player, found.opponent]
    tables = [
        ((who, *by), move_rows(moves, other))
        for who, moves, other in zip(
            ("player", "opponent"), sides, (found.opponent_rating, found.player.rating), strict=False
        )
    ]
    print_tables(*tables, (PERFORMANCE_COLUMNS, performance_rows(found.performance)))
    assumption = next((moves.assumed for moves in sides if moves.assumed is not None), None)
    print_reasons((moves.k for moves in sides), assumption)
    if found.opponent is None:
        note(UNKNOWN)


def move_rows(moves: Moves, opponent: float) -> list[tuple[str, str, str]]:
    """Return the lines about one of the two."""
    plain, fide = moves.plain, moves.fide
    k = f"{moves.k.k:g}"
    against = f"{rating(moves.rating)} against {rating(opponent)}: {RESULTS[moves.score]}"
    return [
        ("game", against, against),
        ("expected score", percent(plain.expected), percent(fide.expected)),
        ("K", k, k),
        ("change", points(plain.change), points(fide.change)),
        ("new rating", rating(plain.new), rating(fide.new)),
        ("rounded", rating(plain.rounded), rating(fide.rounded)),
    ]
