"""How the process that sends learns at once of what any process has kept: a FIFO beside the spool."""

import os
import select
import stat
from contextlib import suppress
from io import FileIO
from pathlib import Path

from petard_producer.spool_errors import SpoolUnusable


class Waker:
    """One waits, everybody may wake; a wake-up that is lost costs the time until the next look."""

    def __init__(self, path: Path) -> None:
        """Open the FIFO `<path>.wake`, and make it if it is not there."""
        fifo = path.with_name(f"{path.name}.wake")
        try:
            with suppress(FileExistsError):
                os.mkfifo(fifo, 0o600)
            # For reading too, also by those who only wake: so it never lacks a reader, nor comes to its end.
            self._fifo = FileIO(os.open(fifo, os.O_RDWR | os.O_NONBLOCK), "r+")
        except OSError as error:
            raise SpoolUnusable(
                path, f"cannot have a FIFO {fifo.name} beside it: {error.strerror}"
            ) from error
        if not stat.S_ISFIFO(os.fstat(self._fifo.fileno()).st_mode):
            self._fifo.close()
            raise SpoolUnusable(path, f"has something else than a FIFO beside it as {fifo.name}: remove that")

    def wake(self) -> None:
        """Wake whoever waits, now or at the next wait."""
        # Closed by another thread; or full, and one unheard wake-up more changes nothing (it writes nothing).
        with suppress(ValueError):
            self._fifo.write(b"!")

    def wait(self, seconds: float) -> None:
        """Wait for a wake-up, but not longer than so many seconds."""
        poll = select.poll()  # select() knows no descriptors above 1024, and game servers have many
        poll.register(self._fifo, select.POLLIN)
        if poll.poll(seconds * 1000):
            self._fifo.read(1 << 16)  # nothing, when somebody else was quicker

    def close(self) -> None:
        """Close the FIFO; the file stays for the others. Closing it again does nothing."""
        self._fifo.close()
