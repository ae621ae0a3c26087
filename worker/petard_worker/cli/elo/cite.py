"""`petard elo cite`."""

from importlib.metadata import version
from typing import Annotated

import typer

from petard_worker.cli.elo.arguments import calculator_errors
from petard_worker.cli.elo.facts import as_facts
from petard_worker.cli.output import JsonOption, print_json
from petard_worker.ratings.calculator import SYSTEMS, CalculatorInputError, Citation, cite_software, shortened
from petard_worker.ratings.calculator import cite as cite_system

PETARD = "petard"
CITED = (*SYSTEMS, PETARD)


def cite(
    style: Annotated[str, typer.Argument(metavar="apa|mla")],
    system: Annotated[
        str | None,
        typer.Argument(metavar=f"[{'|'.join(CITED)}]", help="Only this one.", show_default=False),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print how to cite the sources of the formulas, and Petard itself, in APA 7 or MLA 9.

    Example: petard elo cite apa glicko
    """
    with calculator_errors():
        found = [citation(style, name) for name in (CITED if system is None else (system,))]
    if json:
        print_json(as_facts(found))
        return
    for entry in found:
        typer.echo(entry.text)


def citation(style: str, system: str) -> Citation:
    """Return one citation."""
    if system == PETARD:
        return cite_software(style, "Petard", version("petard"))
    if system not in CITED:
        raise CalculatorInputError(f"system is {shortened(system)}, but must be one of {', '.join(CITED)}")
    return cite_system(style, system)
