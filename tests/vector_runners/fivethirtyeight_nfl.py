"""The shared vectors of FiveThirtyEight's NFL Elo: published ratings before and after single games."""

from petard_worker.ratings.elo import Elo
from petard_worker.ratings.system import Game, GameSide, PlayerState
from vector_runners.near import Case, Runner, check_near

LEFT_OUT = {"fivethirtyeight_nfl-010": "all games are replayed by test_nfl.py"}


def game_update(case: Case) -> None:
    """A game at the place of a or on neutral ground; the chance of a is what a expected of it."""
    inputs = case["inputs"]
    points = inputs["points_a"], inputs["points_b"]
    home = not inputs["neutral"]
    a, b = (PlayerState(inputs[name]["rating"], 0.0) for name in ("a", "b"))
    sides = (
        GameSide((a,), 2 - (points[0] >= points[1]), points[0], home),
        GameSide((b,), 2 - (points[1] >= points[0]), points[1], False),
    )
    system = Elo(k=case["params"]["k"], home_advantage=case["params"]["home"], margin=case["system"])

    rated = system.rate(Game(sides))

    check_near(case, "prob_a", rated[0].expected, case["expected"]["prob_a"])
    check_near(case, "rating", rated[0].rating, case["expected"]["a"]["rating"])
    check_near(case, "rating", rated[1].rating, case["expected"]["b"]["rating"])


def season_carry(case: Case) -> None:
    """The formula that the case gives in words, for ratings of all sizes."""
    retain, mean = case["params"]["retain"], case["params"]["mean"]
    system = Elo(carry=retain, carry_mean=mean)

    for rating in range(1000, 2001, 50):
        carried = system.carried(PlayerState(rating, 0.0, new_season=True)).rating
        check_near(case, "rating", carried, retain * rating + (1 - retain) * mean)


RUNNERS: dict[str, Runner] = {"game_update": game_update, "season_carry": season_carry}
