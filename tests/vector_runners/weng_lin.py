"""Cases of Weng-Lin: by other implementations, which keep no limits."""

from petard_worker.ratings.system import Game, GameSide, PlayerState, Rated
from petard_worker.ratings.weng_lin import WengLin
from vector_runners.near import Case, Runner, check_near

NO_LIMITS = {"rd": 10_000.0, "rd_floor": 0.001, "rating_min": -10_000.0, "rating_max": 10_000.0}


def rate(case: Case) -> list[list[Rated]]:
    """Return the players after the game, by team."""
    system = WengLin(**NO_LIMITS, **case["params"])
    teams = [
        [PlayerState(player["mu"], player["sigma"]) for player in team] for team in case["inputs"]["teams"]
    ]
    ranks = case["inputs"].get("ranks", range(len(teams)))
    rated = iter(system.rate(Game([GameSide(team, rank) for team, rank in zip(teams, ranks, strict=True)])))
    return [[next(rated) for _ in team] for team in teams]


def run_team_update(case: Case) -> None:
    for team, expected_team in zip(rate(case), case["expected"]["teams"], strict=True):
        for player, expected in zip(team, expected_team, strict=True):
            check_near(case, "mu", player.rating, expected["mu"])
            check_near(case, "sigma", player.rd, expected["sigma"])


def run_win_probability(case: Case) -> None:
    check_near(case, "expected", rate(case)[0][0].expected, case["expected"]["expected"])


RUNNERS: dict[str, Runner] = {"team_update": run_team_update, "win_probability": run_win_probability}
LEFT_OUT: dict[str, str] = {}
