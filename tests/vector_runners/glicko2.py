"""The shared vectors of Glicko-2, run by the system itself where a case is more than one formula."""

import math
from collections.abc import Mapping

from petard_worker.ratings.glicko2 import SCALE, Glicko2, aged_rd, bracket
from petard_worker.ratings.system import Game, GameSide, PlayerState, Rated, Terms, sum_terms
from vector_runners.near import Case, Runner, check_near

Player = Mapping[str, float]


def system_of(case: Case) -> Glicko2:
    """The system without limits, for the cases know none: each game a period, or as much of one as named."""
    params = case["params"]
    return Glicko2(
        tau=params["tau"],
        rd=1_000,
        rd_floor=1,
        volatility_min=0.0001,
        volatility_max=10,
        rating_min=-10_000,
        rating_max=10_000,
        periods_per_day=params.get("inflate_periods", 1),
        home_advantage=params.get("first_advantage", 0),
    )


def state(player: Player) -> PlayerState:
    """The player, a day after the last game."""
    return PlayerState(player["rating"], player["deviation"], player.get("volatility"), days=1)


def after(rated: Rated) -> PlayerState:
    """The player, a day after that game."""
    return PlayerState(rated.rating, rated.rd, rated.volatility, days=1)


def duel(a: PlayerState, b: PlayerState, s: float) -> Game:
    """The game of a against b, where a is at home; s is the score of a."""
    return Game((GameSide((a,), 1 if s > 0 else 2, home=True), GameSide((b,), 1 if s < 1 else 2, home=False)))


def check_rated(case: Case, rated: Rated | PlayerState, expected: Player) -> None:
    check_near(case, "rating", rated.rating, expected["rating"])
    check_near(case, "deviation", rated.rd, expected["deviation"])
    if "volatility" in expected:
        assert rated.volatility is not None
        check_near(case, "volatility", rated.volatility, expected["volatility"])


def sums_of(case: Case) -> Terms:
    """The sums of the player's results of the period."""
    system, player = system_of(case), state(case["inputs"]["player"])
    games = [duel(player, state(game["opponent"]), game["score"]) for game in case["inputs"]["games"]]
    return sum_terms([terms for game in games for terms in system.results(game)[0]])


def v_and_delta(case: Case) -> tuple[float, float]:
    information, gain, _, _ = sums_of(case)
    return 1 / information, gain / information


def run_period_update(case: Case) -> None:
    rated = system_of(case).rate_period(state(case["inputs"]["player"]), sums_of(case))
    check_rated(case, rated, case["expected"])


def run_v_delta(case: Case) -> None:
    v, delta = v_and_delta(case)
    check_near(case, "v", v, case["expected"]["v"])
    check_near(case, "delta", delta, case["expected"]["delta"])


def run_illinois_start(case: Case) -> None:
    v, delta = v_and_delta(case)
    player = case["inputs"]["player"]
    spread = (player["deviation"] / SCALE) ** 2 + v
    got = bracket(math.log(player["volatility"] ** 2), delta**2 - spread, spread, case["params"]["tau"])
    for name, value in zip(("A", "B", "fA", "fB"), got, strict=True):
        check_near(case, name, value, case["expected"][name])


def run_scale(case: Case) -> None:
    check_near(case, "phi", case["inputs"]["deviation"] / SCALE, case["expected"]["phi"])


def run_inactivity(case: Case) -> None:
    player = case["inputs"]["player"]
    got = aged_rd(player["deviation"], player["volatility"], case["inputs"]["periods"], case["params"]["cap"])
    check_near(case, "deviation", got, case["expected"]["deviation"])


def run_game_update(case: Case) -> None:
    inputs, expected = case["inputs"], case["expected"]
    rated = system_of(case).rate(duel(state(inputs["a"]), state(inputs["b"]), inputs["score_a"]))
    check_rated(case, rated[0], expected["a"])
    check_rated(case, rated[1], expected["b"])


def run_sequence(case: Case) -> None:
    system, player = system_of(case), state(case["inputs"]["player"])
    for game in case["inputs"]["games"]:
        player = after(system.rate(duel(player, state(game["opponent"]), game["score"]))[0])
    check_rated(case, player, case["expected"])


def run_streak(case: Case) -> None:
    system, a, b = system_of(case), state(case["inputs"]["a"]), state(case["inputs"]["b"])
    for s in case["inputs"]["scores_a"]:
        a, b = (after(rated) for rated in system.rate(duel(a, b, s)))
    check_rated(case, a, case["expected"]["a"])
    check_rated(case, b, case["expected"]["b"])


RUNNERS: dict[str, Runner] = {
    "period_update": run_period_update,
    "v_delta": run_v_delta,
    "illinois_start": run_illinois_start,
    "scale": run_scale,
    "inactivity": run_inactivity,
    "game_update": run_game_update,
    "sequence": run_sequence,
    "streak": run_streak,
}
LEFT_OUT = {
    "glicko2-059": "its games (aflodds.rda) are not in the shared data",
    "glicko2-061": "its games (aflodds.rda) are not in the shared data",
}
