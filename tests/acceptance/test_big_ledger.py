"""A past that was made at once is one that a worker could have left."""

import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

from acceptance.conftest import Command
from benchmarks.big_ledger import spare
from benchmarks.busy_season import busy_season, two_years

TESTS = Path(__file__).parents[1]
ENTRIES, PLAYERS = 3_000, 300
PATIENCE_SECONDS = 60


def test_a_worker_goes_on_with_a_past_that_was_made_and_all_of_it_agrees(
    run: Command, database_url: str
) -> None:
    tool = [sys.executable, "-m", "benchmarks.big_ledger", "p", f"--events={ENTRIES}", f"--players={PLAYERS}"]
    environment = {**os.environ, "PETARD_DATABASE_URL": database_url}
    season = busy_season(two_years("p", PLAYERS, spare(ENTRIES)), "ulid")
    told_again_and_new = list(islice(season, ENTRIES - 50, ENTRIES + 300))

    made = subprocess.run(tool, cwd=TESTS, env=environment, capture_output=True, text=True, check=False)
    as_made = verified(run)
    assert run("push", "--unchecked", "--pool", "p", stdin=b"\n".join(told_again_and_new)).code == 0
    assert run("worker", "--burst").code == 0
    gone_on = verified(run)

    assert made.returncode == 0, made.stderr
    assert (as_made["entries"], as_made["differences"]) == (ENTRIES, 0)
    assert gone_on["differences"] == 0
    assert gone_on["entries"] + gone_on["dead_letters"] == ENTRIES + 300
    assert as_made["dead_letters"] > 0
    again = subprocess.run(tool, cwd=TESTS, env=environment, capture_output=True, text=True, check=False)
    assert (again.returncode, "there is a pool 'p' already" in again.stderr) == (2, True)


def test_a_past_whose_recorder_is_killed_is_not_made_and_says_so(run: Command, database_url: str) -> None:
    tool = [sys.executable, "-m", "benchmarks.big_ledger", "p", "--events=1000000"]
    environment = {**os.environ, "PETARD_DATABASE_URL": database_url}

    with subprocess.Popen(tool, cwd=TESTS, env=environment, stderr=subprocess.PIPE, text=True) as made:
        os.kill(recorder_of(made.pid), signal.SIGKILL)
        _, stderr = made.communicate(timeout=PATIENCE_SECONDS)

    assert made.returncode == 1
    assert "the process that makes the season ended early (exit code -9)" in stderr
    assert "Traceback" not in stderr
    assert run("pool", "list", "--json").json == []


def recorder_of(pid: int) -> int:
    """Return the process that makes the season as soon as there is one: the child that was spawned."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if b"multiprocessing.spawn" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    raise AssertionError("no recorder was started")


def verified(run: Command) -> dict[str, int]:
    found = run("verify", "p", "--no-redis", "--json").json
    assert isinstance(found, dict)
    (report,) = found["pools"]
    return report
