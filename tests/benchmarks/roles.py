"""The roles of Petard as the processes they are in production, and what they need."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.servers import Place
from petard_worker.cli.errors import CommandFailed
from petard_worker.embedded import end_with_parent

STOP_SECONDS = 20


class RoleFailedError(CommandFailed):
    """A process ended badly; the message is its log's end."""


class Role:
    """One running process."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raise RoleFailedError if the process has failed."""
        if self._process.poll() not in {None, 0}:
            raise RoleFailedError(f"exit code {self._process.returncode}:\n{self.log()[-2000:]}")

    def log(self) -> str:
        """Return everything the process said."""
        return self._log.read_text(errors="replace")


@contextmanager
def start(place: Place, *arguments: str) -> Iterator[Role]:
    """Run `petard …` with these servers; on leaving, stop it as an operator would."""
    with start_module(place, "petard_worker", *arguments) as role:
        yield role


@contextmanager
def start_module(place: Place, module: str, *arguments: str) -> Iterator[Role]:
    """Run a Python module with these servers; on leaving, stop it."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command(module, *arguments), env=environment(place), stdout=output, stderr=output
            )
        role = Role(process, log)
        try:
            yield role
            process.send_signal(signal.SIGTERM)
            if process.wait(STOP_SECONDS) != -signal.SIGTERM:
                role.check()
        finally:
            process.kill()
            process.wait()


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a Python module, which ends with this process, however this one ends."""
    ids = [str(number) for number in (os.getpid(), os.getuid(), os.getgid())]
    tie = [sys.executable, "-I", end_with_parent.__file__, *ids]
    return [*tie, sys.executable, "-m", module, *arguments]


def environment(place: Place) -> dict[str, str]:
    """Return the environment of a process that works with these servers and no other settings."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PETARD_")},
        "PETARD_DATABASE_URL": place.database_url,
        "PETARD_REDIS_URL": place.redis_url,
        "PETARD_BATCH_SIZE": str(place.batch_size),
    }


def wait_until(condition: Callable[[], object], what: str, *roles: Role, seconds: float = 60) -> None:
    """Wait until the condition holds; raise as soon as one of the roles fails."""
    deadline = time.monotonic() + seconds
    while not condition():
        for role in roles:
            role.check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(0.01)
