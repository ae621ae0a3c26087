"""`petard dead …`: look at dead letters, replay them, discard them."""

import getpass
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from petard_schema import DeadReason, Keys
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption, print_json, print_table, progress, talk
from petard_worker.cli.servers import reading, redis_client, writing
from petard_worker.postgres import dead_letters
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.dead_letters import KeptLetter, LetterFilter
from petard_worker.settings import load_settings

app = typer.Typer(no_args_is_help=True, help="Events that could not be accepted: inspect, replay, discard.")

MOST_AT_ONCE = 100_000

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
    limit: Annotated[int, typer.Option(min=1, max=MOST_AT_ONCE)] = 100,
    json: JsonOption = False,
) -> None:
    """List dead letters, oldest first."""
    if state not in {"open", "replayed", "discarded", "all"}:
        raise CommandFailed(f"--state {state!r} is none of open, replayed, discarded, all", USAGE)
    check_reason(reason)
    wanted = LetterFilter(pool, reason, None if state == "all" else state)
    with reading() as connection:
        letters = dead_letters.list_letters(connection, wanted, limit)
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
        letter = one_letter(dead_letters.list_letters(connection, LetterFilter(ids=[id]), 1), id)
    text = letter.body.decode("utf-8", "backslashreplace")
    facts = {key: value for key, value in letter._asdict().items() if key != "body"}
    if json:
        print_json({**facts, "body": text, "body_hex": letter.body.hex()})
    else:
        print_table(("", str(id)), [*facts.items(), ("body", ascii(text)[1:-1])])


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
        letters = chosen(connection, which(ids, pool, reason, all_open))
        confirm(f"replay {len(letters)} dead letters", yes=yes)
        keys = Keys(settings.key_prefix)
        with progress("replayed") as bar:
            for count, _ in enumerate(push_again(connection, client, keys, letters, actor()), 1):
                bar.show(count, len(letters))
    talk(f"replayed {len(letters)}: 'petard dead list' shows those that come back")


@app.command()
def discard(
    ids: IdsArgument = None,
    pool: PoolOption = None,
    reason: ReasonOption = None,
    all_open: AllOption = False,
    yes: YesOption = False,
) -> None:
    """Mark dead letters as done with; they stay in the table."""
    with writing() as connection:
        letters = chosen(connection, which(ids, pool, reason, all_open))
        confirm(f"discard {len(letters)} dead letters", yes=yes)
        count = sum(dead_letters.mark_letter(connection, letter, "discarded", actor()) for letter in letters)
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


def chosen(connection: Connection, wanted: LetterFilter) -> list[KeptLetter]:
    """Return the letters that are wanted, or fail when there are none."""
    letters = dead_letters.list_letters(connection, wanted, MOST_AT_ONCE)
    if not letters:
        raise CommandFailed("no open dead letter fits")
    return letters


def one_letter(letters: list[KeptLetter], letter_id: int) -> KeptLetter:
    """Return the letter, or fail when it does not exist."""
    if not letters:
        raise CommandFailed(f"there is no dead letter {letter_id}")
    return letters[0]


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
