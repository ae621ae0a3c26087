"""`petard up`: servers and every role from one command, kept running, with data that outlast it."""

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from acceptance.conftest import Command
from acceptance.traces import Household, Running, household, running
from integration.arena import finished

SERVERS = ("PETARD_DATABASE_URL", "PETARD_REDIS_URL")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


@pytest.fixture
def home() -> Iterator[Household]:
    with household() as home:
        yield home


@dataclass(frozen=True)
class Up:
    """A running `petard up`, and the commands that reach its servers."""

    running: Running
    run: Command

    def stop(self) -> int:
        self.running.process.send_signal(signal.SIGTERM)
        return self.running.process.wait(30)


@pytest.fixture
def up(petard, run, home, tmp_path, wait_until) -> Callable[..., object]:
    """Start `petard up` with options and wait until it has said where its servers are."""

    @contextmanager
    def up(*options: str) -> Iterator[Up]:
        environment = home.environment(petard.environment, *SERVERS)
        log = tmp_path / f"talk-{len(list(tmp_path.iterdir()))}"
        with running(petard.command("up", "--workers", "1", *options), environment, log) as process:
            wait_until(lambda: "publisher_active" in process.talk, "a publisher at work", 60)
            wait_until(lambda: "dispatcher_active" in process.talk, "a worker at work", 60)
            urls = dict(re.findall(r"^  export (PETARD_\w+_URL)=(\S+)$", process.talk, re.MULTILINE))
            assert urls.keys() == set(SERVERS)
            yield Up(process, run.where(**urls))

    return up


def rated(command: Command, number: int) -> bool:
    """Return whether the event of this game has been rated and published."""
    pools = command("status", "--json").json["pools"]
    return [(pool["seq"], pool["published_seq"]) for pool in pools] == [(number, number)]


def test_up_rates_and_publishes_and_ends_on_sigterm(up, home, wait_until):
    with up() as service:
        service.run("pool", "create", "p")
        service.run("push", stdin=finished(1))
        wait_until(lambda: rated(service.run, 1), "the game to be rated and published")
        running_before = len(home.processes())
        code = service.stop()
        talk = service.running.talk

    assert running_before >= 5
    assert code == 0
    assert "applied 0001_pipeline\n" in talk
    assert "Traceback" not in talk
    assert home.processes() == {}


def test_up_starts_a_killed_worker_and_a_killed_publisher_again(up, home, wait_until):
    with up("--ephemeral") as service:
        service.run("pool", "create", "p")
        for name in ("worker", "publisher"):
            (pid,) = (pid for pid, line in home.processes().items() if f"-m petard_worker {name}" in line)
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda name=name: f"{name}" in restarts(service.running.talk), f"another {name}")

        service.run("push", stdin=finished(1))

        wait_until(lambda: rated(service.run, 1), "the game to be rated and published", 30)
        assert service.stop() == 0
        assert (home.processes(), home.files()) == ({}, [])


def test_up_starts_killed_servers_again_and_loses_nothing(up, home, wait_until):
    with up("--ephemeral") as service:
        service.run("pool", "create", "p")
        service.run("push", stdin=finished(1))
        wait_until(lambda: rated(service.run, 1), "the game to be rated and published", 30)
        for program in ("/postgres -D", "valkey-server"):
            (pid,) = (
                pid
                for pid, line in home.processes().items()
                if program in line and "petard_worker" not in line
            )
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: service.run("status").code == 0, f"another {program}", 30)

        service.run("push", stdin=finished(2))

        wait_until(lambda: rated(service.run, 2), "the next game to be rated and published", 30)
        assert service.stop() == 0
        assert (home.processes(), home.files()) == ({}, [])


def restarts(talk: str) -> list[str]:
    """Return the roles that were started again."""
    return re.findall(r"^(\w+)(?: \d+)? ended with -9; starting it again$", talk, re.MULTILINE)


def test_data_outlast_a_restart(up, tmp_path, wait_until):
    data = tmp_path / "data"
    with up("--data", str(data)) as service:
        service.run("pool", "create", "p")
        service.run("push", stdin=b"\n".join(finished(number) for number in range(1, 21)))
        wait_until(lambda: rated(service.run, 20), "the games to be rated and published")
        before = service.run("player", "p", "alice", "--json").json
        service.stop()

    with up("--data", str(data)) as service:
        after = service.run("player", "p", "alice", "--json").json
        still_published = rated(service.run, 20)
        service.run("push", stdin=finished(21))
        wait_until(lambda: rated(service.run, 21), "the next game to be rated and published")
        service.stop()

    assert after == before
    assert still_published


def test_second_up_on_the_same_folder_is_told_who_has_it(up, run, tmp_path):
    data = str(tmp_path / "data")
    nowhere = Command(
        run.warm, {name: value for name, value in run.environment.items() if name not in SERVERS}
    )
    with up("--data", data) as first:
        second = nowhere("up", "--data", data)
        first.stop()

    assert second.code == 69
    assert "Traceback" not in second.stderr
    assert f"already run under process {first.running.process.pid}" in second.stderr


def test_up_uses_given_servers_and_starts_none(petard, run, home, tmp_path, wait_until):
    environment = home.environment(petard.environment)
    with running(petard.command("up", "--workers", "1"), environment, tmp_path / "talk") as service:
        wait_until(lambda: "publisher_active" in service.talk, "a publisher at work", 60)
        run("pool", "create", "p")
        run("push", stdin=finished(1))
        wait_until(lambda: rated(run, 1), "the game to be rated and published")
        lines = list(home.processes().values())
        service.process.send_signal(signal.SIGTERM)
        code = service.process.wait(30)

    assert code == 0
    assert len(lines) == 3, "itself, a worker and a publisher"
    assert "export" not in service.talk
    assert home.files() == []
