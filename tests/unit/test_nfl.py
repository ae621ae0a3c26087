"""A century of NFL games against FiveThirtyEight's published ratings before every one of them."""

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from petard_worker.ratings.elo import Elo
from petard_worker.ratings.system import Game, GameSide, PlayerState

NFL = Elo(k=20, home_advantage=65, margin="fivethirtyeight_nfl", carry=2 / 3, carry_mean=1505, season_month=9)


class Gap(NamedTuple):
    """How far the replay is from the published numbers before a game."""

    rating: float
    probability: float


@pytest.fixture(scope="module")
def answer_sheet(shared_data: Path) -> dict[str, Any]:
    cases = json.loads((shared_data / "vectors.json").read_text())
    return next(case for case in cases if case["id"] == "fivethirtyeight_nfl-010")


@pytest.fixture(scope="module")
def games(shared_data: Path) -> list[dict[str, str]]:
    with (shared_data / "nfl" / "nfl_games.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def first_ratings(shared_data: Path) -> dict[str, float]:
    with (shared_data / "nfl" / "initial_elos.csv").open(newline="") as file:
        return {row["team"]: float(row["elo"]) for row in csv.DictReader(file)}


def replay(
    system: Elo,
    games: list[dict[str, str]],
    first_ratings: dict[str, float],
    exceptions: dict[str, float],
) -> Iterator[Gap]:
    """Rate game by game with nothing but our own ratings, and yield the gap before each."""
    ratings, seasons = dict(first_ratings), dict[str, str]()

    def state(team: str, season: str) -> PlayerState:
        new_season = seasons.setdefault(team, season) != season
        seasons[team] = season
        if new_season and team + season in exceptions:
            return PlayerState(exceptions[team + season], 0.0)
        return PlayerState(ratings[team], 0.0, new_season=new_season)

    for game in games:
        teams = game["team1"], game["team2"]
        states = [state(team, game["season"]) for team in teams]
        points = float(game["score1"]), float(game["score2"])
        W = float(game["result1"])
        rated = system.rate(
            Game(
                (
                    GameSide(states[:1], 1 if W > 0 else 2, points[0], game["neutral"] == "0"),
                    GameSide(states[1:], 1 if W < 1 else 2, points[1], False),
                )
            )
        )
        before = [system.carried(state).rating for state in states]
        yield Gap(
            max(abs(before[0] - float(game["elo1"])), abs(before[1] - float(game["elo2"]))),
            abs(rated[0].expected - float(game["elo_prob1"])),
        )
        ratings.update({team: player.rating for team, player in zip(teams, rated, strict=True)})


def wrong_games(gaps: Iterator[Gap]) -> int:
    """Count the games before which a rating or the probability was not the published one."""
    return sum(gap.rating > 0.001 or gap.probability > 2e-6 for gap in gaps)


def test_every_published_rating_and_probability_is_met(
    games: list[dict[str, str]], first_ratings: dict[str, float], answer_sheet: dict[str, Any]
) -> None:
    exceptions = answer_sheet["inputs"]["exceptions"]

    gaps = [*replay(NFL, games, first_ratings, exceptions)]

    assert len(gaps) == answer_sheet["expected"]["rows"] == 16_810
    assert max(gap.rating for gap in gaps) <= answer_sheet["tolerance"]["rating"] == 0.001
    assert max(gap.probability for gap in gaps) <= answer_sheet["tolerance"]["prob"] == 2e-6


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(replace(NFL, home_advantage=64), id="home advantage"),
        pytest.param(replace(NFL, k=19.9), id="K"),
        pytest.param(replace(NFL, margin="none"), id="no margin"),
        pytest.param(replace(NFL, margin="fivethirtyeight_nba"), id="margin of another sport"),
        pytest.param(replace(NFL, carry=0.75), id="carry"),
        pytest.param(replace(NFL, carry_mean=1500), id="mean"),
        pytest.param(replace(NFL, scale=401), id="scale"),
    ],
)
def test_replay_with_a_wrong_parameter_is_noticed(
    wrong: Elo, games: list[dict[str, str]], first_ratings: dict[str, float], answer_sheet: dict[str, Any]
) -> None:
    exceptions = answer_sheet["inputs"]["exceptions"]

    missed = wrong_games(replay(wrong, games, first_ratings, exceptions))

    assert missed > len(games) / 2


def test_replay_without_the_exceptions_is_noticed(
    games: list[dict[str, str]], first_ratings: dict[str, float]
) -> None:
    assert wrong_games(replay(NFL, games, first_ratings, {})) > 0
