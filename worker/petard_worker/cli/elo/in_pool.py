"""What the calculator asks of a pool: where a rating stands, and who could play a tournament.

The commands import this module only when a pool is named: nothing else of the calculator needs servers.
Ratings that people type are those that people see, in the pool's display range.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from petard_worker import pool_field
from petard_worker.cli.errors import CommandFailed
from petard_worker.cli.servers import reading, require_pool
from petard_worker.display import undisplayed
from petard_worker.pool_field import PoolField, TooFewListedError, UnknownPlayerError
from petard_worker.pool_percentile import rating_percentile
from petard_worker.ratings.calculator import Percentile


def place_in_pool(name: str, rating: float) -> tuple[float, Percentile]:
    """Return a rating, given as it is seen, in the pool's own points, and where it stands in the pool."""
    with reading() as connection:
        pool = require_pool(connection, name)
        points = undisplayed(pool, rating)
        found = rating_percentile(connection, pool, points, datetime.now(UTC))
    if found is None:
        raise CommandFailed(
            f"nobody is on the board of {name!r}, so there is nobody to compare with:"
            " leave the pool out for an estimate"
        )
    return points, found


def top_of_pool(name: str, count: int) -> PoolField:
    """Return the first players of a pool's board."""
    with reading() as connection:
        pool = require_pool(connection, name)
        try:
            return pool_field.top_of_pool(connection, pool, count, datetime.now(UTC))
        except TooFewListedError as error:
            raise CommandFailed(f"{error}: name players with --player") from None


def named_in_pool(name: str, players: Sequence[str]) -> PoolField:
    """Return these players of a pool; `NAME:RATING` is somebody with another rating, or from elsewhere."""
    with reading() as connection:
        pool = require_pool(connection, name)
        try:
            return pool_field.named_in_pool(connection, pool, players)
        except UnknownPlayerError as error:
            raise CommandFailed(str(error)) from None
