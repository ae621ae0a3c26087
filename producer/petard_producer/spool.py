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

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from petard_producer.file_lock import FileLock
from petard_producer.spool_errors import SpoolBusy, SpoolFull, SpoolUnusable, is_busy, spool_error
from petard_producer.spool_file import connect, identity, make_file, make_tables

ElementsByPool = Mapping[str, Sequence[bytes]]
"""What goes onto the lists, byte for byte, in the order of each pool."""

WAIT_S = 0.05
"""How long one attempt waits for another thread or process; whoever wants to wait longer tries again."""
OPEN_WITHIN_S = 5.0


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
        self._replaced = False
        self._write_lock = FileLock(path, "writing")
        try:
            make_file(path)
            self._prepare(prefix)
        except BaseException:
            self._write_lock.close()
            self._disconnect()
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
                if pool in without:
                    continue
                if events := read_oldest(connection, pool, count):  # else another process was quicker
                    found[pool] = events
                    count -= len(events)
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
                with suppress(PermissionError):  # somebody else's, who decides who may read it
                    self.path.chmod(0o600)
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
        if self._replaced or self._file not in {None, identity(self.path)}:
            # For good: places in this file mean other events in a new one.
            self._replaced = True
            self._disconnect()
            raise SpoolUnusable(
                self.path, "was removed or replaced while in use: start again with the file that shall count"
            )
        if self._connection is not None:
            return self._connection
        self._file = identity(self.path)
        self._connection = connect(self.path, WAIT_S)
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
