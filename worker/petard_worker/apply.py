"""THE use case: one batch of events of one pool, one transaction.

    parse what stands at the head of the list
    lock the pool row and look again               nobody else writes to this pool now
    fold in order through pure functions           batch.py, fold.py, ratings/
    write ledger, changes, ratings, dead letters   COMMIT
    only then trim exactly these entries

Nothing is sent from inside the transaction. Killed before COMMIT, the batch is still in the list; killed
between COMMIT and trim, the next drain finds every event counted and only trims.
"""

from collections.abc import Sequence
from typing import NamedTuple

import psycopg
import structlog

from petard_schema import DeadReason, EventRefused
from petard_worker.batch import Arrival, Batch, EventKey, History, read_arrival
from petard_worker.breaker import Breaker, BreakerTrippedError
from petard_worker.fold import players_of
from petard_worker.intake import Intake
from petard_worker.postgres import dead_letters, ledger, players, pools
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.pools import LockedPool, Pool
from petard_worker.ratings.pool_rules import PoolRules, pool_rules

log = structlog.get_logger()


class Applied(NamedTuple):
    """What one batch came to."""

    events: int
    """How many left the list."""
    entries: int = 0
    dead: int = 0
    repeats: int = 0


class PoolStoppedError(Exception):
    """The pool is stopped: its events wait until somebody resumes it."""


NOTHING = Applied(0)


def apply_batch(connection: Connection, intake: Intake, breaker: Breaker, limit: int) -> Applied:
    """Apply up to `limit` events from the head of the pool's list and return what came of them.

    Raises PoolStoppedError when the pool is stopped, or has to be by the breaker; psycopg.DataError or
    psycopg.IntegrityError when Postgres refuses what one of the events would write; other psycopg errors
    when Postgres cannot be reached or is busy. Whatever is raised, nothing was applied and nothing left the
    list.
    """
    seen = intake.peek(limit)
    if not seen:
        return NOTHING
    parsed = {raw: read_arrival(raw) for raw in seen}
    try:
        with connection.transaction():
            locked = pools.lock_pool(connection, intake.pool)
            # Between the first look and the lock another drain may have applied and trimmed.
            entries = intake.peek(limit)
            arrivals = [parsed.get(raw) or read_arrival(raw) for raw in entries]
            if locked is None:
                applied = bury_all(connection, intake.pool, arrivals)
            else:
                applied = apply_arrivals(connection, locked, arrivals, breaker)
    except BreakerTrippedError as tripped:
        pools.stop_pool(connection, intake.pool, str(tripped))
        raise PoolStoppedError(str(tripped)) from None
    if entries and not intake.trim(entries):
        # Another drain trimmed first, or Redis lost the list: the events have counted, so nothing is lost.
        log.warning("trim_refused", pool=intake.pool, events=len(entries))
    return applied


def apply_arrivals(
    connection: Connection, locked: LockedPool, arrivals: Sequence[Arrival], breaker: Breaker
) -> Applied:
    """Fold the arrivals and write what came of them; the pool's row is locked."""
    pool = locked.pool
    if pool.stopped is not None:
        raise PoolStoppedError(pool.stopped)
    rules = pool_rules(pool.system, pool.parameters)
    history = load_history(connection, pool.name, arrivals)
    batch = Batch(pool.name, rules, locked.now, pool.seq, pool.newest, history)
    batch.fold(arrivals)
    breaker.check(pool.name, batch.outcomes)
    write_batch(connection, pool, rules, batch)
    breaker.record(pool.name, batch.outcomes)
    return Applied(len(arrivals), len(batch.entries), len(batch.refusals), batch.repeats)


def load_history(connection: Connection, pool: str, arrivals: Sequence[Arrival]) -> History:
    """Return what is known of the batch's events, games and players."""
    events = [arrival.read for arrival in arrivals if not isinstance(arrival.read, EventRefused)]
    if not events:
        return History({}, {}, {})
    names = {player for event in events for player in players_of(event)}
    return History(
        ledger.find_events(connection, pool, {EventKey(event.id, event.source) for event in events}),
        ledger.find_games(connection, pool, {event.data.game for event in events}),
        players.load_records(connection, pool, names),
    )


def write_batch(connection: Connection, pool: Pool, rules: PoolRules, batch: Batch) -> None:
    """Write the ledger, the changes, the ratings, the dead letters and the pool's new seq."""
    if batch.refusals:
        letters = [dead_letters.dead_letter(refusal.raw, refusal.refused) for refusal in batch.refusals]
        dead_letters.bury(connection, pool.name, letters)
    if not batch.entries:
        return
    ledger.append_entries(connection, pool.name, pool.version, batch.entries)
    players.append_changes(connection, pool.name, batch.changes())
    players.save_records(connection, pool.name, batch.records, rules.bombs.cap)
    pools.advance_pool(connection, pool.name, batch.seq, batch.newest)


def bury_all(connection: Connection, pool: str, arrivals: Sequence[Arrival]) -> Applied:
    """Make dead letters of everything that was pushed to a pool that does not exist."""
    refused = EventRefused(DeadReason.UNKNOWN_POOL, f"there is no pool {pool!r}: create it, then replay")
    letters = [dead_letters.dead_letter(arrival.raw, refused) for arrival in arrivals]
    if letters:
        dead_letters.bury(connection, pool, letters)
    return Applied(len(arrivals), dead=len(letters))


def bury_head(connection: Connection, intake: Intake, breaker: Breaker, error: psycopg.Error) -> Applied:
    """Make a dead letter of the event at the head, which Postgres refuses to store; the rest may go on.

    Raises PoolStoppedError when it is one too many.
    """
    detail = f"{type(error).__name__}: {error.diag.message_primary}"
    refused = EventRefused(DeadReason.INTERNAL_ERROR, detail)
    try:
        breaker.check(intake.pool, [True])
    except BreakerTrippedError as tripped:
        pools.stop_pool(connection, intake.pool, str(tripped))
        raise PoolStoppedError(str(tripped)) from None
    with connection.transaction():
        pools.lock_pool(connection, intake.pool)
        head = intake.peek(1)
        dead_letters.bury(connection, intake.pool, [dead_letters.dead_letter(raw, refused) for raw in head])
    intake.trim(head)
    breaker.record(intake.pool, [True] * len(head))
    return Applied(len(head), dead=len(head))
