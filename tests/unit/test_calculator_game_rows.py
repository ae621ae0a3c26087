"""Games from the rows of a table: with or without a header, and a line number in every refusal."""

import pytest

from petard_worker.ratings.calculator import CalculatorInputError, PeriodGame, PlayedGame, read_games


def rows(*lines: str) -> list[tuple[int, list[str]]]:
    return [(number, line.split(",")) for number, line in enumerate(lines, 1)]


def test_rows_need_no_header() -> None:
    assert read_games(rows("1800,win", " -50 , 1/2 ")) == [
        PeriodGame(PlayedGame(1800, 1)),
        PeriodGame(PlayedGame(-50, 0.5)),
    ]


def test_header_may_order_the_columns() -> None:
    found = read_games(rows("Result,Period,Opponent", "loss,2026-01,1800"))

    assert found == [PeriodGame(PlayedGame(1800, 0), "2026-01")]


def test_period_is_the_third_column() -> None:
    found = read_games(rows("1800,win,a", "1800,loss,b", "1800,draw"))

    assert [game.period for game in found] == ["a", "b", ""]


def test_empty_rows_are_left_out() -> None:
    assert len(read_games([(1, []), (2, ["", ""]), (3, ["opponent", "result"]), (5, ["1800", "win"])])) == 1
    assert read_games([]) == []


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("1800,win", "x,win"), "line 2: opponent is 'x', but must be a number"),
        (("1800,won",), "line 1: result is 'won', but must be win, draw or loss"),
        (("1800",), "line 1: '1800' has 1 cell, but must be opponent,result"),
        (("1800;win",), "line 1: '1800;win' has 1 cell,"),
        (("1800,win,a,b",), "line 1: '1800,win,a,b' has 4 cells"),
        (("opponent,result", "1800,win,a"), "line 2: '1800,win,a' has 3 cells, but the first row names 2"),
        (("opponent,points", "1800,win"), "line 1: columns are 'opponent,points', but must be opponent"),
        (("opponent,rating,elo,result",), "line 1: columns are .*, but only one may be opponent"),
        (("opponent,result,result", "1800,win,win"), "line 1: columns are"),
        (("name,result", "1800,win"), "line 1: columns are 'name,result', but must be opponent"),
        (("Gegner,Ergebnis", "1800,win"), "line 1: opponent is 'Gegner'.*; to name the columns it needs"),
        (("opponent,result", "1800,0,5"), "line 2: '1800,0,5' has 3 cells"),
        (("1700,win", "1800,0,5"), "line 2: '1800,0,5' could have one cell 0,5, or two: write 0.5 or loss"),
        (("opponent,result", "1800"), "line 2: '1800' has nothing for result"),
        (("1800,win", "opponent,result"), "line 2: opponent is 'opponent'"),
        (("99999,win",), "line 1: opponent is 99999.0"),
    ],
)
def test_row_that_does_not_parse_is_named_by_its_line(lines: tuple[str, ...], said: str) -> None:
    with pytest.raises(CalculatorInputError, match=said):
        read_games(rows(*lines))


@pytest.mark.parametrize(
    "header", ["Opponent,Score", "RATING,Result", "Elo,result", "Date,Elo,Opponent,Title,Score"]
)
def test_columns_are_found_by_any_of_their_names(header: str) -> None:
    row = {"opponent": "1800", "rating": "1800", "elo": "1800", "score": "0.50", "result": "d", "title": ""}
    names = header.lower().split(",")
    if "elo" in names:
        row["opponent"] = "Müller"  # whose rating has a column of its own

    found = read_games(rows(header, ",".join(row.get(name, "1 May") for name in names)))

    assert found == [PeriodGame(PlayedGame(1800, 0.5))]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_comma_is_a_decimal_one_where_it_separates_no_cells(separator: str) -> None:
    lines = enumerate([["1800,5", "0,5"], ["-50,25", "1,0"]], 1)

    found = read_games(lines, separator)

    assert [game.result for game in found] == [PlayedGame(1800.5, 0.5), PlayedGame(-50.25, 1)]


def test_comma_that_may_mean_thousands_is_refused() -> None:
    with pytest.raises(CalculatorInputError, match=r"line 1: '1,800' could be 1800 or 1\.800"):
        read_games([(1, ["1,800", "win"])], ";")


def test_empty_cells_at_the_end_of_a_row_do_not_count() -> None:
    found = read_games([(1, ["1800", "win", "", "", ""])])

    assert found == [PeriodGame(PlayedGame(1800, 1))]


def test_message_shows_the_separator_of_the_table() -> None:
    with pytest.raises(CalculatorInputError, match="must be opponent;result or opponent;result;period"):
        read_games([(1, ["1800"])], ";")


def test_a_loss_in_words_leaves_no_doubt_of_a_comma() -> None:
    found = read_games(rows("opponent,result,period", "1800,loss,5"))

    assert found == [PeriodGame(PlayedGame(1800, 0), "5")]


@pytest.mark.parametrize("label", ["\x1b[31mred", "\u202eabc", "a\nb", "x" * 65])
def test_period_that_cannot_be_shown_is_refused_with_its_line(label: str) -> None:
    rows = [(1, ["1800", "win", "2026-01"]), (2, ["1800", "win", label])]

    with pytest.raises(CalculatorInputError, match=r"line 2: .*period.*printable"):
        read_games(rows)


@pytest.mark.parametrize("cell", ["1.850", "1,850"])
def test_what_could_be_thousands_is_refused_where_commas_do_not_separate(cell: str) -> None:
    with pytest.raises(CalculatorInputError, match=f"line 1: '{cell}' could be 1850 or 1.850"):
        read_games([(1, [cell, "win"])], ";")


def test_a_half_with_a_decimal_comma_is_no_loss_in_a_named_column() -> None:
    with pytest.raises(CalculatorInputError, match=r"line 2: .*could have one cell 0,5, or two"):
        read_games(rows("opponent,result,period", "1600,0,5"))
