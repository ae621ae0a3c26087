import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from petard_schema import GameFinished, parse_event
from petard_worker.import_games import BadRow, CsvColumns, read_csv

DATA = Path(__file__).parents[2].parent / "shared" / "data"
CHESS = CsvColumns(first="white", second="black", result="result", time="when")
FOOTBALL = CsvColumns(
    first="home_team",
    second="away_team",
    first_score="home_score",
    second_score="away_score",
    time="date",
    neutral="neutral",
)


def read(text: str, columns: CsvColumns = CHESS) -> list[GameFinished | BadRow]:
    return list(read_csv(text.splitlines(keepends=True), columns, "chess", "/test"))


def games(text: str, columns: CsvColumns = CHESS) -> list[GameFinished]:
    rows = read(text, columns)
    assert [row for row in rows if isinstance(row, BadRow)] == []
    return [row for row in rows if isinstance(row, GameFinished)]


def bad_row(text: str, columns: CsvColumns = CHESS) -> BadRow:
    (row,) = read(text, columns)
    assert isinstance(row, BadRow)
    return row


def with_result(result: str, columns: CsvColumns = CHESS) -> str:
    return f"{columns.first},{columns.second},when,result\nann,bob,2026-01-02,{result}\n"


def ranks(event: GameFinished) -> tuple[int, ...]:
    return tuple(side.rank for side in event.data.sides)


def test_row_becomes_an_event_that_the_parser_accepts() -> None:
    (event,) = games("white,black,result,when\nZoë,bob,1-0,2012-12-31 23:01:03\n")

    assert parse_event(event.to_json()) == event
    assert (event.source, event.data.pool) == ("/test", "chess")
    assert event.time == datetime(2012, 12, 31, 23, 1, 3, tzinfo=UTC)
    assert [(side.players, side.rank) for side in event.data.sides] == [(("Zoë",), 1), (("bob",), 2)]
    assert {(side.points, side.home) for side in event.data.sides} == {(None, None)}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        *[(text, (1, 2)) for text in ("1-0", "1 - 0", "1–0", "1", "1.0", "win", "Win", "ann")],
        *[(text, (2, 1)) for text in ("0-1", "0", "0.0", "loss", "bob")],
        *[(text, (1, 1)) for text in ("1/2-1/2", "½-½", "0.5-0.5", "0.5", "1/2", "draw", "Tie", "D")],
    ],
)
def test_result_is_read_as_the_first_player_sees_it(result: str, expected: tuple[int, int]) -> None:
    (event,) = games(with_result(result))

    assert ranks(event) == expected


@pytest.mark.parametrize("result", ["2-1", "0-0", "-1", "X", "2", "+/-", "B", "Ann", "resigned", "1-0\u200b"])
def test_unknown_result_is_a_bad_row_that_names_it(result: str) -> None:
    row = bad_row(with_result(result))

    assert row == BadRow(2, f"result is {result!a}, which is no known result")


@pytest.mark.parametrize("result", ["*", ""])
def test_game_without_result_is_a_bad_row(result: str) -> None:
    row = bad_row(with_result(result))

    assert row == BadRow(2, f"result is {result!r}: the game has no result")


def test_colour_wins_where_the_column_has_it_in_its_name() -> None:
    (white,) = games(with_result("white"))
    (black,) = games(with_result("Black"))
    swapped = replace(CHESS, first="black_id", second="white_id")
    (other,) = games(with_result("white", swapped), swapped)

    assert (ranks(white), ranks(black), ranks(other)) == ((1, 2), (2, 1), (2, 1))


def test_h_and_a_win_only_between_home_and_away() -> None:
    columns = replace(CHESS, first="HomeTeam", second="AwayTeam")

    home, away = games(with_result("H", columns), columns) + games(with_result("A", columns), columns)

    assert (ranks(home), ranks(away)) == ((1, 2), (2, 1))
    assert "no known result" in bad_row(with_result("H")).reason


