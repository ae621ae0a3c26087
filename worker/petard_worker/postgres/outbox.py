"""What the publisher reads: ledger entries with their changes."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple, cast

from petard_worker.postgres.boards import Listing, ask_scores_after
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


class Chunk(NamedTuple):
    """What is published at a time."""

    entries: list[OutboxEntry]
    changes: list[OutboxChange]
    """What these entries did."""
    scores: Mapping[str, float]
    """The scores, as they are now, of those players with a change who are listed."""


def try_publisher_lock(connection: Connection) -> bool:
    """Return whether this session is the fleet's active publisher; the lock dies with the session."""
    sql = "SELECT pg_try_advisory_lock(%(lock)s)"
    return connection.execute(sql, {"lock": PUBLISHER_LOCK}).fetchone() == (True,)


def read_chunk(connection: Connection, listing: Listing, after: int, limit: int) -> Chunk:
    """Return up to `limit` entries of the listing's pool that follow `after`, in one round trip.

    Changes and scores are asked for after the entries, so they may be of later commits but lack nothing.
    """
    last = after + limit
    with connection.pipeline():
        entries = ask_entries(connection, listing.pool, after, limit)
        changes = ask_changes(connection, listing.pool, after, last)
        scores = ask_scores_after(connection, listing, after, last)
        found = entries()
        done = found[-1].seq if found else after
        return Chunk(found, [change for change in changes() if change.seq <= done], scores())


def read_entries(connection: Connection, pool: str, after: int, limit: int) -> list[OutboxEntry]:
    """Return up to `limit` entries that follow `after`, in order; seq has no gaps."""
    return ask_entries(connection, pool, after, limit)()


def read_changes(connection: Connection, pool: str, after: int, last: int) -> list[OutboxChange]:
    """Return the changes of the entries after `after` up to `last`, in order."""
    return ask_changes(connection, pool, after, last)()


def ask_entries(connection: Connection, pool: str, after: int, limit: int) -> Callable[[], list[OutboxEntry]]:
    """Ask for entries as read_entries does; call the answer to wait for it."""
    sql = """
        SELECT seq, event_id, source, type, game, received, outcome, reason,
               CASE WHEN position('traceparent' IN body::text) > 0 THEN body ->> 'traceparent' END
        FROM petard.ledger WHERE pool = %(pool)s AND seq > %(after)s ORDER BY seq LIMIT %(limit)s
    """
    rows = connection.execute(sql, {"pool": pool, "after": after, "limit": limit}, binary=True)
    return lambda: [OutboxEntry(*cast("OutboxEntry", row)) for row in rows]


def ask_changes(connection: Connection, pool: str, after: int, last: int) -> Callable[[], list[OutboxChange]]:
    """Ask for changes as read_changes does; call the answer to wait for it."""
    sql = """
        SELECT seq, player, player_seq,
               rating_before, rd_before, volatility_before, bomb_before, games_before,
               rating_after, rd_after, volatility_after, bomb_after, games_after,
               expected, actual, rd_aged, penalty, late
        FROM petard.change WHERE pool = %(pool)s AND seq > %(after)s AND seq <= %(last)s
        ORDER BY seq, player
    """
    rows = connection.execute(sql, {"pool": pool, "after": after, "last": last}, binary=True)
    return lambda: [OutboxChange(*cast("OutboxChange", row)) for row in rows]
