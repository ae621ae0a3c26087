"""The two lines are what Elo and FIDE say."""

import math
from itertools import pairwise

import pytest

from petard_worker.ratings.calculator import Point, fide_line, logistic_line


# The first four are of Elo's calculator page as printed there; by symmetry the others.
@pytest.mark.parametrize(
    ("difference", "score"), [(0, 0.5), (200, 0.7597), (400, 0.9091), (600, 0.9693), (-600, 0.0307)]
)
def test_the_smooth_line_is_the_logistic_one(difference: int, score: float) -> None:
    line = dict(logistic_line())

    drawn = line[difference]

    assert drawn == pytest.approx(score, abs=5e-5)


def test_the_smooth_line_rises_everywhere_and_is_symmetric() -> None:
    line = logistic_line()

    scores = [point.score for point in line]

    assert all(low < high for low, high in pairwise(scores))
    assert all(math.isclose(a + b, 1) for a, b in zip(scores, reversed(scores), strict=True))


# Handbook B.02, table 8.1.2: 0-3 are .50, 4-10 are .51, 392-411 are .92, 620-735 are .99, above is 1.
@pytest.mark.parametrize(
    ("between", "scores"),
    [
        ((3, 4), (0.50, 0.51)),
        ((10, 11), (0.51, 0.52)),
        ((391, 392), (0.91, 0.92)),
        ((735, 736), (0.99, 1.0)),
    ],
)
def test_the_steps_are_those_of_the_table(between: tuple[int, int], scores: tuple[float, float]) -> None:
    corner = sum(between) / 2

    at_corner = [point.score for point in fide_line() if point.difference == corner]

    assert at_corner == list(scores)


def test_the_step_line_goes_from_nothing_to_everything_in_steps_of_a_hundredth() -> None:
    line = fide_line()

    rises = [after.score - before.score for before, after in pairwise(line)]

    assert (line[0], line[-1]) == (Point(-800, 0), Point(800, 1))
    assert len([rise for rise in rises if rise]) == 100
    assert all(rise == pytest.approx(0.01) for rise in rises if rise)
