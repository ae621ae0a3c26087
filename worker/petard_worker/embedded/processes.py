"""Processes as the operating system shows them: who lives, who begot whom, and the end of left-overs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

STOP_SECONDS = 30


def command_line(pid: int) -> str:
    """Return the command line of a living process, or nothing."""
    if sys.platform != "linux":
        return tell(["ps", "-ww", "-o", "command=", "-p", str(pid)])
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children(pid: int) -> list[int]:
    """Return the living children of a process."""
    # Not by process group: every Postgres backend makes a session of its own.
    return [child for child, state, parent in all_processes() if parent == pid and state[0] not in "ZX"]


def all_processes() -> list[tuple[int, str, int]]:
    """Return process id, state and parent of every process."""
    if sys.platform != "linux":  # and there `ps` may be missing: it is in small containers
        rows = [line.split() for line in tell(["ps", "-A", "-o", "pid=,state=,ppid="]).splitlines()]
        return [(int(pid), state, int(parent)) for pid, state, parent in rows]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            found.append((int(folder.name), state, int(parent)))
    return found


def tell(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603 - ours


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_family(pid: int) -> None:
    """Kill a process and its children with SIGKILL, with none escaping by being born meanwhile."""
    send(pid, signal.SIGSTOP)
    while offspring := children(pid):
        for child in offspring:
            send(child, signal.SIGKILL)
    send(pid, signal.SIGKILL)


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition; return whether it came."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def write_pid_file(folder: Path, pid: int, mark: str) -> None:
    """Remember a server and the words of its command line that tell it from a later owner of its pid."""
    (folder / "pid").write_text(f"{pid}\n{mark}\n")


def stop_left_over_server(folder: Path) -> None:
    """Stop the server whose supervisor died, and return when it is gone.

    On Linux it is on its way out by itself; elsewhere nobody told it.
    """
    try:
        number, mark, *_ = (folder / "pid").read_text().splitlines()
        pid = int(number)
    except (FileNotFoundError, ValueError):  # none, or cut short by the same kill
        return

    def gone() -> bool:
        return mark not in command_line(pid)

    if not gone():
        send(pid, signal.SIGCONT)
        send(pid, signal.SIGINT)
    if not wait_until(gone, STOP_SECONDS):
        kill_family(pid)
        wait_until(gone, STOP_SECONDS)
    (folder / "pid").unlink(missing_ok=True)
