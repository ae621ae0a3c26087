"""What holds for every command: help, exit codes, one clear line when something is wrong, no traceback."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from acceptance.conftest import Command
from acceptance.warm_commands import Ended
from integration.arena import apply_all, finished, make_pool
from petard_worker.cli.app import app
from petard_worker.load_functions import LOADED

FAILED, USAGE, UNAVAILABLE, BAD_CONFIGURATION = 1, 2, 69, 78
NOBODY = "127.0.0.1:1"
"""A port at which nobody listens."""


def commands(group: object = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield every command and every group of commands there is."""
    group = group or typer.main.get_command(app)
    yield path
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


def assert_one_clear_line(ended: Ended, code: int, *words: str) -> None:
    """Check that a command said what is wrong, in its last line, and nothing of how it is made."""
    assert "Traceback" not in ended.stderr, ended.stderr
    assert ended.code == code, ended
    # Beside the logs of the roles, and the demo's talk while all is well.
    lines = [line for line in ended.stderr.splitlines() if line != "starting the servers" and line[0] != "{"]
    assert len(lines) == 1, ended
    assert lines[0].startswith("petard: ")
    for word in words:
        assert word in lines[0]


def assert_usage_error(ended: Ended) -> None:
    """Check that a command refused its arguments and said so."""
    assert "Traceback" not in ended.stderr, ended.stderr
    assert ended.code == USAGE, ended
    assert ended.stdout == ""
    assert ended.stderr


@pytest.mark.parametrize("command", list(commands()), ids=" ".join)
def test_every_command_explains_itself(command):
    shown = CliRunner().invoke(app, [*command, "--help"])

    assert shown.exit_code == 0
    assert f"Usage: root {' '.join(command)}".strip() in shown.output
    assert "\n\n " in re.sub(r"\n +\n", "\n\n", shown.output), "a sentence on what it does"


def test_version_is_that_of_the_package(run):
    shown = run("--version")

    assert re.fullmatch(r"petard \d+\.\d+\.\d+\S*\n", shown.stdout)


def test_all_commands_of_the_design_exist():
    found = {" ".join(path) for path in commands()}

    assert found >= {
        *("demo", "up", "migrate", "push", "simulate", "worker", "publisher", "status"),
        *("player", "leaderboard", "event", "preview", "verify", "schema export", "import csv", "import pgn"),
        *("pool create", "pool list", "pool show", "pool set", "pool resume", "pool systems", "pool stats"),
        *("rate", "elo expected", "elo change", "elo performance", "elo tournament", "elo percentile"),
        "chaos",
        *("elo table", "elo cite", "elo simulate-field", "elo pdf"),
        *("dead list", "dead show", "dead edit", "dead replay", "dead runs", "dead discard", "dead purge"),
        "reingest",
    }


MIGRATIONS = (
    *("0001_pipeline", "0002_rating_periods", "0003_own_source", "0004_dead_letters", "0005_pool_stops"),
    "0006_finite_explanations_and_true_digests",
    "0007_rows_of_a_batch",
)

NEED_POSTGRES = [
    ("migrate",),
    ("pool", "create", "x"),
    ("pool", "list"),
    ("pool", "show", "x"),
    ("pool", "resume", "x"),
    ("worker",),
    ("worker", "--burst"),
    ("publisher", "--once"),
    ("status",),
    ("player", "x", "alice"),
    ("leaderboard", "x"),
    ("event", "e-1"),
    ("preview", "x", "alice", "bob"),
    ("verify",),
    ("dead", "list"),
    ("dead", "show", "1"),
    ("dead", "replay", "1", "--yes"),
    ("dead", "discard", "1", "--reason", "a test", "--yes"),
    ("dead", "runs"),
    ("dead", "edit", "1", "--original"),
    ("dead", "purge", "--older", "90d", "--yes"),
    ("reingest", "--all", "--since", "1h", "--yes"),
    ("demo", "--games", "10"),
    ("up",),
]
NEED_REDIS = [
    ("push",),
    (
        "import",
        "csv",
        "-",
        "--pool",
        "x",
        "--first",
        "a",
        "--second",
        "b",
        "--time",
        "t",
        "--result",
        "r",
        "--push",
    ),
    ("worker",),
    ("worker", "--burst"),
    ("publisher",),
    ("publisher", "--once"),
    ("status",),
    ("event", "e-1"),
    ("verify",),
    ("reingest", "--all", "--since", "1h", "--yes"),
    ("demo", "--games", "10"),
    ("up",),
]
NEED_TABLES = [command for command in NEED_POSTGRES if command[0] not in {"migrate", "demo", "up"}]
STDIN = {"push": finished(1), "import": b"a,b,t,r\nalice,bob,2026-01-01,1-0\n"}


