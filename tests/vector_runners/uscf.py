"""US Chess: the rules alone, with the logistic expected score of 400 points."""

import math

from petard_worker.ratings.uscf import BONUS, effective_games, rate
from vector_runners.near import Case, Runner, check_near


def effective(case: Case) -> None:
    player = case["inputs"]["player"]
    check_near(case, "n", effective_games(player["rating"], player["games"]), case["expected"]["n"])


def period_update(case: Case) -> None:
    player, games = case["inputs"]["player"], case["inputs"]["games"]
    opponents = [game["opponent"]["rating"] for game in games]
    scores = [game["score"] for game in games]
    got = rate(
        player["rating"],
        player["games"],
        math.fsum(opponents) / len(games),
        math.fsum(1 / (1 + 10 ** ((opponent - player["rating"]) / 400)) for opponent in opponents),
        math.fsum(scores),
        len(games),
        math.fsum(2 * score - 1 for score in scores),
        case["params"].get("t", BONUS),
    )
    check_near(case, "rating", got, case["expected"]["rating"])


RUNNERS: dict[str, Runner] = {"effective_games": effective, "period_update": period_update}
LEFT_OUT: dict[str, str] = {}
