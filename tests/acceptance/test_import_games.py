"""Other people's files through the whole pipeline: every rating as a plain fold of the games makes it."""

import csv
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acceptance.glicko_by_hand import Game, fold

SECONDS = 60
"""Far more than it takes, and far less than minutes: the machine may be busy."""
SCORES = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}


@dataclass(frozen=True)
class Archive:
    """A file of real games, how to import it, and how to read it without Petard."""

    path: str
    options: str
    games: int
    late: int
    read: Callable[[dict[str, str]], Game]


def read_lichess(row: dict[str, str]) -> Game:
    ended = datetime.strptime(row["utc_date_time"], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    return Game(row["white"], row["black"], SCORES[row["result"]], ended)


def read_football(row: dict[str, str]) -> Game:
    difference = int(row["home_score"]) - int(row["away_score"])
    score = 0.5 if difference == 0 else 1.0 if difference > 0 else 0.0
    day = datetime.strptime(row["date"], "%Y-%m-%d").replace(tzinfo=UTC)
    return Game(row["home_team"], row["away_team"], score, day)


LICHESS = Archive(
    "lichess/sample-encounters.csv",
    "--first white --second black --result result --time utc_date_time",
    1_000,
    221,
    read_lichess,
)
FOOTBALL = Archive(
    "football/results.csv",
    "--first home_team --second away_team --first-score home_score --second-score away_score"
    " --time date --neutral neutral",
    49_520,
    0,
    read_football,
)


def import_command(archive: Archive, shared_data: Path) -> list[str]:
    return ["import", "csv", str(shared_data / archive.path), "--pool", "p", *archive.options.split()]


def games_of(archive: Archive, shared_data: Path) -> list[Game]:
    with (shared_data / archive.path).open(encoding="utf-8", newline="") as file:
        return [archive.read(row) for row in csv.DictReader(file)]


def assert_standing(run, games: Iterable[Game]) -> None:
    """Check rating, RD and number of games of every player against the fold by hand."""
    board = {line["player"]: line for line in run("leaderboard", "p", "--top", "1000000", "--json").json}
    expected = fold(games)
    assert board.keys() == expected.keys()
    for name, player in expected.items():
        assert board[name]["rating"] == pytest.approx(player.rating, rel=0, abs=1e-9)
        assert board[name]["rd"] == pytest.approx(player.rd, rel=0, abs=1e-9)
        assert board[name]["games"] == player.games


@pytest.mark.parametrize("archive", [LICHESS, FOOTBALL], ids=lambda archive: archive.path.partition("/")[0])
def test_every_rating_is_that_of_a_plain_fold(run, petard, pool, owner, shared_data, archive):
    started = time.monotonic()

    imported = petard.run(*import_command(archive, shared_data), "--push")
    worked = petard.run("worker", "--burst", timeout=2 * SECONDS)

    assert time.monotonic() - started < SECONDS
    assert (imported.returncode, worked.returncode) == (0, 0), imported.stderr + worked.stderr
    assert imported.stderr.endswith(f"pushed {archive.games} events\n")
    assert_standing(run, games_of(archive, shared_data))
    late = owner.execute("SELECT count(*) FILTER (WHERE late), count(*) FROM petard.ledger").fetchone()
    assert late == (archive.late, archive.games)
    assert run("dead", "list", "--json").json == []


def test_file_imported_twice_counts_once(run, pool, shared_data):
    command = import_command(LICHESS, shared_data)
    run(*command, "--push")
    run("worker", "--burst")
    board = run("leaderboard", pool, "--top", "5000", "--json").json

    again = run(*command, "--push")
    run("worker", "--burst")

    assert again.stderr.endswith("pushed 1000 events\n")
    assert run("leaderboard", pool, "--top", "5000", "--json").json == board
    (status,) = run("status", "--json").json["pools"]
    assert (status["backlog"], status["seq"], status["dead_letters"]) == (0, LICHESS.games, {})


def test_printed_and_piped_into_push_is_the_same_as_pushed_at_once(petard, client, keys, shared_data):
    command = import_command(LICHESS, shared_data)
    at_once = petard.run(*command, "--push")
    expected = client.lrange(keys.events("p"), 0, -1)
    client.delete(keys.events("p"))
    pipe = f"{shlex.join(petard.command(*command))} | {shlex.join(petard.command('push'))}"

    piped = subprocess.run(
        ["sh", "-c", pipe], env=petard.environment, capture_output=True, timeout=60, check=False
    )

    assert (at_once.returncode, piped.returncode) == (0, 0)
    assert len(expected) == LICHESS.games
    assert client.lrange(keys.events("p"), 0, -1) == expected


def test_bad_rows_are_named_by_line_and_the_rest_is_rated(run, pool, tmp_path):
    rows = [
        "white,black,result,ended",
        "alice,bob,1-0,2026-01-01 10:00",
        "alice,bob,perhaps,2026-01-01 11:00",
        "alice,alice,1-0,2026-01-01 12:00",
        "alice,bob,1-0",
        "alice,bob,1-0,tomorrow",
        "",
        "bob,alice,draw,2026-01-01T13:00:00+01:00",
    ]
    file = tmp_path / "games.csv"
    file.write_bytes("\ufeff".encode() + "\r\n".join(rows).encode())
    options = ["--first", "white", "--second", "black", "--result", "result", "--time", "ended", "--push"]

    ended = run("import", "csv", str(file), "--pool", pool, *options)
    run("worker", "--burst")

    said = ended.stderr.splitlines()
    assert ended.code == 1
    assert [line.partition(":")[0] for line in said[:4]] == ["line 3", "line 4", "line 5", "line 6"]
    assert said[4:] == ["pushed 2 events", "petard: 4 rows were left out, the rest was kept"]
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert_standing(run, [Game("alice", "bob", 1, noon.replace(hour=10)), Game("bob", "alice", 0.5, noon)])


def test_column_that_is_not_there_is_a_usage_error_that_lists_those_that_are(run):
    options = ["--first", "White", "--second", "black", "--result", "result", "--time", "ended"]

    ended = run("import", "csv", "-", "--pool", "p", *options, stdin=b"white,black,result,ended\n")

    assert (ended.code, ended.stdout) == (2, "")
    words = "there is no column 'White'; there are 'white', 'black', 'result', 'ended'"
    assert ended.stderr == f"petard: {words}\n"


PGN = """\
[Event "Rated Blitz game"]
[Site "https://lichess.org/abcd1234"]
[White "Zoë"]
[Black "Magnus"]
[Result "1-0"]
[UTCDate "2026.01.01"]
[UTCTime "10:00:00"]

1. e4 { [%clk 0:03:00] } e5 2. Nf3 Nc6 1-0

[Event "Club evening"]
[Site "Reykjavík"]
[Round "2"]
[White "Magnus"]
[Black "Björk"]
[Result "1/2-1/2"]
[Date "2026.01.02"]

1. d4 d5 1/2-1/2

[Event "Adjourned"]
[White "Magnus"]
[Black "Zoë"]
[Result "*"]
[Date "2026.01.03"]

1. c4 *

[Event "Casual game"]
[White "Björk"]
[Black "Zoë"]
[Result "0-1"]
[UTCDate "2026.01.04"]
[UTCTime "12:30:00"]
[Termination "Abandoned"]

1. g4 0-1
"""


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_chess_games_are_rated_from_their_headers(run, pool, tmp_path, encoding):
    file = tmp_path / "games.pgn"
    file.write_bytes(PGN.encode(encoding))

    imported = run("import", "pgn", str(file), "--pool", pool, "--push")
    run("worker", "--burst")
    bjork = run("player", pool, "Björk", "--json").json

    assert imported.code == 1
    assert imported.stderr.splitlines() == [
        "line 21: not finished: Result is '*'",
        "pushed 3 events",
        "petard: 1 rows were left out, the rest was kept",
    ]
    first = datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert_standing(
        run,
        [Game("Zoë", "Magnus", 1, first), Game("Magnus", "Björk", 0.5, datetime(2026, 1, 2, tzinfo=UTC))],
    )
    assert (bjork["bomb"], bjork["abandons"], bjork["games"]) == (10, 1, 1)
