"""`petard elo …`: what people type and what they read, without any server."""

import json
import re

import pytest

from acceptance.conftest import Command
from acceptance.warm_commands import Ended

USAGE = 2
NOBODY = "127.0.0.1:1"
"""A port at which nobody listens."""


@pytest.fixture
def elo(run: Command):
    """Run `petard elo` with no server in reach: elo("expected", "1500", "1600")."""
    alone = run.where(
        PETARD_DATABASE_URL=f"postgresql://{NOBODY}/petard", PETARD_REDIS_URL=f"redis://{NOBODY}/0"
    )

    def elo(*arguments: str, stdin: bytes = b"") -> Ended:
        return alone("elo", *arguments, stdin=stdin)

    return elo


def assert_refused(ended: Ended, *words: str) -> None:
    """Check that a command refused what it was given in one line, and printed no result."""
    assert "Traceback" not in ended.stderr, ended
    assert (ended.code, ended.stdout) == (USAGE, ""), ended
    for word in words:
        assert word in ended.stderr, ended


def assert_good(ended: Ended, *words: str) -> None:
    """Check that a command printed these words on standard output, and no number that is none."""
    assert ended.code == 0, ended
    assert not re.search(r"\b(nan|inf|infinity)\b", ended.stdout, re.IGNORECASE), ended
    for word in words:
        assert word in ended.stdout, (word, ended.stdout)


def test_expected_shows_both_readings_and_the_cap(elo):
    shown = elo("expected", "1200", "1800")
    facts = elo("expected", "1200", "1800", "--json").json

    assert_good(shown, "3.07 %", "96.93 %", "2.00 %", "8.00 %", "overwhelming underdog")
    assert "slight favourite from 55%" in shown.stderr
    assert facts["player"]["logistic"] == pytest.approx(0.030653430031715508, abs=1e-17)
    assert (facts["player"]["table"], facts["player"]["counted"]) == (0.02, 0.08)
    assert facts["opponent"]["odds"] == "overwhelming favourite"


def test_negative_ratings_are_no_options(elo):
    assert_good(elo("expected", "--", "-50", "100"), "-50", "29.66 %")
    assert_good(elo("expected", "-50", "100"), "-50", "29.66 %")
    assert_good(elo("change", "-50", "-100", "loss", "--k", "20"), "-61.43")


def test_change_shows_both_formulas_k_and_why(elo):
    shown = elo("change", "1200", "1800", "win", "--k", "40")
    facts = elo("change", "1200", "1800", "win", "--k", "40", "--json").json

    assert_good(shown, "+38.77", "1239", "+36.80", "1237", "K 40: as given", "notionally", "none")
    assert facts["player"]["plain"]["change"] == pytest.approx(38.77386279873138, abs=1e-12)
    assert facts["player"]["fide"]["change"] == pytest.approx(36.8, abs=1e-12)
    assert facts["performance"]["exact"] is None
    assert facts["opponent"] is None


def test_change_finds_k_by_rule_and_says_what_it_assumed(elo):
    assumed = elo("change", "1800", "1700", "draw")
    known = elo("change", "1800", "1700", "draw", "--games", "12", "--age", "30")
    other = elo("change", "1800", "1700", "draw", "--k", "calculator")
    master = elo("change", "2350", "2300", "w", "--peak", "2410")

    assert_good(assumed, "K 20: 30 games or more", "30 or more assumed")
    assert_good(known, "K 40: fewer than 30 games")
    assert "assumed" not in known.stdout
    assert_good(other, "K 40: rated below 2100", "not FIDE's rule")
    assert_good(master, "K 10: rated 2400 or more")
    assert_good(elo("change", "1800", "1700", "w", "--games", "40", "--age", "15.5"), "K 40: to the end")


def test_opponent_is_moved_by_the_own_k_only(elo):
    silent = elo("change", "1200", "1800", "win", "--k", "40")
    moved = elo("change", "1200", "1800", "win", "--k", "40", "--opponent-k", "20")

    assert "--opponent-k" in silent.stderr
    assert_good(moved, "-19.39", "-18.40", "1782")


def test_performance_names_three_definitions(elo):
    shown = elo("performance", "1800:win", "1650:draw", "1700:loss")
    perfect = elo("performance", "1500:win")

    assert_good(shown, "linear", "1716.67", "FIDE", "table 8.1.1", "exact", "1 / (1 + 10^((R_j - R) / 400))")
    assert_good(perfect, "1900", "2300", "none", "the one that comes closest is infinite")


