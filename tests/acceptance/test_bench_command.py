"""`petard bench` as people run it. How fast anything is, no test says."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from acceptance.warm_commands import Ended
from petard_worker.cli.bench import Part
from petard_worker.cli.errors import BAD_CONFIGURATION, USAGE

SMALL = (
    *("--events", "1500", "--batch-size", "500", "--job-events", "20", "--players", "50", "--rounds", "1"),
    *("--latency-rates", "200", "--latency-seconds", "1"),
    *("--idle-seconds", "1", "--fairness-seconds", "1"),
)
WITHOUT_SERVERS = {name: value for name, value in os.environ.items() if not name.startswith("PETARD_")}


def bench(*arguments: str, **settings: str) -> Ended:
    """Run the command with no servers in the environment but those of the settings."""
    done = subprocess.run(
        [sys.executable, "-m", "petard_worker", "bench", *arguments],
        env=WITHOUT_SERVERS | settings,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return Ended(arguments, done.returncode, done.stdout, done.stderr)


@pytest.mark.timeout(200)
def test_a_small_run_measures_everything(tmp_path: Path) -> None:
    file = tmp_path / "report.json"

    ended = bench(*SMALL, "--report", str(file))

    assert ended.code == 0, ended.stderr[-2000:]
    report = json.loads(file.read_text())
    (measured,) = report["rounds"]
    assert report["plan"]["parts"] == list(Part)
    assert measured.keys() == report["summary"].keys()
    assert {"floor", "petard", "petard_two_over_one", "petard_over_procrastinate"} <= measured.keys()
    assert {"push_many_json", "push_file", "import_growth", "published", "followed"} <= measured.keys()
    assert {"latency_200_p99_ms", "waiting_bytes", "worker_growth", "folding"} <= measured.keys()
    told = {key: value for key, value in measured.items() if value is not None}
    assert {"latency_hot_p50_ms", "idle_1", "idle_1000", "fairness"} <= measured.keys()
    assert min(told.values()) > 0
    assert measured.keys() == told.keys() or sys.platform != "linux"
    for line in report["summary"].values():
        assert line["label"] in ended.stdout
        assert line["label"] in ended.stderr
    assert "at least 50" in ended.stdout


def test_part_that_is_none_is_a_usage_error_that_lists_the_parts() -> None:
    ended = bench("--only", "earthquakes")

    assert ended.code == USAGE
    assert all(part in ended.stderr for part in Part)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("--events", "100"), "raise --events"),
        (("--latency-rates", "1,fast"), "--latency-rates"),
        (("--latency-rates", "0"), "1,50,200"),
        (("--report", "/nowhere/at/all.json"), "/nowhere/at"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_started(
    arguments: tuple[str, ...], hint: str
) -> None:
    ended = bench(*arguments)

    assert ended.code == USAGE
    assert hint in ended.stderr
    assert "starting" not in ended.stderr


def test_one_server_without_the_other_is_refused() -> None:
    ended = bench(PETARD_REDIS_URL="redis://127.0.0.1:1/0")

    assert ended.code == BAD_CONFIGURATION
    assert "PETARD_DATABASE_URL" in ended.stderr
