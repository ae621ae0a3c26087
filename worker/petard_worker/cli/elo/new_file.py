"""Where does a drawing go? Into a file, over one that is there only by force, or to standard output."""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from petard_worker.cli.errors import CommandFailed
from petard_worker.cli.output import talk

STDOUT = Path("-")

ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")]


def write_new(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file, or leave what is there as it is, and say so; - is standard output."""
    if path == STDOUT:
        sys.stdout.buffer.write(content)
        return
    try:
        if not force:
            create(path, content)
        elif path.is_file():
            replace(path.resolve(), content)
        else:
            path.write_bytes(content)  # not there yet, or a pipe, which nothing can be moved over
    except FileExistsError:
        raise CommandFailed(f"{path} exists already: --force overwrites it") from None
    except OSError as error:
        raise CommandFailed(f"cannot write {path}: {error.strerror}") from None
    talk(f"wrote {path}")


def create(path: Path, content: bytes) -> None:
    """Make a new file of all of the content, or none; raises FileExistsError."""
    with path.open("xb") as file:
        try:
            file.write(content)
            file.flush()
        except OSError:
            path.unlink()
            raise


def replace(path: Path, content: bytes) -> None:
    """Put all of the content in the place of a file: it is written beside it, and moved; rights stay."""
    beside = path.with_name(f".petard.{os.getpid()}")
    try:
        beside.write_bytes(content)
        shutil.copymode(path, beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
