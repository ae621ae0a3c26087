"""The shared vectors of FIDE's tables and rules."""

import math

from petard_worker.ratings import fide
from vector_runners.near import Case, Runner, check_near

LEFT_OUT: dict[str, str] = {}


def games(case: Case) -> list[tuple[float, float]]:
    """The opponents' ratings and the scores against them."""
    return [(game["opponent"]["rating"], game["score"]) for game in case["inputs"]["games"]]


def table_8_1_2(case: Case) -> None:
    """Both columns of the table, every difference of every row."""
    for D_low, D_high, higher, lower in case["expected"]["rows"]:
        for D in range(D_low, (D_high or 10_000) + 1):
            check_near(case, "value", fide.expected_score(D), higher)
            check_near(case, "value", fide.expected_score(-D), lower if D else higher)


def expected_score(case: Case) -> None:
    """PD for a difference, capped where the case says so."""
    cap = case["params"]["clamp"] or 0
    D = fide.capped(-case["inputs"]["opponent_minus_player"], -math.inf, cap, math.inf)

    check_near(case, "expected", fide.expected_score(D), case["expected"]["expected"])


def rating_change(case: Case) -> None:
    """The change of a period."""
    player, params = case["inputs"]["player"]["rating"], case["params"]

    change = fide.rating_change(player, games(case), params["k"], params["time_control"])

    check_near(case, "change", change, case["expected"]["change"])


def performance_rating(case: Case) -> None:
    """Rp of a tournament."""
    check_near(case, "performance", fide.performance(games(case)), case["expected"]["performance"])


RUNNERS: dict[str, Runner] = {
    "table_8_1_2": table_8_1_2,
    "expected_score": expected_score,
    "rating_change": rating_change,
    "performance_rating": performance_rating,
}
