"""The roles as processes on this machine: for the demo and for `petard up`, not for production."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from petard_worker.embedded import ServerUrls, embedded_servers, end_with_parent
from petard_worker.settings import PREFIX

STOP_SECONDS = 20
URL_SETTINGS = (f"{PREFIX}DATABASE_URL", f"{PREFIX}REDIS_URL")


@contextmanager
def servers(data: Path | None) -> Iterator[ServerUrls]:
    """Give the servers of the settings where they are set, and embedded ones for the rest.

    Embedded ones keep their data in `data`, or lose it at the end when that is None.
    """
    given = [os.environ.get(name) or from_file(name) for name in URL_SETTINGS]
    database_url, redis_url = given
    if database_url and redis_url:
        yield ServerUrls(database_url, redis_url)
        return
    with embedded_servers(data) as embedded:
        yield ServerUrls(database_url or embedded.database_url, redis_url or embedded.redis_url)


def from_file(name: str) -> str | None:
    """Return what the file of a setting holds, if one is named."""
    path = os.environ.get(f"{name}_FILE")
    return Path(path).read_text(encoding="utf-8").strip() if path else None


@dataclass
class Fleet:
    """Workers and publishers that end with this process."""

    urls: ServerUrls
    log: IO[str] | None
    """Where the roles' logs go; None is this process's stderr."""
    roles: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    names: dict[str, Sequence[str]] = field(default_factory=dict)

    def start(self, name: str, *arguments: str) -> None:
        """Start a role under a name."""
        command = [sys.executable, "-m", "petard_worker", *arguments]
        wrapped = [
            sys.executable,
            "-I",
            end_with_parent.__file__,
            str(os.getpid()),
            str(os.getuid()),
            str(os.getgid()),
            *command,
        ]
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(URL_SETTINGS)},
            **dict(zip(URL_SETTINGS, (self.urls.database_url, self.urls.redis_url), strict=True)),
        }
        self.names[name] = arguments
        self.roles[name] = subprocess.Popen(  # noqa: S603 - our own program
            wrapped, env=environment, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL
        )

    def ended(self) -> dict[str, int]:
        """Return the roles that have ended, with their exit codes."""
        codes = {name: process.poll() for name, process in self.roles.items()}
        return {name: code for name, code in codes.items() if code is not None}

    def restart(self, name: str) -> None:
        """Start a role again that has ended."""
        self.start(name, *self.names[name])

    def stop(self) -> None:
        """Stop all roles and wait until they have finished what they were doing."""
        for process in self.roles.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.roles.values():
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def fleet(urls: ServerUrls, log: IO[str] | None, *, workers: int) -> Iterator[Fleet]:
    """Run workers and a publisher, and stop them at the end."""
    with ExitStack() as stack:
        running = Fleet(urls, log)
        stack.callback(running.stop)
        for number in range(1, workers + 1):
            running.start(f"worker {number}", "worker")
        running.start("publisher", "publisher")
        yield running
