"""What a process needs of the machine, as Linux tells it; None where the system does not tell."""

import os
import sys
import time
from pathlib import Path

from petard_worker.embedded.processes import children


def cpu_seconds(pid: int | None) -> float | None:
    """Return the CPU seconds of a process with its children: those that live, and those it has outlived.

    The living are asked by their clocks, which count every nanosecond. A clock tick, all that is known of the
    others, is longer than an idle process works in a second.
    """
    if pid is None or (own := own_seconds(pid)) is None or (outlived := outlived_seconds(pid)) is None:
        return None
    return own + outlived + sum(own_seconds(child) or 0.0 for child in children(pid))


def own_seconds(pid: int) -> float | None:
    """Return the CPU seconds of a living process, without its children."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3)
    except OSError:
        return None


def outlived_seconds(pid: int) -> float | None:
    """Return the CPU seconds of the children that a process has outlived."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # After the name, which may hold anything, come the fields from the third on; see proc(5).
    user, system = map(int, stat.rpartition(")")[2].split()[13:15])
    return (user + system) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float | None:
    """Return the memory of a process that is in RAM now, in MiB."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return None
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024
