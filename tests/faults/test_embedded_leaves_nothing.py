"""However the supervisor ends, its servers end too, and the next start finds its data in order."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from petard_worker.embedded import embedded_redis, embedded_servers
from petard_worker.embedded.binaries import find_redis
from petard_worker.embedded.processes import (
    children,
    command_line,
    stop_left_over_server,
    wait_until,
    write_pid_file,
)

SECONDS = 30

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the next start ends the servers")

SUPERVISOR = """
import signal, sys
from pathlib import Path
from petard_worker.embedded import embedded_servers
with embedded_servers(Path(sys.argv[1]) if len(sys.argv) > 1 else None) as urls:
    print("ready", urls.database_url, flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="petard-test-")).resolve()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    for pid_file in folder.rglob("pid"):
        stop_left_over_server(pid_file.parent)
    shutil.rmtree(folder)


@contextmanager
def supervisor(data: Path | None) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the embedded servers."""
    command = [sys.executable, "-c", SUPERVISOR, *([str(data)] if data else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def database_url(process: subprocess.Popen[str]) -> str:
    """Wait until its servers run."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready "):
            return line.split()[1]
    pytest.fail("the supervisor ended before its servers ran")


def server_pid(folder: Path) -> int:
    return int((folder / "pid").read_text().split()[0])


def family(data: Path) -> list[int]:
    """Return every process of both servers."""
    postgres, redis = server_pid(data / "postgres"), server_pid(data / "redis")
    return [postgres, *children(postgres), redis, *children(redis)]


def gone(pids: list[int]) -> bool:
    return not any(command_line(pid) for pid in pids)


def end(process: subprocess.Popen[str], number: signal.Signals) -> None:
    process.send_signal(number)
    process.wait(SECONDS)


def answer_in(url: str) -> object:
    with psycopg.connect(url) as conn:
        row = conn.execute("SELECT answer FROM kept").fetchone()
    assert row is not None
    return row[0]


@on_linux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_end_of_the_supervisor_ends_every_server_and_keeps_the_data(
    scratch: Path, number: signal.Signals
) -> None:
    data = scratch / "data"
    with supervisor(data) as process:
        url = database_url(process)
        with psycopg.connect(url) as conn:
            conn.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        pids = family(data)
        assert not gone(pids)

        end(process, number)

        assert wait_until(lambda: gone(pids), SECONDS)
    with embedded_servers(data) as urls:
        assert urls.database_url == url
        assert answer_in(url) == 42


def test_next_start_does_not_wait_for_the_old_servers_to_be_gone_first(scratch: Path) -> None:
    data = scratch / "data"
    with supervisor(data) as process:
        url = database_url(process)
        with psycopg.connect(url) as conn:
            conn.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        end(process, signal.SIGKILL)

        with embedded_servers(data) as urls:
            answer = answer_in(urls.database_url)

    assert answer == 42


def test_next_start_works_after_a_kill_with_paused_servers(scratch: Path) -> None:
    data = scratch / "data"
    with supervisor(data) as process:
        database_url(process)
        old = [server_pid(data / "postgres"), server_pid(data / "redis")]
        for pid in old:
            os.kill(pid, signal.SIGSTOP)
        end(process, signal.SIGKILL)

        with embedded_servers(data) as urls, psycopg.connect(urls.database_url) as conn:
            row = conn.execute("SELECT 1").fetchone()

    assert row == (1,)
    assert gone(old)


def test_next_start_works_after_a_kill_while_the_cluster_was_being_made(scratch: Path) -> None:
    data = scratch / "data"
    with supervisor(data) as process:
        assert wait_until((data / "postgres" / "cluster.unfinished" / "base").exists, SECONDS)
        end(process, signal.SIGKILL)

        with embedded_servers(data) as urls, psycopg.connect(urls.database_url) as conn:
            row = conn.execute("SELECT 1").fetchone()

    assert row == (1,)


def test_temporary_folder_of_a_killed_supervisor_is_removed_at_the_next_start(scratch: Path) -> None:
    with supervisor(None) as process:
        database_url(process)
        (left_over,) = scratch.iterdir()
        pids = family(left_over)
        end(process, signal.SIGKILL)
        assert left_over.exists()

        with embedded_redis():
            found = left_over.exists()

    assert not found
    assert gone(pids)


def test_temporary_folder_of_a_living_supervisor_is_left_alone(scratch: Path) -> None:
    with supervisor(None) as process:
        url = database_url(process)

        with embedded_redis():
            pass

        with psycopg.connect(url) as conn:
            assert conn.execute("SELECT 1").fetchone() == (1,)


def test_link_that_looks_like_a_left_over_folder_is_not_followed(scratch: Path) -> None:
    precious = scratch / "precious"
    (precious / "work").mkdir(parents=True)
    (precious / "lock").touch()
    (scratch / "petard-ephemeral-trap").symlink_to(precious)

    with embedded_redis():
        pass

    assert (precious / "work").exists()


def test_server_that_nobody_ended_is_stopped_by_the_next_start(scratch: Path) -> None:
    folder = scratch / "data" / "redis"
    folder.mkdir(parents=True)
    with embedded_redis(scratch / "data") as server:
        port = server.port
    program = str(find_redis())
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as orphan:
        try:
            write_pid_file(folder, orphan.pid, str(port))

            with embedded_redis(scratch / "data") as server:
                kept = server.port

            assert orphan.poll() is not None
        finally:
            orphan.kill()
    assert kept == port


def test_stranger_with_the_pid_of_an_old_server_is_not_harmed(scratch: Path) -> None:
    folder = scratch / "data" / "redis"
    folder.mkdir(parents=True)
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            assert wait_until(lambda: "sleep" in command_line(stranger.pid), SECONDS)
            write_pid_file(folder, stranger.pid, "23456")

            with embedded_redis(scratch / "data"):
                pass

            assert stranger.poll() is None
        finally:
            stranger.kill()
