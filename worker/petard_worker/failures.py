"""Which of our own exceptions was it? Those that went wrong in the same place are one group."""

import hashlib
import traceback
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import psycopg

CODE_VERSION = version("petard")
PACKAGE = Path(__file__).parent
SCHEMA = "petard_schema"
MOST_TEXT = 8_000
HASH_LENGTH = 16


class Failure(NamedTuple):
    """An exception of ours: its group, and what to read when looking for the bug."""

    hash: str
    traceback: str


def failure_of(error: BaseException) -> Failure:
    """Return the group of an exception, and its traceback without locals.

    The group goes by the types of the exception and of its causes, and by the functions of ours that they
    came through. No line numbers, which move with every edit, no texts and values, which differ by event, and
    nothing of libraries, which have releases of their own.
    """
    text = "".join(traceback.format_exception(error))
    if len(text) > MOST_TEXT:
        # The beginning says how the event came in, the end what happened; a recursion fills the middle.
        text = f"{text[: MOST_TEXT // 4]}\n  …\n{text[-MOST_TEXT * 3 // 4 :]}"
    marks = "\n".join(mark for link in chain(error) for mark in marks_of(link))
    return Failure(hashlib.sha256(marks.encode()).hexdigest()[:HASH_LENGTH], text)


def chain(error: BaseException) -> list[BaseException]:
    """Return the exception, what caused it, what caused that, and so on."""
    links: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in links:
        links.append(link)
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return links


def marks_of(error: BaseException) -> list[str]:
    """Return what tells an exception from others: its type, Postgres' constraint, functions of ours."""
    constraint = error.diag.constraint_name if isinstance(error, psycopg.Error) else None
    # A function counts once, so that it does not matter how deep a recursion went.
    functions = dict.fromkeys(functions_of(error.__traceback__))
    return [f"{type(error).__module__}.{type(error).__qualname__} {constraint or ''}", *functions]


def functions_of(trace: TracebackType | None) -> list[str]:
    """Return the functions of ours that an exception came through, outermost first."""
    found = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if place := place_of(Path(code.co_filename)):
            found.append(f"{place}:{code.co_qualname}")
        trace = trace.tb_next
    return found


def place_of(file: Path) -> str | None:
    """Return the file's name within our packages, wherever they are installed; None if it is not ours."""
    if file.is_relative_to(PACKAGE):
        return file.relative_to(PACKAGE.parent).as_posix()
    return f"{SCHEMA}/{file.name}" if SCHEMA in file.parts else None
