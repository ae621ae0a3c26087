"""What a run has shown, for people and for programs."""

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

from faults.differences import Differences

ROOT = Path(__file__).resolve().parents[3]


class Struck(NamedTuple):
    """One fault: its kind, what keeps it from losing anything, when it came, and what it cost.

    Seconds; `applied` and `published` from the end of the fault to the next batch and the next entry. None
    where the next fault came before anybody could tell.
    """

    kind: str
    holds: str
    at: float
    lasted: float
    applied: float | None
    published: float | None


@dataclass
class Report:
    """What a run was asked for, what happened, and what was found."""

    seed: int
    events: int
    faults: int
    command: str
    """Repeats the run."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Kinds that this machine cannot do, and why."""
    revision: str = ""
    struck: list[Struck] = field(default_factory=list)
    under_load: bool = False
    """Whether events were still being pushed when the last fault came."""
    cut_short: bool = False
    """Whether the time was over before the faults or the events were."""
    pushed: int = 0
    sent_twice: int = 0
    entries: int = 0
    snapshots: int = 0
    """How often the follower had to start over."""
    followed: int = 0
    caught_up_seconds: float = 0.0
    """From the end of the last fault until the stream had what the ledger had then."""
    differences: Differences | None = None
    bit_equal: bool = False
    failed_jobs: list[str] = field(default_factory=list)
    """Why RQ keeps jobs as failed: of each the last line."""
    seconds: float = 0.0
    failure: str | None = None

    def __post_init__(self) -> None:
        self.revision = self.revision or git_revision()

    def as_json(self) -> dict[str, object]:
        return {
            **asdict(self),
            "struck": [fault._asdict() for fault in self.struck],
            "differences": self.differences and self.differences._asdict(),
            "kinds": [line._asdict() for line in self.kinds()],
        }

    def kinds(self) -> "list[KindLine]":
        """Return what the faults of each kind came to."""
        names = dict.fromkeys(fault.kind for fault in self.struck)
        return [kind_line([fault for fault in self.struck if fault.kind == name]) for name in names]

    def facts(self) -> list[tuple[str, str]]:
        """Return everything that is no list, as people read it."""
        differences = self.differences or Differences(-1, -1, -1, -1)
        unknown = self.differences is None
        return [
            ("seed", str(self.seed)),
            ("git revision", self.revision),
            ("duration", f"{self.seconds:.0f} s" + (", cut short by --minutes" if self.cut_short else "")),
            ("faults", f"{len(self.struck)} of {len(self.kinds())} kinds"),
            ("events pushed", f"{self.pushed}, sent again {self.sent_twice} ({self.share_sent_twice:.1%})"),
            ("ledger entries", str(self.entries)),
            ("lost, twice, out of order", "not counted" if unknown else ", ".join(map(str, differences[:3]))),
            ("ratings bit-equal to a fold", "yes" if self.bit_equal else "NO"),
            ("stream caught up after the last fault", f"{self.caught_up_seconds:.1f} s"),
            ("follower", f"{self.followed} entries, {self.snapshots} new starts"),
            ("failed RQ jobs", ", ".join([str(len(self.failed_jobs)), *self.failed_jobs])),
            *((f"not done: {kind}", reason) for kind, reason in self.skipped.items()),
        ]

    @property
    def share_sent_twice(self) -> float:
        return self.sent_twice / self.pushed if self.pushed else 0.0


class KindLine(NamedTuple):
    """All faults of one kind; seconds."""

    fault: str
    count: int
    longest: float
    applied_p50: float | None
    applied_max: float | None
    published_p50: float | None
    published_max: float | None
    nothing_lost: str


def kind_line(faults: Sequence[Struck]) -> KindLine:
    applied = known(fault.applied for fault in faults)
    published = known(fault.published for fault in faults)
    return KindLine(
        faults[0].kind,
        len(faults),
        max(fault.lasted for fault in faults),
        median(applied) if applied else None,
        max(applied, default=None),
        median(published) if published else None,
        max(published, default=None),
        faults[0].holds,
    )


def known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def git_revision() -> str:
    """Return the commit that is checked out, marked when files differ from it."""
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
