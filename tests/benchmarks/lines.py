"""The lines of the table: what is measured, in which unit, and what is to be reached."""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

Measured: TypeAlias = Iterator[tuple[str, float | None]]
"""Values by the key of their line, each as soon as it is known; None where the system does not tell."""

RATE = "events/s"


class Target(NamedTuple):
    """A bound that is to be reached."""

    bound: float
    is_most: bool = False

    def reached_by(self, value: float) -> bool:
        return value <= self.bound if self.is_most else value >= self.bound

    def __str__(self) -> str:
        return f"at {'most' if self.is_most else 'least'} {self.bound:g}"


def at_least(bound: float) -> Target:
    return Target(bound)


def at_most(bound: float) -> Target:
    return Target(bound, is_most=True)


class Line(NamedTuple):
    """One line."""

    key: str
    label: str
    unit: str
    target: Target | None = None


def shown(value: float | None) -> str:
    """Return a number with three digits at least."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
