"""`petard dead edit`: an event put right, in an editor or member by member."""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from petard_worker.cli.dead.choose import IdArgument, YesOption, actor
from petard_worker.cli.dead.look import pretty, read_letter
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import talk
from petard_worker.cli.servers import reading, writing
from petard_worker.dead_letters.edit import (
    EditRefusedError,
    Setting,
    current_body,
    read_document,
    refuse_signed,
    save_edit,
    still_wrong,
    value_of,
    with_settings,
    write_document,
)
from petard_worker.postgres.dead_letters import MAX_BODY
from petard_worker.postgres.letter_finds import KeptLetter, LetterText
from petard_worker.printable import printable

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Set a member: data.sides.0.rank=1. The value is JSON, or a text."
    ),
]
UnsetOption = Annotated[
    list[str] | None, typer.Option("--unset", metavar="PATH", help="Remove a member: data.started.")
]


def edit(
    id: IdArgument,  # noqa: A002 - the name people see
    settings: SetOption = None,
    removals: UnsetOption = None,
    file: Annotated[Path | None, typer.Option("--file", help="Take the body from here; - is stdin.")] = None,
    original: Annotated[bool, typer.Option("--original", help="Take back what was edited.")] = False,
    anyway: Annotated[bool, typer.Option("--anyway", help="Keep it although it is still wrong.")] = False,
    yes: YesOption = False,
) -> None:
    """Change what a replay sends of an open letter; the original is kept. Without options in $EDITOR."""
    changes = [*map(read_setting, settings or ()), *(Setting(path, remove=True) for path in removals or ())]
    if bool(changes) + (file is not None) + original > 1:
        raise CommandFailed("one at a time: --set and --unset, --file, or --original", USAGE)
    with reading() as connection:
        letter, text = read_letter(connection, id)
    try:
        refuse_signed(text.body)
        if original:
            body, anyway = text.body, True
        elif changes:
            body = with_settings(current_body(text), changes)
        elif file is not None:
            body = read_body(file)
        else:
            body = in_editor(letter, text, anyway=anyway)
        wrong = still_wrong(letter, body, datetime.now(UTC))
        if wrong is not None and not anyway:
            raise CommandFailed(f"still wrong: {printable(str(wrong))}; nothing was saved, --anyway saves it")
        # No transaction and no connection while somebody sits at an editor.
        with writing() as connection:
            save_edit(connection, letter, text, body, actor())
    except EditRefusedError as refused:
        raise CommandFailed(printable(str(refused))) from None
    if wrong is not None:
        talk(f"still wrong: {printable(str(wrong))}")
    what = "is as it came again" if body == text.body else "is edited, the original is kept"
    talk(f"letter {id} {what}: 'petard dead replay {id}' sends it")


def read_body(file: Path) -> bytes:
    """Return what is in a file, as far as a letter may hold it; - is stdin."""
    if file == Path("-"):
        return sys.stdin.buffer.read(MAX_BODY + 1)
    with file.open("rb") as opened:
        return opened.read(MAX_BODY + 1)


def read_setting(text: str) -> Setting:
    """Return what --set says."""
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise CommandFailed(f"--set {text!a} is not PATH=VALUE", USAGE)
    return Setting(path, value_of(value))


def in_editor(letter: KeptLetter, text: LetterText, *, anyway: bool) -> bytes:
    """Return what somebody makes of the body in their editor, again and again until nothing is wrong."""
    if not sys.stdin.isatty():
        raise CommandFailed("an editor needs a terminal: say --set, --unset, --file or --original", USAGE)
    with tempfile.TemporaryDirectory(prefix="petard-edit-") as folder:
        file = Path(folder) / f"letter-{letter.id}.json"
        file.write_bytes(for_editor(current_body(text)))
        while True:
            run_editor([*editor(), str(file)])
            body = from_editor(file.read_bytes())
            wrong = still_wrong(letter, body, datetime.now(UTC))
            if wrong is None or anyway:
                return body
            talk(f"still wrong: {printable(str(wrong))}")
            if not typer.confirm("edit again?", default=True, err=True):
                return body


def editor() -> list[str]:
    """Return the command of the editor that somebody likes."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        return shlex.split(named)
    except ValueError as error:
        raise CommandFailed(f"$EDITOR is {named!a}: {error}") from None


def run_editor(command: Sequence[str]) -> None:
    """Wait until an editor ends; fail when it fails, so that nothing is saved by accident."""
    try:
        ended = subprocess.run(command, check=False)  # noqa: S603 - the user's own editor
    except OSError as error:
        raise CommandFailed(f"cannot run the editor {command[0]!a} ($EDITOR): {error.strerror}") from None
    if ended.returncode:
        raise CommandFailed(f"the editor {command[0]!a} ended with {ended.returncode}: nothing was saved")


def for_editor(body: bytes) -> bytes:
    """Return the body as people like to edit it: JSON indented, everything else as it is."""
    try:
        read_document(body)
    except EditRefusedError:
        return body
    return ("\n".join(pretty(body)) + "\n").encode()


def from_editor(edited: bytes) -> bytes:
    """Return what stands in the file as a body: JSON without the indentation, everything else as it is."""
    try:
        return write_document(read_document(edited))
    except EditRefusedError:
        return edited
