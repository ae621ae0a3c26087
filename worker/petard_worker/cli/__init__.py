"""The command line: a translator between people or scripts and one function call each."""

import os
import sys
from pathlib import Path

INTERRUPTED = 130


def main() -> None:
    """Run `petard`."""
    try:
        check_streams()
        run()
    except KeyboardInterrupt:
        # Ctrl-C while the packages are still being read; later on `plain_errors` says it.
        sys.exit(INTERRUPTED)


def check_streams() -> None:
    """Put something in the place of standard streams that whoever started us has closed."""
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - open as long as we live
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.exit("petard: standard output is closed: there is nowhere to put the answer")
    # Names of every script stand in tables; a terminal that cannot show one shows its code point.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def run() -> None:
    """Run the command that the arguments name."""
    try:
        import typer  # noqa: F401, PLC0415
    except ModuleNotFoundError:
        # The base install is the client side only and has no command line.
        sys.exit(
            "petard: the commands need the worker's packages: pip install 'petard[worker]',"
            " or 'petard[worker,embedded]' for demo and up"
        )
    from petard_worker.cli.app import app  # noqa: PLC0415
    from petard_worker.cli.errors import plain_errors  # noqa: PLC0415

    with plain_errors():
        app()
