"""`petard schema export`: the language of events as files."""

from pathlib import Path
from typing import Annotated

import typer

from petard_schema.export import write
from petard_worker.cli.output import talk

app = typer.Typer(no_args_is_help=True, help="The events as JSON Schemas and AsyncAPI.")


@app.command()
def export(folder: Annotated[Path, typer.Argument(help="Where the files go.")] = Path("schema")) -> None:
    """Write a JSON Schema for every message, and the AsyncAPI document."""
    for path in write(folder):
        talk(f"wrote {path}")


@app.callback()
def main() -> None:
    """Keep `export` a command of its own although it is the only one."""
