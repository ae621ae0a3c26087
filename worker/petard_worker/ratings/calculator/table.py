"""What is expected for every difference of ratings."""

from typing import NamedTuple

from petard_worker.ratings import fide
from petard_worker.ratings.calculator.accepted import check_count
from petard_worker.ratings.calculator.curve import WIDEST
from petard_worker.ratings.calculator.expected import logistic

STEP = 50


class TableRow(NamedTuple):
    """The expected scores of the player who is rated `difference` points more."""

    difference: int
    logistic: float
    table: float


def expected_table(step: int = STEP) -> tuple[TableRow, ...]:
    """Return the expected scores for the multiples of `step`, 1 to 800, from -800 to 800."""
    check_count(step, 1, WIDEST, "the step")
    widest = WIDEST // step * step
    return tuple(TableRow(D, logistic(D), fide.expected_score(D)) for D in range(-widest, widest + 1, step))
