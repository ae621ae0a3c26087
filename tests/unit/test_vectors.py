"""Every shared test vector, by its id: run to its own tolerance, or left out for a reason that is named.

`vector_runners/` holds a module per system of the vectors: RUNNERS by kind of case, and LEFT_OUT by id.
"""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

VECTORS = Path(__file__).parents[3] / "shared" / "data" / "vectors.json"
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text()) if VECTORS.exists() else []
SYSTEMS = sorted({case["system"] for case in CASES})


def left_out(case: dict[str, Any]) -> str | None:
    """Why the case is not run, if it is not."""
    reasons: dict[str, str] = import_module(f"vector_runners.{case['system']}").LEFT_OUT
    return reasons.get(case["id"])


@pytest.mark.skipif(not CASES, reason="the shared data is not beside the checkout")
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_vector(case: dict[str, Any]) -> None:
    if reason := left_out(case):
        pytest.skip(reason)

    import_module(f"vector_runners.{case['system']}").RUNNERS[case["kind"]](case)


@pytest.mark.parametrize("system", SYSTEMS)
def test_no_reason_is_given_for_a_case_that_does_not_exist(system: str) -> None:
    known = {case["id"] for case in CASES if case["system"] == system}

    assert import_module(f"vector_runners.{system}").LEFT_OUT.keys() <= known