def test_unreachable_postgres_is_named_by_its_setting(run):
    lost = run.where(PETARD_DATABASE_URL=f"postgresql://{NOBODY}/petard")

    ended = [lost(*command) for command in NEED_POSTGRES]

    for one in ended:
        assert_one_clear_line(one, UNAVAILABLE, "cannot reach Postgres", "PETARD_DATABASE_URL")


def test_unreachable_redis_is_named_by_its_setting(run):
    lost = run.where(PETARD_REDIS_URL=f"redis://{NOBODY}/0")

    ended = [lost(*command, stdin=STDIN.get(command[0], b"")) for command in NEED_REDIS]

    for one in ended:
        assert_one_clear_line(one, UNAVAILABLE, "cannot reach Redis", "PETARD_REDIS_URL")


def test_lock_that_does_not_come_free_is_not_called_an_unreachable_server(run, pool, owner):
    with owner.transaction():
        owner.execute("SELECT FROM petard.pool WHERE name = 'p' FOR UPDATE")

        ended = run("pool", "resume", "p")

    assert_one_clear_line(ended, FAILED, "somebody else holds what this needs", "lock timeout")


def test_cancelled_statement_is_not_called_an_unreachable_server(petard, pool, owner, wait_until):
    cancel = """
        SELECT pg_cancel_backend(pid) FROM pg_locks
        WHERE relation = 'petard.rating'::regclass AND NOT granted
    """
    with owner.transaction():
        owner.execute("LOCK TABLE petard.rating")
        command = petard.start("leaderboard", "p")
        wait_until(lambda: owner.execute(cancel).fetchone(), "the command to wait for the table")

        code = command.wait(30)

    assert (code, petard.log_of(command)) == (
        FAILED,
        "petard: Postgres gave up a statement: canceling statement due to user request\n",
    )


def test_database_without_tables_is_refused_with_the_command_to_run(run, owner):
    owner.execute("DROP SCHEMA petard CASCADE")

    ended = [run(*command) for command in NEED_TABLES]

    for one in ended:
        assert_one_clear_line(one, BAD_CONFIGURATION, "'petard migrate'")


def test_older_database_is_refused_with_the_command_to_run(run, owner):
    owner.execute("DELETE FROM petard.migration")

    ended = [run(*command) for command in NEED_TABLES]

    for one in ended:
        words = "older than this Petard", "0001_pipeline", "'petard migrate'"
        assert_one_clear_line(one, BAD_CONFIGURATION, *words)


def test_newer_database_is_refused_with_the_command_to_run(run, owner):
    owner.execute("INSERT INTO petard.migration (name, checksum) VALUES ('9999_from_the_future', 'abc')")

    ended = [run(*command) for command in NEED_POSTGRES]

    for one in ended:
        words = "newer than this Petard", "9999_from_the_future", "'pip install --upgrade petard'"
        assert_one_clear_line(one, BAD_CONFIGURATION, *words)


def test_migrate_says_what_it_did_and_that_it_has_nothing_to_do(run, owner):
    owner.execute("DROP SCHEMA petard CASCADE")

    first, second = run("migrate"), run("migrate")

    assert (first.code, first.stderr) == (
        0,
        "".join(f"applied {name}\n" for name in MIGRATIONS) + LOADED + "\n",
    )
    assert (second.code, second.stderr) == (0, f"nothing to do: the database is up to date\n{LOADED}\n")


