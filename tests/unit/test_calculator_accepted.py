"""What the calculator takes for a number, a result or a game, and how it refuses the rest."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.calculator.accepted import (
    CalculatorInputError,
    PlayedGame,
    check_count,
    check_k,
    check_rating,
    check_results,
    check_score,
    read_count,
    read_game,
    read_rating,
    read_score,
    shortened,
)


@pytest.mark.parametrize(
    ("text", "rating"),
    [("1500", 1500), (" -12.5 ", -12.5), ("+7", 7), (".5", 0.5), ("1e3", 1000), ("-10000", -10_000)],
)
def test_rating_is_read_as_people_write_numbers(text: str, rating: float) -> None:
    assert read_rating(text) == rating


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "many",
        "nan",
        "inf",
        "-inf",
        "1_000",
        "1,500",
        "0x10",
        "1e999",
        "10000.1",
        "-10001",
        "１５００",
    ],
)
def test_rating_that_is_no_number_in_range_is_refused_by_name(text: str) -> None:
    with pytest.raises(CalculatorInputError, match=r"the rating of Ann is .*must be a number"):
        read_rating(text, "the rating of Ann")


@pytest.mark.parametrize("rating", [math.nan, math.inf, -math.inf, 10_001, -10_001, 10**400])
def test_rating_out_of_range_is_refused_with_the_range(rating: float) -> None:
    with pytest.raises(CalculatorInputError, match="must be a number from -10000 to 10000"):
        check_rating(rating)


@pytest.mark.parametrize("k", [0, -20, math.nan, math.inf, 700.5, 1001])
def test_k_must_be_above_nothing(k: float) -> None:
    with pytest.raises(CalculatorInputError, match="K is"):
        check_k(k)


@pytest.mark.parametrize("count", [-1, 11, 2.5])
def test_count_out_of_range_is_refused(count: int) -> None:
    with pytest.raises(CalculatorInputError, match=r"the number of games is .*whole number from 0 to 10"):
        check_count(count, 0, 10, "the number of games")


@pytest.mark.parametrize(("text", "count"), [("30", 30), (" 7 ", 7), ("-1", -1), ("1e3", 1000)])
def test_count_is_read_as_people_write_numbers(text: str, count: int) -> None:
    assert read_count(text, "the number of games") == count


@pytest.mark.parametrize("text", ["", "x", "15.5", "nan", "inf", "1_000"])
def test_count_that_is_no_whole_number_is_refused_by_name(text: str) -> None:
    with pytest.raises(CalculatorInputError, match=r"the number of games is '.*must be a whole number"):
        read_count(text, "the number of games")


@pytest.mark.parametrize("text", ["win", "W", " 1 ", "1.0", "1,0"])
def test_win_is_one(text: str) -> None:
    assert read_score(text) == 1


@pytest.mark.parametrize("text", ["draw", "d", "0.5", ".5", "1/2", "½", "Draw", "0.50", "0,5", "0,50"])
def test_draw_is_half(text: str) -> None:
    assert read_score(text) == 0.5


@pytest.mark.parametrize("text", ["loss", "l", "0", "L"])
def test_loss_is_nothing(text: str) -> None:
    assert read_score(text) == 0


@pytest.mark.parametrize("text", ["", "won", "2", "-1", "0.25", "1-0", "nan"])
def test_unknown_result_is_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(CalculatorInputError, match="must be win, draw or loss"):
        read_score(text)


@pytest.mark.parametrize("score", [0.25, 2, -1, math.nan])
def test_score_that_no_game_ends_with_is_refused(score: float) -> None:
    with pytest.raises(CalculatorInputError, match="score is"):
        check_score(score)


def test_game_is_an_opponent_and_a_result() -> None:
    assert read_game("1800:win") == PlayedGame(1800, 1)
    assert read_game("-50:1/2") == PlayedGame(-50, 0.5)


@pytest.mark.parametrize(
    ("text", "said"),
    [("1800", "OPPONENT:RESULT"), ("x:win", "opponent's rating is 'x'"), ("1800:won", "result is 'won'")],
)
def test_game_that_does_not_parse_is_refused_with_what_was_expected(text: str, said: str) -> None:
    with pytest.raises(CalculatorInputError, match=said):
        read_game(text)


def test_no_games_are_refused() -> None:
    with pytest.raises(CalculatorInputError, match="at least one"):
        check_results(())


@given(st.text(st.characters(), max_size=5000))
def test_message_shows_any_text_in_one_short_line_of_ascii(text: str) -> None:
    shown = shortened(text)

    assert shown.isascii()
    assert shown.isprintable()
    assert len(shown) < 500
