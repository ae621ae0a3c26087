"""What a run has found, as a table for people and as JSON for programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from benchmarks.lines import Line, shown
from benchmarks.plan import Plan

WIDTH = 9
COLUMNS = (
    "",
    *(name.rjust(WIDTH) for name in ("median", "min", "max")),
    "unit",
    "µs each".rjust(WIDTH),
    "target",
)

Round = Mapping[str, float | None]
"""What was measured, by the keys of the lines; ratios are taken within each round."""


class Summary(NamedTuple):
    """What all rounds say of one line."""

    median: float
    min: float
    max: float


@dataclass(frozen=True)
class Report:
    """Everything that was measured."""

    facts: Mapping[str, str]
    """About the machine and the software."""
    plan: Plan
    lines: Mapping[str, Sequence[Line]]
    """By the title of their part."""
    rounds: Sequence[Round]

    def as_json(self) -> dict[str, object]:
        lines = [line for part in self.lines.values() for line in part]
        return {
            "facts": self.facts,
            "plan": self.plan._asdict(),
            "summary": {line.key: described(line, summary(line, self.rounds)) for line in lines},
            "rounds": self.rounds,
        }

    def title(self) -> str:
        """Return what the table is about, in one line."""
        plan = self.plan
        about = ", ".join(f"{name} {value}" for name, value in self.facts.items())
        return (
            f"{plan.events} games of {plan.players} players in batches of {plan.batch_size} ({plan.jobs} as"
            f" jobs), rounds: {plan.rounds}; {about}"
        )

    def rows(self) -> Iterator[Sequence[str]]:
        """Yield the table, a heading before each part."""
        for title, lines in self.lines.items():
            yield (title, *[""] * (len(COLUMNS) - 1))
            for line in lines:
                yield row(line, summary(line, self.rounds))


def summary(line: Line, rounds: Sequence[Round]) -> Summary | None:
    """Return median and spread; None where the system did not tell."""
    values = [value for one in rounds if (value := one[line.key]) is not None]
    return Summary(median(values), min(values), max(values)) if values else None


def row(line: Line, found: Summary | None) -> Sequence[str]:
    """Return a line of the table."""
    numbers = found or (None, None, None)
    each = shown(1e6 / found.median) if found and line.unit.endswith("/s") else ""
    return (
        f"  {line.label}",
        *(shown(number).rjust(WIDTH) for number in numbers),
        line.unit,
        each.rjust(WIDTH),
        verdict(line, found),
    )


def verdict(line: Line, found: Summary | None) -> str:
    """Return whether the target was reached."""
    if line.target is None:
        return ""
    if found is None:
        return f"unknown: {line.target}"
    return f"{'reached' if line.target.reached_by(found.median) else 'missed'}: {line.target}"


def described(line: Line, found: Summary | None) -> dict[str, object]:
    """Return a line as JSON."""
    target = line.target
    return {
        "label": line.label,
        "unit": line.unit,
        **(found or Summary(*[None] * 3))._asdict(),
        "us_each": 1e6 / found.median if found and line.unit.endswith("/s") else None,
        "target": str(target) if target else None,
        "reached": target.reached_by(found.median) if target and found else None,
    }
