"""Players from text: NAME:RATING, and rows of name and rating."""

import pytest

from petard_worker.ratings.calculator import CalculatorInputError, Entrant
from petard_worker.ratings.calculator.entrants import read_entrant, read_entrants


def rows(*lines: str) -> list[tuple[int, list[str]]]:
    return [(number, line.split(",")) for number, line in enumerate(lines, 1)]


def test_player_is_a_name_and_a_rating() -> None:
    assert read_entrant("Ann:1850.5") == Entrant("Ann", 1850.5)
    assert read_entrant("team:red : -5") == Entrant("team:red", -5)


@pytest.mark.parametrize(
    ("text", "said"), [("Ann", "must be NAME:RATING"), ("Ann:good", "rating of 'Ann' is 'good'")]
)
def test_player_that_does_not_parse_is_refused(text: str, said: str) -> None:
    with pytest.raises(CalculatorInputError, match=said):
        read_entrant(text)


def test_rows_need_no_header_and_may_have_one_in_any_order() -> None:
    players = [Entrant("Ann", 1850), Entrant("Bob", 1700)]

    assert read_entrants(rows("Ann,1850", "", "Bob,1700")) == players
    assert read_entrants(rows("Rating,Name", "1850,Ann", "1700,Bob")) == players
    assert read_entrants(rows("PLAYER,Fed,Elo", "Ann,GER,1850", "Bob,,1700")) == players
    assert read_entrants([(1, ["Ann", "1850,0"]), (2, ["Bob", "1700"])], ";") == players
    assert read_entrants([]) == []


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("Ann,1850", "Bob,x"), "line 2: the rating of 'Bob' is 'x'"),
        (("Ann",), "line 1: 'Ann' has 1 cell, but must be name,rating"),
        (("Ann,1850,GM",), "line 1: 'Ann,1850,GM' has 3 cells"),
    ],
)
def test_row_that_does_not_parse_is_named_by_its_line(lines: tuple[str, ...], said: str) -> None:
    with pytest.raises(CalculatorInputError, match=said):
        read_entrants(rows(*lines))
