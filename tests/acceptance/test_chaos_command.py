"""`petard chaos` as people run it: a small run, a wrong name, Ctrl-C."""

import json
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from petard_worker.cli.app import app
from petard_worker.cli.errors import INTERRUPTED, USAGE

SMALL = ("--events", "2000", "--faults", "2", "--only", "end_sessions", "--only", "kill_a_worker")


@pytest.mark.timeout(400)
def test_small_run_reports_what_it_did_and_found(petard, tmp_path):
    file = tmp_path / "report.json"

    ended = petard.run("chaos", "--seed", "7", *SMALL, "--json", "--report", str(file), timeout=380)

    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found == json.loads(file.read_text())
    assert found["seed"] == 7
    assert {line["fault"]: line["count"] for line in found["kinds"]} == {
        "end_sessions": 1,
        "kill_a_worker": 1,
    }
    assert found["differences"] == {"lost": 0, "twice": 0, "out_of_order": 0, "strangers": 0}
    assert found["bit_equal"]
    assert found["sent_twice"] > 0
    assert "petard chaos --seed 7" in found["command"]


def test_unknown_kind_is_a_usage_error_that_lists_the_kinds(petard):
    ended = petard.run("chaos", "--only", "earthquake")

    assert ended.returncode == USAGE
    assert "earthquake" in ended.stderr
    assert "wipe_redis" in ended.stderr


def test_too_few_events_are_a_usage_error():
    shown = CliRunner().invoke(app, ["chaos", "--events", "1"])

    assert shown.exit_code == USAGE


@pytest.mark.timeout(200)
def test_interrupted_run_leaves_no_process_and_no_folder(petard, tmp_path, wait_until):
    petard.environment["TMPDIR"] = str(tmp_path / "tmp")
    (tmp_path / "tmp").mkdir()
    process = petard.start("chaos", *SMALL)
    wait_until(lambda: "1 of 2" in petard.log_of(process), "the first fault", 180)

    process.send_signal(signal.SIGINT)

    assert process.wait(60) == INTERRUPTED
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not [line for line in command_lines() if str(tmp_path / "tmp") in line]
    assert not list(Path("/dev/shm").glob(f"*faketime*_{process.pid}"))


def command_lines() -> list[str]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found
