"""Seeded chaos, a short run of it: every kind of fault at least once; `petard chaos` does the long ones."""

import os
from pathlib import Path
from random import Random

import pytest

from faults.chaos.kinds import KINDS, possible
from faults.chaos.scenario import Plan, draw_faults, run
from faults.differences import Differences

EVENTS = int(os.environ.get("PETARD_CHAOS_EVENTS", "100000"))
FAULTS = int(os.environ.get("PETARD_CHAOS_FAULTS", "32"))
SEED = int(os.environ.get("PETARD_CHAOS_SEED", "1"))
MINUTES = 5 + FAULTS / 4 + EVENTS / 50_000


@pytest.mark.timeout(120 + MINUTES * 60 * 2)
def test_chaos_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    report = run(Plan(SEED, EVENTS, FAULTS, MINUTES), tmp_path, print)

    print(report.facts(), *report.kinds(), sep="\n")  # noqa: T201 - shown when the test failed
    assert report.failure is None, f"{report.failure}; again with: {report.command}"
    assert report.differences == Differences(0, 0, 0, 0)
    assert report.bit_equal
    assert len(report.struck) == FAULTS
    assert len(report.kinds()) == min(FAULTS, len(possible(KINDS)[0])), "every kind at least once"
    assert report.under_load
    assert report.share_sent_twice >= 0.02


def test_every_kind_is_drawn_before_any_comes_again() -> None:
    faults = draw_faults(KINDS, len(KINDS) + 5, Random(SEED))

    assert {kind.name for kind in faults[: len(KINDS)]} == {kind.name for kind in KINDS}
    assert faults == draw_faults(KINDS, len(KINDS) + 5, Random(SEED))
