"""Where a player stands: the record and, for those on the board, the place."""

from datetime import datetime
from typing import NamedTuple

from petard_worker.fold import PlayerRecord
from petard_worker.pool_settings import pool_settings
from petard_worker.postgres import boards
from petard_worker.postgres.boards import Place, list_by
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.pools import Pool


class Standing(NamedTuple):
    """Where a player stands now; a player whom the board leaves out has no place."""

    record: PlayerRecord
    place: Place | None


def find_standing(connection: Connection, pool: Pool, player: str, now: datetime) -> Standing | None:
    """Return where the player stands, or None when the pool does not know the player."""
    record = boards.find_record(connection, pool.name, player)
    if record is None:
        return None
    listing = list_by(pool.name, pool_settings(pool.settings), now)
    return Standing(record, boards.find_place(connection, listing, player))