def test_tournament_shows_every_game_and_the_sum(elo):
    games = [word for game in ("1800:win", "1650:draw", "1500:win") for word in ("--game", game)]

    plain = elo("tournament", "1600", *games)
    fide = elo("tournament", "1600", *games, "--mode", "fide")
    facts = elo("tournament", "1600", *games, "--mode", "fide", "--json").json

    assert_good(plain, "+15.19", "2 won, 1 drawn, 0 lost", "+22.97", "1622.97")
    assert re.search("[▁▂▃▄▅▆▇█]{4}", plain.stdout)
    assert_good(fide, "24.00 %", "+23.80", "+24", "1624")
    assert facts["mode"] == "fide"
    assert [game["after"] for game in facts["games"]] == pytest.approx([1615.2, 1616.6, 1623.8])
    assert (facts["final"], facts["periods"][0]["rounded"]) == (1624, 24)
    assert facts["games"][0]["k"]["why"].startswith("K 20")
    assert facts["games"][0]["k"]["reason"] == "fide_usual"
    assert facts["ratings"] == pytest.approx([1600, 1615.2, 1616.6, 1623.8])
    assert (facts["record"]["points"], facts["record"]["games"]) == (2.5, 3)


def test_rating_below_the_lowest_of_fide_is_told(elo):
    below = elo("tournament", "1402", "--game", "1402:loss", "--mode", "fide", "--k", "40")
    above = elo("tournament", "1440", "--game", "1440:loss", "--mode", "fide", "--k", "40")
    plain = elo("tournament", "1402", "--game", "1402:loss", "--k", "40")

    assert_good(below, "1382")
    assert "below 1400 unrated (7.2.1)" in below.stderr
    assert "unrated" not in above.stderr + plain.stderr


def test_help_says_that_the_rules_of_fide_are_those_of_standard_games(elo):
    told = [" ".join(elo(command, "--help").stdout.split()) for command in ("change", "tournament")]

    assert all("standard games" in text and "Rapid and blitz" in text for text in told)


def test_tournament_reads_periods_from_a_file(elo, tmp_path):
    file = tmp_path / "games.csv"
    file.write_bytes("\ufeffopponent,result,period\r\n1500,win,May\r\n\r\n1510,1,June\r\n".encode())

    shown = elo("tournament", "1510", "--csv", str(file), "--mode", "fide", "--k", "20", "--json").json
    piped = elo("tournament", "1500", "--csv", "-", "--k", "40", "--json", stdin=b"1500,win\n").json

    assert [(period["period"], period["rounded"]) for period in shown["periods"]] == [
        ("May", 10),
        ("June", 10),
    ]
    assert piped["final"] == 1520


def test_percentile_without_a_pool_is_an_estimate_with_its_source(elo):
    shown = elo("percentile", "1803")
    facts = elo("percentile", "1803", "--json").json

    assert_good(shown, "estimated", "84.13 %", "German Chess Federation", "doi.org/10.1098/rspb.2008.1576")
    assert facts["estimate"] is True
    assert facts["percentile"] == pytest.approx(84.134474606854, abs=1e-9)
    assert facts["reference"]["mean"] == 1461


def test_table_has_both_columns_and_a_curve_of_at_most_72_columns(elo):
    shown = elo("table")
    facts = elo("table", "--step", "400", "--json").json

    curve, _, table = shown.stdout.partition("\n\n")
    assert_good(shown, "90.91 %", "92.00 %")
    assert len(table.splitlines()) == 34
    assert max(map(len, curve.splitlines())) <= 72
    assert [row["difference"] for row in facts] == [-800, -400, 0, 400, 800]
    assert [row["table"] for row in facts] == [0, 0.08, 0.5, 0.92, 1]


def test_table_draws_a_file_for_the_web(elo, tmp_path):
    pytest.importorskip("petard_worker.sheet.elo_curve")
    file = tmp_path / "curve.svg"

    shown = elo("table", "--svg", str(file))

    assert_good(shown)
    assert str(file) in shown.stderr
    assert "<svg" in file.read_text(encoding="utf-8")


def test_file_that_is_there_is_kept_unless_forced(elo, tmp_path):
    file = tmp_path / "curve.svg"
    file.write_text("precious")

    kept = elo("table", "--svg", str(file))
    content = file.read_text()
    forced = elo("table", "--svg", str(file), "--force")

    assert (kept.code, kept.stderr) == (1, f"petard: {file} exists already: --force overwrites it\n")
    assert content == "precious"
    assert_good(forced)
    assert "<svg" in file.read_text(encoding="utf-8")


