"""The answer sheet of FiveThirtyEight: 16,810 NFL games through a pool give the Elo they have published.

Their file sets a team's rating by hand in two cases: for its first game, and for eleven teams that came back
or merged. Here that is done in the table, as an operator would correct a rating.
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from redis import Redis

from integration.arena import apply_all, event, make_pool
from petard_schema import Keys
from petard_worker.postgres.connect import Connection

ALL = 16_810
PARAMETERS = {
    "k": 20,
    "home_advantage": 65,
    "margin": "fivethirtyeight_nfl",
    "carry": 2 / 3,
    "carry_mean": 1505,
    "season_month": 8,
}
SET_RATING = """
    INSERT INTO petard.rating (pool, player, rating, rd, bomb, bomb_cap, abandons, penalties, games, wins,
                               draws, losses, peak, last_played, player_seq)
    VALUES ('p', %(team)s, %(elo)s, 0, 0, 50, 0, 0, 0, 0, 0, 0, %(elo)s, %(time)s, 1)
    ON CONFLICT (pool, player) DO UPDATE SET rating = excluded.rating, last_played = excluded.last_played
"""


class Published(NamedTuple):
    game: str
    time: str
    season: str
    team: str
    elo: float
    chance: float


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "nfl_games.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def pushed(number: int, row: dict[str, str]) -> bytes:
    """The game as a game server would report it."""
    points = float(row["score1"]), float(row["score2"])
    ranks = (1 + (points[0] < points[1]), 1 + (points[1] < points[0]))
    sides = [
        {"players": [row["team1"]], "rank": ranks[0], "points": points[0], "home": row["neutral"] == "0"},
        {"players": [row["team2"]], "rank": ranks[1], "points": points[1]},
    ]
    data = {"pool": "p", "game": f"nfl-{number}", "sides": sides}
    return event("finished", f"nfl-{number}", data, time=row["date"] + "T12:00:00Z")


def parts(
    games: list[dict[str, str]], exceptions: dict[str, float]
) -> Iterator[tuple[dict[str, float], int]]:
    """Yield the ratings that are set by hand, and before which game; at last, none before the end."""
    seen: set[str] = set()
    for number, row in enumerate(games):
        teams = {row[side] + row["season"] for side in ("team1", "team2")} - seen
        seen |= teams
        by_hand = {team[:-4]: exceptions[team] for team in teams if team in exceptions}
        if by_hand:
            yield by_hand, number
    yield {}, len(games)


def replay(
    connection: Connection,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    shared_data: Path,
    count: int = ALL,
) -> list[dict[str, str]]:
    """Play the first so many games in the pool, and return them."""
    folder, cases = shared_data / "nfl", shared_data / "vectors.json"
    (case,) = [one for one in json.loads(cases.read_text()) if one["id"] == "fivethirtyeight_nfl-010"]
    with (folder / "initial_elos.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            owner.execute(SET_RATING, {"team": row["team"], "elo": float(row["elo"]), "time": None})
    games, done = rows(folder)[:count], 0
    for by_hand, number in parts(games, case["inputs"]["exceptions"]):
        apply_all(connection, client, keys, [pushed(at, games[at]) for at in range(done, number)])
        done = number
        for team, elo in by_hand.items():
            time = games[number]["date"] + "T12:00:00Z"
            owner.execute(SET_RATING, {"team": team, "elo": elo, "time": time})
    return games


def farthest(owner: psycopg.Connection, games: list[dict[str, str]]) -> tuple[float, float]:
    """Return by how much ratings before games, and chances, are off at most."""
    sql = """
        SELECT ledger.game, change.player, change.rating_before, change.expected
        FROM petard.ledger JOIN petard.change USING (pool, seq)
    """
    found = {(game, team): (before, expected) for game, team, before, expected in owner.execute(sql)}
    season: dict[str, str] = {}
    ratings, chances = [], []
    for number, row in enumerate(games):
        for team, elo in ((row["team1"], row["elo1"]), (row["team2"], row["elo2"])):
            before, expected = found[f"nfl-{number}", team]
            # What the table holds is from before the new season; the game was rated from after it.
            carried = 2 / 3 * before + 1505 / 3
            new_season = season.get(team, row["season"]) != row["season"]
            by_hand = abs(before - float(elo)) < 1e-9
            season[team] = row["season"]
            ratings.append(abs((carried if new_season and not by_hand else before) - float(elo)))
            if team == row["team1"]:
                chances.append(abs(expected - float(row["elo_prob1"])))
    return max(ratings), max(chances)


@pytest.mark.timeout(300)
def test_every_team_has_the_published_elo_before_every_game(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection, shared_data: Path
) -> None:
    make_pool(connection, system="elo", parameters=PARAMETERS)

    games = replay(connection, client, keys, owner, shared_data)

    assert owner.execute("SELECT count(*) FROM petard.ledger WHERE counts").fetchone() == (ALL,)
    off, chance_off = farthest(owner, games)
    assert off < 0.001
    assert chance_off < 2e-6


def test_another_home_advantage_is_found_out(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection, shared_data: Path
) -> None:
    make_pool(connection, system="elo", parameters={**PARAMETERS, "home_advantage": 64})

    games = replay(connection, client, keys, owner, shared_data, 500)

    off, chance_off = farthest(owner, games)
    assert off > 0.1
    assert chance_off > 1e-4
