"""What can go wrong with a spool, one class per decision, all of them SpoolError."""

import sqlite3
from pathlib import Path

NOT_KEPT = "The event was not kept."
MAY_BE_KEPT = "Whether the event was kept is not known: push the same event again, it counts once."


class SpoolError(Exception):
    """The spool did not do what was asked; `may_be_kept` says whether the event may be sent all the same."""

    def __init__(self, path: Path, problem: str, *, may_be_kept: bool = False) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem
        self.may_be_kept = may_be_kept

    def __str__(self) -> str:
        return f"spool {self.path} {self.problem}"


class SpoolFull(SpoolError):  # noqa: N818 - what happened, in the words that the README uses
    """There is no room: the events of this call were not kept, all others are.

    For example:

        try:
            producer.push(event)
        except SpoolFull as full:
            log.error("%s", full)  # names the limit, what is held, the file and the remedy
    """

    def __init__(self, path: Path, *, limit: int, held: int, asked: int) -> None:
        super().__init__(
            path,
            f"is full: it holds {held} of at most {limit} bytes, {asked} more were to be kept. {NOT_KEPT} "
            "Push it again when Redis takes events (Producer.spooled() says why not), or raise spool_limit",
        )
        self.limit = limit
        self.held = held
        self.asked = asked


class SpoolBusy(SpoolError):  # noqa: N818 - what happened, in the words that the README uses
    """The disk or another process took longer than `block_at_most`: push the same event again."""


class SpoolUnusable(SpoolError):  # noqa: N818 - what happened, in the words that the README uses
    """The file cannot be read or written, and no second attempt helps before somebody has looked at it."""


def is_busy(error: sqlite3.Error) -> bool:
    """Say whether another connection has the file locked."""
    return primary_code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def spool_error(path: Path, error: sqlite3.Error, *, may_be_kept: bool) -> SpoolError:
    """Return what an error of sqlite3 means for the user."""
    if is_busy(error):
        return SpoolBusy(path, f"is locked by another program ({error})", may_be_kept=may_be_kept)
    problem, remedy = MEANINGS.get(primary_code(error), ("cannot be used", "look at the disk and the file"))
    return SpoolUnusable(path, f"{problem} ({error}): {remedy}", may_be_kept=may_be_kept)


def primary_code(error: sqlite3.Error) -> int:
    """Return the kind of an error; the upper bytes tell what SQLite was doing."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


DAMAGED = (
    "is damaged",
    "move it aside (`sqlite3 FILE .recover` reads what is left) and start with a new one",
)
NOT_WRITABLE = ("cannot be written", "this user needs the right to write the file and its folder")
MEANINGS = {
    sqlite3.SQLITE_FULL: ("cannot grow: the disk is full", "make room on it"),
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: ("is no SQLite database", "give the spool a file of its own"),
    sqlite3.SQLITE_READONLY: NOT_WRITABLE,
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "is its folder there, and may this user write in it?"),
    sqlite3.SQLITE_PERM: NOT_WRITABLE,
    sqlite3.SQLITE_IOERR: ("could not be read or written", "look at the disk"),
}
