"""The durable queue in one SQLite file: events that have been promised and not yet been sent.

What is added is on the disk when `adding` ends (write-ahead log, synchronous FULL). What is removed need not
be: a removal that is lost with the power makes the same bytes be sent again, which count once.

One connection per Spool, for one thread at a time. Three things that SQLite does not bear are kept from it:

- Writers and checkpoints of several processes at the same instant (the WAL-reset bug of all versions
  before 3.51.3): a lock file beside the spool lets one process write at a time.
- A connection that lives through a fork, even unused: SQLite's own bookkeeping of locks is one per process,
  and a child would inherit it. So connections are closed before a fork and opened again after it.
- A file that is removed or replaced under an open connection: what is written then is gone. So the name is
  looked at before each use.

No network file systems: neither flock nor SQLite's shared memory can be relied on there.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from petard_producer.file_lock import FileLock
from petard_producer.spool_errors import SpoolBusy, SpoolError, SpoolFull, SpoolUnusable

ElementsByPool = Mapping[str, Sequence[bytes]]
"""What goes onto the lists, byte for byte, in the order of each pool."""

WAIT_S = 0.05
"""How long one attempt waits for another thread or process; whoever wants to wait longer tries again."""
OPEN_WITHIN_S = 5.0
APPLICATION_ID = 0x50455444
"""`PETD`, at the place in the file where `file` and others look for whose it is."""
VERSION = 1


class Waiting(NamedTuple):
    """One event in the spool; `place` rises in the order of keeping and is never used twice."""

    place: int
    element: bytes


class Held(NamedTuple):
    """What is in the spool; `oldest_at` is in seconds since 1970, None when it is empty."""

    events: int
    bytes: int
    oldest_at: float | None


class Spool:
    """A queue per pool in one file, which several processes may share."""

    def __init__(self, path: Path, *, prefix: str, limit: int) -> None:
        """Open the file, or make it (mode 0600); it holds at most `limit` bytes of events.

        Raises SpoolUnusable when that cannot be done, or when the file is for lists under another prefix.
        """
        self.path = path
        self.limit = limit
        self._thread_lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._closed = False
        self._write_lock = FileLock(path, "writing")
        try:
            make_file(path)
            self._prepare(prefix)
        except BaseException:
            self._disconnect()
            self._write_lock.close()
            raise

    @contextmanager
    def adding(self) -> Iterator[Callable[[ElementsByPool], None]]:
        """Give a function that adds events, which are durable, all of them, when this ends without an error.

        The function raises SpoolFull, and adds nothing, where they would not fit. Raises SpoolBusy before
        anything was added when the file could not be had within WAIT_S.
        """
        with self._writing(synchronous="PRAGMA synchronous = FULL") as connection:
            yield lambda elements: self._add(connection, elements)

    def oldest(self, count: int, *, without: Collection[str] = ()) -> dict[str, list[Waiting]]:
        """Return about the `count` oldest events: of each pool its oldest, pools by their oldest event."""
        found: dict[str, list[Waiting]] = {}
        with self._reading() as connection:
            for pool in read_pools(connection):
                if count <= 0:
                    break
                if pool not in without:
                    found[pool] = read_oldest(connection, pool, count)
                    count -= len(found[pool])
        return found

    def remove(self, last_by_pool: Mapping[str, int]) -> None:
        """Remove of each pool the events up to and with this place."""
        sql = "DELETE FROM waiting WHERE pool = :pool AND place <= :last"
        with self._writing(synchronous="PRAGMA synchronous = NORMAL") as connection:
            connection.executemany(sql, [{"pool": pool, "last": last} for pool, last in last_by_pool.items()])

    def held(self) -> Held:
        """Return how much is waiting."""
        sql = "SELECT events, bytes, (SELECT at FROM waiting ORDER BY place LIMIT 1) FROM spool"
        with self._reading() as connection:
            return Held(*connection.execute(sql).fetchone())

    def last_place(self) -> int:
        """Return the place of the newest event that waits, 0 when none does."""
        sql = "SELECT coalesce(max(place), 0) FROM waiting"
        with self._reading() as connection:
            return int(connection.execute(sql).fetchone()[0])

    def is_waiting(self, last: int) -> bool:
        """Say whether any event up to this place is still here."""
        sql = "SELECT EXISTS (SELECT 1 FROM waiting WHERE place <= :last)"
        with self._reading() as connection:
            return bool(connection.execute(sql, {"last": last}).fetchone()[0])

    def close(self) -> None:
        """Close the file unless another thread hangs in it; what is in it stays."""
        if self._thread_lock.acquire(timeout=WAIT_S):
            self._closed = True
            self._disconnect()
            self._write_lock.close()
            self._thread_lock.release()

    def before_fork(self) -> None:
        """Wait until no thread is in the file, and close it: a fork may take as long as one commit."""
        self._thread_lock.acquire()
        self._disconnect()

    def after_fork_in_parent(self) -> None:
        """Go on; the next use opens the file again."""
        self._thread_lock.release()

    def after_fork_in_child(self) -> None:
        """Begin with nothing of the parent's but the name of the file."""
        self._thread_lock = threading.Lock()
        self._write_lock.reopen()

    def _prepare(self, prefix: str) -> None:
        deadline = time.monotonic() + OPEN_WITHIN_S
        while True:
            try:
                with self._writing(synchronous="PRAGMA synchronous = FULL") as connection:
                    make_tables(connection, self.path, prefix)
            except SpoolBusy:
                if time.monotonic() >= deadline:
                    raise
            else:
                return

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection; whatever sqlite3 raises meanwhile becomes a SpoolError."""
        if not self._thread_lock.acquire(timeout=WAIT_S):
            raise SpoolBusy(self.path, f"is in use by another thread for more than {WAIT_S:g} s")
        try:
            yield self._connected()
        except sqlite3.Error as error:
            if not is_busy(error):
                self._disconnect()
            raise spool_error(self.path, error, may_be_kept=False) from error
        finally:
            self._thread_lock.release()

    @contextmanager
    def _writing(self, synchronous: str) -> Iterator[sqlite3.Connection]:
        """Lend the connection for one transaction."""
        with self._reading() as connection, self._write_lock.held(WAIT_S):
            connection.execute(synchronous)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                self._disconnect()  # which rolls back, whatever state the connection is in
                raise
            try:
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                self._disconnect()
                raise spool_error(self.path, error, may_be_kept=True) from error

    def _connected(self) -> sqlite3.Connection:
        if self._closed:
            raise SpoolUnusable(self.path, "was closed by this process")
        if self._connection is not None and identity(self.path) == self._file:
            return self._connection
        was_open = self._connection is not None
        self._disconnect()
        if was_open:
            raise SpoolUnusable(
                self.path, "was removed or replaced while in use: start again with the file that shall count"
            )
        self._file = identity(self.path)
        self._connection = connect(self.path)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with suppress(sqlite3.Error):
                connection.rollback()  # close alone keeps the lock while any cursor is alive somewhere
            with suppress(sqlite3.Error):
                connection.close()

    def _add(self, connection: sqlite3.Connection, elements_by_pool: ElementsByPool) -> None:
        held = int(connection.execute("SELECT bytes FROM spool").fetchone()[0])
        asked = sum(len(element) for elements in elements_by_pool.values() for element in elements)
        if held + asked > self.limit:
            raise SpoolFull(self.path, limit=self.limit, held=held, asked=asked)
        sql = "INSERT INTO waiting (pool, element, at) VALUES (:pool, :element, :at)"
        now = time.time()
        for pool, elements in elements_by_pool.items():
            rows = [{"pool": pool, "element": element, "at": now} for element in elements]
            connection.executemany(sql, rows)


def make_file(path: Path) -> None:
    """Make an empty file that only its owner may read, or leave the file that is there, but for its mode.

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
        with suppress(PermissionError):  # somebody else's, who decides what it is
            path.chmod(0o600)
    except OSError as error:
        raise SpoolUnusable(path, f"cannot be made: {error.strerror}") from error


