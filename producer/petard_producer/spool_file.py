"""The file of a spool: how it is made and opened, and whether it is one."""

import os
import sqlite3
from pathlib import Path

from petard_producer.spool_errors import SpoolUnusable, is_busy, spool_error

APPLICATION_ID = 0x50455444
"""`PETD`, at the place in the file where `file` and others look for whose it is."""
VERSION = 1


def check_place(path: Path) -> None:
    """Raise SpoolUnusable where something else than a spool is, before anything is made or changed there.

    Only SQLite looks into the file: see `make_file`.
    """
    if not path.exists():
        return
    check_regular(path)
    if path.stat().st_size:
        try:
            open_file(path, wait_s=0).close()
        except sqlite3.Error as error:
            if not is_busy(error):
                raise spool_error(path, error, may_be_kept=False) from error


def check_regular(path: Path) -> None:
    """Raise SpoolUnusable for a folder, a device, a pipe."""
    if not path.is_file():
        raise SpoolUnusable(path, "is no regular file: give the spool a file of its own")


def make_file(path: Path) -> None:
    """Make an empty file that only its owner may read, or leave the file that is there as it is.

    It is never opened and closed again while SQLite has it open: closing any descriptor of a file drops all
    of the process's locks on it.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except FileExistsError:
        check_regular(path)
    except OSError as error:
        raise SpoolUnusable(path, f"cannot be made: {error.strerror}") from error


def connect(path: Path, wait_s: float) -> sqlite3.Connection:
    """Open a spool's file for work; its statements wait so many seconds for a lock."""
    connection = open_file(path, wait_s)
    try:
        use_write_ahead_log(connection, path)
        connection.execute("PRAGMA fullfsync = ON")  # macOS: past the cache of the disk
    except BaseException:
        connection.close()
        raise
    return connection


def open_file(path: Path, wait_s: float) -> sqlite3.Connection:
    """Open a file that is there, and change nothing; one that is not is an error, not a new spool."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=wait_s,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        refuse_strangers(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def refuse_strangers(connection: sqlite3.Connection, path: Path) -> None:
    """Raise SpoolUnusable where other tables are than a spool's."""
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    if owner == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        return
    if owner != APPLICATION_ID:
        raise SpoolUnusable(path, "is the database of another program: give the spool a file of its own")


def use_write_ahead_log(connection: sqlite3.Connection, path: Path) -> None:
    """Make sure of the mode in which readers and the writer do not wait for each other."""
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise SpoolUnusable(path, f"cannot have a write-ahead log there (it stays in mode {mode!r})")


def make_tables(connection: sqlite3.Connection, path: Path, prefix: str) -> None:
    """Make the tables of a new spool, or make sure that the file is one, of this version and prefix."""
    if connection.execute("PRAGMA application_id").fetchone()[0] == 0:
        for statement in SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO spool (prefix) VALUES (:prefix)", {"prefix": prefix})
        return
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != VERSION:
        raise SpoolUnusable(path, f"has version {version} of its tables, and this release knows {VERSION}")
    kept_for = connection.execute("SELECT prefix FROM spool").fetchone()[0]
    if kept_for != prefix:
        raise SpoolUnusable(
            path, f"holds events for the key prefix {kept_for!r}, not {prefix!r}: use another file"
        )


SCHEMA = (
    # AUTOINCREMENT: a place that was used is not used again, not even when the spool has become empty.
    """CREATE TABLE waiting (
        place INTEGER PRIMARY KEY AUTOINCREMENT,
        pool TEXT NOT NULL,
        element BLOB NOT NULL,
        at REAL NOT NULL
    )""",
    "CREATE INDEX waiting_by_pool ON waiting (pool)",  # and by place, which every index ends with
    """CREATE TABLE spool (
        one INTEGER PRIMARY KEY CHECK (one = 1) DEFAULT 1,
        prefix TEXT NOT NULL,
        events INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL DEFAULT 0
    )""",
    """CREATE TRIGGER count_added AFTER INSERT ON waiting BEGIN
        UPDATE spool SET events = events + 1, bytes = bytes + length(new.element);
    END""",
    """CREATE TRIGGER count_removed AFTER DELETE ON waiting BEGIN
        UPDATE spool SET events = events - 1, bytes = bytes - length(old.element);
    END""",
    "PRAGMA user_version = 1",
    "PRAGMA application_id = 0x50455444",
)


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells this file from another of the same name, None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
