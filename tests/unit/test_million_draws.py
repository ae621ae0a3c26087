"""Hostile games drawn at random, for every system: no NaN, infinity or endless loop, nothing past a limit.

`PETARD_RATING_DRAWS` says how many games are rated over all systems, 20,000 unless it is set; a million take
some minutes: `PETARD_RATING_DRAWS=1000000 pytest tests/unit/test_million_draws.py`. A failure prints the
system with all its parameters and the game; a game that a system does not rate is not counted.
"""

import itertools
import math
import os
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from petard_worker.ratings.pool_rules import SYSTEMS
from rating_draws import check_draw, hostile_system, no_endless_loop

DRAWS = int(os.environ.get("PETARD_RATING_DRAWS", "20000"))
GAMES_OF_AN_EXAMPLE = 1_000
GAMES_OF_A_SYSTEM = 20
EXAMPLES = math.ceil(DRAWS / len(SYSTEMS) / GAMES_OF_AN_EXAMPLE)


@pytest.mark.timeout(120 + 5 * EXAMPLES)
@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_hostile_games_give_finite_numbers_within_the_limits(name: str) -> None:
    rated = 0

    # Shrinking is of no use: another seed is another game, and the message has all of this one.
    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(seed=st.integers(0, 2**64 - 1))
    def rate_a_thousand(seed: int) -> None:
        nonlocal rated
        rated += rate_hostile_games(Random(seed), name)

    rate_a_thousand()

    assert rated >= DRAWS / len(SYSTEMS)


def rate_hostile_games(random: Random, name: str) -> int:
    """Rate a thousand games, twenty by each drawn set of parameters; return how many."""
    rated = 0
    while rated < GAMES_OF_AN_EXAMPLE:
        system = hostile_system(random, name)
        with no_endless_loop():
            rated += sum(check_draw(random, system) for _ in range(GAMES_OF_A_SYSTEM))
    return rated


def test_endless_loop_is_noticed() -> None:
    with pytest.raises(AssertionError, match="still rating"), no_endless_loop(seconds=0.01):
        any(False for _ in itertools.count())
