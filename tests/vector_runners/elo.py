"""The shared vectors of Elo."""

from petard_worker.ratings.elo import Elo
from petard_worker.ratings.parameters import build
from petard_worker.ratings.system import Game, GameSide, PlayerState
from vector_runners.near import Case, Runner, check_near

NOT_THERE = "the stream of results is not among the shared data"
LEFT_OUT = {"elo-008": NOT_THERE, "elo-009": NOT_THERE, "elo-010": NOT_THERE}


def game_update(case: Case) -> None:
    """A game of one against one."""
    players = [PlayerState(case["inputs"][name]["rating"], 0.0) for name in ("a", "b")]
    W = case["inputs"]["score_a"]
    sides = (GameSide(players[:1], 2 - (W > 0)), GameSide(players[1:], 2 - (W < 1)))

    rated = build(Elo, case["params"]).rate(Game(sides))

    for name, player in zip(("a", "b"), rated, strict=True):
        check_near(case, "rating", player.rating, case["expected"][name]["rating"])


def expected_score(case: Case) -> None:
    """The expected score of a against b."""
    a, b = (PlayerState(case["inputs"][name]["rating"], 0.0) for name in ("a", "b"))

    check_near(case, "expected", build(Elo, case["params"]).expected(a, b), case["expected"]["expected"])


RUNNERS: dict[str, Runner] = {"game_update": game_update, "expected_score": expected_score}