BAD_SETTINGS = [
    ("PETARD_DATABASE_URL", "mysql://127.0.0.1/petard"),
    ("PETARD_DATABASE_URL", "postgresql://[::1/petard"),
    ("PETARD_DATABASE_URL", "postgresql://secret@127.0.0.1/petard?secret=1"),
    ("PETARD_DATABASE_URL", ""),
    ("PETARD_REDIS_URL", "http://127.0.0.1"),
    ("PETARD_REDIS_URL", "redis://:secret#@127.0.0.1:6379"),
    ("PETARD_REDIS_URL", "redis://127.0.0.1:port"),
    ("PETARD_REDIS_URL", "redis://127.0.0.1:99999"),
    ("PETARD_REDIS_URL", "redis://127.0.0.1?secret=1"),
    ("PETARD_REDIS_URL", "redis://127.0.0.1?socket_timeout=soon"),
    ("PETARD_KEY_PREFIX", "two words"),
    ("PETARD_BATCH_SIZE", "0"),
    ("PETARD_BATCH_SIZE", "many"),
    ("PETARD_SLICE_SECONDS", "nan"),
    ("PETARD_LOG_LEVEL", "loud"),
    ("PETARD_SIGNING_KEYS", ""),
    ("PETARD_SIGNING_KEYS", '{"/servers/eu-1": {"keys": ["secret"]}}'),
]


def test_bad_setting_is_named_and_a_secret_is_not_shown(run):
    ended = [(setting, run.where(**{setting: value})("status")) for setting, value in BAD_SETTINGS]

    for setting, one in ended:
        assert_one_clear_line(one, BAD_CONFIGURATION, setting)
        assert "secret" not in one.stderr


def test_setting_may_come_from_a_file(run, tmp_path):
    file = tmp_path / "url"
    file.write_text(run.environment["PETARD_DATABASE_URL"] + "\n")
    without = Command(run.warm, {k: v for k, v in run.environment.items() if k != "PETARD_DATABASE_URL"})

    found = without.where(PETARD_DATABASE_URL_FILE=str(file))("pool", "list", "--json")
    missing = without.where(PETARD_DATABASE_URL_FILE=str(tmp_path / "nowhere"))("pool", "list", "--json")

    assert found.json == []
    assert_one_clear_line(missing, BAD_CONFIGURATION, "No such file", str(tmp_path / "nowhere"))


LONG = "x" * 100_000


WRONG = [
    ("nonsense",),
    ("worker", "extra"),
    ("leaderboard",),
    ("leaderboard", "p", "--top", "-1"),
    ("leaderboard", "p", "--top", "many"),
    ("player", "p", "alice", "--at", "yesterday"),
    ("player", "p", "alice", "--at", "2026-01-01"),
    ("preview", "p", "alice", "alice"),
    ("pool", "create", "Two Words"),
    ("pool", "create", "line\nbreak"),
    ("pool", "create", "p\n"),
    ("pool", "create", LONG),
    ("pool", "set", "p"),
    ("pool", "set", "p", "--param", "c"),
    ("dead", "list", "--state", "lost"),
    ("dead", "list", "--reason", "because"),
    ("dead", "list", "--limit", "0"),
    ("dead", "show", "0"),
    ("dead", "show", "9" * 30),
    ("dead", "show", "one"),
    ("dead", "replay"),
    ("dead", "replay", "9" * 30, "--yes"),
    ("dead", "discard", "-1", "--yes"),
    ("dead", "discard", "1", "--yes"),
    ("dead", "discard", "--pool", "p", "--reason", "self_match", "--yes"),
    ("dead", "discard", "--reason", "a test", "--yes"),
    ("dead", "replay", "--resume", "--give-up"),
    ("dead", "replay", "--all", "--rate", "0"),
    ("dead", "list", "--older", "soon"),
    ("dead", "list", "--since", "yesterday"),
    ("dead", "edit", "1", "--set", "path"),
    ("dead", "edit", "1", "--set", "id=2", "--original"),
    ("dead", "purge"),
    ("dead", "purge", "--older", "1d", "--state", "open"),
    ("push", "--unchecked"),
    ("push", "--pool", "p"),
    ("push", "--unchecked", "--pool", "Two Words"),
    ("simulate", "--games", "-1"),
    ("simulate", "--draws", "2"),
    ("simulate", "--pool", "Two Words"),
    ("import", "csv", "-", "--pool", "p", "--first", "a", "--second", "b", "--time", "t"),
    ("import", "csv", "-", "--pool", "p", "--first", "a", "--second", "b", "--time", "t", "--result", "r"),
    ("up", "--workers", "0"),
    ("demo", "--players", "1"),
    # Bytes that are no UTF-8 reach Python as half surrogates.
    ("player", "p", "\udcff"),
    ("leaderboard", "\udcff"),
    ("event", "\udcff"),
    ("preview", "p", "alice", "\udcff"),
    ("dead", "list", "--pool", "\udcff"),
]


