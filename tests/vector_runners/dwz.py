"""DWZ: the rules alone, with the logistic expected score of 400 points."""

from petard_worker.ratings.dwz import k_factor
from vector_runners.near import Case, Runner, check_near


def game_update(case: Case) -> None:
    a, b, s = case["inputs"]["a"], case["inputs"]["b"], case["inputs"]["score_a"]
    check_near(case, "rating", after_game(a, b, s), case["expected"]["a"]["rating"])
    check_near(case, "rating", after_game(b, a, 1 - s), case["expected"]["b"]["rating"])


def after_game(player: Case, opponent: Case, W: float) -> float:
    W_e = 1 / (1 + 10 ** ((opponent["rating"] - player["rating"]) / 400))
    K = k_factor(player["rating"], player.get("age"), player["index"], 1, W, W_e)
    return float(player["rating"] + K * (W - W_e))


RUNNERS: dict[str, Runner] = {"game_update": game_update}
LEFT_OUT: dict[str, str] = {}
