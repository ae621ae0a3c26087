"""The rows of a file of cells, as spreadsheets write them.

The separator is the first of semicolon, tab and comma that stands, outside quotes, in the first line that is
not empty; that is a comma where none does. A first line `sep=;`, which spreadsheets understand, names it.
"""

import csv
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from petard_worker.cli.errors import USAGE, CommandFailed

SEPARATORS = (";", "\t", ",")
QUOTED = re.compile(r'"[^"]*("|$)')
NAMED = re.compile(r'"?sep=([;\t,])"?', re.IGNORECASE)
LINE_END = re.compile("\r\n|\r|\n")
BYTES_LINE_END = re.compile(b"\r\n|\r|\n")
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
LONGEST_SHOWN = 40
SAVE_AS = (
    "save it as UTF-8: in Excel the file type 'CSV UTF-8', in LibreOffice the character set Unicode (UTF-8)"
)


class TableFile(NamedTuple):
    """A table as its file has it."""

    separator: str
    rows: Iterator[tuple[int, list[str]]]
    """With the numbers of their lines. Reading on raises CommandFailed where a line is no CSV."""


def read_table_file(file: Path) -> TableFile:
    """Return the table of a CSV file; - is standard input. Raises CommandFailed, OSError."""
    text = decoded(sys.stdin.buffer.read() if file == Path("-") else file.read_bytes(), file)
    first = next((line for line in LINE_END.split(text) if line.strip()), "")
    named = NAMED.fullmatch(first.strip(" "))
    separator = named.group(1) if named else separator_of(first)
    return TableFile(separator, rows_of(text, separator, file, skipping=first if named else None))


def separator_of(line: str) -> str:
    """Return what separates the cells of a table with this first line."""
    outside = QUOTED.sub("", line)
    return next((separator for separator in SEPARATORS if separator in outside), ",")


def rows_of(
    text: str, separator: str, file: Path, *, skipping: str | None
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with the numbers of their lines, without the line that names the separator."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    try:
        for row in rows:
            if skipping is not None and any(row):
                skipping = None
                continue
            yield rows.line_num, row
    except csv.Error as error:
        raise CommandFailed(f"line {rows.line_num} of {file} is no CSV: {error}", USAGE) from None


def decoded(content: bytes, file: Path) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with its mark."""
    if content.startswith(UTF_16_MARKS):
        try:
            text = content.decode("utf-16")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" not in text:
            return text
        raise CommandFailed(f"{file} begins like UTF-16 text and is none: {SAVE_AS}", USAGE)
    if b"\0" in content:
        raise CommandFailed(f"{file} is not UTF-8 text: {SAVE_AS}", USAGE)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        number, line = next(
            (number, line)
            for number, line in enumerate(BYTES_LINE_END.split(content), 1)
            if not is_utf_8(line)
        )
        raise CommandFailed(
            f"line {number} of {file} is not UTF-8 text: {line.strip()[:LONGEST_SHOWN]!r}; {SAVE_AS}", USAGE
        ) from None


def is_utf_8(line: bytes) -> bool:
    """Return whether a line is UTF-8 text; no character of it holds the byte of a line end."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
