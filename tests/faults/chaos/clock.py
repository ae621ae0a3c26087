"""The clock of this machine, for some processes only: stepped while they run, as NTP and operators do.

By libfaketime, which is loaded into workers, publishers and Redis. Their monotonic clock runs on, as it does
in such a step. Postgres keeps the real time: its own timeouts go by the wall clock, so that one which runs
while the clock is put back lasts an hour longer, whatever we do.
"""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from faults.chaos.stage import Stage
from faults.fleet import MAIN

PLACE = "usr/lib/*/faketime/libfaketimeMT.so.1"
MISSING = "libfaketime is missing: apt-get install faketime"
HOUR = 3_600
SLEEP_BY_SELECT = "import select, time; time.sleep = lambda seconds: select.select([], [], [], seconds)[3:]"
"""Under libfaketime 0.9.10 `time.sleep` of Python 3.11 and later fails: its clock_nanosleep is mistaken."""
SECONDS_TO_NOTICE = 1.2
"""The library looks at its file once a second."""


def find_library() -> Path | None:
    """Return the library that lies about the time, if it is installed."""
    return next(Path("/").glob(PLACE), None)


@dataclass
class Clock:
    """The time that is told to whoever was started with its environment."""

    library: Path
    file: Path
    offset: int = 0
    _others: set[Path] = field(default_factory=lambda: set(shared_memory()))

    def __post_init__(self) -> None:
        self.set_to(0)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self.library),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    @property
    def program(self) -> str:
        """What a role has to run that is to live by this clock."""
        return f"{SLEEP_BY_SELECT}\n{MAIN}"

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show this clock to what is started now."""
        before = os.environ.copy()
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name in self.environment:
                os.environ.pop(name)
            os.environ.update(before)

    def set_to(self, offset: int) -> None:
        """Let it go wrong by so many seconds from now on."""
        self.offset = offset
        new = self.file.with_suffix(".new")
        new.write_text(f"{offset:+}\n")
        new.replace(self.file)

    def clean(self) -> None:
        """Remove the shared memory that the library leaves behind where a process was killed."""
        for path in set(shared_memory()) - self._others:
            if not Path(f"/proc/{path.name.rpartition('_')[2]}").exists():
                with contextlib.suppress(OSError):
                    path.unlink()


def shared_memory() -> Iterator[Path]:
    return Path("/dev/shm").glob("*faketime_s*")


def step_clock_forward(stage: Stage) -> None:
    """Everything that expires has expired at once."""
    step(stage, HOUR)


def step_clock_back(stage: Stage) -> None:
    """Nothing that expires does so for another hour."""
    step(stage, -HOUR)


def step(stage: Stage, seconds: int) -> None:
    assert stage.clock is not None
    stage.clock.set_to(stage.clock.offset + seconds)
    stage.let_pass(SECONDS_TO_NOTICE)