def connect(path: Path) -> sqlite3.Connection:
    """Open a file that is there; one that is not is an error, not a new spool."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=WAIT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        use_write_ahead_log(connection, path)
        connection.execute("PRAGMA fullfsync = ON")  # macOS: past the cache of the disk
    except BaseException:
        connection.close()
        raise
    return connection


def use_write_ahead_log(connection: sqlite3.Connection, path: Path) -> None:
    """Make sure of the mode in which readers and the writer do not wait for each other."""
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise SpoolUnusable(path, f"cannot have a write-ahead log there (it stays in mode {mode!r})")


def make_tables(connection: sqlite3.Connection, path: Path, prefix: str) -> None:
    """Make the tables of a new spool, or make sure that the file is one, of this version and prefix."""
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    if owner == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        for statement in SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO spool (prefix) VALUES (:prefix)", {"prefix": prefix})
        return
    if owner != APPLICATION_ID:
        raise SpoolUnusable(path, "is the database of another program: give the spool a file of its own")
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


def read_pools(connection: sqlite3.Connection) -> list[str]:
    """Return the pools with events, the one with the oldest event first, by one look into the index each."""
    sql = """
        WITH RECURSIVE present (pool) AS (
            SELECT min(pool) FROM waiting
            UNION ALL
            SELECT (SELECT min(pool) FROM waiting WHERE pool > present.pool) FROM present
            WHERE present.pool IS NOT NULL
        )
        SELECT pool FROM present WHERE pool IS NOT NULL
        ORDER BY (SELECT min(place) FROM waiting WHERE waiting.pool = present.pool)
    """
    return [row[0] for row in connection.execute(sql)]


def read_oldest(connection: sqlite3.Connection, pool: str, count: int) -> list[Waiting]:
    """Return the oldest events of a pool."""
    sql = "SELECT place, element FROM waiting WHERE pool = :pool ORDER BY place LIMIT :count"
    return [Waiting(*row) for row in connection.execute(sql, {"pool": pool, "count": count})]


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells this file from another of the same name, None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


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
