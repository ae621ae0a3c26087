"""`petard elo table`."""

from pathlib import Path
from typing import Annotated

import typer

from petard_worker.cli.elo.drawing import curve
from petard_worker.cli.elo.facts import as_facts, percent
from petard_worker.cli.output import JsonOption, print_json, print_table, talk
from petard_worker.ratings.calculator import STEP, WIDEST, expected_table
from petard_worker.ratings.calculator.expected import logistic


def table(
    step: Annotated[int, typer.Option(min=1, max=WIDEST, help="Points between two lines.")] = STEP,
    svg: Annotated[Path | None, typer.Option("--svg", help="Also draw the curve into this file.")] = None,
    json: JsonOption = False,
) -> None:
    """Show the expected scores for differences of ratings from -800 to 800, and draw the curve.

    By the logistic curve and by FIDE's table 8.1.2, for the difference as it is.

    Example: petard elo table --step 100 --svg curve.svg
    """
    rows = expected_table(step)
    if svg is not None:
        from petard_worker.sheet.elo_curve import svg_curve  # noqa: PLC0415

        svg.write_text(svg_curve(), encoding="utf-8")
        talk(f"wrote {svg}")
    if json:
        print_json(as_facts(rows))
        return
    for line in curve(logistic, WIDEST):
        typer.echo(line)
    typer.echo()
    print_table(
        ("difference", "logistic", "FIDE table 8.1.2"),
        ((row.difference, percent(row.logistic), percent(row.table)) for row in rows),
    )
