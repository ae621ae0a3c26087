"""The European Go Federation's rules until 2021: the expected score, and con, which others call K.

Source: the EGF's "Official ratings" as they were (europeangodatabase.eu/EGD/EGF_rating_system_old.php), with
the table also at Sensei's Library (senseis.xmp.net/?GoR); their symbols. Ratings are GoR: 100 for 20 kyu,
2100 for 1 dan, 2700 for 7 dan. The table ends there: beyond, its ends are kept.
"""

import math

EPSILON = 0.016
"""What both expected scores together are short of 1, against deflation."""

# fmt: off
CON = (
    116, 110, 105, 100, 95, 90, 85, 80, 75, 70, 65, 60, 55, 51, 47, 43, 39, 35, 31, 27, 24, 21, 18, 15, 13,
    11, 10,
)
"""con at GoR 100, 200, ... 2700."""
# fmt: on


def a(rating: float) -> float:
    """Return how many points make the odds e to 1: 200 up to GoR 100, 70 from 2700, linear between."""
    return min(max(205 - rating / 20, 70.0), 200.0)


def expected_score(rating: float, opponent: float, epsilon: float = EPSILON) -> float:
    """Return S_E, the expected score against the opponent, -epsilon/2 to 1 - epsilon/2.

    a is that of the weaker one; the scores of both add up to 1 - epsilon.
    """
    D = opponent - rating
    return 1 / (math.exp(D / a(min(rating, opponent))) + 1) - epsilon / 2


def k_factor(rating: float) -> float:
    """Return con: 116 at GoR 100 to 10 at 2700, linear between the hundreds, level beyond."""
    step = min(max(rating / 100 - 1, 0.0), len(CON) - 1.0)
    below = min(math.floor(step), len(CON) - 2)
    return CON[below] + (step - below) * (CON[below + 1] - CON[below])
