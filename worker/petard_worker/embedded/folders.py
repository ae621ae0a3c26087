"""Where the embedded servers keep their data, and who may use it now."""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from petard_worker.embedded.binaries import EmbeddedServersUnavailable
from petard_worker.embedded.processes import stop_left_over_server

EPHEMERAL = "petard-ephemeral-"
UNLOCKED = "petard-new-"


def default_data_folder() -> Path:
    """Return the folder for servers that keep their data: `$XDG_DATA_HOME/petard`."""
    home = Path(os.environ.get("XDG_DATA_HOME", ""))
    # The XDG rules: a relative path is invalid and to be ignored.
    return (home if home.is_absolute() else Path.home() / ".local" / "share") / "petard"


@contextmanager
def data_folder(data: Path | None) -> Iterator[Path]:
    """Give the named folder, or a temporary one that is removed at the end."""
    remove_left_over_folders()
    if data is not None:
        yield data.resolve()
        return
    with ephemeral_folder() as folder:
        yield folder


@contextmanager
def ephemeral_folder() -> Iterator[Path]:
    """Make a folder that is removed at the end, or by the next start when there was no end."""
    new = Path(tempfile.mkdtemp(prefix=UNLOCKED)).resolve()
    with locked(new):
        # Renamed only when locked, so nobody takes it for a folder without an owner.
        folder = new.rename(new.with_name(new.name.replace(UNLOCKED, EPHEMERAL)))
        try:
            yield folder
        finally:
            remove(folder)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder alone; the lock goes with the process, so it is never stale."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (folder / "lock").open("a+")
    except OSError as reason:
        raise EmbeddedServersUnavailable(
            f"cannot keep the servers' data in {folder}: {reason.strerror}; set XDG_DATA_HOME to a folder "
            "you may write, or PETARD_DATABASE_URL and PETARD_REDIS_URL to servers of yours"
        ) from reason
    with lock:
        if not try_lock(lock.fileno()):
            lock.seek(0)
            raise EmbeddedServersUnavailable(
                f"the servers in {folder} already run under process {lock.read().strip()}: "
                "use them, stop that process, or choose another data folder"
            )
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def remove_left_over_folders() -> None:
    """Remove the temporary folders of processes that were killed before they could."""
    for folder in Path(tempfile.gettempdir()).glob(f"{EPHEMERAL}*"):
        try:
            # Anybody may put a link with such a name into a shared folder: look at the link, not behind it.
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
                continue
            # Never "a+": a lock file made here would appear inside a folder that is being removed.
            lock = (folder / "lock").open("r+")
        except FileNotFoundError:
            continue
        with lock:
            if not try_lock(lock.fileno()):
                continue
            stop_left_over_server(folder / "postgres")
            stop_left_over_server(folder / "redis")
            remove(folder)


def try_lock(fd: int) -> bool:
    """Return whether the lock was free and is ours now."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def remove(folder: Path) -> None:
    """Remove a temporary folder, its lock last: without the lock nobody would finish a removal cut short."""
    for part in folder.iterdir():
        if part.is_dir():
            shutil.rmtree(part)
    shutil.rmtree(folder)
