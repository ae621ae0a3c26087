"""`petard dead …`: look at dead letters, replay them, discard them."""

import getpass
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from petard_schema import DeadReason, Keys
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption, print_json, print_table, progress, talk
from petard_worker.cli.servers import reading, redis_client, writing
from petard_worker.postgres import dead_letters
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.dead_letters import LetterFilter
from petard_worker.settings import load_settings

app = typer.Typer(no_args_is_help=True, help="Events that could not be accepted: inspect, replay, discard.")

MOST_LISTED = 100_000

PoolOption = Annotated[str | None, typer.Option("--pool", help="Only this pool.")]
ReasonOption = Annotated[
    str | None, typer.Option("--reason", help="Only this reason, such as bad_field or bad_field:time.")
]
LARGEST_ID = 2**63 - 1
IdArgument = Annotated[int, typer.Argument(metavar="ID", min=1, max=LARGEST_ID)]
IdsArgument = Annotated[
    list[int] | None,
    typer.Argument(metavar="[ID]...", min=1, max=LARGEST_ID, help="Only these letters."),
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
AllOption = Annotated[bool, typer.Option("--all", help="Every open letter that fits, or simply every one.")]


@app.command("list")
def list_command(
    pool: PoolOption = None,
    reason: ReasonOption = None,
    state: Annotated[str, typer.Option(help="open, replayed, discarded or all.")] = "open",
    limit: Annotated[int, typer.Option(min=1, max=MOST_LISTED)] = 100,
    json: JsonOption = False,
) -> None:
    """List dead letters, oldest first."""
    if state not in {"open", "replayed", "discarded", "all"}:
        raise CommandFailed(f"--state {state!r} is none of open, replayed, discarded, all", USAGE)
    check_reason(reason)
    wanted = LetterFilter(pool, reason, None if state == "all" else state)
    with reading() as connection:
        letters = dead_letters.read_letters(connection, dead_letters.find_ids(connection, wanted, limit))
    columns = ("id", "pool", "reason", "detail", "attempts", "first_seen", "last_seen", "state")
    if json:
        print_json([{column: getattr(letter, column) for column in columns} for letter in letters])
    else:
        print_table(columns, ([getattr(letter, column) for column in columns] for letter in letters))
    if len(letters) == limit:
        talk(f"these are the first {limit}: --limit shows more")


@app.command()
def show(id: IdArgument, json: JsonOption = False) -> None:  # noqa: A002 - the name people see
    """Show one dead letter with its body."""
    with reading() as connection:
        letters = dead_letters.read_letters(connection, [id])
        if not letters:
            raise CommandFailed(f"there is no dead letter {id}")
        body = dead_letters.read_body(connection, letters[0])
    text = body.decode("utf-8", "backslashreplace")
    facts = letters[0]._asdict()
    if json:
        print_json({**facts, "body": text, "body_hex": body.hex()})
    else:
        print_table(("", str(id)), list(facts.items()))
        typer.echo(ascii(text)[1:-1])  # whole, however long: not for a table


@app.command()
def replay(
    ids: IdsArgument = None,
    pool: PoolOption = None,
    reason: ReasonOption = None,
    all_open: AllOption = False,
    yes: YesOption = False,
) -> None:
    """Push dead letters back into the queue; one that counted meanwhile changes nothing."""
    from petard_worker.replay import replay as push_again  # noqa: PLC0415

    settings = load_settings()
    with writing() as connection, redis_client(settings) as client:
        chosen = choose(connection, which(ids, pool, reason, all_open))
        confirm(f"replay {len(chosen)} dead letters", yes=yes)
        keys = Keys(settings.key_prefix)
        count = follow("replayed", push_again(connection, client, keys, chosen, actor()), len(chosen))
    talk(f"replayed {count}: 'petard dead list' shows those that come back")


@app.command()
def discard(
    ids: IdsArgument = None,
    pool: PoolOption = None,
    reason: ReasonOption = None,
    all_open: AllOption = False,
    yes: YesOption = False,
) -> None:
    """Mark dead letters as done with; they stay in the table."""
    from petard_worker.replay import discard as mark_discarded  # noqa: PLC0415

    with writing() as connection:
        chosen = choose(connection, which(ids, pool, reason, all_open))
        confirm(f"discard {len(chosen)} dead letters", yes=yes)
        count = follow("discarded", mark_discarded(connection, chosen, actor()), len(chosen))
    talk(f"discarded {count}")


def which(ids: Sequence[int] | None, pool: str | None, reason: str | None, all_open: bool) -> LetterFilter:
    """Return the filter, or refuse one that would mean everything by accident."""
    check_reason(reason)
    if not (ids or pool or reason or all_open):
        raise CommandFailed("say which: IDs, --pool, --reason or --all", USAGE)
    return LetterFilter(pool, reason, "open", ids or None)


def check_reason(reason: str | None) -> None:
    """Refuse a reason that no letter can have."""
    if reason is not None and reason.partition(":")[0] not in set(DeadReason):
        raise CommandFailed(f"--reason {reason!r} is none of {', '.join(DeadReason)}", USAGE)


def choose(connection: Connection, wanted: LetterFilter) -> list[int]:
    """Return the ids of all letters that are wanted, or fail when there are none."""
    ids = dead_letters.find_ids(connection, wanted)
    if not ids:
        raise CommandFailed("no open dead letter fits")
    return ids


def follow(what: str, steps: Iterable[int], total: int) -> int:
    """Show how far the work is while it is done, and return how much was done."""
    done = 0
    with progress(what) as bar:
        for count in steps:
            done += count
            bar.show(done, total)
    return done


def confirm(what: str, *, yes: bool) -> None:
    """Ask before doing something dangerous; a script says --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandFailed(f"--yes is needed to {what} when nobody can be asked", USAGE)
    if not typer.confirm(f"{what}?", err=True):
        raise CommandFailed("nothing was done")


def actor() -> str:
    """Return who is at the keyboard, for the record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
