"""The shared vectors of FiveThirtyEight's NBA Elo: the same kinds as those of the NFL."""

from vector_runners.fivethirtyeight_nfl import game_update, season_carry
from vector_runners.near import Runner

LEFT_OUT: dict[str, str] = {}
RUNNERS: dict[str, Runner] = {"game_update": game_update, "season_carry": season_carry}
