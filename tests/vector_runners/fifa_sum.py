"""FIFA's SUM, through the system `fifa`: a team and its matches one after the other."""

from petard_worker.ratings.fifa import IMPORTANCE, Fifa
from petard_worker.ratings.system import Game, GameSide, PlayerState
from vector_runners.near import Case, Runner, check_near

RANKS_OF_SHOOTOUT = {"won": (1, 2), "lost": (2, 1)}
RANKS_OF_SCORE = {1: (1, 2), 0.5: (1, 1), 0: (2, 1)}


def sequence(case: Case) -> None:
    system = Fifa(scale=case["params"]["scale"])
    rating = case["inputs"]["player"]["rating"]
    for match in case["inputs"]["games"]:
        rating = after_match(system, rating, match)
    check_near(case, "rating", rating, case["expected"]["rating"])


def after_match(system: Fifa, rating: float, match: Case) -> float:
    shootout = match.get("shootout")
    own, other = RANKS_OF_SHOOTOUT[shootout] if shootout else RANKS_OF_SCORE[match["score"]]
    game = Game(
        (
            GameSide((PlayerState(rating, 0),), own),
            GameSide((PlayerState(match["opponent"]["rating"], 0),), other),
        ),
        importance=match["importance"],
        decided_by="shootout" if shootout else "play",
        knockout=match.get("knockout", False),
    )
    return system.rate(game)[0].rating


def expected_score(case: Case) -> None:
    a, b = (PlayerState(case["inputs"][side]["rating"], 0) for side in "ab")
    got = Fifa(scale=case["params"]["scale"]).expected(a, b)
    check_near(case, "expected", got, case["expected"]["expected"])


def importance_table(case: Case) -> None:
    for match, importance in case["expected"].items():
        check_near(case, "value", IMPORTANCE[match], importance)


RUNNERS: dict[str, Runner] = {
    "sequence": sequence,
    "expected_score": expected_score,
    "importance_table": importance_table,
}
LEFT_OUT: dict[str, str] = {
    "fifa_sum-006": "the lists of FIFA with the points to start from (streams/fifa_ranking/"
    "ranking_fifa_historical.csv) are not among the data, only the results of the matches",
}
