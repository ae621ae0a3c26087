"""`petard dead discard` and `purge`: letters that nobody wants any more, and the end of those."""

import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from petard_worker.cli.confirm import confirm
from petard_worker.cli.dead.choose import (
    AllOption,
    IdsArgument,
    NewerOption,
    OlderOption,
    PoolOption,
    RefusedForOption,
    SinceOption,
    SourceOption,
    TracebackOption,
    UntilOption,
    YesOption,
    actor,
    chosen_filter,
    explicit,
    is_reason,
    left_out,
    option_ago,
    some_fit,
)
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import follow, talk
from petard_worker.cli.servers import writing
from petard_worker.dead_letters.discard import discard as mark_discarded
from petard_worker.dead_letters.purge import opened_export
from petard_worker.dead_letters.purge import purge as delete_closed
from petard_worker.postgres.letter_changes import ClosedFilter, count_closed
from petard_worker.postgres.letter_finds import find_ids

MOST_REASON = 1_000


def discard(
    ids: IdsArgument = None,
    pool: PoolOption = None,
    refused_for: RefusedForOption = None,
    source: SourceOption = None,
    traceback_hash: TracebackOption = None,
    older: OlderOption = None,
    newer: NewerOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    all_open: AllOption = False,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, in words.")] = None,
    yes: YesOption = False,
) -> None:
    """Mark dead letters as done with, and why; they stay in the table."""
    wanted = chosen_filter(
        ids=ids,
        pool=pool,
        reason=refused_for,
        source=source,
        traceback_hash=traceback_hash,
        older=older,
        newer=newer,
        since=since,
        until=until,
    )
    explicit(wanted, all_open=all_open)
    check_why(reason)
    why = reason or ask_why()
    with writing() as connection:
        chosen = find_ids(connection, wanted)
        some_fit(len(chosen), left_out(connection, ids))
        confirm(f"discard {len(chosen)} dead letters", yes=yes)
        count = follow("discarded", mark_discarded(connection, chosen, actor(), why), len(chosen))
    talk(f"discarded {count}")


def check_why(reason: str | None) -> None:
    """Refuse words that say nothing, or that are meant to choose letters."""
    if reason is None:
        return
    if is_reason(reason):
        raise CommandFailed(
            f"--reason says in words why you discard; letters refused for it: --refused-for {reason!a}", USAGE
        )
    if not reason.strip():
        raise CommandFailed(f"--reason {reason!a} says nothing: why are they discarded?", USAGE)
    if len(reason) > MOST_REASON:
        raise CommandFailed(f"--reason has {len(reason)} characters, the limit is {MOST_REASON}", USAGE)


def ask_why() -> str:
    """Ask for the reason; a script has to say it."""
    if not sys.stdin.isatty():
        raise CommandFailed("--reason TEXT is needed: why are they discarded?", USAGE)
    why = str(typer.prompt("why are they discarded", err=True))
    check_why(why)
    return why


def purge(
    older: Annotated[str, typer.Option("--older", help="Closed so long ago or longer, such as 90d.")],
    pool: PoolOption = None,
    state: Annotated[str | None, typer.Option(help="Only replayed, or only discarded ones.")] = None,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write them to FILE first, one a line.")
    ] = None,
    yes: YesOption = False,
) -> None:
    """Delete letters that were replayed or discarded long ago; open ones never."""
    if state not in {None, "replayed", "discarded"}:
        raise CommandFailed(f"--state {state!a} is neither replayed nor discarded", USAGE)
    if export == Path("-"):
        raise CommandFailed("--export wants a file that stays; standard output is none", USAGE)
    before = option_ago("--older", older, datetime.now(UTC))
    assert before is not None
    wanted = ClosedFilter(before, pool, state)
    with writing() as connection, ExitStack() as stack:
        total = count_closed(connection, wanted)
        if not total:
            talk("no closed dead letter is that old")
            return
        kept = f" after writing them to {export}" if export else " for good, without --export"
        confirm(f"delete {total} closed dead letters{kept}", yes=yes)
        file = stack.enter_context(opened_export(export)) if export else None
        count = follow("purged", delete_closed(connection, wanted, file), total)
    talk(f"purged {count}" + (f", kept in {export}" if export else ""))
