"""Signed events on the command line: pools that ask for them, and commands that sign what they push."""

import pytest

from integration.arena import finished
from petard_schema import event_json
from petard_schema.signing import is_signed
from signed_elements import key, setting

KEYS = setting({"/test": [key(1)]})


@pytest.fixture
def waiting(client, keys):
    return lambda pool="p": client.lrange(keys.events(pool), 0, -1)


def test_push_signs_for_a_source_whose_keys_are_set_and_says_so(run, waiting):
    stranger = finished(2).replace(b'"/test"', b'"/other"')

    ended = run.where(PETARD_SIGNING_KEYS=KEYS)("push", stdin=finished(1) + b"\n" + stranger)

    assert (ended.code, ended.stderr) == (0, "pushed 2 events, 1 of them signed\n")
    first, second = waiting()
    assert (is_signed(first), event_json(first), second) == (True, finished(1), stranger)


def test_what_push_has_signed_counts_in_a_pool_that_takes_nothing_else(run):
    signing = run.where(PETARD_SIGNING_KEYS=KEYS)
    signing("pool", "create", "p", "--require-signature")

    signing("push", stdin=finished(1))
    run("push", stdin=finished(2) + b"\n" + finished(3).replace(b'"/test"', b'"/other"'))
    signing("worker", "--burst")

    letters = signing("dead", "list", "--reason", "bad_signature", "--json").json
    outcomes = [signing("event", f"e-{number}", "--json").json["outcome"] for number in (1, 2, 3)]
    assert outcomes == ["rated", "dead", "dead"]
    assert [letter["detail"].partition(",")[0] for letter in letters] == [
        "source '/test' signs its events",
        "pool 'p' takes signed events only",
    ]


def test_import_signs_what_it_pushes(run, waiting, tmp_path):
    file = tmp_path / "games.csv"
    file.write_text("day,white,black,result\n2026-01-01,alice,bob,1-0\n")
    columns = ("--first", "white", "--second", "black", "--time", "day", "--result", "result")

    ended = run.where(PETARD_SIGNING_KEYS=KEYS)(
        "import", "csv", str(file), "--pool", "p", *columns, "--source", "/test", "--push"
    )

    assert (ended.code, ended.stderr) == (0, "pushed 1 events, 1 of them signed\n")
    assert is_signed(waiting()[0])


def test_whether_a_pool_asks_for_signatures_is_set_and_shown(run):
    run("pool", "create", "p", "--require-signature")
    asks = run("pool", "show", "p", "--json").json["settings"]["require_signature"]
    changed = run("pool", "set", "p", "--no-require-signature")
    asks_no_more = run("pool", "show", "p", "--json").json["settings"]["require_signature"]
    run("pool", "set", "p", "-s", "require_signature=true")

    assert (asks, asks_no_more) == (True, False)
    assert (changed.code, changed.stderr) == (0, "p: settings changed\n")
    assert "require_signature" in run("pool", "show", "p").stdout
    assert run("pool", "show", "p", "--json").json["settings"]["require_signature"] is True


def test_the_option_and_the_setting_together_are_refused(run):
    ended = run("pool", "create", "p", "--require-signature", "-s", "require_signature=false")

    assert ended.code == 2
    assert "require_signature is given twice" in ended.stderr


def test_dead_show_tells_the_whole_element(run, pool):
    run.where(PETARD_SIGNING_KEYS=KEYS)("push", stdin=finished(1))
    run("worker", "--burst")

    (letter,) = run("dead", "list", "--json").json
    shown = run("dead", "show", str(letter["id"]), "--json").json

    assert shown["body"].startswith("petard-source: /test\nwebhook-id: e-1\n")
    assert shown["body"].endswith("\n\n" + finished(1).decode())
