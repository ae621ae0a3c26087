"""Which letters a command line means, and whether it is meant."""

import getpass
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, TypeVar

import typer

from petard_schema import DeadReason
from petard_schema.times import parse_time
from petard_worker.cli.durations import duration
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import talk
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.letter_finds import LetterFilter, read_letters

T = TypeVar("T")

LARGEST_ID = 2**63 - 1

IdArgument = Annotated[int, typer.Argument(metavar="ID", min=1, max=LARGEST_ID)]
IdsArgument = Annotated[
    list[int] | None,
    typer.Argument(metavar="[ID]...", min=1, max=LARGEST_ID, help="Only these letters."),
]
PoolOption = Annotated[str | None, typer.Option("--pool", help="Only this pool.")]
ReasonOption = Annotated[
    str | None, typer.Option("--reason", help="Only this reason, such as bad_field or bad_field:time.")
]
RefusedForOption = Annotated[
    str | None, typer.Option("--refused-for", help="Only this reason, such as bad_field or bad_field:time.")
]
SourceOption = Annotated[str | None, typer.Option("--source", help="Only events of this source.")]
TracebackOption = Annotated[
    str | None, typer.Option("--traceback", help="Only this exception of ours, by the hash of its traceback.")
]
OlderOption = Annotated[
    str | None, typer.Option("--older", help="Only letters seen last so long ago or longer, such as 3d.")
]
NewerOption = Annotated[
    str | None, typer.Option("--newer", help="Only letters seen again since then, such as 2h.")
]
SinceOption = Annotated[str | None, typer.Option("--since", help="Only letters seen last from this time on.")]
UntilOption = Annotated[str | None, typer.Option("--until", help="Only letters seen last before this time.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
AllOption = Annotated[bool, typer.Option("--all", help="Every open letter that fits, or simply every one.")]


def chosen_filter(
    *,
    ids: Sequence[int] | None = None,
    pool: str | None = None,
    reason: str | None = None,
    source: str | None = None,
    traceback_hash: str | None = None,
    older: str | None = None,
    newer: str | None = None,
    since: str | None = None,
    until: str | None = None,
    state: str | None = "open",
) -> LetterFilter:
    """Return the filter that options say, or refuse what no letter can fit."""
    check_reason(reason)
    now = datetime.now(UTC)
    from_times = [option_time("--since", since), option_ago("--newer", newer, now)]
    to_times = [option_time("--until", until), option_ago("--older", older, now)]
    return LetterFilter(
        pool,
        reason,
        state,
        ids or None,
        source,
        traceback_hash,
        max((time for time in from_times if time), default=None),
        min((time for time in to_times if time), default=None),
    )


def explicit(wanted: LetterFilter, *, all_open: bool) -> LetterFilter:
    """Return the filter, or refuse one that would mean everything by accident."""
    if not all_open and wanted == LetterFilter(state=wanted.state):
        raise CommandFailed("say which: IDs, --pool, --reason, another filter, or --all", USAGE)
    return wanted


def left_out(connection: Connection, ids: Sequence[int] | None) -> str:
    """Return which of the letters that were named are not open, in words: nothing is done about those."""
    states = {letter.id: letter.state for letter in read_letters(connection, ids or [])}
    found = {one: states.get(one, "there is none") for one in ids or []}
    return ", ".join(f"{one} ({state})" for one, state in found.items() if state != "open")


def some_fit(count: int, left: str) -> None:
    """Fail when no letter fits, and say which of those that were named do not."""
    if not count:
        raise CommandFailed("no open dead letter fits" + (f": {left}" if left else ""))
    if left:
        talk(f"left out, not open: {left}")


def in_words(wanted: LetterFilter) -> str:
    """Return what is wanted, for the record."""
    facts = {name: value for name, value in wanted._asdict().items() if value is not None and name != "state"}
    if ids := facts.get("ids"):
        assert isinstance(ids, list)
        listed = ",".join(str(one) for one in ids[:20])
        facts["ids"] = listed if len(ids) <= 20 else f"{listed},… ({len(ids)})"
    return " ".join(f"{name}={value}" for name, value in facts.items()) or "all"


def check_reason(reason: str | None) -> None:
    """Refuse a reason that no letter can have."""
    if reason is not None and not is_reason(reason):
        raise CommandFailed(f"reason {reason!a} is none of {', '.join(DeadReason)}", USAGE)


def is_reason(text: str) -> bool:
    """Return whether a letter can have been refused for this."""
    return text.partition(":")[0] in set(DeadReason)


def option_time(name: str, text: str | None) -> datetime | None:
    """Return the time that an option says."""
    return None if text is None else read_option(name, text, parse_time)


def option_ago(name: str, text: str | None, now: datetime) -> datetime | None:
    """Return the time that was as long ago as an option says."""
    return None if text is None else read_option(name, text, lambda text: now - duration(text))


def read_option(name: str, text: str, read: Callable[[str], T]) -> T:
    """Return what the text says, or refuse it by the name of its option."""
    try:
        return read(text)
    except (ValueError, OverflowError) as error:
        raise CommandFailed(f"{name} {text!a}: {error}", USAGE) from None


def actor() -> str:
    """Return who is at the keyboard, for the record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