def test_result_that_could_mean_either_player_is_not_guessed() -> None:
    row = bad_row("white,black,when,result\nblack,white,2026-01-02,white\n")

    assert row == BadRow(2, "result is 'white', which could mean either player")


@pytest.mark.parametrize(
    ("scores", "expected"), [("3,2", (1, 2)), ("2,3", (2, 1)), ("2,2.0", (1, 1)), ("-4,-5", (1, 2))]
)
def test_more_points_win_and_are_kept(scores: str, expected: tuple[int, int]) -> None:
    columns = replace(CHESS, result=None, first_score="a", second_score="b")

    (event,) = games(f"white,black,when,a,b\nann,bob,2026-01-02,{scores}\n", columns)

    assert ranks(event) == expected
    assert [side.points for side in event.data.sides] == [float(score) for score in scores.split(",")]


@pytest.mark.parametrize("score", ["NA", "", "three", "1e3", "nan", "inf", "٣", "1_000"])
def test_score_that_is_no_number_is_a_bad_row_that_names_it(score: str) -> None:
    columns = replace(CHESS, result=None, first_score="a", second_score="b")

    row = bad_row(f"white,black,when,a,b\nann,bob,2026-01-02,0,{score}\n", columns)

    assert row == BadRow(2, f"b is {score!a}, not a number of points")


def test_score_beyond_what_an_event_may_hold_is_a_bad_row() -> None:
    columns = replace(CHESS, result=None, first_score="a", second_score="b")

    rows = read(
        f"white,black,when,a,b\nann,bob,2026-01-02,0,1{'0' * 20}\nann,bob,2026-01-02,0,{'9' * 5000}\n",
        columns,
    )

    assert [row.line for row in rows if isinstance(row, BadRow)] == [2, 3]
    assert all("bad_field:data.sides.1.points" in row.reason for row in rows if isinstance(row, BadRow))


def test_neutral_ground_says_who_is_at_home() -> None:
    header = "home_team,away_team,home_score,away_score,date,neutral\n"

    events = games(header + "A,B,1,0,2026-01-02,FALSE\nA,B,1,0,2026-01-03,TRUE\n", FOOTBALL)

    assert [[side.home for side in event.data.sides] for event in events] == [[True, False], [False, False]]
    assert bad_row(header + "A,B,1,0,2026-01-02,maybe\n", FOOTBALL) == BadRow(
        2, "neutral is 'maybe', neither true nor false"
    )


def test_first_player_may_always_be_at_home() -> None:
    (event,) = games(with_result("1-0"), replace(CHESS, first_at_home=True))

    assert [side.home for side in event.data.sides] == [True, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-04", datetime(2026, 3, 4, tzinfo=UTC)),
        ("2026-03-04 05:06", datetime(2026, 3, 4, 5, 6, tzinfo=UTC)),
        ("2026-03-04 05:06:07", datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)),
        ("2026-03-04T05:06:07.25Z", datetime(2026, 3, 4, 5, 6, 7, 250_000, tzinfo=UTC)),
        ("2026-03-04 05:06:07 UTC", datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)),
        ("2026-03-04T05:06:07+02:00", datetime(2026, 3, 4, 3, 6, 7, tzinfo=UTC)),
        ("2026-03-04 05:06:07 -0530", datetime(2026, 3, 4, 10, 36, 7, tzinfo=UTC)),
    ],
)
def test_time_is_iso_and_utc_unless_it_says_otherwise(text: str, expected: datetime) -> None:
    (event,) = games(f"white,black,result,when\nann,bob,1-0,{text}\n")

    assert event.time == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "04/03/2026",
        "2026-13-01",
        "2026-02-30",
        "2026-03-04 25:00",
        "2026-03-04 05:06:07 CET",
        "2026-03-04Z",
        "2026-W10-3",
        "20260304",
        "1772600000",
        "0001-01-01T00:00:00+14:00",
    ],
)
def test_time_that_is_not_understood_is_a_bad_row_that_names_it(text: str) -> None:
    row = bad_row(f"white,black,result,when\nann,bob,1-0,{text}\n")

    assert row.line == 2
    assert row.reason.startswith(f"time is {text!r}: ")


