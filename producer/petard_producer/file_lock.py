"""A lock between processes that dies with the process that holds it."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from petard_producer.spool_errors import SpoolBusy, SpoolUnusable

if sys.platform != "win32":
    import fcntl

TRY_AGAIN_S = 0.001


class FileLock:
    """An flock on a file that is made for it and never removed: removing it would let two hold the lock.

    A forked child inherits the open file and would keep the lock alive after its parent's death: `reopen` in
    the child.
    """

    def __init__(self, path: Path, purpose: str) -> None:
        """Make the lock file `<path>.<purpose>` if it is not there; errors name `path`, which it guards."""
        if sys.platform == "win32":
            raise SpoolUnusable(path, "needs flock, which Windows does not have; WSL2 has it")
        self._path = path
        self._purpose = purpose
        self._file = self._open()

    def take(self) -> bool:
        """Take the lock if nobody else has it, and say whether we have it now."""
        if sys.platform == "win32":
            return False
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise SpoolUnusable(self._path, f"cannot be locked: {error.strerror}") from error
        return True

    def release(self) -> None:
        """Let others have it."""
        if sys.platform != "win32":
            fcntl.flock(self._file, fcntl.LOCK_UN)

    @contextmanager
    def held(self, within: float) -> Iterator[None]:
        """Hold the lock, or raise SpoolBusy when it cannot be had within so many seconds."""
        deadline = time.monotonic() + within
        while not self.take():
            if time.monotonic() >= deadline:
                raise SpoolBusy(self._path, f"is being written by another process for more than {within:g} s")
            time.sleep(TRY_AGAIN_S)
        try:
            yield
        finally:
            self.release()

    def reopen(self) -> None:
        """Part from the lock of the parent, in a forked child, without releasing it."""
        self._file.close()
        self._file = self._open()

    def close(self) -> None:
        """Release the lock and close the file."""
        self._file.close()

    def _open(self) -> FileIO:
        file = self._path.with_name(f"{self._path.name}.{self._purpose}")
        try:
            return FileIO(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise SpoolUnusable(
                self._path, f"cannot have the lock file {file.name} beside it: {error.strerror}"
            ) from error
