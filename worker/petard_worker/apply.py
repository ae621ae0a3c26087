"""THE use case: one batch of events of one pool, one transaction.

    parse what stands at the head of the list
    lock the pool row and look again               nobody else writes to this pool now
    fold in order through pure functions           batch.py, fold.py, ratings/
    write ledger, changes, ratings, dead letters   COMMIT
    only then trim exactly these entries

Nothing is sent to others from inside the transaction. Killed before COMMIT is sent, the batch is still in the
list; killed between COMMIT and trim, also while Postgres goes on without us, the next drain finds every event
counted and only trims.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import psycopg
import redis
import structlog

from petard_schema import AnyGameEvent, DeadReason, EventRefused
from petard_worker.batch import (
    OF_THE_PROCESS,
    Arrival,
    Batch,
    Entry,
    EventKey,
    History,
    Refusal,
    affordable,
)
from petard_worker.breaker import Breaker, BreakerTrippedError
from petard_worker.fold import PlayerRecord
from petard_worker.intake import Intake
from petard_worker.known import NOWHERE, Known, Place
from petard_worker.pool_settings import signed_only
from petard_worker.postgres import dead_letters, ledger, open_periods, players, pools
from petard_worker.postgres.connect import Connection, pipelined_transaction
from petard_worker.postgres.pools import LockedPool, Pool
from petard_worker.ratings.parameters import BadParameterError
from petard_worker.ratings.pool_rules import PoolRules

log = structlog.get_logger()

NO_HISTORY = History({}, {}, {})


class Applied(NamedTuple):
    """What one batch came to."""

    events: int
    """How many left the list."""
    entries: int = 0
    dead: int = 0
    repeats: int = 0


class Taken(NamedTuple):
    """What a transaction came to, for when it is committed."""

    applied: Applied
    outcomes: Sequence[bool] = ()
    """For the breaker."""
    place: Place = NOWHERE
    records: Mapping[str, PlayerRecord] = NO_HISTORY.records
    """Of the players it touched, at this place of the pool."""
    all_new: bool = False
    """Whether everything was new, and counted."""


class NotAllNewError(Exception):
    """A batch that was taken for new is not: what the ledger knows has to be asked for."""


class PoolStoppedError(Exception):
    """The pool is stopped: its events wait until somebody resumes it."""


NOTHING = Applied(0)

MANY = 25
"""Behind so many events more are expected: asked for ahead, and parsed while these commit."""
FIRST_PART, PART = 100, 250
"""Events that are folded and sent at a time, at first and at most, while the server writes those before."""

# What Postgres says of a single event: of its values, its keys, its size, or by a trigger of the operator's.
REFUSED_BY_POSTGRES = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.RaiseException,
)


# What no event has to answer for: servers, operators, the machine.
OF_NO_EVENT = (redis.RedisError, PoolStoppedError, BreakerTrippedError, BadParameterError, *OF_THE_PROCESS)


def is_of_one_event(error: Exception) -> bool:
    """Return whether an event of the batch brought this about: Postgres refuses it, or our own code fails."""
    if isinstance(error, psycopg.Error):
        return isinstance(error, REFUSED_BY_POSTGRES)
    return not isinstance(error, OF_NO_EVENT)


OnCommit = Callable[[Applied], None]


def apply_batch(  # noqa: PLR0917 - two of them can be left out
    connection: Connection,
    intake: Intake,
    breaker: Breaker,
    limit: int,
    known: Known | None = None,
    on_commit: OnCommit = lambda _applied: None,
) -> Applied:
    """Apply up to `limit` events from the head of the pool's list and return what came of them.

    Raises PoolStoppedError when the pool is stopped, or has to be by the breaker; BadParameterError when this
    version of the code does not know the pool's system or one of its parameters; one of REFUSED_BY_POSTGRES
    when Postgres refuses what one of the events would write; other psycopg errors when Postgres cannot be
    reached, is busy or refuses the statement; any other exception where our own code fails. Whatever is
    raised, nothing left the list. Nothing was applied, either, unless it is raised when COMMIT is on its way
    or later. With `known`, players of the batch before are not asked for again. `on_commit` is called before
    the events leave the list.
    """
    if not intake.has_work(limit):
        return NOTHING
    known = Known() if known is None else known
    if known.expects_new:
        try:
            return apply_head(connection, intake, breaker, limit, known, on_commit)
        except (NotAllNewError, psycopg.errors.UniqueViolation):
            known.forget()
    return apply_head(connection, intake, breaker, limit, known, on_commit)


def apply_head(  # noqa: PLR0917 - what apply_batch gets
    connection: Connection,
    intake: Intake,
    breaker: Breaker,
    limit: int,
    known: Known,
    on_commit: OnCommit,
) -> Applied:
    """Apply up to `limit` events from the head of the list, as `apply_batch` says."""
    # Nothing waits for an answer that it does not need, so the server writes while we fold and parse.
    # What comes next is parsed while it commits.
    with (
        stop_when_tripped(connection, intake.pool),
        intake.looking_ahead() as ahead,
        pipelined_transaction(connection, ahead.parse),
    ):
        locked = pools.lock_pool(connection, intake.pool)
        # Between the first look and the lock another drain may have applied and trimmed, unless nobody has
        # written to the pool.
        same = locked is not None and known.is_at(Place(locked.pool.seq, locked.pool.version))
        arrivals = affordable(intake.read(limit, same=same))
        if len(arrivals) >= MANY:
            ahead.ask(limit, skip=len(arrivals))
        taken = take(connection, intake.pool, locked, arrivals, breaker, known)
    breaker.record(intake.pool, taken.outcomes)
    known.learn(taken.place, taken.records, all_new=taken.all_new)
    on_commit(taken.applied)
    trim(intake, [arrival.raw for arrival in arrivals])
    return taken.applied


def apply_or_bury_head(
    connection: Connection,
    intake: Intake,
    breaker: Breaker,
    on_commit: OnCommit = lambda _applied: None,
) -> Applied:
    """Apply the event at the head, or make a dead letter of it when Postgres refuses it or our code fails.

    Both under one lock: the event that is buried is the one that failed. Raises as apply_batch does; what is
    of one event only when not even the dead letter can be stored.
    """
    with stop_when_tripped(connection, intake.pool), connection.transaction():
        locked = pools.lock_pool(connection, intake.pool)
        head = intake.peek(1)
        try:
            with connection.transaction():
                arrivals = [intake.judge(raw) for raw in head]
                taken = take(connection, intake.pool, locked, arrivals, breaker, Known())
        except Exception as error:
            if not is_of_one_event(error):
                raise
            breaker.check(intake.pool, [True])
            taken = Taken(bury_all(connection, intake.pool, head, refusal_of(error), error), [True])
            what = "event_refused_by_postgres" if isinstance(error, psycopg.Error) else "event_failed"
            log.warning(what, pool=intake.pool, error=str(error).strip())
    breaker.record(intake.pool, taken.outcomes)
    on_commit(taken.applied)
    trim(intake, head)
    return taken.applied


@contextmanager
def stop_when_tripped(connection: Connection, pool: str) -> Iterator[None]:
    """Stop the pool when the breaker trips, after the transaction was rolled back."""
    try:
        yield
    except BreakerTrippedError as tripped:
        pools.stop_pool(connection, pool, str(tripped))
        raise PoolStoppedError(str(tripped)) from None


def trim(intake: Intake, entries: Sequence[bytes]) -> None:
    """Take committed entries off the list."""
    if entries and not intake.trim(entries):
        # Another drain trimmed first, or Redis lost the list: the events have counted, so nothing is lost.
        log.warning("trim_refused", pool=intake.pool, events=len(entries))


def take(  # noqa: PLR0917 - what a transaction needs
    connection: Connection,
    pool: str,
    locked: LockedPool | None,
    arrivals: Sequence[Arrival],
    breaker: Breaker,
    known: Known,
) -> Taken:
    """Apply the arrivals, or make dead letters of them when there is no such pool."""
    if locked is not None:
        return apply_arrivals(connection, locked, arrivals, breaker, known)
    refused = EventRefused(DeadReason.UNKNOWN_POOL, f"there is no pool {pool!r}: create it, then replay")
    return Taken(bury_all(connection, pool, [arrival.raw for arrival in arrivals], refused))


def apply_arrivals(
    connection: Connection,
    locked: LockedPool,
    arrivals: Sequence[Arrival],
    breaker: Breaker,
    known: Known,
) -> Taken:
    """Fold the arrivals and write what came of them; the pool's row is locked.

    In a pipeline the writes are on their way when this returns: an error of theirs comes up at the latest
    when the transaction ends.
    """
    pool = locked.pool
    if pool.stopped is not None:
        raise PoolStoppedError(pool.stopped)
    records = known.at(Place(pool.seq, pool.version))
    rules = known.rules(pool.version, pool.system, pool.parameters)
    batch = Batch(
        pool.name,
        rules,
        locked.now,
        pool.seq,
        pool.newest,
        NO_HISTORY,
        version=pool.version,
        signed_only=signed_only(pool.settings),
        known=records,
    )
    parts = list(growing_parts(arrivals))
    # Everything is asked for at once, and folded while the answers come in.
    new = known.expects_new
    asked = [
        ask(connection, pool.name, events_of(part), records, new=new, periods=bool(rules.system.period))
        for part in parts
    ]
    for part, history in zip(parts, asked, strict=True):
        written = len(batch.entries)
        batch.history = history()
        batch.fold(part)
        if new and not batch.all_new:
            raise NotAllNewError
        append_entries(connection, pool, batch.entries[written:])
    log_failures(pool.name, batch.refusals)
    breaker.check(pool.name, batch.outcomes)
    finish_batch(connection, pool, rules, batch)
    applied = Applied(len(arrivals), len(batch.entries), len(batch.refusals), batch.repeats)
    return Taken(applied, batch.outcomes, Place(batch.seq, pool.version), batch.records, batch.all_new)


def growing_parts(arrivals: Sequence[Arrival]) -> Iterator[Sequence[Arrival]]:
    """Yield the arrivals in parts, the first ones smaller: until it has one, the server has nothing to do."""
    start, size = 0, FIRST_PART
    while start < len(arrivals):
        yield arrivals[start : start + size]
        start, size = start + size, min(2 * size, PART)


def log_failures(pool: str, refusals: Sequence[Refusal]) -> None:
    """Log the exceptions of ours that cost an event."""
    for refusal in refusals:
        if refusal.ours is not None:
            log.error("event_failed", pool=pool, exc_info=refusal.ours)


def ask(
    connection: Connection,
    pool: str,
    events: Sequence[AnyGameEvent],
    known: Mapping[str, PlayerRecord],
    *,
    new: bool,
    periods: bool,
) -> Callable[[], History]:
    """Ask for all that the events are judged by; call the answer to wait for it."""
    history = (ask_records if new else ask_history)(connection, pool, events, known)
    if not periods:
        return history
    with_periods = ask_periods(connection, pool, events, known)
    return lambda: with_periods(history())


def ask_records(
    connection: Connection, pool: str, events: Sequence[AnyGameEvent], known: Mapping[str, PlayerRecord]
) -> Callable[[], History]:
    """Ask for the players, and take events and games for new; call the answer to wait for it."""
    records = players.ask_records(connection, pool, names_in(events).difference(known))
    return lambda: History({}, {}, records())


def ask_history(
    connection: Connection, pool: str, events: Sequence[AnyGameEvent], known: Mapping[str, PlayerRecord]
) -> Callable[[], History]:
    """Ask what Postgres has of the players, events and games; call the answer to wait for it."""
    if not events:
        return lambda: NO_HISTORY
    records = ask_records(connection, pool, events, known)
    counted = ledger.ask_events(connection, pool, {EventKey(event.id, event.source) for event in events})
    games = ledger.ask_games(connection, pool, {event.data.game for event in events})
    return lambda: History(counted(), games(), records().records)


def ask_periods(
    connection: Connection, pool: str, events: Sequence[AnyGameEvent], known: Mapping[str, PlayerRecord]
) -> Callable[[History], History]:
    """Ask for the open rating periods of the players; call the answer to put them into a history."""
    put_into = open_periods.ask_periods(connection, pool, names_in(events).difference(known))
    return lambda history: history._replace(records=put_into(dict(history.records)))


def events_of(arrivals: Sequence[Arrival]) -> list[AnyGameEvent]:
    """Return the events that came, without what was refused."""
    return [arrival.read for arrival in arrivals if not isinstance(arrival.read, EventRefused)]


def names_in(events: Iterable[AnyGameEvent]) -> set[str]:
    """Return the names of everybody in these games."""
    return {player for event in events for side in event.data.sides for player in side.players}


def append_entries(connection: Connection, pool: Pool, entries: Sequence[Entry]) -> None:
    """Write ledger entries and the changes they made."""
    if entries:
        ledger.append_entries(connection, pool.name, pool.version, entries)
        players.append_changes(connection, pool.name, entries)


def finish_batch(connection: Connection, pool: Pool, rules: PoolRules, batch: Batch) -> None:
    """Write the ratings, the dead letters and the pool's new seq."""
    if batch.refusals:
        letters = [dead_letters.dead_letter(*refusal) for refusal in batch.refusals]
        dead_letters.bury(connection, pool.name, letters)
    if batch.entries:
        players.save_records(connection, pool.name, batch.records, rules.bombs.cap)
        if rules.system.period:
            open_periods.save_periods(connection, pool.name, batch.records)
        pools.advance_pool(connection, pool.name, batch.seq, batch.newest)


def bury_all(
    connection: Connection,
    pool: str,
    events: Sequence[bytes],
    refused: EventRefused,
    ours: Exception | None = None,
) -> Applied:
    """Make dead letters of all these events, for the same reason."""
    letters = [dead_letters.dead_letter(raw, refused, ours) for raw in events]
    if letters:
        dead_letters.bury(connection, pool, letters)
    return Applied(len(events), dead=len(letters))


def refusal_of(error: Exception) -> EventRefused:
    """Return the reason for an event that Postgres refused to store, or at which our code failed."""
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else error
    detail = f"{type(error).__name__}: {said}"
    return EventRefused(DeadReason.INTERNAL_ERROR, detail)
