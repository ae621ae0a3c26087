"""Sums without rounding, kept in a few floats: what is added may come in any order and in parts.

Source: J. R. Shewchuk, "Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric Predicates",
Discrete & Computational Geometry 18 (1997), 305-363: a sum is held as partial sums that do not overlap, which
is what `math.fsum` does within one call.
"""

import math
from collections.abc import Sequence

Partials = tuple[float, ...]
"""An exact sum: the sum of these floats, none of which overlaps another."""


def add(partials: Partials, x: float) -> Partials:
    """Return the exact sum of what was added before and x; both finite."""
    kept = []
    for y in partials:
        larger, smaller = (x, y) if abs(x) >= abs(y) else (y, x)
        x = larger + smaller
        rest = smaller - (x - larger)
        if rest:
            kept.append(rest)
    kept.append(x)
    return tuple(kept)


def add_terms(sums: Sequence[Partials], terms: Sequence[float]) -> tuple[Partials, ...]:
    """Return the exact sums with one term added to each."""
    return tuple(add(partials, x) for partials, x in zip(sums, terms, strict=True))


def totals(sums: Sequence[Partials]) -> tuple[float, ...]:
    """Return every sum, correctly rounded: the same bits whatever the order in which it was added up."""
    return tuple(math.fsum(partials) for partials in sums)
