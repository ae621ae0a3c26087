"""Become a program that ends with its parent: `python end_with_parent.py PARENT UID GID PROGRAM ARGUMENT…`.

A program of its own and not a `preexec_fn`, which may deadlock, and warns, when the parent has threads.
Standard library only, as it runs isolated from everything installed.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, uid: int, gid: int, command: list[str]) -> None:
    """Change the user if asked to, ask the kernel for a SIGINT at the parent's death, run the command."""
    if uid != os.getuid():
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # After the change of user, which would clear it.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
    if os.getppid() != parent:  # it died before we asked
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 - no shell is the point


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
