"""A past that was made at once is one that a worker could have left."""

import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

from acceptance.conftest import Command
from benchmarks.big_ledger import spare
from benchmarks.busy_season import busy_season, two_years

TESTS = Path(__file__).parents[1]
ENTRIES, PLAYERS = 3_000, 300


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


def verified(run: Command) -> dict[str, int]:
    found = run("verify", "p", "--no-redis", "--json").json
    assert isinstance(found, dict)
    (report,) = found["pools"]
    return report
