"""One case of the shared vectors, and how near an answer has to be."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

Case = Mapping[str, Any]
Runner = Callable[[Case], None]


def check_near(case: Case, tolerance: str, got: float, expected: float) -> None:
    """Fail unless the number is within the tolerance that the case itself names."""
    assert got == pytest.approx(expected, rel=0, abs=case["tolerance"][tolerance] + 1e-12), case["id"]