def test_wrong_arguments_are_a_usage_error(run, pool):
    ended = [run(*command) for command in WRONG]

    for one in ended:
        assert_usage_error(one)


IMPOSSIBLE = [
    ("leaderboard", "nowhere"),
    ("player", "nowhere", "alice"),
    ("preview", "nowhere", "alice", "bob"),
    ("pool", "show", "nowhere"),
    ("pool", "resume", "nowhere"),
    ("pool", "set", "nowhere", "--param", "c=5"),
    ("player", "p", "nobody", "--at", "2026-01-01T00:00:00Z"),
    ("player", "p", "nobody"),
    ("player", "p", "line\nbreak"),
    ("player", "p", ""),
    ("player", "p", "'; DROP SCHEMA petard CASCADE; --"),
    ("player", "p", LONG),
    ("leaderboard", "p", "--around", "nobody"),
    ("pool", "create", "p"),
    ("dead", "show", "1"),
    ("dead", "replay", "1", "--yes"),
    ("dead", "discard", "--all", "--reason", "a test", "--yes"),
    ("dead", "replay", "--resume"),
    ("dead", "edit", "1", "--original"),
    ("push", "nowhere.ndjson"),
    ("push", "."),
    ("push", "/dev/null/games.ndjson"),
    ("import", "pgn", "nowhere.pgn", "--pool", "p"),
    ("import", "pgn", ".", "--pool", "p"),
    ("schema", "export", "/dev/null"),
]


def test_what_cannot_be_done_fails_with_a_line_that_says_why(run, pool):
    ended = [run(*command) for command in IMPOSSIBLE]

    for one in ended:
        assert_one_clear_line(one, FAILED)


def test_reads_without_anything_to_show_succeed(run, pool):
    board = run("leaderboard", "p", "--json")
    letters = run("dead", "list", "--json")
    event = run("event", LONG, "--json")

    assert board.json == []
    assert letters.json == []
    assert event.json == {
        "id": LONG,
        "outcome": "unknown",
        "changes": [],
        **dict.fromkeys(("source", "pool", "seq", "reason")),
    }


def test_reader_that_closes_the_pipe_is_no_traceback(petard, tmp_path):
    simulate = shlex.join(petard.command("simulate", "--games", "20000"))
    script = f"{simulate} 2>{tmp_path}/errors | head -n 1"

    line = subprocess.run(
        ["sh", "-c", script], env=petard.environment, capture_output=True, check=True
    ).stdout

    assert json.loads(line)["data"]["pool"] == "demo"
    assert "Traceback" not in (tmp_path / "errors").read_text()
    assert "Exception ignored" not in (tmp_path / "errors").read_text()


def test_simulate_gives_the_same_bytes_for_the_same_seed(run):
    arguments = "simulate", "--games", "50", "--players", "8", "--hostile", "0", "--pool", "p"

    first, again, other = run(*arguments), run(*arguments), run(*arguments, "--seed", "2")

    assert first.stdout.count("\n") >= 50
    assert again.stdout == first.stdout
    assert other.stdout != first.stdout


