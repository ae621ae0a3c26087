"""What was measured in pools with a long past, as tables and as JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from statistics import median
from typing import NamedTuple

from benchmarks.reads import Plans, Timing
from benchmarks.servers import Place

FEWEST_OF_SMALLEST = 0.8
MOST_MS = 20
FEWEST_VERIFIED = 15_000


class Drained(NamedTuple):
    """How a backlog was applied."""

    events_per_second: float
    wal_bytes_per_event: float


@dataclass(frozen=True)
class Disk:
    """Bytes on disk for each ledger entry."""

    ledger: float
    ledger_indexes: float
    change: float
    change_indexes: float
    rating: float
    total: float


@dataclass
class Grown:
    """A pool of one size and what was measured in it."""

    entries: int
    place: Place
    backlog: Sequence[bytes]
    drained: list[Drained] = field(default_factory=list)
    reads: dict[str, Timing] = field(default_factory=dict)
    plans: dict[str, Plans] = field(default_factory=dict)
    disk: Disk | None = None


class Verified(NamedTuple):
    """What `petard verify` said, and how long the whole command took."""

    entries: int
    entries_per_second: float
    took_s: float
    differences: int


@dataclass(frozen=True)
class Report:
    """Everything that was measured; the pools by their size."""

    versions: Mapping[str, str]
    players: int
    ids: str
    backlog: int
    batch_size: int
    pools: Sequence[Grown]
    verified: Verified


def as_facts(report: Report) -> dict[str, object]:
    """Return everything that was measured, for programs."""
    return {
        "versions": report.versions,
        "players": report.players,
        "ids": report.ids,
        "backlog": report.backlog,
        "batch_size": report.batch_size,
        "pools": [
            {
                "entries": pool.entries,
                "drained": [drained._asdict() for drained in pool.drained],
                "of_smallest": of_smallest(report, pool),
                "reads": {name: timing._asdict() for name, timing in pool.reads.items()},
                "scans": {
                    name: [scan._asdict() for scan in plans.scans] for name, plans in pool.plans.items()
                },
                "buffers": {name: plans.buffers for name, plans in pool.plans.items()},
                "bytes_per_event": None if pool.disk is None else asdict(pool.disk),
            }
            for pool in report.pools
        ],
        "verified": report.verified._asdict(),
    }


def of_smallest(report: Report, pool: Grown) -> float:
    """Return how fast a pool is drained beside the smallest: the median of the rounds' ratios."""
    pairs = zip(pool.drained, report.pools[0].drained, strict=True)
    return median(own.events_per_second / other.events_per_second for own, other in pairs)


def lines_of(report: Report) -> Iterator[str]:
    """Yield everything that was measured, for people."""
    sizes = [f"{pool.entries:,}" for pool in report.pools]
    yield f"{report.players:,} players, ids as {report.ids}; {report.versions}"
    yield ""
    yield row(f"drain of {report.backlog:,} events", sizes)
    yield row(
        "events/s", [f"{median(one.events_per_second for one in p.drained):,.0f}" for p in report.pools]
    )
    yield row(
        "  slowest and fastest round",
        ["{:,.0f}-{:,.0f}".format(*ends([one.events_per_second for one in p.drained])) for p in report.pools],
    )
    yield row(
        f"of the smallest (reach {FEWEST_OF_SMALLEST})",
        [f"{of_smallest(report, pool):.2f}" for pool in report.pools],
    )
    yield row(
        "write-ahead log, bytes/event",
        [f"{median(one.wal_bytes_per_event for one in pool.drained):,.0f}" for pool in report.pools],
    )
    yield ""
    yield row("on disk, bytes/event", sizes)
    for part in fields(Disk):
        yield row(part.name, [f"{getattr(pool.disk, part.name):,.0f}" for pool in report.pools])
    yield ""
    yield row(f"reads, ms: median (max); reach {MOST_MS}", sizes)
    for name in report.pools[0].reads:
        yield row(name, [cell_of(pool.reads[name]) for pool in report.pools])
    yield ""
    yield f"found in {sizes[-1]} entries by"
    for name, plans in report.pools[-1].plans.items():
        found = dict.fromkeys(f"{scan}, {scan.rows:,} rows" for scan in plans.scans)
        yield f"  {name}: {'; '.join(found)}; {plans.buffers:,} pages"
    yield ""
    done = report.verified
    yield (
        f"petard verify: {done.entries:,} entries in {done.took_s:.0f} s,"
        f" {done.entries_per_second:,.0f}/s (reach {FEWEST_VERIFIED:,}), {done.differences} differences"
    )


def row(name: str, cells: Iterable[str]) -> str:
    """Return a line of a table."""
    return f"{name:<34}" + "".join(f"{cell:>20}" for cell in cells)


def cell_of(timing: Timing) -> str:
    """Return how long a read took."""
    return f"{timing.median_ms:,.1f} ({timing.max_ms:,.1f})"


def ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the lowest and the highest."""
    return min(values), max(values)