def test_time_may_have_a_format() -> None:
    text = "white,black,result,when\nann,bob,1-0,04/03/26\n"

    (event,) = games(text, replace(CHESS, time_format="%d/%m/%y"))

    assert event.time == datetime(2026, 3, 4, tzinfo=UTC)
    assert bad_row(text, replace(CHESS, time_format="%d.%m.%Y")).reason.startswith("time is '04/03/26': ")


def test_zone_in_a_format_is_heeded() -> None:
    columns = replace(CHESS, time_format="%Y%m%d %H%M%z")

    (event,) = games("white,black,result,when\nann,bob,1-0,20260304 0100+0200\n", columns)

    assert event.time == datetime(2026, 3, 3, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"result": None}, "name either"),
        ({"first_score": "a", "second_score": "b"}, "name either"),
        ({"result": None, "first_score": "a"}, "name either"),
        ({"time_format": "%H:%M"}, "does not hold year, month and day"),
        ({"time_format": "%Y-%m-%d %!"}, "is not usable"),
        ({"delimiter": ", "}, "delimiter is one character"),
        ({"neutral": "n", "first_at_home": True}, "exclude each other"),
    ],
)
def test_columns_that_cannot_work_are_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        replace(CHESS, **changes)


def test_missing_column_is_named_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match="there is no column 'when'; there are 'white', 'black', 'date'"):
        read_csv(["white,black,date\n"], CHESS, "chess", "/test")


def test_column_that_stands_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="the column 'white' stands in the header 2 times"):
        read_csv(["white,white,black,when,result\n"], CHESS, "chess", "/test")


@pytest.mark.parametrize("lines", [[], ["\n", "  \n"]])
def test_file_without_header_is_refused(lines: list[str]) -> None:
    with pytest.raises(ValueError, match="the file is empty"):
        read_csv(lines, CHESS, "chess", "/test")


def test_header_that_is_no_csv_is_refused() -> None:
    with pytest.raises(
        ValueError, match="line 1: not the header of a CSV file: field larger than field limit"
    ):
        read_csv(["x" * (csv.field_size_limit() + 1)], CHESS, "chess", "/test")


@pytest.mark.parametrize(("pool", "source"), [("Not A Pool", "/test"), ("chess", ""), ("chess", "a\nb")])
def test_pool_or_source_that_no_event_can_carry_is_refused_at_once(pool: str, source: str) -> None:
    with pytest.raises(ValueError, match=r"a pool is|source has|U\+000A"):
        read_csv(["white,black,when,result\n"], CHESS, pool, source)


def test_spreadsheet_file_is_read() -> None:
    text = (
        '\ufeffwhite , black,result,"when",note\r\n'
        "\r\n"
        '"O\'Neil, Ann", bob ,1-0,2026-01-02,"two\r\nlines, ""quoted"""\r\n'
        "   \r\n"
        "cid,dan,0-1,2026-01-03,\r\n"
    )

    events = games(text)

    assert [[side.players for side in event.data.sides] for event in events] == [
        [("O'Neil, Ann",), ("bob",)],
        [("cid",), ("dan",)],
    ]


def test_another_delimiter_is_an_option() -> None:
    (event,) = games("white;black;result;when\nann;bob;1-0;2026-01-02\n", replace(CHESS, delimiter=";"))

    assert ranks(event) == (1, 2)


def test_lines_without_their_ends_are_read_alike() -> None:
    text = 'white,black,result,when,note\nann,bob,1-0,2026-01-02,"two\nlines"\n'

    assert list(read_csv(text.split("\n"), CHESS, "chess", "/test")) == read(text)


