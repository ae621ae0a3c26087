"""`petard elo cite`."""

from importlib.metadata import version
from typing import Annotated

import typer

from petard_worker.cli.elo.arguments import calculator_errors
from petard_worker.cli.elo.facts import as_facts
from petard_worker.cli.output import JsonOption, print_json
from petard_worker.ratings.calculator import CITED, PETARD, Citation, alphabetical, cite_software
from petard_worker.ratings.calculator import cite as cite_system


def cite(
    style: Annotated[str, typer.Argument(metavar="apa|mla")],
    system: Annotated[
        str | None,
        typer.Argument(metavar="SYSTEM", help=f"Only this one: {', '.join(CITED)}.", show_default=False),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print how to cite the sources of the formulas, and Petard itself, in APA 7 or MLA 9.

    Example: petard elo cite apa glicko
    """
    with calculator_errors():
        found = alphabetical([citation(style, name) for name in (CITED if system is None else (system,))])
    if json:
        print_json(as_facts(found))
        return
    for entry in found:
        typer.echo(entry.text)


def citation(style: str, system: str) -> Citation:
    """Return one citation; Petard's own with the version that is installed."""
    if system == PETARD:
        return cite_software(style, version("petard"))
    return cite_system(style, system)
