"""What the benchmark says: typed results, as a table for people or as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from costs import Waiting
from latency import Latency

TARGET_OVER_JOBS = 50
TARGET_OF_FLOOR = 0.6
MOST_FORECAST_SECONDS = 10


@dataclass(frozen=True)
class Round:
    """Events per second of the three ways, measured one after the other."""

    jobs: float
    petard: float
    petard_while_pushing: float
    floor: float
    worker_peak_mb: float | None

    @property
    def over_jobs(self) -> float:
        """How many times as fast as one job per event."""
        return self.petard / self.jobs

    @property
    def of_floor(self) -> float:
        """Which part of what Postgres does alone."""
        return self.petard / self.floor


@dataclass(frozen=True)
class Costs:
    """What is measured once and without comparison."""

    latency: Latency
    waiting: Waiting
    games_per_second: Mapping[str, float]
    """By rating system, maths alone."""
    parses_per_second: float
    folds_per_second: float
    forecast_seconds: float
    """10,000 tournaments of 16 players."""


@dataclass(frozen=True)
class Report:
    """Everything that was measured."""

    versions: dict[str, str]
    events: int
    job_events: int
    players: int
    batch_size: int
    rounds: Sequence[Round]
    costs: Costs

    def summary(self) -> dict[str, float]:
        """Return the medians of all rounds; ratios are taken within each round."""
        return {
            "jobs": median(one.jobs for one in self.rounds),
            "petard": median(one.petard for one in self.rounds),
            "petard_while_pushing": median(one.petard_while_pushing for one in self.rounds),
            "floor": median(one.floor for one in self.rounds),
            "over_jobs": median(one.over_jobs for one in self.rounds),
            "of_floor": median(one.of_floor for one in self.rounds),
        }

    def to_json(self) -> str:
        """Return everything as JSON."""
        costs = asdict(self.costs) | {
            "latency": self.costs.latency._asdict(),
            "waiting": self.costs.waiting._asdict(),
        }
        return json.dumps(asdict(self) | {"costs": costs, "summary": self.summary()}, indent=2)

    def lines(self) -> Iterator[str]:
        """Yield the table, line by line."""
        medians = self.summary()
        yield (
            f"{self.events} games of {self.players} players in batches of {self.batch_size}"
            f" ({self.job_events} as jobs), median of {len(self.rounds)} rounds,"
            f" Postgres {self.versions['postgres']}, Redis {self.versions['redis']}"
        )
        yield ""
        yield f"{'one RQ job per event':38}{medians['jobs']:10,.0f} events/s"
        yield f"{'Petard, a backlog':38}{medians['petard']:10,.0f} events/s"
        yield f"{'Petard, while they are pushed':38}{medians['petard_while_pushing']:10,.0f} events/s"
        yield f"{'Postgres alone, the same rows':38}{medians['floor']:10,.0f} events/s"
        yield ratio("Petard / one job per event", medians["over_jobs"], TARGET_OVER_JOBS)
        yield ratio("Petard / Postgres alone", medians["of_floor"], TARGET_OF_FLOOR)
        yield ""
        yield from self.cost_lines()

    def cost_lines(self) -> Iterator[str]:
        """Yield the lines about single costs."""
        latency, waiting = self.costs.latency, self.costs.waiting
        label = f"push to follower, {latency.events_per_second:g} events/s"
        yield (
            f"{label:38}{latency.p50_ms:10.1f} ms p50, {latency.p95_ms:.1f} p95,"
            f" {latency.p99_ms:.1f} p99, {latency.max_ms:.1f} max"
        )
        yield (
            f"{'waiting in Redis, beyond the text':38}{waiting.overhead_by_memory_usage:10.1f} bytes an event"
            f" ({waiting.overhead_by_info:.1f} by INFO; texts of {waiting.text_bytes:.0f})"
        )
        peaks = [one.worker_peak_mb for one in self.rounds if one.worker_peak_mb is not None]
        if peaks:
            yield f"{'most memory of the worker':38}{max(peaks):10.0f} MB"
        for system, rate in self.costs.games_per_second.items():
            yield f"{system + ' alone, a fold':38}{rate:10,.0f} games/s"
        yield f"{'parsing alone':38}{self.costs.parses_per_second:10,.0f} events/s"
        yield f"{'folding alone':38}{self.costs.folds_per_second:10,.0f} events/s"
        seconds = self.costs.forecast_seconds
        reached = "reached" if seconds <= MOST_FORECAST_SECONDS else "missed"
        yield (
            f"{'forecast, 10,000 tournaments of 16':38}{seconds:10.1f} s ({reached}: {MOST_FORECAST_SECONDS})"
        )


def ratio(label: str, value: float, target: float) -> str:
    """Return the line of a ratio and whether it is what was aimed at."""
    return f"{label:38}{value:10.2f} ({'reached' if value >= target else 'missed'}: {target:g})"
