"""`petard dead`: what could not be accepted is kept, shown, replayed when its cause is gone, or discarded."""

import os
import pty
import subprocess
from unittest.mock import Mock

import psycopg
import pytest
import redis

from integration.arena import dead_letters, finished, outcomes
from petard_schema import Keys
from petard_worker.cli.dead import replay as replay_command

LETTER_FIELDS = ("id", "pool", "reason", "detail", "attempts", "first_seen", "last_seen", "state")
MORE_FIELDS = ("source", "event_id", "game", "traceback_hash", "edited_at", "closed", "discard_reason")
ORPHAN = finished(1, pool="later")


@pytest.fixture
def orphan(run):
    """The id of a dead letter whose pool does not exist."""
    run("push", stdin=ORPHAN)
    run("worker", "--burst")
    (letter,) = run("dead", "list", "--json").json
    return letter["id"]


def test_list_has_the_documented_fields(run, play):
    play(b"nonsense", finished(1, "alice", "alice"), b"nonsense", finished(2, time=1))

    letters = run("dead", "list", "--json").json

    assert [tuple(letter) for letter in letters] == [(*LETTER_FIELDS, *MORE_FIELDS)] * 2
    assert [(one["pool"], one["reason"], one["attempts"], one["state"]) for one in letters] == [
        ("p", "not_json", 2, "open"),
        ("p", "self_match", 1, "open"),
    ]


def test_list_can_be_narrowed_by_pool_and_reason(run, play, orphan):
    play(b"nonsense", finished(2, "alice", "alice"), finished(3, game=""))

    by_pool = run("dead", "list", "--pool", "later", "--json").json
    by_reason = run("dead", "list", "--reason", "self_match", "--json").json
    by_field = run("dead", "list", "--reason", "bad_field:data.game", "--json").json
    by_kind = run("dead", "list", "--reason", "bad_field", "--json").json
    first = run("dead", "list", "--limit", "1", "--json")

    assert [letter["id"] for letter in by_pool] == [orphan]
    assert [letter["reason"] for letter in by_reason] == ["self_match"]
    assert by_field == by_kind
    assert len(by_kind) == 1
    assert len(first.json) == 1
    assert "--limit shows more" in first.stderr


def test_list_reads_no_bodies(run, play, owner):
    play(b"nonsense")
    readable = (
        "id, pool, reason, detail, attempts, first_seen, last_seen, state, actor, source, event_id, game,"
        "traceback_hash, version, worker, closed, discard_reason, edited_by, edited_at"
    )
    owner.execute("REVOKE SELECT ON petard.dead_letter FROM petard_reader")
    owner.execute(f"GRANT SELECT ({readable}) ON petard.dead_letter TO petard_reader")

    (letter,) = run("dead", "list", "--json").json

    assert letter["reason"] == "not_json"


def test_show_gives_the_bytes_as_they_came(run, play):
    body = b'\x00\xff{"id": "\x1b[31m'
    play(body)
    (letter,) = run("dead", "list", "--json").json

    shown = run("dead", "show", str(letter["id"]), "--json").json
    for_people = run("dead", "show", str(letter["id"])).stdout

    assert bytes.fromhex(shown["body_hex"]) == body
    assert {name: shown[name] for name in (*LETTER_FIELDS, *MORE_FIELDS)} == letter
    assert "\x1b" not in for_people, "a terminal must not obey a dead letter"


def test_replay_is_rated_when_the_cause_is_gone(run, orphan):
    before = run("event", "e-1", "--json").json
    run("pool", "create", "later")

    replayed = run("dead", "replay", str(orphan), "--yes")
    waiting = run("event", "e-1", "--json").json
    run("worker", "--burst")
    after = run("event", "e-1", "--json").json
    (letter,) = run("dead", "list", "--state", "all", "--json").json

    assert (before["outcome"], before["reason"]) == ("dead", "unknown_pool")
    assert (replayed.code, replayed.stdout) == (0, "")
    assert waiting["outcome"] == "waiting"
    assert (after["outcome"], after["seq"], len(after["changes"])) == ("rated", 1, 2)
    assert letter["state"] == "replayed"
    assert run("dead", "list", "--json").json == []