def test_dash_is_standard_output_for_a_curve(petard, tmp_path):
    file = tmp_path / "curve.svg"
    petard.run("elo", "table", "--svg", str(file))

    piped = petard.run("elo", "table", "--svg", "-")

    assert (piped.returncode, piped.stdout) == (0, file.read_text(encoding="utf-8"))


def test_terminal_without_a_letter_of_a_name_shows_its_code_point(petard):
    petard.environment["PYTHONIOENCODING"] = "ascii"

    shown = petard.run("elo", "simulate-field", "--player", "Zoë:1500", "--player", "Ann:1400", "--runs", "9")

    assert shown.returncode == 0
    assert "Zo\\xeb" in shown.stdout


def test_terminal_without_these_letters_gets_others(petard):
    petard.environment["PYTHONIOENCODING"] = "ascii"

    curve = petard.run("elo", "table")
    line = petard.run("elo", "tournament", "1500", "--game", "1500:win")
    source = petard.run("elo", "percentile", "1500")

    assert [one.returncode for one in (curve, line, source)] == [0, 0, 0]
    assert "*****" in curve.stdout
    assert "_#" in line.stdout
    assert "(2009)" in source.stdout


def test_sources_are_cited_in_both_styles(elo):
    apa = elo("cite", "apa")
    one = elo("cite", "mla", "glicko")
    petard = elo("cite", "apa", "petard", "--json").json

    assert_good(
        apa, "Elo, A. E. (1978)", "Glickman, M. E. (1999)", "Weng, R. C., & Lin, C.-J. (2011)", "FIDE"
    )
    assert_good(one, "Glickman, Mark E.", "1999")
    assert len(one.stdout.splitlines()) == 1
    assert re.fullmatch(
        r"The Petard authors\. \(2026\)\. Petard \(Version \d+\.\d+\S*\) \[Computer software\]\.",
        petard[0]["text"],
    )
    assert [line.split()[0] for line in apa.stdout.splitlines()] == [
        *("Elo,", "Glickman,", "Glickman,", "International", "The", "Weng,")
    ]


FIELD = ("--player", "Ann:1900", "--player", "Bob:1800", "--player", "Cem:1750", "--runs", "500")


def test_field_is_played_the_same_with_the_same_seed(elo):
    once, again, other = (
        elo("simulate-field", *FIELD, "--seed", seed, "--json").stdout for seed in ("5", "5", "6")
    )

    assert once == again != other
    players = json.loads(once)["players"]
    assert [player["name"] for player in players] == ["Ann", "Bob", "Cem"]
    assert all(sum(player["places"]) == pytest.approx(1) for player in players)


def test_field_may_come_from_a_file_and_play_a_swiss(elo, tmp_path):
    file = tmp_path / "field.csv"
    file.write_text("name,rating\n" + "\n".join(f"P{n},{1500 + 20 * n}" for n in range(12)) + "\n")

    shown = elo("simulate-field", "--csv", str(file), "--format", "swiss", "--rounds", "5", "--runs", "200")

    assert_good(shown, "P11", "place 1", "%")
    assert "200 tournaments of 5 rounds" in shown.stderr


