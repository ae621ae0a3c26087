"""The end of dead letters that were replayed or discarded long ago: exported to disk first, then deleted.

Killed in between, what was exported stands in the file and, perhaps, still in the table: the next purge
exports it once more. Nothing is lost.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from petard_schema.times import format_time
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.letter_changes import ClosedFilter, find_closed, purge_letters
from petard_worker.postgres.letter_finds import KeptLetter, LetterText, read_letters, read_texts
from petard_worker.postgres.letter_history import read_attempts

CHUNK = 200


def purge(connection: Connection, wanted: ClosedFilter, export: BinaryIO | None = None) -> Iterator[int]:
    """Delete the closed letters that are wanted, chunk by chunk; yields how many of each chunk.

    With `export` each chunk is on disk before it is deleted. A letter that is opened again meanwhile stays.
    """
    after = 0
    while ids := find_closed(connection, wanted, after, CHUNK):
        letters = read_letters(connection, ids)
        if export is not None:
            write(connection, letters, export)
        yield purge_letters(connection, letters)
        after = ids[-1]


def write(connection: Connection, letters: list[KeptLetter], export: BinaryIO) -> None:
    """Write letters to a file, one JSON object a line, and have them on disk."""
    texts = read_texts(connection, [letter.id for letter in letters])
    for letter in letters:
        if letter.id in texts:
            record = exported(connection, letter, texts[letter.id])
            export.write(json.dumps(record, default=as_text).encode() + b"\n")
    export.flush()
    os.fsync(export.fileno())


def exported(connection: Connection, letter: KeptLetter, text: LetterText) -> dict[str, object]:
    """Return everything there is of a letter; bytes as hexadecimal digits."""
    log = read_attempts(connection, letter) if letter.attempts > 1 else []
    return {
        **letter._asdict(),
        "traceback": text.traceback,
        "body": text.body.decode("utf-8", "backslashreplace"),
        "body_hex": text.body.hex(),
        "edited_body_hex": None if text.edited is None else text.edited.hex(),
        "attempt_log": [attempt._asdict() for attempt in log],
    }


def as_text(value: object) -> str:
    """Return a time as RFC 3339: JSON has no word for it."""
    assert isinstance(value, datetime)
    return format_time(value)


@contextmanager
def opened_export(path: Path) -> Iterator[BinaryIO]:
    """Open a file to add to, for nobody else to read; its name is on disk before anything is deleted.

    A line that a killed purge has left unfinished is ended, so that the next one stands alone.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    with os.fdopen(os.open(path, flags, 0o600), "r+b") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        yield file