def test_replay_comes_back_open_while_the_cause_is_there(run, orphan):
    run("dead", "replay", str(orphan), "--yes")
    run("worker", "--burst")

    (letter,) = run("dead", "list", "--json").json

    assert (letter["id"], letter["state"], letter["attempts"]) == (orphan, "open", 2)


def test_replay_of_an_event_that_counted_meanwhile_changes_nothing(run, orphan, owner):
    run("pool", "create", "later")
    run("push", stdin=ORPHAN)
    run("worker", "--burst")
    counted = run("player", "later", "alice", "--json").json

    replayed = run("dead", "replay", str(orphan), "--yes")
    run("worker", "--burst")

    assert replayed.code == 0
    assert run("player", "later", "alice", "--json").json == counted
    assert outcomes(owner, "later") == [("e-1", "rated")]
    assert run("dead", "list", "--json").json == []


def test_replay_of_all_takes_each_open_letter_once(run, client, keys):
    lines = [finished(number, pool="later") for number in range(1, 31)]
    run("push", stdin=b"\n".join([*lines, finished(31, pool="never")]))
    run("worker", "--burst")
    run("pool", "create", "later")

    replayed = run("dead", "replay", "--all", "--rate", "1000", "--yes")
    queued = client.lrange(keys.events("later"), 0, -1)
    run("worker", "--burst")
    (left,) = run("dead", "list", "--json").json

    assert replayed.stderr.startswith("replayed 31:")
    assert queued == lines
    assert (left["pool"], left["attempts"]) == ("never", 2)
    assert run("pool", "show", "later", "--json").json["seq"] == 30


def test_replay_by_pool_and_reason_leaves_the_others(run, play, orphan):
    play(b"nonsense", finished(2, "alice", "alice"))

    run("dead", "replay", "--pool", "p", "--reason", "not_json", "--yes")
    open_now = run("dead", "list", "--json").json

    assert [letter["reason"] for letter in open_now] == ["unknown_pool", "self_match"]


def test_discarded_letter_stays_in_the_table_and_is_not_replayed(run, orphan, owner):
    discarded = run("dead", "discard", str(orphan), "--reason", "a test", "--yes")
    again = run("dead", "replay", "--all", "--yes")
    (letter,) = run("dead", "list", "--state", "discarded", "--json").json

    assert discarded.stderr == "discarded 1\n"
    assert (again.code, again.stderr) == (1, "petard: no open dead letter fits\n")
    assert letter["id"] == orphan
    assert dead_letters(owner, "later") == [(ORPHAN, "unknown_pool")]


def test_event_whose_letter_was_discarded_is_still_dead(run, orphan):
    run("dead", "discard", str(orphan), "--reason", "a test", "--yes")

    fate = run("event", "e-1", "--json").json

    assert (fate["outcome"], fate["reason"]) == ("dead", "unknown_pool")


@pytest.mark.parametrize("command", [("replay",), ("discard", "--reason", "a test")])
def test_script_has_to_say_yes(run, orphan, client, keys, command):
    asked = run("dead", *command, str(orphan), stdin=b"y\n")

    (letter,) = run("dead", "list", "--json").json
    assert asked.code == 2
    assert "--yes is needed" in asked.stderr
    assert letter["state"] == "open"
    assert client.llen(keys.events("later")) == 0


@pytest.mark.parametrize(
    ("answer", "code", "state"), [("y", 0, "discarded"), ("n", 1, "open"), ("", 1, "open")]
)
def test_person_is_asked(run, petard, orphan, answer, code, state):
    ours, theirs = pty.openpty()

    with subprocess.Popen(
        petard.command("dead", "discard", str(orphan), "--reason", "a test"),
        env=petard.environment,
        stdin=theirs,
        stderr=subprocess.PIPE,
    ) as process:
        os.write(ours, f"{answer}\n".encode())
        said = process.communicate(timeout=60)[1]
    os.close(ours)
    os.close(theirs)

    (letter,) = run("dead", "list", "--state", "all", "--json").json
    assert b"discard 1 dead letters? [y/N]" in said
    assert (process.returncode, letter["state"]) == (code, state)


HOSTILE = '{"id": "\u202eevil\x9b31m", "x": "\\u001b[2J\\n"}'.encode()


