"""`petard demo`: the whole pipeline from one command, which tells the truth and leaves nothing behind."""

import json
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from acceptance.traces import Household, household, running
from petard_worker.simulate import Season, simulate_with_labels, strengths

SERVERS = ("PETARD_DATABASE_URL", "PETARD_REDIS_URL")
SEASON = Season()
SECONDS = 90

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


@pytest.fixture
def home() -> Iterator[Household]:
    with household() as home:
        yield home


def rank_correlation(board: list[dict[str, object]]) -> float:
    """Return Spearman's coefficient of ratings and true strengths: 1 − 6 Σd² / (n (n² − 1))."""
    true = strengths(SEASON)
    by_strength = sorted(true, key=lambda name: -true[name])
    by_rating = sorted(board, key=lambda line: -line["rating"])
    place = {line["player"]: number for number, line in enumerate(by_rating)}
    squares = sum((number - place[name]) ** 2 for number, name in enumerate(by_strength))
    count = len(true)
    return 1 - 6 * squares / (count * (count**2 - 1))


def reasons_of_season() -> tuple[Counter[str], Counter[str]]:
    """Return how many lines must be refused for each reason, and how many different ones."""
    refused = [
        (line, label) for line, label in simulate_with_labels(SEASON) if label not in {"rated", "repeat"}
    ]
    return Counter(str(label) for _, label in refused), Counter(str(label) for _, label in set(refused))


@on_linux
def test_demo_on_servers_of_its_own_ends_well_and_leaves_nothing(petard, home, tmp_path):
    started = time.monotonic()
    environment = home.environment(petard.environment, *SERVERS)

    with running(petard.command("demo"), environment, tmp_path / "talk") as demo:
        code = demo.process.wait(SECONDS)
        talk = demo.talk

    assert code == 0, talk
    assert time.monotonic() - started < SECONDS
    assert "starting the servers\nplaying 20000 games of 200 players in pool demo\n" in talk
    figures = {
        line.rpartition("  ")[0].strip(): line.rpartition("  ")[2].strip() for line in talk.splitlines()
    }
    assert float(figures["applied/s"]) > 100
    assert float(figures["rank correlation with the true strengths"]) >= 0.9
    assert figures["ledger entries (without repeats and hostile lines)"] == "20000"
    different = reasons_of_season()[1]
    assert {reason: int(figures[reason]) for reason in different} == different
    assert (home.processes(), home.files()) == ({}, [])


def test_demo_on_given_servers_finds_the_true_strengths_and_buries_what_is_hostile(petard, run):
    counts, different = reasons_of_season()

    ended = petard.run("demo", "--json", timeout=SECONDS)
    board = run("leaderboard", "demo", "--top", "1000", "--json").json
    letters = run("dead", "list", "--pool", "demo", "--limit", "10000", "--json").json
    (status,) = run("status", "--json").json["pools"]

    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert len(board) == SEASON.players
    assert rank_correlation(board) >= 0.9
    assert report["spearman"] == pytest.approx(rank_correlation(board), abs=1e-9)
    assert report["top"] == board[:10]
    attempts: Counter[str] = Counter()
    for letter in letters:
        attempts[letter["reason"].partition(":")[0]] += letter["attempts"]
    assert attempts == counts
    assert report["dead"] == different
    assert report["lines"] == sum(1 for _ in simulate_with_labels(SEASON))
    assert report["applied_per_second"] == pytest.approx(report["lines"] / report["seconds"])
    assert (status["backlog"], status["seq"], status["published_seq"]) == (0, SEASON.games, SEASON.games)


def test_second_demo_on_the_same_servers_gets_a_pool_of_its_own(petard, run):
    small = "demo", "--games", "300", "--players", "10", "--json"
    first = petard.run(*small)
    board = run("leaderboard", "demo", "--json").json

    second = petard.run(*small)

    assert [json.loads(ended.stdout)["pool"] for ended in (first, second)] == ["demo", "demo-2"]
    assert run("leaderboard", "demo", "--json").json == board
    # The season is the same one, a few seconds later: what ages, ages alike.
    assert [line["player"] for line in run("leaderboard", "demo-2", "--json").json] == [
        line["player"] for line in board
    ]
    assert [pool["seq"] for pool in run("status", "--json").json["pools"]] == [300, 300]


@on_linux
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name
)
def test_demo_that_is_ended_in_the_middle_leaves_nothing_running(petard, home, tmp_path, wait_until, number):
    environment = home.environment(petard.environment, *SERVERS)
    command = petard.command("demo", "--games", "60000")

    with running(command, environment, tmp_path / "talk") as demo:
        wait_until(lambda: "applied: " in demo.talk or demo.process.poll() is not None, "some progress", 60)
        in_the_middle = " ".join(home.processes().values())
        os.kill(demo.process.pid, number)
        code = demo.process.wait(30)
        wait_until(lambda: not home.processes(), "everything to end", 30)

    assert all(
        role in in_the_middle for role in ("petard_worker worker", "petard_worker publisher", "postgres")
    )
    assert re.search(r"^applied: \d+ of \d+$", demo.talk, re.MULTILINE), "no progress was shown"
    assert code == (-signal.SIGKILL if number == signal.SIGKILL else 130), demo.talk
    assert "Traceback" not in demo.talk
    if number == signal.SIGKILL:
        # Nobody was left to clear up: the next one does.
        assert home.files()
        petard.environment = environment
        assert petard.run("demo", "--games", "10", "--players", "2").returncode == 0
    assert home.files() == []


@on_linux
def test_ctrl_c_reaches_the_whole_group_and_leaves_nothing(petard, home, tmp_path, wait_until):
    environment = home.environment(petard.environment, *SERVERS)
    command = petard.command("demo", "--games", "60000")

    with running(command, environment, tmp_path / "talk") as demo:
        wait_until(lambda: "applied: " in demo.talk or demo.process.poll() is not None, "some progress", 60)
        os.killpg(demo.process.pid, signal.SIGINT)
        code = demo.process.wait(30)

    assert code == 130, demo.talk
    assert "Traceback" not in demo.talk
    assert (home.processes(), home.files()) == ({}, [])
