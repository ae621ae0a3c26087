"""The roles as processes on this machine: for the demo and for `petard up`, not for production."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import IO

from petard_worker.embedded import ServerUrls, embedded_servers, end_with_parent
from petard_worker.settings import PREFIX, BadSettingError, Settings

STOP_SECONDS = 20
LOOK_SECONDS = 0.5
SLOWEST_RESTART_SECONDS = 10.0
CALM_SECONDS = 60.0
"""After so long without an end, ends before it no longer count."""
URLS = ("database_url", "redis_url")
URL_SETTINGS = tuple(f"{PREFIX}{name.upper()}" for name in URLS)


@contextmanager
def servers(settings: Settings, data: Path | None) -> Iterator[tuple[ServerUrls, Callable[[], None]]]:
    """Give the servers of the settings, or embedded ones where neither is set.

    Raises BadSettingError when one is set and the other is not. Embedded ones keep their data in `data`, or
    lose it at the end when that is None. With the URLs comes a function that starts embedded ones again that
    have ended.
    """
    given = ServerUrls(settings.database_url.get_secret_value(), settings.redis_url.get_secret_value())
    missing = unset_urls(settings)
    if not missing:
        yield given, lambda: None
        return
    if len(missing) < len(URLS):
        # An embedded ledger beside a Redis of others would publish over what theirs has published.
        raise BadSettingError(
            f"{PREFIX}{missing[0].upper()} is not set, but the other server is: set both, or neither to use"
            " embedded ones"
        )
    with embedded_servers(data) as embedded:
        yield embedded, embedded.revive


def unset_urls(settings: Settings) -> list[str]:
    """Return the names of those of the two settings that nobody has set."""
    return [name for name in URLS if name not in settings.model_fields_set]


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

    def keep_running(self, stop: Event, revive: Callable[[], None], say: Callable[[str], None]) -> None:
        """Start roles and servers again that end, until the stop: slower while they keep ending."""
        pause, ended_at = 0.0, time.monotonic()
        while not stop.wait(LOOK_SECONDS):
            revive()
            for name, code in self.ended().items():
                say(f"{name} ended with {code}; starting it again")
                self.restart(name)
                pause = next_pause(pause, time.monotonic() - ended_at)
                stop.wait(pause)
                ended_at = time.monotonic()

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


def next_pause(pause: float, calm: float) -> float:
    """Return how many seconds to wait after another end, `calm` seconds after the one before."""
    return 1.0 if calm > CALM_SECONDS else min(SLOWEST_RESTART_SECONDS, pause + 1)


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
