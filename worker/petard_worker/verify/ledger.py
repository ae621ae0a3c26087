"""The ledger applied once more, from its first entry, by the code that applied it.

Entries are folded in order from records that only the entries before have made, so a stored value can agree
for one reason only. That the end of every change is the beginning of the player's next one needs no look of
its own: both are compared with the same record. When events came is not judged: what was from the future then
is not now.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, cast

from petard_schema import AnyGameEvent, EventRefused, read_counted, read_event
from petard_schema.names import OWN_SOURCE
from petard_schema.times import parse_time
from petard_worker.batch import Arrival, Batch, Entry, History, without_traceback
from petard_worker.fold import PlayerRecord
from petard_worker.periods import OpenPeriod
from petard_worker.postgres.audit import ChangeRow, LedgerRow, PoolVersion
from petard_worker.postgres.ledger import game_of
from petard_worker.postgres.players import NEW_CHANGE, change_row
from petard_worker.postgres.pools import Pool
from petard_worker.ratings.pool_rules import PoolRules, pool_rules
from petard_worker.verify.differences import MISSING, Differences, Where, named

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
NO_PERIOD: tuple[int, OpenPeriod | None] = (-1, None)
ENTRY_COLUMNS = (
    "source", "event_id", "type", "game", "time", "outcome", "reason", "counts", "late", "version", "body",
)  # fmt: skip
CHANGE_NAMES = NEW_CHANGE.names
PLAYER, SEQ = CHANGE_NAMES.index("player"), CHANGE_NAMES.index("seq")


class StoredChanges:
    """The changes of a pool in the order of their entries, handed out entry by entry."""

    def __init__(self, rows: Iterable[ChangeRow]) -> None:
        self.count = 0
        """How many were handed out."""
        self._rows = iter(rows)
        self._next = next(self._rows, None)

    def of(self, seq: int) -> list[ChangeRow]:
        """Return those of an entry."""
        rows = []
        while self._next is not None and self._next[SEQ] == seq:
            rows.append(self._next)
            self._next = next(self._rows, None)
        self.count += len(rows)
        return rows

    def before(self, seq: int | None) -> Iterator[ChangeRow]:
        """Yield those that are left of entries before this one; None: all that are left."""
        while self._next is not None and (seq is None or cast("int", self._next[SEQ]) < seq):
            yield from self.of(cast("int", self._next[SEQ]))


class RulesInForce(NamedTuple):
    """How a pool rates from an entry on."""

    since_seq: int
    version: int
    rules: PoolRules


class Replay:
    """Applies the entries of a pool and takes note of what is stored otherwise."""

    def __init__(
        self, pool: Pool, versions: Sequence[PoolVersion], changes: Iterable[ChangeRow], found: Differences
    ) -> None:
        """Begin before the first entry; `changes` are those of the pool in the order of their entries.

        `versions` are all that the pool has had, at least one. Raises BadParameterError when this release
        does not know one of the systems or parameters.
        """
        self.pool = pool
        self.found = found
        self.stored = StoredChanges(changes)
        self.seq = 0
        self.newest: datetime | None = None
        self.records: dict[str, PlayerRecord] = {}
        self.open_periods: dict[str, tuple[int, OpenPeriod]] = {}
        """As the table has them: with the player's change after which it was so."""
        self.caps: dict[str, int] = {}
        """Bomb caps in force when players were last rated, where that was another than the pool's first."""
        self._versions = [
            RulesInForce(one.since_seq, one.version, pool_rules(one.system, one.parameters))
            for one in versions
        ]
        self._in_force = self._versions[0]
        self._batch: Batch | None = None
        self._endings: list[LedgerRow] = []
        """Ends of rating periods: the game behind them says whether they are due."""
        self._earlier: dict[str, str] = {}
        """Bodies by which games had counted before entries that do not count."""

    def take(self, rows: Iterable[LedgerRow]) -> None:
        """Apply the next entries."""
        for row in rows:
            if row.seq != self.seq + 1:
                self.found.add(Where.LEDGER, "seq", row.seq, self.seq + 1, self.seq + 1)
            self.seq = row.seq
            self._endings.append(row)
            if row.source != OWN_SOURCE:
                self._apply(self._endings)
                self._endings = []
        # What a batch remembers of its events grows: the next rows get another one.
        self._leave_batch()

    def finish(self) -> None:
        """Check what must be so behind the last entry."""
        for row in self._endings:
            self._ending_not_due(row)
        self._changes_not_due(self.stored.before(None))
        stored, due = (self.pool.seq, self.pool.newest), (self.seq, self.newest)
        self.found.compare(Where.POOL, ("seq", "newest"), stored, due)

    def due_cap(self, player: str) -> int:
        """Return the bomb cap that was in force when the player was last rated."""
        return self.caps.get(player, self._versions[0].rules.bombs.cap)

    def _apply(self, rows: Sequence[LedgerRow]) -> None:
        """Apply an event, given with the ends of periods that stand before it."""
        *endings, row = rows
        batch = self._batch_at(rows[0].seq)
        batch.seq = rows[0].seq - 1
        due = self._fold(batch, row)
        due_endings = due[:-1]
        for stored, ending in zip(endings, due_endings, strict=False):
            self._compare(stored, ending, batch.version)
        for stored in endings[len(due_endings) :]:
            self._ending_not_due(stored)
        for ending in due_endings[len(endings) :]:
            self.found.add(Where.LEDGER, "end of a period", MISSING, ending.event.id, row.seq)
        if due:
            self._compare(row, due[-1], batch.version)
        else:
            self._compare_changes(row, [])

    def _fold(self, batch: Batch, row: LedgerRow) -> list[Entry]:
        """Return the entries that the event makes, none where it should have become no entry."""
        entries, refusals = len(batch.entries), len(batch.refusals)
        body = row.body.encode()
        read = read_again(body)
        if row.game is not None and row.counted_before is not None:
            self._earlier[row.game] = row.counted_before
        if not isinstance(read, EventRefused):
            batch.now = read.time
        batch.fold([Arrival(body, read)])
        if len(batch.refusals) > refusals:
            refused = batch.refusals[-1].refused
            self.found.add(Where.LEDGER, "body", row.body, f"a dead letter: {refused}", row.seq)
        elif len(batch.entries) == entries:
            self.found.add(Where.LEDGER, "event_id", row.event_id, "no entry: it has counted", row.seq)
        return batch.entries[entries:]

    def _compare(self, row: LedgerRow, entry: Entry, version: int) -> None:
        """Compare a stored entry and its changes with what the event comes to."""
        event, ignored, game = entry.event, entry.verdict.ignored, game_of(entry)
        due = (
            event.source,
            event.id,
            event.type,
            game,
            event.time,
            "rated" if ignored is None else "ignored",
            ignored,
            ignored is None and game is not None,
            entry.late,
            version,
            entry.body,
        )
        self.found.compare(Where.LEDGER, ENTRY_COLUMNS, row[1:-1], due, row.seq)
        self._compare_changes(row, [change_row(row.seq, change) for change in entry.verdict.changes])

    def _compare_changes(self, row: LedgerRow, due: Iterable[ChangeRow]) -> None:
        """Compare the changes stored for an entry with those it makes."""
        self._changes_not_due(self.stored.before(row.seq))
        stored = {change[PLAYER]: change for change in self.stored.of(row.seq)}
        for change in due:
            player = cast("str", change[PLAYER])
            found = stored.pop(player, None)
            if found is None:
                self.found.add(Where.CHANGE, "row", MISSING, named(CHANGE_NAMES, change), row.seq, player)
            else:
                self.found.compare(Where.CHANGE, CHANGE_NAMES, found, change, row.seq, player)
        self._changes_not_due(stored.values())

    def _changes_not_due(self, changes: Iterable[ChangeRow]) -> None:
        for change in changes:
            seq, player = cast("int", change[SEQ]), cast("str", change[PLAYER])
            self.found.add(Where.CHANGE, "row", named(CHANGE_NAMES, change), MISSING, seq, player)

    def _ending_not_due(self, row: LedgerRow) -> None:
        self.found.add(Where.LEDGER, "end of a period", row.event_id, MISSING, row.seq)
        self._compare_changes(row, [])

    def _batch_at(self, seq: int) -> Batch:
        """Return the batch for the entry: another one as soon as other parameters are in force."""
        # With the same since_seq the newest is the one that counts.
        in_force = next((one for one in reversed(self._versions) if one.since_seq <= seq), self._versions[0])
        if in_force != self._in_force:
            self._leave_batch()
            self._put_in_force(in_force)
        if self._batch is None:
            self._earlier = {}
            history = History({}, self._earlier, self.records)
            self._batch = Batch(
                self.pool.name,
                in_force.rules,
                BEGINNING,
                seq,
                self.newest,
                history,
                version=in_force.version,
            )
        return self._batch

    def _leave_batch(self) -> None:
        """Take over what the batch has left, as a drain writes it down."""
        batch, self._batch = self._batch, None
        if batch is None:
            return
        self.newest = batch.newest
        self.records.update(batch.records)
        if self._in_force.rules.system.period:
            self.open_periods.update(
                (player, (record.player_seq, record.period))
                for player, record in batch.records.items()
                if record.period is not None
            )
        cap = self._in_force.rules.bombs.cap
        if self.caps or cap != self._versions[0].rules.bombs.cap:
            self.caps.update(dict.fromkeys(batch.records, cap))

    def _put_in_force(self, rules: RulesInForce) -> None:
        """Go on by other parameters: where there are periods, the open ones are known from the table."""
        self._in_force = rules
        if not self.open_periods:
            return
        for player, record in self.records.items():
            seq, period = self.open_periods.get(player, NO_PERIOD)
            known = bool(rules.rules.system.period) and seq == record.player_seq
            self.records[player] = record._replace(period=period if known else None)


def read_again(body: bytes) -> AnyGameEvent | EventRefused:
    """Return the event of an entry: by the rules for what comes today, else as it was accepted before."""
    try:
        return read_event(body)
    except EventRefused as refused:
        try:
            counted = read_counted(body.decode())
            return counted.model_copy(update={"time": parse_time(counted.time)})
        except (KeyError, TypeError, ValueError, AttributeError):
            return without_traceback(refused)
