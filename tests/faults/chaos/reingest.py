"""What an operator does after Postgres has lost commits: have what was applied lately count again."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

from faults.chaos.stage import Stage
from faults.fleet import MAIN, POOL

MARGIN = timedelta(seconds=2)


def redis_time(stage: Stage) -> datetime:
    """Return the time by which copies of applied events go."""
    with stage.fleet.client as client:
        seconds, _ = client.time()
    return datetime.fromtimestamp(seconds, UTC)


def count_again(stage: Stage, since: datetime) -> None:
    """Run `petard reingest`."""
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            MAIN,
            "reingest",
            POOL,
            "--since",
            written(since - MARGIN),
            "--anyway",
            "--yes",
        ],
        env={**os.environ, "PETARD_KEY_PREFIX": stage.fleet.keys.prefix, **stage.fleet.environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, f"petard reingest: {found.stderr}"


def written(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
