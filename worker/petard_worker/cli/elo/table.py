"""`petard elo table`."""

from pathlib import Path
from typing import Annotated

import typer

from petard_worker.cli.elo.arguments import calculator_errors
from petard_worker.cli.elo.drawing import curve
from petard_worker.cli.elo.facts import as_facts, percent
from petard_worker.cli.elo.new_file import STDOUT, ForceOption, write_new
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption, print_json, print_table
from petard_worker.ratings.calculator import STEP, WIDEST, expected_table, logistic, read_count


def table(
    step: Annotated[str, typer.Option(metavar="N", help="Points between two lines, 1 to 800.")] = str(STEP),
    svg: Annotated[
        Path | None,
        typer.Option(
            "--svg", help="Also draw the curve into this file; - is standard output, without the table."
        ),
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Show the expected scores for differences of ratings from -800 to 800, and draw the curve.

    By the logistic curve and by FIDE's table 8.1.2, for the difference as it is.

    Example: petard elo table --step 100 --svg curve.svg
    """
    with calculator_errors():
        rows = expected_table(read_count(step, "the step"))
    if svg == STDOUT and json:
        raise CommandFailed("--svg - and --json both write to standard output: give --svg a file", USAGE)
    if svg is not None:
        from petard_worker.sheet.elo_curve import svg_curve  # noqa: PLC0415

        write_new(svg, svg_curve().encode(), force=force)
    if json:
        print_json(as_facts(rows))
    elif svg != STDOUT:
        for line in curve(logistic, WIDEST):
            typer.echo(line)
        typer.echo()
        print_table(
            ("difference", "logistic", "FIDE table 8.1.2"),
            ((row.difference, percent(row.logistic), percent(row.table)) for row in rows),
        )
