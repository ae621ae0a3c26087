"""One server as a child process that does not outlive us.

On Linux the kernel sends it SIGINT when we die, however we die. Elsewhere the next start finds its pid file
and stops it. It has a session of its own, so Ctrl-C in a terminal reaches us alone and we end it in good
order.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path

import structlog

from petard_worker.embedded import end_with_parent
from petard_worker.embedded.binaries import EmbeddedServersUnavailable, Identity
from petard_worker.embedded.processes import (
    STOP_SECONDS,
    children,
    kill_family,
    send,
    stop_left_over_server,
    wait_until,
    write_pid_file,
)

log = structlog.get_logger()

HOST = "127.0.0.1"
START_SECONDS = 60  # recovery after a kill is part of it


class Server(ABC):
    """A server on a folder and a loopback port that stay the same from start to start."""

    name: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self._child: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def _prepare(self) -> None:
        """Make sure that programs and data are there."""

    @abstractmethod
    def _launch(self) -> subprocess.Popen[bytes]: ...

    @abstractmethod
    def _mark(self) -> str:
        """Return words that only this server's command line holds."""

    @abstractmethod
    def _is_ready(self) -> bool: ...

    @property
    def pid(self) -> int:
        """The process id of the running server; RuntimeError when it does not run."""
        if self._child is None:
            raise RuntimeError(f"{self.name} does not run")
        return self._child.pid

    def start(self) -> None:
        """Start the server and wait until it answers."""
        if self._child is not None and self._child.poll() is None:
            raise RuntimeError(f"{self.name} runs already: stop or kill it first")
        began = time.monotonic()
        stop_left_over_server(self.folder)
        self._prepare()
        self.port = self.port or kept_port(self.folder)
        self._child = self._launch()
        write_pid_file(self.folder, self._child.pid, self._mark())
        self._wait_until_ready(self._child)
        took_ms = round((time.monotonic() - began) * 1000)
        log.info("server_started", server=self.name, pid=self.pid, port=self.port, took_ms=took_ms)

    def stop(self) -> None:
        """Stop the server in good order; nothing happens when it does not run."""
        self._end(signal.SIGINT)

    def restart(self) -> None:
        """Stop the server and start it again on the same port and data."""
        self.stop()
        self.start()

    def revive(self) -> bool:
        """Start the server again if it has ended by itself; return whether it was started."""
        if self._child is None or self._child.poll() is None:
            return False
        log.warning("server_ended", server=self.name, pid=self.pid, code=self._child.returncode)
        try:
            self.start()
        except EmbeddedServersUnavailable as error:  # what is left of it may still be ending
            log.warning("server_not_revived", server=self.name, error=str(error))
            return False
        return True

    def kill(self) -> None:
        """Kill the server and all its processes with SIGKILL, as the kernel does when memory runs out."""
        if self._child is None:
            return
        kill_family(self.pid)
        self._bury(self._child)

    def pause(self) -> None:
        """Freeze the server and all its processes with SIGSTOP: connections stay open and nobody answers."""
        send(self.pid, signal.SIGSTOP)  # first, so that it gives birth to nobody
        for child in children(self.pid):
            send(child, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused server go on."""
        for pid in (*children(self.pid), self.pid):
            send(pid, signal.SIGCONT)

    def _end(self, number: signal.Signals) -> None:
        if self._child is None:
            return
        if self._child.poll() is None:
            self.resume()
            self._child.send_signal(number)
        try:
            self._child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            log.warning("server_killed", server=self.name, pid=self.pid, waited_s=STOP_SECONDS)
            kill_family(self.pid)
        self._bury(self._child)

    def _bury(self, child: subprocess.Popen[bytes]) -> None:
        child.wait()
        self._child = None
        (self.folder / "pid").unlink(missing_ok=True)

    def _wait_until_ready(self, child: subprocess.Popen[bytes]) -> None:
        wait_until(lambda: child.poll() is not None or self._is_ready(), START_SECONDS)
        if child.poll() is None and self._is_ready():
            return
        self._end(signal.SIGINT)
        raise EmbeddedServersUnavailable(
            f"{self.name} did not start on {self.folder}; its last words:\n{last_words(self.folder)}\n"
            "Without it, set PETARD_DATABASE_URL and PETARD_REDIS_URL to servers of yours"
        )


def spawn(command: list[str], identity: Identity, folder: Path) -> subprocess.Popen[bytes]:
    """Start a program that ends with us, its output in the folder's log."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(
            "embedded servers must be started from the main thread: the kernel ends them with the thread "
            "that started them"
        )
    tie = [sys.executable, "-I", "-S", end_with_parent.__file__]
    numbers = [str(os.getpid()), str(identity.uid), str(identity.gid)]
    with (folder / "log").open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - every word of it is ours
            [*tie, *numbers, *identity.prefix, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def last_words(folder: Path) -> str:
    return "\n".join((folder / "log").read_text(errors="replace").splitlines()[-10:])


def kept_port(folder: Path) -> int:
    """Return the port this folder had last time if it is free, else a new one, which is remembered."""
    memory = folder / "port"
    kept = memory.read_text().strip() if memory.exists() else ""
    if kept.isdigit() and is_free(int(kept)):
        return int(kept)
    port = free_port()
    memory.write_text(f"{port}\n")
    return port


def free_port() -> int:
    """Choose a free loopback port below the ones that the kernel gives to clients.

    A client that knocks on a stopped server's port from that range can be given the very same port, and then
    talks to itself while the server cannot come back.
    """
    while not is_free(port := 20000 + secrets.randbelow(12000)):
        pass
    return port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the servers do it: connections that are fading away do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
