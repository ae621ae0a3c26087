"""One batch of events, sorted out and folded in order: pure, everything it needs is handed in.

Each event ends as one of four: counted before (dropped without a trace, since the ledger has it), a new
ledger entry that is rated, a new ledger entry that is ignored, or a dead letter.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from petard_schema import (
    AnyGameEvent,
    DeadReason,
    EventRefused,
    IgnoredReason,
    PeriodClosed,
    read_counted,
    read_event,
)
from petard_schema.ijson import shorten
from petard_schema.signing import SignedElement, bad_signature, is_signed
from petard_worker.fold import (
    PlayerRecord,
    Verdict,
    fold_event,
    new_record,
    outcome_of,
)
from petard_worker.periods import Period, period_at, period_closed
from petard_worker.ratings.named_tuples import maker
from petard_worker.ratings.pool_rules import PoolRules
from petard_worker.signing_keys import NO_KEYS, SigningKeys, check_signature, check_speaker

MOST_PAIRS = 64_000
"""Pairs of players in one batch."""
MOST_AHEAD = timedelta(minutes=5)
"""A clock may be this far ahead of ours."""


OF_THE_PROCESS = (MemoryError, OSError)
"""What interrupts the work on an event and has nothing to do with it."""


class EventKey(NamedTuple):
    """The identity of an event within a pool."""

    event_id: str
    source: str


class Arrival(NamedTuple):
    """What came through the door: the bytes, and the event in them or the refusal."""

    raw: bytes
    read: AnyGameEvent | EventRefused
    signed: SignedElement | None = None
    """Its parts, if its source has signed it."""

    @property
    def body(self) -> bytes:
        """Return the JSON of the event, without a signature."""
        return self.raw if self.signed is None else self.signed.body


class Entry(NamedTuple):
    """A new ledger entry with what it did."""

    seq: int
    event: AnyGameEvent | PeriodClosed
    body: str
    verdict: Verdict
    late: bool


class Refusal(NamedTuple):
    """A dead letter to be; `ours` is our own exception when that caused it and not its content."""

    raw: bytes
    refused: EventRefused
    ours: Exception | None = None


class History(NamedTuple):
    """What Postgres knows about a batch before it is folded."""

    events: Mapping[EventKey, str]
    """Bodies of those events that the ledger holds already."""
    games: Mapping[str, str]
    """Bodies of the events by which those games counted."""
    records: Mapping[str, PlayerRecord]


_key, _entry, _arrival = maker(EventKey), maker(Entry), maker(Arrival)


class Touched(dict[str, PlayerRecord]):
    """Players a batch touched, as they are after it; asked for another one, it tells how they were before."""

    def __init__(self, rules: PoolRules, known: Mapping[str, PlayerRecord]) -> None:
        super().__init__()
        self.rules = rules
        self.known = known
        self.asked: Mapping[str, PlayerRecord] = {}

    def __missing__(self, player: str) -> PlayerRecord:
        return self.known.get(player) or self.asked.get(player) or new_record(self.rules)


def read_arrival(raw: bytes, known: SigningKeys = NO_KEYS) -> Arrival:
    """Verify what came, then parse it."""
    try:
        if not is_signed(raw):
            return _arrival((raw, check_speaker(read_event(raw), None, known), None))
        signed = check_signature(raw, known)
        return Arrival(raw, check_speaker(read_event(signed.body), signed.source, known), signed)
    except EventRefused as refused:
        return Arrival(raw, without_traceback(refused))
    except OF_THE_PROCESS:
        raise
    except Exception as error:  # noqa: BLE001 - a bug in the parser must cost one event only
        failed = refusal_by(error)
        failed.__cause__ = error
        return Arrival(raw, failed)


def refusal_by(error: Exception) -> EventRefused:
    """Return the reason for an event that our own code could not take."""
    return EventRefused(DeadReason.INTERNAL_ERROR, f"{type(error).__name__}: {error}")


def without_traceback(refused: EventRefused) -> EventRefused:
    """Return the refusal as a value.

    Its traceback would hold the arrival that holds it, a large cycle; the error behind it, all that was read.
    """
    refused.__traceback__ = None
    refused.__context__ = None
    return refused


def affordable(arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
    """Return the first arrivals, as many as are folded in well under a second, but at least one.

    A batch holds the lock of its pool, and every player of a game is rated against every other: a game of 64
    costs a thousand times a game of two.
    """
    pairs = 0
    for number, arrival in enumerate(arrivals):
        if isinstance(arrival.read, EventRefused):
            continue
        players = 0
        for side in arrival.read.data.sides:
            players += len(side.players)
        pairs += players * players
        if pairs > MOST_PAIRS and number:
            return arrivals[:number]
    return arrivals


def check_arrival(pool: str, now: datetime, arrival: Arrival, *, signed_only: bool = False) -> AnyGameEvent:
    """Return the event if it may count in this pool at this time, or raise EventRefused."""
    event = arrival.read
    if isinstance(event, EventRefused):
        raise event
    if arrival.signed is not None:
        # Only the future is bounded: an event that had to wait for Redis is honestly old, and counts once.
        ahead = round(arrival.signed.signed_at - now.timestamp())
        if ahead > MOST_AHEAD.seconds:
            raise bad_signature(
                f"webhook-timestamp is {ahead} s ahead of our time, {MOST_AHEAD.seconds} s are allowed"
            )
    elif signed_only:
        raise bad_signature(f"pool {pool!r} takes signed events only, and this one is not signed")
    if event.data.pool != pool:
        raise EventRefused(DeadReason.WRONG_POOL, f"pushed to {pool!r}, but data.pool is {event.data.pool!r}")
    if event.time > now + MOST_AHEAD:
        ahead = round((event.time - now).total_seconds())
        raise EventRefused(
            DeadReason.FROM_THE_FUTURE,
            f"its time is {ahead} s ahead of ours, {MOST_AHEAD.seconds} s are allowed",
        )
    return event


@dataclass
class Batch:
    """Folds arrivals one after the other and collects what is to be written."""

    pool: str
    rules: PoolRules
    now: datetime
    seq: int
    newest: datetime | None
    history: History
    entries: list[Entry] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    outcomes: list[bool] = field(default_factory=list)
    """For every arrival that was not counted before: did it fail by our own exception?"""
    repeats: int = 0
    ignored: int = 0
    version: int = 1
    """Of the pool's parameters."""
    period: Period | None = None
    """The open rating period; None before the first game, and in pools without periods."""
    signed_only: bool = False
    """Whether the pool refuses events that nobody has signed."""
    known: Mapping[str, PlayerRecord] = field(default_factory=dict)
    """Players who need no asking for, as they were before the batch."""
    records: Touched = field(init=False)
    _bodies: dict[EventKey, str] = field(default_factory=dict)
    _games: dict[str, AnyGameEvent] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the period that the newest rated event has opened."""
        self.records = Touched(self.rules, self.known)
        if self.newest is not None:
            self.period = period_at(self.newest, self.rules.system.period, self.version)

    def fold(self, arrivals: Iterable[Arrival]) -> None:
        """Take every arrival in order."""
        self.records.asked = self.history.records
        for arrival in arrivals:
            try:
                self.take(arrival)
            except EventRefused as refused:
                ours = refused.__cause__ if isinstance(refused.__cause__, Exception) else None
                self.refuse(Refusal(arrival.raw, without_traceback(refused), ours))
            except OF_THE_PROCESS:
                raise
            except Exception as error:  # noqa: BLE001 - whatever our code does wrong must cost one event only
                self.refuse(Refusal(arrival.raw, refusal_by(error), ours=error))

    @property
    def all_new(self) -> bool:
        """Whether every arrival so far was new, and counted: then the history has had no say in it."""
        return not (self.refusals or self.repeats or self.ignored)

    def refuse(self, refusal: Refusal) -> None:
        """Make a dead letter of the arrival."""
        self.refusals.append(refusal)
        self.outcomes.append(refusal.ours is not None)

    def take(self, arrival: Arrival) -> None:
        """Fold one arrival; raises EventRefused if it becomes a dead letter."""
        event = check_arrival(self.pool, self.now, arrival, signed_only=self.signed_only)
        key = _key((event.id, event.source))
        counted = self._bodies.get(key) or self.history.events.get(key)
        if counted is not None:
            check_same_body(counted, arrival.body)
            self.repeats += 1
            return
        period = self.period_of(event) if self.rules.system.period else None
        verdict = self.judge(event, period)
        if period is not None and verdict.ignored is None:
            self.open_period(period)
        self.accept(event, key, arrival.body.decode(), verdict)

    def period_of(self, event: AnyGameEvent) -> Period | None:
        """Return the period that the event counts in, where the pool has them: never one that is closed."""
        period = period_at(event.time, self.rules.system.period, self.version)
        return period if period is None or self.period is None else max(period, self.period)

    def open_period(self, period: Period) -> None:
        """Let the pool's games count in this period from now on; one that was open is closed by an entry."""
        if self.period is not None and period > self.period:
            self.seq += 1
            closed = period_closed(self.pool, self.seq, self.period, period)
            self.entries.append(Entry(self.seq, closed, closed.to_json().decode(), Verdict(None), late=False))
        self.period = period

    def judge(self, event: AnyGameEvent, period: Period | None) -> Verdict:
        """Return what the event does, or that its game has counted before."""
        game = event.data.game
        if game in self._games or game in self.history.games:
            counted = self.counted_game(game)
            if outcome_of(counted) == outcome_of(event):
                return Verdict(IgnoredReason.DUPLICATE_GAME)
            detail = f"game {shorten(game)} has counted with another outcome, by event {shorten(counted.id)}"
            raise EventRefused(DeadReason.CONFLICTING_GAME, detail)
        return fold_event(self.rules, self.records, event, period)

    def counted_game(self, game: str) -> AnyGameEvent:
        """Return the event by which the game has counted."""
        return self._games.get(game) or read_counted(self.history.games[game])

    def accept(self, event: AnyGameEvent, key: EventKey, body: str, verdict: Verdict) -> None:
        """Make a ledger entry of the event."""
        self.seq += 1
        time, newest = event.time, self.newest
        late = newest is not None and time < newest
        self.entries.append(_entry((self.seq, event, body, verdict, late)))
        self.outcomes.append(False)
        self._bodies[key] = body
        if verdict.ignored is None:
            self._games[event.data.game] = event
            self.newest = newest if late else time
            for change in verdict.changes:
                self.records[change.player] = change.after
        else:
            self.ignored += 1


def check_same_body(counted: str, body: bytes) -> None:
    """Raise EventRefused if an event with a known identity says something else than before."""
    if counted.encode() == body or json.loads(counted) == json.loads(body):
        return
    raise EventRefused(DeadReason.ID_REUSED, "the same source and id have counted with another body")
