"""The benchmark runs to its end. How fast anything is, no test says."""

import json
import os
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "run.py"
SMALL = [
    "--events",
    "1500",
    "--job-events",
    "20",
    "--players",
    "50",
    "--rounds",
    "1",
    "--latency-seconds",
    "1",
]


def test_a_small_run_measures_everything() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PETARD_")}

    done = subprocess.run(
        [sys.executable, str(BENCHMARK), *SMALL, "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout)
    (measured,) = report["rounds"]
    assert min(measured[name] for name in ("jobs", "petard", "petard_while_pushing", "floor")) > 0
    assert {"glicko", "glicko2"} <= report["costs"]["games_per_second"].keys()
