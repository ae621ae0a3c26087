"""What the calculator asks of a pool: where a rating stands, and who could play a tournament.

The commands import this module only when a pool is named: nothing else of the calculator needs servers.
Ratings that people type are those that people see, in the pool's display range.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.servers import reading, require_pool
from petard_worker.display import undisplayed
from petard_worker.pool_settings import pool_settings
from petard_worker.pool_stats import elo_point, rating_percentile
from petard_worker.postgres import boards
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.pools import Pool
from petard_worker.ratings.parameters import as_number


class PlaceInPool(NamedTuple):
    """Where a rating would stand among the listed players of a pool."""

    rating_points: float
    """The rating in the pool's own points."""
    percentile: float
    lower: int
    equal: int
    listed: int


class PoolField(NamedTuple):
    """Who plays a tournament of a pool's players."""

    pool: Pool
    ratings: Mapping[str, float]
    """In the pool's own points, the best first or in the order they were named in."""
    elo_point: float


def place_in_pool(name: str, rating: float) -> PlaceInPool:
    """Return where a rating, as it is seen, stands among the listed players of a pool."""
    with reading() as connection:
        pool = require_pool(connection, name)
        points = undisplayed(pool, rating)
        found = rating_percentile(connection, pool, points, datetime.now(UTC))
    if found.percentile is None:
        raise CommandFailed(
            f"nobody is on the board of {name!r}, so there is nobody to compare with:"
            " leave the pool out for an estimate"
        )
    return PlaceInPool(points, found.percentile, found.lower, found.equal, found.players)


def top_of_pool(name: str, count: int) -> PoolField:
    """Return the first players of a pool's board."""
    with reading() as connection:
        pool = require_pool(connection, name)
        listing = boards.list_by(name, pool_settings(pool.settings), datetime.now(UTC))
        lines = boards.board_top(connection, listing, count)
    if len(lines) < 2:
        raise CommandFailed(
            f"a tournament needs 2 players, but {len(lines)} are on the board of {name!r}:"
            " name players with --player"
        )
    return PoolField(pool, {line.player: line.rating for line in lines}, elo_point(pool))


def named_in_pool(name: str, players: Sequence[str]) -> PoolField:
    """Return these players of a pool; `NAME:RATING` is somebody with another rating, or from elsewhere."""
    ratings: dict[str, float] = {}
    with reading() as connection:
        pool = require_pool(connection, name)
        for text in players:
            player, rating = find_player(connection, pool, text)
            if player in ratings:
                raise CommandFailed(f"player {player!a} is there twice: names must differ", USAGE)
            ratings[player] = rating
    return PoolField(pool, ratings, elo_point(pool))


def find_player(connection: Connection, pool: Pool, text: str) -> tuple[str, float]:
    """Return name and rating of a player whom the pool knows, or of whoever `NAME:RATING` says."""
    # The pool is asked first: a name may hold colons itself.
    record = boards.find_record(connection, pool.name, text)
    if record is not None:
        return text, record.rating
    name, _, typed = text.rpartition(":")
    rating = as_number(typed.strip(), whole=False)
    if not name or rating is None:
        raise CommandFailed(
            f"the pool {pool.name!r} knows no player {text!r}; NAME:RATING gives somebody a rating"
        )
    return name.strip(), undisplayed(pool, rating)
