"""What became of an event: every accepted one is in the ledger, every refused one among the dead letters."""

from typing import NamedTuple, cast

from petard_worker.postgres.connect import Connection
from petard_worker.postgres.outbox import OutboxChange, read_changes


class Fate(NamedTuple):
    """What became of one event."""

    source: str | None
    id: str
    pool: str | None
    seq: int | None
    outcome: str
    reason: str | None
    changes: list[OutboxChange]


def find_fates(connection: Connection, event_id: str) -> list[Fate]:
    """Return what became of the events with this id; sources and pools may have used it each."""
    return [*find_counted(connection, event_id), *find_dead(connection, event_id)]


def find_counted(connection: Connection, event_id: str) -> list[Fate]:
    """Return the ledger's entries of the events with this id."""
    # By pool, since the ledger's keys start with it: one index lookup a pool.
    sql = """
        SELECT found.source, found.event_id, pool.name, found.seq, found.outcome, found.reason
        FROM petard.pool AS pool
        CROSS JOIN LATERAL (
            SELECT source, event_id, seq, outcome, reason FROM petard.ledger
            WHERE ledger.pool = pool.name AND event_id = %(event_id)s OFFSET 0
        ) AS found
        ORDER BY pool.name, found.source
    """
    rows = connection.execute(sql, {"event_id": event_id}).fetchall()
    fates = [Fate(*cast("Fate", (*row, []))) for row in rows]
    return [fate._replace(changes=changes_of(connection, fate)) for fate in fates]


def changes_of(connection: Connection, fate: Fate) -> list[OutboxChange]:
    """Return what the event did."""
    assert fate.pool is not None
    assert fate.seq is not None
    return read_changes(connection, fate.pool, fate.seq - 1, fate.seq)


def find_dead(connection: Connection, event_id: str) -> list[Fate]:
    """Return the dead letters of the events with this id, open or discarded."""
    sql = """
        SELECT source, event_id, pool, NULL, 'dead', reason FROM petard.dead_letter
        WHERE event_id = %(event_id)s AND state <> 'replayed' ORDER BY pool, id
    """
    rows = connection.execute(sql, {"event_id": event_id})
    return [Fate(*cast("Fate", (*row, []))) for row in rows]
