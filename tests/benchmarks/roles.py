"""The roles of Petard as the processes they are in production."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PROGRAM = "from petard_worker.cli import main; main()"
STOP_SECONDS = 20


class Place(NamedTuple):
    """The databases one measurement runs in."""

    database_url: str
    redis_url: str
    batch_size: int


class RoleFailedError(Exception):
    """A process ended badly; the message is its log's end."""


class Role:
    """One running command."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log

    def check(self) -> None:
        """Raise RoleFailedError if the process has failed."""
        if self._process.poll() not in {None, 0}:
            raise RoleFailedError(f"exit code {self._process.returncode}:\n{self.log()[-2000:]}")

    def log(self) -> str:
        """Return everything the process said."""
        return self._log.read_text(errors="replace")

    def peak_memory_mb(self) -> float | None:
        """Return the most memory the process has held so far; None where the system does not tell."""
        status = Path(f"/proc/{self._process.pid}/status")
        if not status.exists():
            return None
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024


@contextmanager
def start(place: Place, *arguments: str) -> Iterator[Role]:
    """Run `petard …` with these servers; on leaving, stop it as an operator would."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PETARD_")},
        "PETARD_DATABASE_URL": place.database_url,
        "PETARD_REDIS_URL": place.redis_url,
        "PETARD_BATCH_SIZE": str(place.batch_size),
    }
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *arguments], env=environment, stdout=output, stderr=output
            )
        role = Role(process, log)
        try:
            yield role
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS)
            role.check()
        finally:
            process.kill()
            process.wait()


def wait_until(condition: Callable[[], object], what: str, *roles: Role, seconds: float = 300) -> None:
    """Wait until the condition holds; raise as soon as one of the roles fails."""
    deadline = time.monotonic() + seconds
    while not condition():
        for role in roles:
            role.check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(0.01)
