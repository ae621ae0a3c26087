"""Who of a pool plays a tournament, with ratings in the pool's own points."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from petard_worker.display import undisplayed
from petard_worker.pool_settings import pool_settings
from petard_worker.postgres import boards
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.pools import Pool
from petard_worker.ratings.calculator import SCALE, CalculatorInputError, Entrant
from petard_worker.ratings.parameters import as_number
from petard_worker.ratings.pool_rules import pool_rules

FEWEST_PLAYERS = 2


class TooFewListedError(Exception):
    """Too few players are on the pool's board for a tournament; the message says how many."""


class UnknownPlayerError(Exception):
    """The pool knows no player of this name, and no rating is given; the message names the pool and both."""


class PoolField(NamedTuple):
    """Who plays a tournament of a pool's players."""

    pool: Pool
    players: Sequence[Entrant]
    """With ratings in the pool's own points: the best first, or in the order they were named in."""
    elo_point: float
    """How many points of the pool weigh as much as one point of Elo."""

    @property
    def scale(self) -> float:
        """Return for how many points of the pool the odds are ten to one: what a forecast's Setting needs."""
        return SCALE * self.elo_point


def top_of_pool(connection: Connection, pool: Pool, count: int, now: datetime) -> PoolField:
    """Return the first so many players of the board at the time `now`, or raise TooFewListedError."""
    listing = boards.list_by(pool.name, pool_settings(pool.settings), now)
    lines = boards.board_top(connection, listing, count)
    if len(lines) < FEWEST_PLAYERS:
        raise TooFewListedError(
            f"a tournament needs {FEWEST_PLAYERS} players, but {len(lines)} are on the board of {pool.name!r}"
        )
    return field_of(pool, [Entrant(line.player, line.rating) for line in lines])


def named_in_pool(connection: Connection, pool: Pool, texts: Sequence[str]) -> PoolField:
    """Return these players of the pool, or raise UnknownPlayerError.

    `NAME:RATING` is somebody with another rating, or from elsewhere; the rating is one as the pool shows it.
    """
    return field_of(pool, [find_entrant(connection, pool, text) for text in texts])


def field_of(pool: Pool, players: Sequence[Entrant]) -> PoolField:
    """Return the field of these players."""
    return PoolField(pool, players, pool_rules(pool.system, pool.parameters).system.elo_point())


def find_entrant(connection: Connection, pool: Pool, text: str) -> Entrant:
    """Return a player whom the pool knows, or whoever `NAME:RATING` says."""
    # The pool is asked first: a name may hold colons itself.
    record = boards.find_record(connection, pool.name, text)
    if record is not None:
        return Entrant(text, record.rating)
    name, _, typed = text.rpartition(":")
    rating = as_number(typed.strip(), whole=False)
    if name and rating is None and typed.strip().lower().lstrip("+-") in {"nan", "inf", "infinity"}:
        raise CalculatorInputError(f"the rating of {name!r} is {typed!r}, but must be a finite number")
    if not name or rating is None:
        raise UnknownPlayerError(
            f"the pool {pool.name!r} knows no player {text!r}; NAME:RATING gives somebody a rating"
        )
    return Entrant(name.strip(), undisplayed(pool, rating))
