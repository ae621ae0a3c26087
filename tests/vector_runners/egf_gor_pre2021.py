"""The European Go Federation's rules until 2021: the rules alone, K times score less expected score."""

from petard_worker.ratings.egf import expected_score, k_factor
from vector_runners.near import Case, Runner, check_near


def expected(case: Case) -> None:
    a, b = (case["inputs"][side]["rating"] for side in "ab")
    got = expected_score(a, b, case["params"]["epsilon"])
    check_near(case, "expected", got, case["expected"]["expected"])


def game_update_one(case: Case) -> None:
    inputs = case["inputs"]
    rating, opponent = inputs["player"]["rating"], inputs["opponent"]["rating"]
    S_E = expected_score(rating, opponent, case["params"]["epsilon"])
    got = rating + k_factor(rating) * (inputs["score"] - S_E)
    check_near(case, "rating", got, case["expected"]["rating"])


RUNNERS: dict[str, Runner] = {"expected_score": expected, "game_update_one": game_update_one}
LEFT_OUT: dict[str, str] = {}
