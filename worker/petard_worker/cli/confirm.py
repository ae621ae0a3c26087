"""Asking before something dangerous is done."""

import sys

import typer

from petard_worker.cli.errors import USAGE, CommandFailed


def confirm(what: str, *, yes: bool) -> None:
    """Ask before doing something dangerous; a script says --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandFailed(f"--yes is needed to {what} when nobody can be asked", USAGE)
    if not typer.confirm(f"{what}?", err=True):
        raise CommandFailed("nothing was done")
