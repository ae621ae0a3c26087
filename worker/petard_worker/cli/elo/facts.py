"""How results of the calculator are written: as facts for programs, as words for people."""

import textwrap
from collections.abc import Iterable, Sequence

import typer

from petard_worker.cli.elo.sentences import assumed, k_why, note_on
from petard_worker.cli.output import print_table, talk
from petard_worker.ratings.calculator import Assumption, KFactor, Performance, PerformanceNote

LINE = 80
"""Letters of a line of text."""


def as_facts(value: object) -> object:
    """Return a result for JSON: what has names as an object, what follows each other as a list.

    Keys that are sentences to people have them beside them, as `why`.
    """
    if isinstance(value, KFactor):
        return {**value._asdict(), "why": k_why(value)}
    if isinstance(value, Assumption):
        return {"key": value, "why": assumed(value)}
    if isinstance(value, Performance):
        return performance_facts(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: as_facts(part) for name, part in value._asdict().items()}
    if isinstance(value, (tuple, list)):
        return [as_facts(part) for part in value]
    return value


def performance_facts(found: Performance) -> dict[str, object]:
    """Return performance ratings for JSON; their notes need their numbers to be said."""

    def noted(note: PerformanceNote | None) -> dict[str, str] | None:
        return None if note is None else {"key": note, "why": note_on(found, note)}

    facts = {name: as_facts(part) for name, part in found._asdict().items()}
    return {**facts, "fide_note": noted(found.fide_note), "exact_note": noted(found.exact_note)}


def rating(value: float) -> str:
    """Return a rating as people read it: with hundredths where it has any."""
    return f"{round(value, 2) + 0.0:.2f}".removesuffix(".00")  # + 0.0 makes -0.0 a plain 0


def points(change: float) -> str:
    """Return a change with its sign."""
    return f"{round(change, 2) + 0.0:+.2f}"


def percent(share: float) -> str:
    """Return a share from 0 to 1 in per cent; what is not quite 0 or 1 does not look it."""
    if 0 < share < 0.0001:
        return "< 0.01 %"
    if 0.9999 < share < 1:
        return "> 99.99 %"
    return f"{100 * share:.2f} %"


Table = tuple[Sequence[str], Iterable[Sequence[object]]]
"""The names of the columns, and the rows."""


def print_tables(*tables: Table) -> None:
    """Print tables with an empty line between two of them."""
    for number, (columns, rows) in enumerate(tables):
        if number:
            typer.echo()
        print_table(columns, rows)


def print_reasons(factors: Iterable[KFactor], assumption: Assumption | None) -> None:
    """Print below tables why their K are what they are, each reason once, and what was assumed."""
    typer.echo()
    for why in dict.fromkeys(map(k_why, factors)):
        typer.echo(why)
    if assumption is not None:
        typer.echo(assumed(assumption))


def wrapped(text: str) -> str:
    """Return a text in lines that every terminal has place for; words stay whole."""
    return textwrap.fill(text, LINE, break_long_words=False, break_on_hyphens=False)


def note(message: str) -> None:
    """Say what the reader of a result should know."""
    talk(f"note: {message}")
