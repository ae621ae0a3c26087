"""What a process needs of the machine, as Linux tells it; None where the system does not tell."""

import os
from pathlib import Path

from petard_worker.embedded.processes import children


def cpu_seconds(pid: int | None) -> float | None:
    """Return the CPU seconds of a process with its children: those that live, and those it has outlived."""
    if pid is None or (own := ticks(pid)) is None:
        return None
    user, system, buried_user, buried_system = own
    living = [found for child in children(pid) if (found := ticks(child)) is not None]
    total = user + system + buried_user + buried_system + sum(child[0] + child[1] for child in living)
    return total / os.sysconf("SC_CLK_TCK")


def ticks(pid: int) -> tuple[int, int, int, int] | None:
    """Return the clock ticks of a process and of its buried children, in user mode and in the kernel."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # After the name, which may hold anything, come the fields from the third on; see proc(5).
    user, system, buried_user, buried_system = map(int, stat.rpartition(")")[2].split()[11:15])
    return user, system, buried_user, buried_system


def resident_mb(pid: int) -> float | None:
    """Return the memory of a process that is in RAM now, in MiB."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return None
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024
