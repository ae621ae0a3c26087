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
        (("1800",), "line 1: '1800' has 1 cells, but must be opponent,result"),
        (("1800;win",), "line 1: '1800;win' has 1 cells"),
        (("1800,win,a,b",), "line 1: '1800,win,a,b' has 4 cells"),
        (("opponent,result", "1800,win,a"), "line 2: '1800,win,a' has 3 cells"),
        (("opponent,score", "1800,win"), "line 1: columns are 'opponent,score'"),
        (("opponent,result,result", "1800,win,win"), "line 1: columns are"),
        (("name,result", "1800,win"), "line 1: opponent is 'name'"),
        (("1800,win", "opponent,result"), "line 2: opponent is 'opponent'"),
        (("99999,win",), "line 1: opponent is 99999.0"),
    ],
)
def test_row_that_does_not_parse_is_named_by_its_line(lines: tuple[str, ...], said: str) -> None:
    with pytest.raises(CalculatorInputError, match=said):
        read_games(rows(*lines))
