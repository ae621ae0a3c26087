"""Drawings of the calculator in a terminal: their height follows the numbers, their size stays in bounds."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.cli.elo.drawing import BLOCKS, WIDEST_LINE, curve, sparkline
from petard_worker.ratings.calculator.expected import logistic


def test_heights_follow_the_values() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == BLOCKS
    assert sparkline([1500, 1520, 1500]) == "▁█▁"
    assert sparkline([1500, 1500]) == "▄▄"


@given(st.lists(st.floats(-20_000, 20_000), min_size=1, max_size=500))
def test_line_has_a_letter_per_value_up_to_its_width(values: list[float]) -> None:
    line = sparkline(values)

    assert len(line) == min(len(values), WIDEST_LINE)
    assert set(line) <= set(BLOCKS)


def test_long_line_keeps_both_ends() -> None:
    line = sparkline([0.0, *[1.0] * 998, 2.0])

    assert (line[0], line[-1], set(line[1:-1])) == ("▁", "█", {"▅"})


def test_curve_rises_from_one_corner_to_the_other() -> None:
    lines = curve(logistic, 800)

    assert max(map(len, lines)) <= 72
    plot = [line[7:] for line in lines[:-2]]
    drawn = [[x for x, letter in enumerate(line) if letter != "\u2800"] for line in plot]
    assert drawn[0][-1] == len(plot[0]) - 1
    assert drawn[-1][0] == 0
    assert all(lower[0] <= higher[0] for higher, lower in pairwise(drawn))


def test_other_curves_are_drawn_too() -> None:
    flat = curve(lambda _difference: 1.0, 100)

    assert "\u2800" not in flat[0]
    assert all(set(line[7:]) == {"\u2800"} for line in flat[1:-2])


@pytest.mark.parametrize("widest", [100, 800])
def test_scale_names_its_ends(widest: int) -> None:
    scale = curve(logistic, widest)[-1]

    assert scale.split() == [f"-{widest}", "0", f"+{widest}"]
