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


ENTRY_FIELDS = len(OutboxEntry._fields)


def try_publisher_lock(connection: Connection) -> bool:
    """Return whether this session is the fleet's active publisher; the lock dies with the session."""
    sql = "SELECT pg_try_advisory_lock(%(lock)s)"
    return connection.execute(sql, {"lock": PUBLISHER_LOCK}).fetchone() == (True,)


def read_news(
    connection: Connection, pool: str, after: int, limit: int
) -> tuple[list[OutboxEntry], list[OutboxChange]]:
    """Return up to `limit` entries that follow `after`, and their changes, in order; seq has no gaps.

    In one statement: for a single entry the second round trip would cost as much as the first.
    """
    sql = """
        SELECT ledger.seq, event_id, source, type, game, received, outcome, reason,
               CASE WHEN position('traceparent' IN body::text) > 0 THEN body ->> 'traceparent' END,
               player, player_seq,
               rating_before, rd_before, volatility_before, bomb_before, games_before,
               rating_after, rd_after, volatility_after, bomb_after, games_after,
               expected, actual, rd_aged, penalty, change.late
        FROM petard.ledger LEFT JOIN petard.change
            ON change.pool = ledger.pool AND change.seq = ledger.seq
            AND change.seq > %(after)s AND change.seq <= %(last)s
        WHERE ledger.pool = %(pool)s AND ledger.seq > %(after)s AND ledger.seq <= %(last)s
        ORDER BY ledger.seq, player
    """
    values = {"pool": pool, "after": after, "last": after + limit}
    entries: list[OutboxEntry] = []
    changes: list[OutboxChange] = []
    seq = after
    for row in connection.execute(sql, values, binary=True).fetchall():
        if row[0] != seq:
            entries.append(OutboxEntry._make(row[:ENTRY_FIELDS]))
            seq = entries[-1].seq
        if row[ENTRY_FIELDS] is not None:
            changes.append(OutboxChange._make((seq, *row[ENTRY_FIELDS:])))
    return entries, changes


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