WRONG = [
    (("expected", "many", "1500"), "'many'"),
    (("expected", "nan", "1500"), "'nan'"),
    (("expected", "1500", "inf"), "'inf'"),
    (("expected", "1500", "10001"), "from -10000 to 10000"),
    (("expected", "1500"), "OPPONENT"),
    (("expected", "1500", "1600", "--jsn"), "--jsn"),
    (("expected", "1500", "\udcff"), "udcff"),
    (("change", "1500", "1500", "won"), "win, draw or loss"),
    (("change", "1500", "1500", "win", "--k", "0"), "K is 0"),
    (("change", "1500", "1500", "win", "--k", "-5"), "K is -5"),
    (("change", "1500", "1500", "win", "--k", "uscf"), "auto, fide, calculator"),
    (("change", "1500", "1500", "win", "--k", "800"), "K is 800"),
    (("change", "1500", "1500", "win", "--games", "-1"), "number of games is -1"),
    (("change", "1500", "1500", "win", "--games", "x"), "number of games is 'x'"),
    (("change", "1500", "1500", "win", "--age", "900"), "age is 900"),
    (("change", "1500", "1500", "win", "--age", "old"), "age is 'old'"),
    (("change", "1500", "1500", "win", "--peak", "high"), "highest rating is 'high'"),
    (("change", "1500", "1500", "win", "--opponent-k", "0"), "K is 0"),
    (("performance",), "--csv"),
    (("performance", "1800"), "OPPONENT:RESULT"),
    (("performance", "1800:win", "--csv", "-"), "not both"),
    (("performance", "--csv", "-"), "no games"),
    (("tournament", "1500"), "--game"),
    (("tournament", "1500", "--game", "1500:win", "--csv", "-"), "not both"),
    (("tournament", "1500", "--game", "x:win"), "'x'"),
    (("tournament", "x", "--game", "1500:win"), "starting rating is 'x'"),
    (("tournament", "1500", "--game", "1500:win", "--mode", "uscf"), "plain, fide"),
    (("percentile",), "POOL|RATING"),
    (("percentile", "high"), "'high'"),
    (("percentile", "pool", "high"), "'high'"),
    (("table", "--step", "0"), "the step is 0"),
    (("table", "--step", "7x"), "the step is '7x'"),
    (("table", "--svg", "-", "--json"), "--svg - and --json"),
    (("cite", "chicago"), "apa or mla"),
    (("cite", "apa", "uscf"), "elo, fide, glicko, glicko2, weng_lin, petard"),
    (("simulate-field",), "--player NAME:RATING"),
    (("simulate-field", "--csv", "-"), "number of players is 0"),
    (("simulate-field", "--player", "Ann"), "NAME:RATING"),
    (("simulate-field", *FIELD, "--player", "Ann:1"), "'Ann' is there twice"),
    (("simulate-field", *FIELD, "--format", "knockout"), "single, double, swiss"),
    (("simulate-field", *FIELD, "--format", "swiss"), "--rounds"),
    (("simulate-field", *FIELD, "--rounds", "3"), "--rounds"),
    (("simulate-field", *FIELD, "--format", "swiss", "--rounds", "4"), "number of rounds is 4"),
    (("simulate-field", *FIELD, "--draws", "nan"), "share of draws is 'nan'"),
    (("simulate-field", *FIELD, "--draws", "1.5"), "share of draws is 1.5"),
    (("simulate-field", *FIELD, "--runs", "x"), "number of runs is 'x'"),
    (("simulate-field", *FIELD, "--runs", "0"), "number of runs is 0"),
    (("simulate-field", *FIELD, "--seed", "x"), "seed is 'x'"),
    (("simulate-field", *FIELD, "--format", "swiss", "--rounds", "x"), "number of rounds is 'x'"),
    (("simulate-field", "--pool", "chess", "--top", "1"), "--top is 1"),
    (("simulate-field", "--pool", "chess", "--top", "x"), "--top is 'x'"),
]


def test_what_cannot_be_calculated_with_is_a_usage_error_that_names_it(elo):
    ended = [(elo(*command), word) for command, word in WRONG]

    for one, word in ended:
        assert_refused(one, word)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"1800,win\n1700,lost\n", ("line 2", "'lost'", "win, draw or loss")),
        (b"opponent,result\n1800\n", ("line 2", "'1800' has nothing for result")),
        (b"1800;win\n1700;lost\n", ("line 2", "'lost'")),
        (b"1,800;win\n", ("line 1", "'1,800' could be 1800 or 1.800")),
        (b"opponent;result\n1800;1\n1700;1;5;9\n", ("line 3", "'1700;1;5;9' has 4 cells")),
        (b'"1800,win\n', ("line 1", "CSV")),
        (b"1800,win\n\xff\xfe,win\n", ("line 2", "UTF-8", "xff")),
        ("opponent;result;period\n1800;win;März\n".encode("cp1252"), ("line 2", "UTF-8", "Excel", "xe4rz")),
        ("1800;win\n".encode("utf-16-le"), ("UTF-8", "Excel")),
        (b"\xff\xfe1", ("UTF-16",)),
        (b"", ("no games",)),
    ],
)
def test_file_that_does_not_parse_is_refused_by_its_line(elo, tmp_path, content, words):
    file = tmp_path / "games.csv"
    file.write_bytes(content)

    ended = elo("tournament", "1500", "--csv", str(file))

    assert_refused(ended, *words)


