"""How results are shown: JSON for programs on stdout, tables for people, talk on stderr.

What is shown can be what strangers wrote. Nothing of it reaches a terminal that it could obey.
"""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Protocol

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from petard_schema.times import format_time
from petard_worker.printable import printable, printable_json

JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout, numbers unrounded.")]

SECONDS_BETWEEN_LINES = 2.0

talk_console = Console(stderr=True, highlight=False)


def print_json(value: object) -> None:
    """Print a value as JSON, times as RFC 3339; escaped where stdout cannot carry every name."""
    ascii_only = sys.stdout.encoding.lower() not in {"utf-8", "utf8"}
    sys.stdout.write(printable_json(json.dumps(value, ensure_ascii=ascii_only, default=plain)) + "\n")


def plain(value: object) -> object:
    """Return what JSON has no word for as text."""
    if isinstance(value, datetime):
        return format_time(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; numbers are right-aligned and rounded."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    listed = [list(row) for row in rows]
    for index, column in enumerate(columns):
        numeric = all(isinstance(row[index], (int, float)) for row in listed if row[index] is not None)
        table.add_column(printable(column), justify="right" if numeric and listed else "left")
    for row in listed:
        table.add_row(*(cell(value) for value in row))
    width = None if sys.stdout.isatty() else 200
    # A name is a name: [bold] and :heart: are no markup in it.
    Console(highlight=False, markup=False, emoji=False, width=width).print(table)


def cell(value: object) -> str:
    """Return a value as it stands in a table."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, datetime):
        return format_time(value.replace(microsecond=0))
    return printable(str(value))


def talk(message: str) -> None:
    """Say something to people; never part of the result."""
    # One message is one line, also in a log.
    talk_console.print(printable(message), soft_wrap=True, markup=False, emoji=False)


class ProgressBar(Protocol):
    """What long work tells about itself."""

    def show(self, done: int, total: int | None) -> None:
        """Say how much is done, and of how much if that is known."""
        ...


@contextmanager
def progress(what: str) -> Iterator[ProgressBar]:
    """Show how far long work is, on stderr: a bar on a terminal, else a line every few seconds."""
    if not sys.stderr.isatty():
        yield ProgressLines(what)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=talk_console) as bar:
        yield TerminalBar(bar, bar.add_task(what, total=None))


@dataclass(frozen=True)
class TerminalBar:
    """A bar that moves."""

    bar: Progress
    task: TaskID

    def show(self, done: int, total: int | None) -> None:
        """Move the bar."""
        self.bar.update(self.task, completed=done, total=total)


@dataclass
class ProgressLines:
    """Lines for logs and pipes."""

    what: str
    said_at: float = field(default_factory=time.monotonic)

    def show(self, done: int, total: int | None) -> None:
        """Print a line if the last one is a few seconds old."""
        if time.monotonic() - self.said_at >= SECONDS_BETWEEN_LINES:
            self.said_at = time.monotonic()
            talk(f"{self.what}: {done}" + (f" of {total}" if total is not None else ""))


def follow(what: str, steps: Iterable[int], total: int) -> int:
    """Show how far the work is while it is done, and return how much was done."""
    done = 0
    with progress(what) as bar:
        for count in steps:
            done += count
            bar.show(done, total)
    return done
