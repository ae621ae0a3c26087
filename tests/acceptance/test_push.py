"""`petard push`: what is an event goes onto its list byte for byte, what is none is named and left out."""

import os

import pytest

from integration.arena import finished

GAMES = [finished(1), finished(2), finished(3)]


@pytest.fixture
def waiting(client, keys):
    return lambda pool="p": client.lrange(keys.events(pool), 0, -1)


def test_events_of_a_file_are_pushed_as_they_are(run, waiting, tmp_path):
    file = tmp_path / "games.ndjson"
    file.write_bytes(b"\n".join(GAMES))

    ended = run("push", str(file))

    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "pushed 3 events\n")
    assert waiting() == GAMES


@pytest.mark.parametrize("arguments", [("push",), ("push", "-")], ids=["no argument", "a dash"])
def test_events_of_standard_input_are_pushed(run, waiting, arguments):
    ended = run(*arguments, stdin=b"\n".join(GAMES) + b"\n")

    assert ended.code == 0
    assert waiting() == GAMES


def test_windows_line_ends_and_blank_lines_are_no_part_of_an_event(run, waiting):
    ended = run("push", stdin=b"\r\n" + b"\r\n\r\n  \r\n".join(GAMES) + b"\r\n")

    assert (ended.code, ended.stderr) == (0, "pushed 3 events\n")
    assert waiting() == GAMES


def test_broken_lines_are_named_with_reason_and_the_rest_is_pushed(run, waiting):
    lines = [GAMES[0], b"{", b"", finished(9, "alice", "alice"), GAMES[1], b"\xff\xfe", GAMES[2]]

    ended = run("push", stdin=b"\n".join(lines))

    named = [line.split(":")[:2] for line in ended.stderr.splitlines()[:3]]
    assert named == [["line 2", " not_json"], ["line 4", " self_match"], ["line 6", " not_json"]]
    assert ended.stderr.endswith("pushed 3 events\npetard: 3 bad lines were left out, the rest was pushed\n")
    assert ended.code == 1
    assert waiting() == GAMES


def test_broken_lines_of_a_file_are_counted_like_those_of_standard_input(run, tmp_path):
    file = tmp_path / "games.ndjson"
    file.write_bytes(GAMES[0] + b"\nnot an event\n")

    ended = run("push", str(file))

    assert ended.code == 1
    assert ended.stderr.startswith("line 2: not_json: ")


def test_nothing_to_push_is_no_failure(run, tmp_path):
    (tmp_path / "empty").touch()

    ended = [run("push"), run("push", stdin=b"\n\r\n"), run("push", str(tmp_path / "empty"))]

    assert [(one.code, one.stderr) for one in ended] == [(0, "pushed 0 events\n")] * 3


def test_file_that_is_no_text_is_refused_line_by_line(run, waiting, tmp_path):
    file = tmp_path / "picture.png"
    file.write_bytes(bytes(range(256)) * 20)

    ended = run("push", str(file))

    assert ended.code == 1
    assert "line 1: not_json: " in ended.stderr
    assert "Traceback" not in ended.stderr
    assert waiting() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_file_that_may_not_be_read_is_one_clear_line(run, tmp_path):
    file = tmp_path / "games.ndjson"
    file.touch(mode=0o000)

    ended = run("push", str(file))

    assert (ended.code, ended.stderr) == (1, f"petard: Permission denied: {file}\n")


def test_line_that_is_far_too_long_is_refused_and_the_next_one_pushed(run, waiting):
    ended = run("push", stdin=b"x" * 5_000_000 + b"\n" + GAMES[0])

    assert ended.stderr.startswith("line 1: too_large: 5000000 bytes, the limit is 16384\n")
    assert waiting() == GAMES[:1]


def test_every_event_goes_to_the_list_of_its_pool_in_order(run, waiting):
    others = [finished(number, pool="q") for number in range(1, 701)]
    mixed = [line for pair in zip(others, [finished(n) for n in range(1, 701)], strict=True) for line in pair]

    ended = run("push", stdin=b"\n".join(mixed))

    assert ended.stderr == "pushed 1400 events\n"
    assert waiting("q") == others
    assert waiting() == mixed[1::2]


def test_unchecked_lines_are_left_to_the_workers(run, waiting, pool):
    lines = [b"nonsense", GAMES[0], b"\xff"]

    ended = run("push", "--unchecked", "--pool", pool, stdin=b"\n".join(lines))
    pushed = waiting()
    run("worker", "--burst")
    letters = run("dead", "list", "--json").json

    assert ended.code == 0
    assert pushed == lines
    assert [letter["reason"] for letter in letters] == ["not_json", "not_json"]


def test_what_simulate_prints_can_be_pushed_and_applied(run, pool):
    season = run("simulate", "--pool", pool, "--games", "200", "--players", "10", "--hostile", "0.1")

    pushed = run("push", stdin=season.stdout.encode())
    run("worker", "--burst")
    (status,) = run("status", "--json").json["pools"]

    assert pushed.code == 1, "hostile lines are left out"
    assert status["seq"] == 200
