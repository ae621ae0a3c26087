"""`petard rate`: games without a pool, rated from given states."""

import sys
from itertools import islice
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.events import FileArgument, opened, usage_errors
from petard_worker.cli.output import JsonOption, print_table, talk
from petard_worker.printable import printable_json
from petard_worker.rate import RatedChange, RatedInOrder, RatedTogether, as_answer, out_of_range
from petard_worker.rate import rate as rate_games
from petard_worker.rate_request import EXAMPLE, MAX_REQUEST_BYTES, read_request

MOST_REMARKS = 5


def rate(
    file: FileArgument = Path("-"),
    table: Annotated[bool, typer.Option("--table", help="A table for people instead of JSON.")] = False,
    example: Annotated[bool, typer.Option("--example", help="Print a request to begin with.")] = False,
    json: JsonOption = False,
) -> None:
    """Rate games from given states, with any system: a JSON request in, new states and the reasons out.

    The request names the system and its parameters, the players and where they stand, and the games: rated
    one after the other, or all as one period if `simultaneous` is true. Who is left out of the players has
    played nothing. The `players` of an answer are the `players` of the next request.

    To begin with: petard rate --example | petard rate --table
    """
    if table and json:
        raise CommandFailed("--table and --json: one or the other", USAGE)
    if example:
        sys.stdout.write(EXAMPLE)
        return
    if file == Path("-") and sys.stdin.isatty():
        talk("reading a request from the terminal; 'petard rate --example' prints one to begin with")
    with opened(file) as stream:
        raw = stream.read(MAX_REQUEST_BYTES + 1)
    request = usage_errors(lambda: read_request(raw))
    rated = usage_errors(lambda: rate_games(request))
    for remark in islice(out_of_range(rated, request), MOST_REMARKS):
        talk(remark)
    if table:
        show(rated)
    else:
        # As UTF-8 whatever the terminal speaks: that is what JSON is written in.
        answer = printable_json(dumps(as_answer(rated), ensure_ascii=False))
        sys.stdout.buffer.write(answer.encode() + b"\n")


def show(rated: RatedInOrder | RatedTogether) -> None:
    """Print what was changed as people read it, and at the end where everybody stands."""
    columns = ("player", "before", "after", "change", "rd before", "rd after", "expected", "actual")
    if isinstance(rated, RatedInOrder):
        lines = [(number, *line(change)) for number, game in enumerate(rated.games, 1) for change in game]
        print_table(("game", *columns), lines)
    else:
        print_table(columns, [line(change) for change in rated.changes])
    print_table(
        ("player", "rating", "rd", "games", "wins", "draws", "peak"),
        [
            (name, decimals(one.rating), decimals(one.rd), one.games, one.wins, one.draws, decimals(one.peak))
            for name, one in rated.players.items()
        ],
    )


def line(change: RatedChange) -> tuple[object, ...]:
    """Return the line of one player of a game or of a period."""
    before, after, result = change.before, change.after, change.result
    return (
        change.player,
        decimals(before.rating),
        decimals(after.rating),
        f"{after.rating - before.rating:+8.2f}",
        decimals(before.rd),
        decimals(after.rd),
        f"{result.expected:.3f}",
        f"{result.actual:g}",
    )


def decimals(value: float | None) -> str:
    """Return a number with two decimals, under those above it: some systems rate from 0 to 100."""
    return "-" if value is None else f"{value:8.2f}"
