"""`petard rate`: JSON in, JSON out, without any server."""

import json
import os
import subprocess
import sys

import pytest

from acceptance.conftest import Command
from acceptance.test_commands import NOBODY, USAGE, assert_one_clear_line, assert_usage_error
from acceptance.warm_commands import WarmCommands

GAME = {"sides": [{"players": ["alice"], "rank": 1}, {"players": ["bob"], "rank": 2}]}
PLAYERS = {"alice": {"rating": 1500, "rd": 200}, "bob": {"rating": 1400, "rd": 30}}


@pytest.fixture
def run(warm: WarmCommands) -> Command:
    """Run `petard` where there are no servers."""
    environment = {
        "PETARD_DATABASE_URL": f"postgresql://{NOBODY}/petard",
        "PETARD_REDIS_URL": f"redis://{NOBODY}",
        "COLUMNS": "250",
    }
    return Command(warm, environment)


def request(**rest: object) -> bytes:
    return json.dumps({"system": "glicko", "games": [GAME], "players": PLAYERS, **rest}).encode()


def test_rate_answers_on_standard_output_without_a_word_on_standard_error(run):
    ended = run("rate", stdin=request())

    assert ended.stderr == ""
    # The game against 1400 with RD 30, by the formulas of the paper.
    assert ended.json["players"]["alice"]["rating"] == pytest.approx(1563.4320485812902, abs=1e-9)
    assert ended.json["players"]["alice"]["rd"] == pytest.approx(175.22023356952303, abs=1e-9)
    (game,) = ended.json["games"]
    alice = next(change for change in game["changes"] if change["player"] == "alice")
    assert alice["before"] == {"rating": 1500, "rd": 200, "games": 0}
    assert alice["explanation"] == {
        "expected": pytest.approx(0.639467736007921, abs=1e-14),
        "actual": 1,
        "rd_aged": 200,
    }


def test_rate_reads_a_file_or_standard_input_alike(run, tmp_path):
    file = tmp_path / "request.json"
    file.write_bytes(request(simultaneous=True))

    from_file = run("rate", str(file))
    from_input = run("rate", "-", "--json", stdin=file.read_bytes())

    assert from_file.json["simultaneous"]
    assert from_file.stdout == from_input.stdout


def test_example_can_be_piped_back_in(run):
    example = run("rate", "--example")

    ended = run("rate", stdin=example.stdout.encode())

    assert example.json["system"] == "glicko"
    assert len(ended.json["games"]) == len(example.json["games"])
    assert ended.json["players"].keys() == example.json["players"].keys()


@pytest.mark.parametrize("simultaneous", [False, True])
def test_table_shows_every_change_and_where_everybody_stands(run, simultaneous):
    ended = run("rate", "--table", stdin=request(simultaneous=simultaneous))

    assert (ended.code, ended.stderr) == (0, "")
    lines = [line.split() for line in ended.stdout.splitlines()]
    game = [] if simultaneous else ["1"]
    assert [*game, "alice", "1500.00", "1563.43", "+63.43", "200.00", "175.22", "0.639", "1"] in lines
    assert ["alice", "1563.43", "175.22", "1", "1", "0", "1563.43"] in lines


def test_state_that_no_pool_has_is_remarked_and_brought_inside(run):
    players = {"alice": {"rating": 3500}, "bob": {"rating": 1500, "rd": 500}}

    ended = run("rate", stdin=request(players=players))

    assert ended.json["players"]["alice"]["rating"] == 3000
    assert ended.stderr == (
        "'alice' is rated 3500, outside rating_min 0 to rating_max 3000: games bring the rating inside\n"
        "'bob' has rd 500, above the parameter rd 350, the highest there is\n"
    )


REFUSED = [
    (b"", "the request is empty"),
    (b"not json", "not JSON"),
    (b'{"system": NaN}', "NaN is not JSON"),
    (request(games=[]), "games: is empty"),
    (request(system="chess\n"), 'system: no system "chess\\n"'),
    (request(parameters={"c": "much"}), "parameters: c is 'much'"),
    (request(parameters={"\x1b[31m\n": 1}), "parameters: no parameter"),
    (request(games=[GAME, GAME | {"days": {"alice": -1}}]), "games[1].days.alice: "),
    (request(players={"alice": {"rd": 0}}), "players.alice.rd: "),
    (request(players={"\udcff": {}}), "the request is not JSON that can be read: a text holds U+DCFF"),
]


@pytest.mark.parametrize(("stdin", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_refusal_is_one_line_and_nothing_on_standard_output(run, stdin, words):
    ended = run("rate", stdin=stdin)

    assert_one_clear_line(ended, USAGE, words)
    assert ended.stdout == ""


def test_file_that_is_not_there_is_named(run):
    ended = run("rate", "nowhere.json")

    assert_one_clear_line(ended, 1, "No such file", "nowhere.json")


def test_table_and_json_are_one_or_the_other(run):
    ended = run("rate", "--table", "--json", stdin=request())

    assert_usage_error(ended)


def test_names_survive_a_terminal_that_knows_ascii_only():
    game = {"sides": [{"players": ["Åsa"], "rank": 1}, {"players": ["李"], "rank": 2}]}
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    ended = subprocess.run(
        [sys.executable, "-m", "petard_worker", "rate"],
        input=request(games=[game]),
        env=environment,
        capture_output=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["players"].keys() == {*PLAYERS, "Åsa", "李"}
