"""What the publisher reads: ledger entries with their changes."""

from datetime import datetime
from typing import NamedTuple

from petard_worker.postgres.connect import Connection

PUBLISHER_LOCK = 0x7065_7461_7265


class OutboxEntry(NamedTuple):
    """A ledger entry as it is published."""

    seq: int
    event_id: str
    source: str
    type: str
    game: str | None
    received: datetime
    outcome: str
    reason: str | None
    traceparent: str | None


class OutboxChange(NamedTuple):
    """A change as it is published."""

    seq: int
    player: str
    player_seq: int
    rating_before: float
    rd_before: float
    volatility_before: float | None
    bomb_before: int
    games_before: int
    rating_after: float
    rd_after: float
    volatility_after: float | None
    bomb_after: int
    games_after: int
    expected: float | None
    actual: float | None
    rd_aged: float | None
    penalty: bool
    late: bool


def try_publisher_lock(connection: Connection) -> bool:
    """Return whether this session is the fleet's active publisher; the lock dies with the session."""
    sql = "SELECT pg_try_advisory_lock(%(lock)s)"
    return connection.execute(sql, {"lock": PUBLISHER_LOCK}).fetchone() == (True,)


def read_entries(connection: Connection, pool: str, after: int, limit: int) -> list[OutboxEntry]:
    """Return up to `limit` entries that follow `after`, in order; seq has no gaps."""
    sql = """
        SELECT seq, event_id, source, type, game, received, outcome, reason,
               CASE WHEN position('traceparent' IN body::text) > 0 THEN body ->> 'traceparent' END
        FROM petard.ledger WHERE pool = %(pool)s AND seq > %(after)s ORDER BY seq LIMIT %(limit)s
    """
    rows = connection.execute(sql, {"pool": pool, "after": after, "limit": limit}, binary=True)
    return [OutboxEntry._make(row) for row in rows.fetchall()]


def read_changes(connection: Connection, pool: str, after: int, last: int) -> list[OutboxChange]:
    """Return the changes of the entries after `after` up to `last`, in order."""
    sql = """
        SELECT seq, player, player_seq,
               rating_before, rd_before, volatility_before, bomb_before, games_before,
               rating_after, rd_after, volatility_after, bomb_after, games_after,
               expected, actual, rd_aged, penalty, late
        FROM petard.change WHERE pool = %(pool)s AND seq > %(after)s AND seq <= %(last)s
        ORDER BY seq, player
    """
    rows = connection.execute(sql, {"pool": pool, "after": after, "last": last}, binary=True)
    return [OutboxChange._make(row) for row in rows.fetchall()]
