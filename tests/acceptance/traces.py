"""What a command and everything it started leaves on this machine: processes and files."""

import os
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

MARK = "MARK_OF_TEST"


@dataclass
class Household:
    """A temporary folder and a mark in the environment, by which all that a command starts is found."""

    folder: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def environment(self, given: dict[str, str], *unset: str) -> dict[str, str]:
        """Return an environment in which temporary files go to the folder."""
        kept = {name: value for name, value in given.items() if name not in unset}
        return kept | {"TMPDIR": str(self.folder), "XDG_DATA_HOME": str(self.folder), MARK: self.mark}

    def processes(self) -> dict[int, str]:
        """Return the living processes with their command lines."""
        return {pid: line for pid, line in all_processes() if self.owns(pid)}

    def owns(self, pid: int) -> bool:
        """Return whether a process carries the mark, or, as Postgres hides that, works in the folder."""
        with suppress(OSError):
            if f"{MARK}={self.mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                return True
            return Path(f"/proc/{pid}/cwd").readlink().is_relative_to(self.folder)
        return False

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))


def all_processes() -> Iterator[tuple[int, str]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if line:  # zombies have none
                yield int(folder.name), line


@contextmanager
def household() -> Iterator[Household]:
    """Give a household, and end by their ids the processes of it that a failed test has left."""
    # Not below pytest's folder, whose length the path of a socket may not bear.
    with tempfile.TemporaryDirectory(prefix="petard-home-") as folder:
        found = Household(Path(folder).resolve())
        try:
            yield found
        finally:
            for pid in found.processes():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class Running:
    """A command that runs in a session of its own, with its talk in a file."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def talk(self) -> str:
        return self.log.read_text(errors="replace")


@contextmanager
def running(command: list[str], environment: dict[str, str], log: Path) -> Iterator[Running]:
    """Start a command and kill it at the end if it still runs."""
    with (
        log.open("wb") as file,
        subprocess.Popen(
            command, env=environment, stdout=file, stderr=file, start_new_session=True
        ) as process,
    ):
        try:
            yield Running(process, log)
        finally:
            process.kill()
