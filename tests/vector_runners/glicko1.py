"""The shared vectors of Glicko: most are of one rating period, so they meet the steps and not the system."""

from collections.abc import Mapping, Sequence

from petard_worker.ratings.glicko import E, Result, aged_rd, g, predict, update
from vector_runners.near import Case, Runner, check_near

Player = Mapping[str, float]
Games = Sequence[tuple[Player, float]]
"""The opponents of a player, and the scores against them."""


def run_g(case: Case) -> None:
    check_near(case, "g", g(case["inputs"]["deviation"]), case["expected"]["g"])


def run_expected_score_vs_opponent(case: Case) -> None:
    player, opponent = case["inputs"]["player"], case["inputs"]["opponent"]
    got = E(player["rating"], opponent["rating"], g(opponent["deviation"]))
    check_near(case, "expected", got, case["expected"]["expected"])


def run_win_probability(case: Case) -> None:
    player, opponent = case["inputs"]["player"], case["inputs"]["opponent"]
    got = predict(player["rating"], player["deviation"], opponent["rating"], opponent["deviation"])
    check_near(case, "expected", got, case["expected"]["expected"])


def run_inactivity(case: Case) -> None:
    inputs, params = case["inputs"], case["params"]
    got = aged_rd(inputs["player"]["deviation"], params["c"], inputs["periods"], params["cap"])
    check_near(case, "deviation", got, case["expected"]["deviation"])


def run_period_update(case: Case) -> None:
    games = [(game["opponent"], game["score"]) for game in case["inputs"]["games"]]
    check_period(case, case["inputs"]["player"], games, case["expected"])


def run_game_update(case: Case) -> None:
    inputs, expected = case["inputs"], case["expected"]
    a, b, s = inputs["a"], inputs["b"], inputs["score_a"]
    check_period(case, a, [(b, s)], expected["a"])
    check_period(case, b, [(a, 1 - s)], expected["b"])


def run_period_update_all(case: Case) -> None:
    players = case["inputs"]["players"]
    games: dict[str, list[tuple[Player, float]]] = {name: [] for name in players}
    for first, second, s in case["inputs"]["games"]:
        games[first].append((players[second], s))
        games[second].append((players[first], 1 - s))
    for name, player in players.items():
        check_period(case, player, games[name], case["expected"][name])


def check_period(case: Case, player: Player, games: Games, expected: Player) -> None:
    """Fail unless a period of these games makes the expected player; only the player ages, if anybody."""
    params = case["params"]
    c = params["c"] if params.get("inflate") == "self_only" else 0
    r, RD = player["rating"], aged_rd(player["deviation"], c, 1, 350)
    results = [
        Result(g(opponent["deviation"]), E(r, opponent["rating"], g(opponent["deviation"])), s)
        for opponent, s in games
    ]
    rating, deviation = update(r, RD, results)
    check_near(case, "rating", rating, expected["rating"])
    check_near(case, "deviation", deviation, expected["deviation"])


RUNNERS: dict[str, Runner] = {
    "g": run_g,
    "expected_score_vs_opponent": run_expected_score_vs_opponent,
    "win_probability": run_win_probability,
    "inactivity": run_inactivity,
    "period_update": run_period_update,
    "game_update": run_game_update,
    "period_update_all": run_period_update_all,
}
LEFT_OUT = {
    "glicko1-021": "its games (aflodds.rda) are not in the shared data",
    "glicko1-022": "its games (aflodds.rda) are not in the shared data",
    "glicko1-024": "its games (atp50k.csv) are not in the shared data",
}
