"""Whatever strangers have got into the tables, a terminal that shows it obeys none of it."""

import json
import os
import pty
import subprocess

import pytest

from integration.arena import abandoned, finished

HOSTILE = (
    "a\x1b]0;pwned\x07\x1b[2J\x9b31m\r\n\t2026-01-01 [info] forged\u2028\u202egnp\u2066\u200b\u00ad\x7f"
    "[red]x[/red]%s{}%(x)s:heart:"
)
AS_SHOWN = r"a\x1b]0;pwned\x07\x1b[2J\x9b31m\r\n\t2026-01-01 [info] forged\u2028\u202egnp\u2066\u200b\xad\x7f"
MARKUP = "[red]x[/red]%s{}%(x)s:heart:"

COMMANDS = {
    "status": ("status",),
    "player": ("player", "p", HOSTILE),
    "player at a time": ("player", "p", HOSTILE, "--at", "2026-02-01T00:00:00Z"),
    "leaderboard": ("leaderboard", "p"),
    "leaderboard around": ("leaderboard", "p", "--around", HOSTILE),
    "event": ("event", HOSTILE),
    "preview": ("preview", "p", HOSTILE, "bob"),
    "dead list": ("dead", "list"),
    "dead show": ("dead", "show", "LETTER"),
    "pool list": ("pool", "list"),
    "pool show": ("pool", "show", "p"),
    "pool stats": ("pool", "stats", "p"),
}
TELLING = set(COMMANDS) - {"pool stats", "preview"}
"""Which of them show the hostile text itself."""


@pytest.fixture
def letter(run, play, owner) -> str:
    """The id of a dead letter, in tables in which every text that came from outside is hostile."""
    play(finished(1), finished(2, "alice", "carol"), abandoned(3), b'{"id": "\x1b[31m"}')
    with owner.transaction():
        for table, column in (
            *(("rating", "player"), ("change", "player")),
            *(("ledger", "event_id"), ("ledger", "source"), ("ledger", "game")),
        ):
            old = {"player": "alice", "event_id": "e-2", "source": "/test", "game": "g-2"}[column]
            owner.execute(
                f"UPDATE petard.{table} SET {column} = %s WHERE {column} = %s"
                + (" AND event_id = %s" if column == "source" else ""),
                (HOSTILE, old, *((HOSTILE,) if column == "source" else ())),
            )
        owner.execute(
            "UPDATE petard.dead_letter SET pool = %(t)s, source = %(t)s, event_id = %(t)s, game = %(t)s,"
            " reason = 'bad_field:' || %(t)s, detail = %(t)s, actor = %(t)s,"
            " body = convert_to(%(t)s, 'UTF8'), digest = sha256(convert_to(%(t)s, 'UTF8'))",
            {"t": HOSTILE},
        )
        owner.execute("UPDATE petard.pool SET stopped = %s", (HOSTILE,))
    row = owner.execute("SELECT id FROM petard.dead_letter").fetchone()
    return str(row[0])


def harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def test_what_is_shown_to_people_is_printable(run, letter):
    for name, command in COMMANDS.items():
        shown = run(*[letter if part == "LETTER" else part for part in command])

        assert shown.code == 0, name
        assert harmless(shown.stdout), shown.stdout
        assert harmless(shown.stderr), shown.stderr


def test_json_for_programs_is_printable_and_says_what_is_stored(run, letter):
    for name in sorted(TELLING):
        shown = run(*[letter if part == "LETTER" else part for part in COMMANDS[name]], "--json")

        assert shown.code == 0, name
        assert harmless(shown.stdout), shown.stdout
        assert shown.stdout.count("\n") == 1, name
        assert HOSTILE in texts(shown.json), name


def texts(value: object) -> set[str]:
    """Return every text in a JSON value, names of members included."""
    if isinstance(value, dict):
        return texts(list(value)) | texts(list(value.values()))
    if isinstance(value, list):
        return set().union(*map(texts, value))
    return {value} if isinstance(value, str) else set()


def test_markup_is_a_part_of_the_text(run, letter):
    shown = run("dead", "show", letter).stdout.replace("\n", "")

    assert AS_SHOWN[:30] in shown
    assert MARKUP in shown


def test_what_is_not_found_is_said_on_one_printable_line(run, letter):
    for command in (("player", "p", HOSTILE + "?"), ("pool", "show", HOSTILE), ("leaderboard", HOSTILE)):
        failed = run(*command)

        assert failed.code == 1
        assert failed.stdout == ""
        assert harmless(failed.stderr)
        assert failed.stderr.count("\n") == 1


def test_complaints_about_pushed_lines_are_printable(run, pool):
    lines = [
        HOSTILE.replace("\r\n", "").encode(),
        json.dumps({"specversion": HOSTILE, "id": "a", "source": "a", "type": "a"}).encode(),
        json.dumps({"specversion": "1.0", "id": "a", "source": "a", "type": HOSTILE}).encode(),
        finished(1, HOSTILE),
        finished(2, game=HOSTILE),
        finished(3, pool=HOSTILE),
        b'{"' + HOSTILE.replace("\r\n\t", "")[:60].encode() + b'": 1',
        abandoned(4, abandoned_by=["b\u0323\u0307" * 9]),
    ]

    failed = run("push", stdin=b"\n".join(lines))

    assert failed.code == 1
    assert harmless(failed.stderr)
    assert failed.stderr.count("\n") == len(lines) + 2


def test_complaints_about_imported_rows_are_printable(run):
    hostile = HOSTILE.replace("\r\n", "").replace("\u2028", "")
    rows = (f"{hostile},bob,1-0,2024-01-01", f"a,b,{hostile},2024-01-01", f"a,b,1-0,{hostile}")
    table = "\n".join(["White,Black,Result,Date", *rows])
    game = f'[White "{hostile}"]\n[Black "bob"]\n[Result "1-0"]\n[Date "2024.01.01"]\n\n1-0\n'
    columns = ("--first", "White", "--second", "Black", "--result", "Result", "--time", "Date")

    csv = run("import", "csv", "-", "--pool", "p", *columns, stdin=table.encode())
    pgn = run("import", "pgn", "-", "--pool", "p", stdin=game.encode())

    for failed in (csv, pgn):
        assert failed.code == 1, failed
        assert "left out" in failed.stderr
        assert harmless(failed.stderr), failed.stderr
        assert harmless(failed.stdout), failed.stdout


def test_answers_of_rate_are_printable(run):
    game = {"sides": [{"players": [HOSTILE], "rank": 1}, {"players": ["bob"], "rank": 2}]}
    request = json.dumps({"system": "glicko", "players": {}, "games": [game]}).encode()

    for arguments in ((), ("--table",)):
        shown = run("rate", *arguments, stdin=request)

        assert harmless(shown.stdout + shown.stderr), shown


def test_a_terminal_is_told_no_more_than_a_file(petard, run, letter):
    ours, theirs = pty.openpty()
    environment = {**petard.environment, "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "2000"}
    with subprocess.Popen(
        petard.command("dead", "list"), env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while chunk := read(ours):
            shown += chunk
        assert process.wait(60) == 0
    os.close(ours)

    text = shown.decode().replace("\r\n", "\n").replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert harmless(text), text
    assert AS_SHOWN in text
    assert MARKUP in text


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # nobody has it open any more
        return b""