def test_bad_rows_are_told_by_line_and_the_rest_is_kept_in_order() -> None:
    rows = read(
        "white,black,result,when\n"
        "ann,bob,1-0,2026-01-02\n"
        "short,row\n"
        "long,row,1-0,2026-01-02,more\n"
        ",bob,1-0,2026-01-02\n"
        "ann,ann,1-0,2026-01-02\n"
        f"{'a' * 65},bob,1-0,2026-01-02\n"
        "al\u202eice,bob,1-0,2026-01-02\n"
        "Zoe\u0308,bob,1-0,2026-01-02\n"
        "\udcff,bob,1-0,2026-01-02\n"
        ",,,\n"
        "cid,dan,0-1,2026-01-03\n"
    )

    bad = [(row.line, row.reason) for row in rows if isinstance(row, BadRow)]
    assert [line for line, _ in bad] == [3, 4, 5, 6, 7, 8, 9, 10, 11]
    assert bad[0][1] == "has 2 fields, the header has 4"
    assert bad[1][1] == "has 5 fields, the header has 4"
    assert bad[3][1] == "self_match: 'ann' plays against themselves"
    assert "holds U+202E (Cf), which is not printable" in bad[5][1]
    assert all(reason.startswith("bad_field:data.sides.0.players.0") for _, reason in [bad[2], *bad[4:8]])
    assert [row.data.sides[0].players for row in rows if isinstance(row, GameFinished)] == [
        ("ann",),
        ("cid",),
    ]
    assert isinstance(rows[0], GameFinished)
    assert isinstance(rows[-1], GameFinished)


def test_huge_field_is_a_bad_row_and_the_next_is_read() -> None:
    huge = "x" * (csv.field_size_limit() + 1)

    rows = read(f"white,black,result,when\n{huge},bob,1-0,2026-01-02\nann,bob,1-0,2026-01-02\n")

    assert rows[0] == BadRow(2, f"field larger than field limit ({csv.field_size_limit()})")
    assert isinstance(rows[1], GameFinished)


def test_quote_that_is_never_closed_is_told_with_the_lines_it_took_along() -> None:
    rows = read(
        'white,black,result,when\nann,bob,1-0,2026-01-02\n"cid,dan,1-0,2026-01-02\neve,fay,1-0,2026-01-02\n'
    )

    assert isinstance(rows[0], GameFinished)
    assert rows[1:] == [BadRow(3, "unexpected end of data (lines 3 to 4)")]


def test_stray_quotes_do_not_swallow_rows_silently() -> None:
    rows = read(
        "white,black,result,when\n"
        '"ann,bob,1-0,2026-01-02\n'
        "cid,dan,1-0,2026-01-02\n"
        'eve,"fay",1-0,2026-01-02\n'
        "gus,hal,1-0,2026-01-02\n"
    )

    assert isinstance(rows[0], BadRow)
    assert rows[0].line == 2
    assert "(lines 2 to 4)" in rows[0].reason
    assert isinstance(rows[1], GameFinished)


def test_rows_are_read_as_they_are_asked_for() -> None:
    taken = []

    def endless() -> Iterator[str]:
        yield "white,black,result,when\n"
        while True:
            taken.append(1)
            yield f"ann,bob,1-0,{datetime(2026, 1, 1) + timedelta(days=len(taken)):%Y-%m-%d}\n"  # noqa: DTZ001

    rows = read_csv(endless(), CHESS, "chess", "/test")

    assert isinstance(next(rows), GameFinished)
    assert len(taken) == 1


TWICE = "white,black,result,when\nann,bob,1-0,2026-01-02\nann,bob,1-0,2026-01-02\nbob,ann,1-0,2026-01-02\n"


def test_importing_twice_gives_the_same_events() -> None:
    assert games(TWICE) == games(TWICE)


def test_games_that_look_alike_are_told_apart() -> None:
    events = games(TWICE)

    assert len({event.id for event in events}) == 3
    assert len({event.data.game for event in events}) == 3


def test_ids_survive_new_rows_columns_and_time_spellings() -> None:
    before = {event.id for event in games(TWICE)}

    after = games(
        "when,note,white,black,result\n2025-12-31,new,cid,dan,draw\n\n2026-01-02 00:00:00Z,,ann,bob,win\n"
        "2026-01-02T00:00,,ann,bob,1\n2026-01-02,,bob,ann,1-0\n2026-01-03,new,ann,bob,1-0\n"
    )

    assert before < {event.id for event in after}


