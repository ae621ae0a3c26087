"""A point of Elo in the points of every system: as many as weigh the same between equals."""

import math

import pytest

from petard_worker.ratings.pool_rules import SYSTEMS, pool_rules
from petard_worker.ratings.weng_lin_models import MODELS

SLOPE_OF_ELO = math.log(10) / 1600
"""Of 1 / (1 + 10^(-D / 400)) at D = 0."""
STEP = 0.01
"""So many points of Elo to either side: the curves bend by a millionth of that."""

# Without tau: the chance of Weng and Lin counts it as part of the deviation.
SMOOTH = [
    ("glicko", {}),
    ("glicko2", {}),
    ("elo", {}),
    ("elo", {"scale": 173}),
    ("fifa", {}),
    ("fifa", {"scale": 400}),
    ("world_rugby", {}),
    ("world_rugby", {"clamp": 4}),
    *(("weng_lin", {"model": model, "tau": 0}) for model in MODELS),
    ("weng_lin", {"beta": 200, "tau": 0, "rating": 1500, "rd": 500, "rating_max": 3000}),
]


@pytest.mark.parametrize(("name", "parameters"), SMOOTH, ids=str)
def test_slope_between_equals_of_no_deviation_is_that_of_elo(name, parameters):
    system = pool_rules(name, parameters).system
    equal = system.initial()._replace(rd=0.0)
    step = STEP * system.elo_point()
    better, worse = (equal._replace(rating=equal.rating + way * step) for way in (1, -1))

    slope = (system.expected(better, equal) - system.expected(worse, equal)) / (2 * step)

    assert slope * system.elo_point() == pytest.approx(SLOPE_OF_ELO, rel=1e-6)


@pytest.mark.parametrize("expectation", ["fide_table", "egf_until_2021"])
def test_curves_that_have_no_one_slope_count_in_points_of_elo(expectation):
    system = pool_rules("elo", {"expectation": expectation, "scale": 800}).system

    assert system.elo_point() == 1


def test_every_system_is_compared():
    assert {name for name, _ in SMOOTH} == SYSTEMS.keys()