def test_nothing_of_a_letter_is_obeyed_by_a_terminal(run, play):
    play(HOSTILE, b"\x1b]0;title\x07\r\n")

    shown = [
        *(run("dead", "show", "1").stdout, run("dead", "show", "2").stdout),
        *(
            run("dead", "show", "1", "--json").stdout,
            run("dead", "list").stdout,
            run("dead", "list", "--json").stdout,
        ),
    ]

    for text in shown:
        assert [one for one in text if one != "\n" and not one.isprintable()] == []
    assert r"\u202eevil\x9b31m" in shown[0]


def test_show_indents_json_and_tells_what_happened_since(run, play):
    play(finished(1, "alice", "alice"), finished(1))
    (letter,) = run("dead", "list", "--json").json

    shown = run("dead", "show", str(letter["id"])).stdout
    since = run("dead", "show", str(letter["id"]), "--json").json["since"]

    assert '    "game": "g-1",' in shown
    assert "the event has counted, seq 1 rated" in shown
    assert (since["event"]["seq"], since["game"]["event_id"]) == (1, "e-1")


def test_edited_letter_is_rated_when_it_is_replayed(run, play):
    play(finished(1, "alice", "alice"))
    still = run("dead", "edit", "1", "--set", "data.sides.1.rank=0")

    edited = run("dead", "edit", "1", "--set", 'data.sides.1.players=["bob"]')
    run("dead", "replay", "1", "--yes")
    run("worker", "--burst")

    assert (still.code, "still wrong: bad_field:data.sides.1.rank" in still.stderr) == (1, True)
    assert (edited.code, "the original is kept" in edited.stderr) == (0, True)
    assert run("event", "e-1", "--json").json["outcome"] == "rated"


def test_groups_dry_run_and_runs_are_counted(run, play, orphan):
    play(b"one", b"two", finished(2, "alice", "alice"))

    groups = run("dead", "list", "--group", "--json").json
    dry = run("dead", "replay", "--all", "--dry-run", "--json")
    before = run("dead", "runs", "--json").json
    run("dead", "replay", "--reason", "not_json", "--yes")
    (done,) = run("dead", "runs", "--json").json

    counts = [(group["pool"], group["reason"], group["letters"]) for group in groups]
    assert counts == [("p", "not_json", 2), ("later", "unknown_pool", 1), ("p", "self_match", 1)]
    assert dry.json == groups
    assert "would replay 4 dead letters" in dry.stderr
    assert before == []
    assert (done["letters"], done["sent"], done["state"], done["chosen"]) == (
        2,
        2,
        "finished",
        "reason=not_json",
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("discard", "--all", "--reason", "  ", "--yes"), "'  ' says nothing"),
        (("discard", "--all", "--reason", "x" * 1_001, "--yes"), "has 1001 characters, the limit is 1000"),
        (("discard", "--all", "--reason", "not_json", "--yes"), "--refused-for 'not_json'"),
        (("purge", "--older", "0s", "--export", "-", "--yes"), "wants a file"),
    ],
)
def test_closing_without_sense_is_refused(run, orphan, arguments, words):
    refused = run("dead", *arguments)

    (letter,) = run("dead", "list", "--json").json
    assert refused.code == 2
    assert words in refused.stderr
    assert letter["state"] == "open"


@pytest.mark.parametrize("lost", [redis.ConnectionError("gone"), psycopg.OperationalError("gone")])
def test_a_replay_that_loses_a_server_says_how_to_go_on(monkeypatch, capsys, lost):
    monkeypatch.setattr(replay_command, "give_turns", Mock(side_effect=lost))

    with pytest.raises(type(lost)):
        replay_command.work(Mock(), Mock(), Keys(), Mock(), rate=100)

    assert "'petard dead replay --resume' goes on with the rest" in capsys.readouterr().err


def test_purge_exports_closed_letters_and_leaves_open_ones(run, play, orphan, tmp_path):
    play(b"one")
    run("dead", "discard", str(orphan), "--reason", "a test", "--yes")
    file = tmp_path / "letters.ndjson"

    too_young = run("dead", "purge", "--older", "1d", "--yes")
    purged = run("dead", "purge", "--older", "0s", "--export", str(file), "--yes")

    assert (too_young.code, too_young.stderr) == (0, "no closed dead letter is that old\n")
    assert purged.code == 0
    assert file.read_text().count("\n") == 1
    assert [letter["reason"] for letter in run("dead", "list", "--state", "all", "--json").json] == [
        "not_json"
    ]