def test_corrected_result_is_the_same_game_under_another_id() -> None:
    before, after = games(TWICE), games(TWICE.replace(",1-0,", ",0-1,"))

    assert [event.data.game for event in before] == [event.data.game for event in after]
    assert {event.id for event in before}.isdisjoint(event.id for event in after)


def test_mended_row_does_not_rename_those_below_it() -> None:
    broken = [row for row in read(TWICE.replace("1-0", "?", 1)) if isinstance(row, GameFinished)]

    assert broken == games(TWICE)[1:]


def test_other_sources_and_pools_have_other_ids() -> None:
    lines = TWICE.splitlines()
    ids = Counter(
        row.id
        for pool, source in [("chess", "/a"), ("chess", "/b"), ("go", "/a")]
        for row in read_csv(lines, CHESS, pool, source)
        if isinstance(row, GameFinished)
    )

    assert (len(ids), set(ids.values())) == (9, {1})


def test_games_may_have_names_of_their_own() -> None:
    columns = replace(CHESS, game="id")

    rows = read("id,white,black,result,when\ng-1,ann,bob,1-0,2026-01-02\n,ann,bob,1-0,2026-01-02\n", columns)

    assert isinstance(rows[0], GameFinished)
    assert rows[0].data.game == "g-1"
    assert isinstance(rows[1], BadRow)
    assert rows[1].reason.startswith("bad_field:data.game")


@pytest.mark.skipif(
    not (DATA / "lichess").exists(), reason="the shared data does not lie beside the checkout"
)
def test_lichess_sample_is_read_whole_in_server_order() -> None:
    path = DATA / "lichess" / "sample-encounters.csv"
    columns = replace(CHESS, time="utc_date_time")

    with path.open(encoding="utf-8", newline="") as file:
        events = list(read_csv(file, columns, "chess", "/lichess"))

    with path.open(encoding="utf-8", newline="") as file:
        expected = [
            (
                row["white"],
                row["black"],
                {"1-0": (1, 2), "0-1": (2, 1)}.get(row["result"], (1, 1)),
                row["utc_date_time"],
            )
            for row in csv.DictReader(file)
        ]
    assert [
        (*(side.players[0] for side in event.data.sides), ranks(event), f"{event.time:%Y-%m-%d %H:%M:%S}")
        for event in events
        if isinstance(event, GameFinished)
    ] == expected
    assert len(expected) == 1000
    assert len({event.id for event in events if isinstance(event, GameFinished)}) == 1000


@pytest.mark.skipif(
    not (DATA / "football").exists(), reason="the shared data does not lie beside the checkout"
)
def test_football_results_are_read_whole() -> None:
    path = DATA / "football" / "results.csv"

    with path.open(encoding="utf-8", newline="") as file:
        rows = list(read_csv(file, FOOTBALL, "football", "/football"))

    with path.open(encoding="utf-8", newline="") as file:
        raw = list(csv.DictReader(file))
    unplayed = [line for line, row in enumerate(raw, 2) if not row["home_score"].isdigit()]
    played = [row for row in raw if row["home_score"].isdigit()]
    events = [row for row in rows if isinstance(row, GameFinished)]
    assert [row.line for row in rows if isinstance(row, BadRow)] == unplayed
    assert len(events) + len(unplayed) == 49_520
    assert len({event.id for event in events}) == len({event.data.game for event in events}) == len(events)
    assert [
        [str(event.time.date()), *((side.players[0], side.points) for side in event.data.sides)]
        for event in events
    ] == [
        [
            row["date"],
            (row["home_team"], float(row["home_score"])),
            (row["away_team"], float(row["away_score"])),
        ]
        for row in played
    ]
    assert sum(event.data.sides[0].home is True for event in events) == sum(
        row["neutral"] == "FALSE" for row in played
    )
    assert sum(ranks(event) == (1, 1) for event in events) == sum(
        row["home_score"] == row["away_score"] for row in played
    )