SHEETS = {
    "comma": "opponent,result\n1800,0.5\n1700.5,win\n",
    "semicolon": "opponent;result\r\n1800;0,5\r\n1700,5;1\r\n",
    "tab": "Opponent\tResult\n1800\t½\n1700,5\twin\n",
    "quoted": 'opponent,result\n"1800","0,5"\n"1700.5","1,0"\n',
    "decimals": "1800;0.50\n1700.5;1.0\n",
    "no header": "1800;0,5\n1700,5;1\n",
    "other names": "Score;Round;Elo;Opponent\n0,5;1;1800;Müller, Hans\n1;2;1700,5;\n",
    "named separator": "sep=;\r\nopponent;result\r\n1800;0,5\r\n1700,5;1\r\n",
    "empty lines and cells": ";;\n\nopponent;result;\n1800;0,5;\n;;\n1700,5;1;\n",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("kind", SHEETS)
def test_file_is_read_as_spreadsheets_write_it(elo, tmp_path, kind, encoding):
    file = tmp_path / "games.csv"
    file.write_bytes(SHEETS[kind].encode(encoding))

    found = elo("tournament", "1500", "--csv", str(file), "--json").json

    assert [(game["opponent"], game["score"]) for game in found["games"]] == [(1800, 0.5), (1700.5, 1)]


@pytest.mark.parametrize(
    "content",
    [
        "Name;Elo\nMüller, Hans;1900,5\nAnn;1800\n",
        "elo\tfed\tplayer\n1900,5\tGER\tMüller, Hans\n1800\t\tAnn\n",
        '"Müller, Hans",1900.5\nAnn,1800\n',
    ],
)
def test_players_are_read_as_spreadsheets_write_them(elo, content):
    found = elo("simulate-field", "--csv", "-", "--runs", "50", "--json", stdin=content.encode()).json

    assert {player["name"]: player["rating"] for player in found["players"]} == {
        "Müller, Hans": 1900.5,
        "Ann": 1800,
    }


def test_lines_of_a_tournament_fit_a_terminal_and_every_reason_of_k_stands_once(elo):
    games = [word for opponent in range(1500, 1800, 25) for word in ("--game", f"{opponent}:draw")]

    shown = [elo("tournament", "1600", *games, "--mode", mode, "--games", "25") for mode in ("plain", "fide")]
    one = elo("change", "1600", "1700", "win", "--opponent-k", "auto")

    assert max(len(line.rstrip()) for ended in (*shown, one) for line in ended.stdout.splitlines()) <= 90
    assert [ended.stdout.count("(FIDE B.02, 8.3.3)") for ended in (*shown, one)] == [2, 1, 1]
    assert [line.strip() for line in shown[0].stdout.splitlines() if line.startswith("K ")] == [
        "K 40: fewer than 30 games (FIDE B.02, 8.3.3)",
        "K 20: 30 games or more, never rated 2400 (FIDE B.02, 8.3.3)",
    ]


def test_empty_line_stands_between_two_tables(elo):
    heads = {
        "change": ("1500", "1600", "win", "--opponent-k", "20"),
        "performance": ("1500:win", "1600:draw"),
        "tournament": ("1500", "--game", "1500:win", "--mode", "fide"),
    }

    for command, arguments in heads.items():
        lines = elo(command, *arguments).stdout.splitlines()
        at = next(number for number, line in enumerate(lines) if line.startswith("performance "))
        assert not lines[at - 1].strip(), (command, lines)


def test_source_of_an_estimate_is_wrapped(elo):
    shown = elo("percentile", "1800")

    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_help_says_what_a_bye_is_and_how_files_are_read(elo):
    field = " ".join(elo("simulate-field", "--help").stdout.split())
    files = [" ".join(elo(command, "--help").stdout.split()) for command in ("tournament", "performance")]

    assert "gets a bye: no game, and a full point" in field
    assert all(
        "separated by ; or tab or comma" in text and "decimal comma" in text for text in [field, *files]
    )


def test_file_that_is_not_there_is_named(elo, tmp_path):
    missing = str(tmp_path / "nowhere.csv")

    ended = [elo(*command, "--csv", missing) for command in (("performance",), ("tournament", "1500"))]

    assert [(one.code, one.stdout) for one in ended] == [(1, ""), (1, "")]
    assert all(missing in one.stderr for one in ended)


def test_calculator_starts_as_a_process_of_its_own(petard):
    ended = petard.run("elo", "change", "1200", "1800", "win", "--k", "40", "--json")

    assert ended.returncode == 0
    assert json.loads(ended.stdout)["player"]["plain"]["rounded"] == 1239


@pytest.mark.parametrize(
    "command",
    ["expected", "change", "performance", "tournament", "percentile", "table", "cite", "simulate-field"],
)
def test_help_has_an_example_that_works(elo, command, tmp_path):
    told = " ".join(elo(command, "--help").stdout.replace("│", " ").split())

    example = re.search(rf"Example: petard elo ({command} .+?)(?=\. |, or | Ratings below| ╭)", told)

    assert example is not None, told
    if command != "percentile":
        words = example.group(1).replace("curve.svg", str(tmp_path / "curve.svg")).split()
        assert elo(*words).code == 0
