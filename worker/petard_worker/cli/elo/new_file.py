"""Where does a drawing go? Into a file, over one that is there only by force, or to standard output."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from petard_worker.cli.errors import CommandFailed
from petard_worker.cli.output import talk

STDOUT = Path("-")

ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")]


def write_new(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file and say so; - is standard output."""
    if path == STDOUT:
        sys.stdout.buffer.write(content)
        return
    try:
        with path.open("wb" if force else "xb") as file:
            file.write(content)
    except FileExistsError:
        raise CommandFailed(f"{path} exists already: --force overwrites it") from None
    talk(f"wrote {path}")
