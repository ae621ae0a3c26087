"""`petard dead list` and `show`: what is there, and what is known of one letter."""

import json as json_text
from collections.abc import Sequence
from typing import Annotated

import typer

from petard_schema import DeadReason, EventRefused
from petard_schema.parse import read_json
from petard_worker.cli.dead.choose import (
    IdArgument,
    NewerOption,
    OlderOption,
    PoolOption,
    ReasonOption,
    SinceOption,
    SourceOption,
    TracebackOption,
    UntilOption,
    chosen_filter,
)
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption, cell, print_json, print_table, talk
from petard_worker.cli.servers import reading
from petard_worker.postgres import letter_finds, letter_history
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.letter_finds import KeptLetter, LetterFilter, LetterText
from petard_worker.postgres.letter_history import Attempt, Counted, Since
from petard_worker.printable import printable

MOST_LISTED = 100_000
STATES = ("open", "replayed", "discarded", "all")
COLUMNS = ("id", "pool", "reason", "detail", "attempts", "first_seen", "last_seen", "state")
MORE = ("source", "event_id", "game", "traceback_hash", "edited_at", "closed", "discard_reason")
"""In JSON only: a table has no room for them."""


def list_command(
    pool: PoolOption = None,
    reason: ReasonOption = None,
    state: Annotated[str, typer.Option(help="open, replayed, discarded or all.")] = "open",
    source: SourceOption = None,
    traceback_hash: TracebackOption = None,
    older: OlderOption = None,
    newer: NewerOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    group: Annotated[bool, typer.Option("--group", help="Count letters of a kind.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=MOST_LISTED)] = 100,
    json: JsonOption = False,
) -> None:
    """List dead letters, oldest first, or count them by pool, reason and traceback."""
    if state not in STATES:
        raise CommandFailed(f"--state {state!r} is none of {', '.join(STATES)}", USAGE)
    wanted = chosen_filter(
        pool=pool,
        reason=reason,
        source=source,
        traceback_hash=traceback_hash,
        older=older,
        newer=newer,
        since=since,
        until=until,
        state=None if state == "all" else state,
    )
    with reading() as connection:
        shown = (list_groups if group else list_letters)(connection, wanted, limit, json)
    if shown == limit:
        talk(f"these are the first {limit}: --limit shows more")


def list_letters(connection: Connection, wanted: LetterFilter, limit: int, json: bool) -> int:
    """Print the letters that are wanted and return how many."""
    letters = letter_finds.read_letters(connection, letter_finds.find_ids(connection, wanted, limit))
    if json:
        print_json([{name: getattr(letter, name) for name in (*COLUMNS, *MORE)} for letter in letters])
    else:
        print_table(COLUMNS, ([getattr(letter, name) for name in COLUMNS] for letter in letters))
    return len(letters)


def list_groups(connection: Connection, wanted: LetterFilter, limit: int, json: bool) -> int:
    """Print the groups of the letters that are wanted, the largest first, and return how many."""
    groups = letter_finds.group_letters(connection, wanted)[:limit]
    if json:
        print_json([group._asdict() for group in groups])
    else:
        print_table(letter_finds.LetterGroup._fields, groups)
    return len(groups)


def show(id: IdArgument, json: JsonOption = False) -> None:  # noqa: A002 - the name people see
    """Show one dead letter: its body, its attempts, and what happened since."""
    with reading() as connection:
        letter, text = read_letter(connection, id)
        attempts = letter_history.read_attempts(connection, letter)
        replays = letter_history.read_replays(connection, letter)
        since = letter_history.read_since(connection, letter)
    if json:
        print_json(
            {
                **letter._asdict(),
                "body": as_text(text.body),
                "body_hex": text.body.hex(),
                "edited_body": None if text.edited is None else as_text(text.edited),
                "traceback": text.traceback,
                "attempt_log": [attempt._asdict() for attempt in attempts],
                "replays": [replay._asdict() for replay in replays],
                "since": since_for_programs(since),
            }
        )
        return
    print_table(("", str(id)), [(name, value) for name, value in letter._asdict().items()])
    section("body", pretty(text.body))
    if text.edited is not None:
        section(f"edited by {letter.edited_by}: this is what a replay sends", pretty(text.edited))
    if text.traceback is not None:
        section("traceback of the newest attempt", text.traceback.splitlines())
    section("attempts", [attempt_line(attempt) for attempt in attempts])
    if replays:
        section(
            "replays",
            [
                f"run {one.run} by {one.actor}: {one.state} {cell(one.at) if one.at else ''}"
                for one in replays
            ],
        )
    section("since", since_lines(letter, since))


def read_letter(connection: Connection, letter_id: int) -> tuple[KeptLetter, LetterText]:
    """Return a letter with its bytes, or fail when there is none."""
    letters = letter_finds.read_letters(connection, [letter_id])
    texts = letter_finds.read_texts(connection, [letter_id])
    if not letters or letter_id not in texts:
        raise CommandFailed(f"there is no dead letter {letter_id}")
    return letters[0], texts[letter_id]


def as_text(body: bytes) -> str:
    """Return bytes as text, those that are no UTF-8 as escapes."""
    return body.decode("utf-8", "backslashreplace")


def pretty(body: bytes) -> list[str]:
    """Return a body in lines, indented if it is JSON, else whole on one."""
    try:
        document = read_json(body)
    except EventRefused:
        return [as_text(body)]
    return json_text.dumps(document, indent=2, ensure_ascii=False).splitlines()


def section(title: str, lines: Sequence[str]) -> None:
    """Print a title and lines below it; nothing in them reaches the terminal but letters."""
    typer.echo(f"\n{printable(title)}")
    for line in lines:
        typer.echo(f"  {printable(line)}")


def attempt_line(attempt: Attempt) -> str:
    """Return how an attempt ended and what was done then."""
    by = " ".join(part for part in (attempt.worker, attempt.version) if part)
    line = f"{attempt.attempt}. {cell(attempt.at)} {attempt.reason}: {attempt.detail}"
    line += f" [{by}]" if by else ""
    if attempt.state == "open":
        return line
    why = f" ({attempt.discard_reason})" if attempt.discard_reason else ""
    return f"{line}; {attempt.state} by {attempt.actor}{why} {cell(attempt.closed)}"


def since_lines(letter: KeptLetter, since: Since) -> list[str]:
    """Return in sentences what became of the letter's event and game."""
    lines = []
    if letter.event_id is None or letter.source is None:
        lines.append("the event has no readable identity, so nothing can be said of it")
    elif since.event is None:
        lines.append("the event has not counted")
    elif letter.reason == DeadReason.ID_REUSED:
        counted = f"another event has counted under this source and id, {entry(since.event)}"
        lines.append(f"{counted}: edit its id, or discard it")
    else:
        lines.append(f"the event has counted, {entry(since.event)}: a replay changes nothing")
    if since.game is not None and since.game != since.event:
        event = f"event {since.game.event_id} of {since.game.source}"
        lines.append(f"the game has counted, {entry(since.game)}, by {event}")
    lines += [
        f"letter {other.id} in pool {other.pool} is of the same event: {other.reason}, {other.state},"
        f" seen {cell(other.last_seen)}"
        for other in since.letters
    ]
    return lines


def entry(counted: Counted) -> str:
    """Return where a ledger entry stands and how it ended."""
    reason = f" ({counted.reason})" if counted.reason else ""
    return f"seq {counted.seq} {counted.outcome}{reason} {cell(counted.received)}"


def since_for_programs(since: Since) -> dict[str, object]:
    """Return what became of the letter's event and game as JSON has it."""
    return {
        "event": None if since.event is None else since.event._asdict(),
        "game": None if since.game is None else since.game._asdict(),
        "letters": [letter._asdict() for letter in since.letters],
    }
