"""The command line: a translator between people or scripts and one function call each."""

import sys


def main() -> None:
    """Run `petard`."""
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

    # Names of every script stand in tables; a terminal that cannot show one shows its code point.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    with plain_errors():
        app()
