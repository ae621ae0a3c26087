"""What a run is asked for."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from petard_worker.cli.bench import Part

BATCHES = 3


class Plan(NamedTuple):
    """How much is measured, and how often."""

    events: int
    """For Petard and for the floor."""
    job_events: int
    """For those that queue one job per event."""
    players: int
    batch_size: int
    """Most events of one transaction."""
    rounds: int
    latency_rates: tuple[float, ...]
    """Events a second."""
    latency_seconds: float
    idle_seconds: float
    fairness_seconds: float
    parts: tuple[Part, ...]

    @property
    def jobs(self) -> int:
        return min(self.job_events, self.events)


class Order(NamedTuple):
    """A plan, and where its report goes."""

    plan: Plan
    as_json: bool
    file: Path | None


def read_order(arguments: Sequence[str] | None = None) -> Order:
    """Return what the command line says; exit with 2 and a line on stderr where that makes no sense."""
    parser = argparse.ArgumentParser("petard bench", usage="%(prog)s --help", add_help=False)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--job-events", type=int, default=2_000)
    parser.add_argument("--players", type=int, default=2_000)
    parser.add_argument("--batch-size", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency-rates", type=rates, default="1,50,200,1000")
    parser.add_argument("--latency-seconds", type=float, default=10)
    parser.add_argument("--idle-seconds", type=float, default=10)
    parser.add_argument("--fairness-seconds", type=float, default=8)
    parser.add_argument("--only", action="append", type=Part)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--report", type=Path)
    given = parser.parse_args(arguments)
    if given.events < BATCHES * given.batch_size:
        parser.error(f"a rate needs {BATCHES} batches at least: raise --events or lower --batch-size")
    if given.report is not None and not given.report.absolute().parent.is_dir():
        parser.error(f"--report: there is no folder {given.report.absolute().parent}")
    plan = Plan(
        given.events,
        given.job_events,
        given.players,
        given.batch_size,
        given.rounds,
        given.latency_rates,
        given.latency_seconds,
        given.idle_seconds,
        given.fairness_seconds,
        tuple(part for part in Part if part in (given.only or Part)),
    )
    return Order(plan, given.json, given.report)


def rates(text: str) -> tuple[float, ...]:
    """Return the rates of a list such as 1,50,200."""
    found = tuple(float(word) for word in text.split(","))
    if not all(0 < rate <= 100_000 for rate in found) or len(set(found)) < len(found):
        raise argparse.ArgumentTypeError("wanted: different numbers from above 0 to 100000, as in 1,50,200")
    return found