def test_schema_export_writes_the_files_that_are_in_the_project(run, tmp_path):
    kept = Path(__file__).parents[2] / "schema"

    ended = run("schema", "export", str(tmp_path))

    written = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*.json")}
    assert ended.code == 0
    assert "asyncapi.json" in written
    assert written == {name: (kept / name).read_text() for name in written}


def test_burst_applies_what_waits_and_once_publishes_it(run, pool, client, keys):
    run("push", stdin=b"\n".join(finished(number) for number in range(1, 101)))

    worker, publisher = run("worker", "--burst"), run("publisher", "--once")
    (pool,) = run("status", "--json").json["pools"]

    assert (worker.code, publisher.code) == (0, 0)
    assert publisher.stderr.endswith("published 100 ledger entries\n")
    assert (pool["backlog"], pool["seq"], pool["published_seq"]) == (0, 100, 100)
    assert client.xlen(keys.changes("p")) == 100


def test_burst_and_once_with_nothing_to_do_succeed(run, pool):
    worker, publisher = run("worker", "--burst"), run("publisher", "--once")

    assert (worker.code, publisher.code) == (0, 0)
    assert publisher.stderr.endswith("published 0 ledger entries\n")


def test_burst_gives_up_on_a_stopped_pool_and_drains_the_others(run, pool, owner):
    run("pool", "create", "q")
    owner.execute("UPDATE petard.pool SET stopped = 'for the test', stopped_at = now() WHERE name = 'p'")
    run("push", stdin=b"\n".join([finished(1), finished(2, pool="q")]))

    ended = run("worker", "--burst")

    assert_one_clear_line(ended, FAILED, "1 events wait")
    assert [pool["backlog"] for pool in run("status", "--json").json["pools"]] == [1, 0]


def test_second_publisher_is_told_that_one_is_active(run, petard, wait_until):
    first = petard.start("publisher")
    wait_until(lambda: "publisher_active" in petard.log_of(first), "the first publisher")

    second = run("publisher", "--once")

    assert_one_clear_line(second, FAILED, "another publisher is active")


def test_a_terminal_of_ascii_costs_nobody_their_name(petard, connection, client, keys) -> None:
    make_pool(connection)
    apply_all(connection, client, keys, [finished(1, "Zo\u00eb", "\u7f8e\u54b2")])
    petard.environment["PYTHONIOENCODING"] = "ascii"

    table, json_ = petard.run("leaderboard", "p"), petard.run("leaderboard", "p", "--json")

    assert (table.returncode, json_.returncode) == (0, 0), table.stderr + json_.stderr
    assert "Zo\\xeb" in table.stdout
    assert [line["player"] for line in json.loads(json_.stdout)] == ["Zo\u00eb", "\u7f8e\u54b2"]


def run_in_shell(petard, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which `petard` is ours."""
    program = shlex.join(petard.command())
    return subprocess.run(
        ["sh", "-c", line.replace("petard", program)],
        env=petard.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_closed_standard_streams_cost_no_traceback(petard) -> None:
    without_input = run_in_shell(petard, "petard rate <&-")
    without_errors = run_in_shell(petard, "petard rate --example 2>&-")
    without_output = run_in_shell(petard, "petard rate --example >&-")

    assert without_input.returncode == 2
    assert without_input.stderr.startswith("petard: ")
    assert (without_errors.returncode, json.loads(without_errors.stdout)["system"]) == (0, "glicko")
    assert without_output.returncode == 1
    assert "standard output is closed" in without_output.stderr
    assert "Traceback" not in without_input.stderr + without_output.stderr


def test_a_name_in_a_table_is_no_markup(petard, connection, client, keys) -> None:
    make_pool(connection)
    names = ["a:heart:b", "[bold]c[/bold]", "d\\", "[red"]
    apply_all(connection, client, keys, [finished(1, *names[:2]), finished(2, *names[2:])])

    shown = petard.run("leaderboard", "p")
    created = petard.run("pool", "create", "p2", "--setting", "a:heart:b=1")

    for name in names:
        assert f" {name} " in shown.stdout
    assert ":heart:" in created.stderr
