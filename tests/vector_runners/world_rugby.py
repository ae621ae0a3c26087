"""World Rugby's points exchange, through the system `world_rugby`: one match."""

from petard_worker.ratings.system import Game, GameSide, PlayerState
from petard_worker.ratings.world_rugby import WORLD_CUP, WorldRugby
from vector_runners.near import Case, Runner, check_near


def home_points_change(case: Case) -> None:
    inputs, params = case["inputs"], case["params"]
    system = WorldRugby(home_advantage=params["home"], clamp=params["clamp"], big_win=params["big_win"])
    home, away = inputs["points_home"], inputs["points_away"]
    game = Game(
        (
            GameSide(
                (PlayerState(inputs["home"]["rating"], 0),), 1 + (home < away), home, not inputs["neutral"]
            ),
            GameSide((PlayerState(inputs["away"]["rating"], 0),), 1 + (away < home), away, home=False),
        ),
        importance=WORLD_CUP if inputs["world_cup"] else None,
    )
    rated_home, rated_away = system.rate(game)
    change = case["expected"]["change"]
    check_near(case, "change", rated_home.rating - inputs["home"]["rating"], change)
    check_near(case, "change", rated_away.rating - inputs["away"]["rating"], -change)


RUNNERS: dict[str, Runner] = {"home_points_change": home_points_change}
LEFT_OUT: dict[str, str] = {}
