"""The publisher: the ledger is the outbox, and Redis itself is the cursor.

Every ledger entry of every pool is appended to the pool's change stream under the id `<epoch>-<seq>`, by a
script that appends only if the stream's last id is the expected predecessor. So a repeat is refused, a wiped
Redis is noticed and refilled, and nothing has to be marked as published. One publisher of the fleet is
active, by an advisory lock on its own session; the others wait.
"""

import time
from dataclasses import dataclass, field

import psycopg
import redis
import structlog
from redis import Redis

from petard_schema import Keys
from petard_worker.board import Board, BoardState
from petard_worker.change_stream import ChangeStream, StreamEntry, StreamId
from petard_worker.pool_settings import pool_settings
from petard_worker.postgres import outbox
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.pools import PublishedPool, list_published, raise_epoch
from petard_worker.rating_changed import render, told

log = structlog.get_logger()

CHUNK = 500
COMPARED = 500
"""Entries at the end of a stream that are compared with the ledger before it is gone on with."""
CHECK_SECONDS = 1.0


@dataclass
class Cursor:
    """How far one pool has been published."""

    epoch: int
    """The epoch to publish under."""
    expected: StreamId
    """What must be the stream's last id."""
    seq: int
    """The last ledger entry that is in the stream, or that will not be."""
    board: BoardState


@dataclass
class Publisher:
    """Publishes what the ledger has and the streams have not; one session, one client."""

    connection: Connection
    redis: Redis
    keys: Keys
    cursors: dict[str, Cursor] = field(default_factory=dict)
    _checked: float = 0.0
    _set_aside: set[str] = field(default_factory=set)
    """Pools that could not be published; tried again at the next check."""

    def __post_init__(self) -> None:
        self.stream = ChangeStream(self.redis, self.keys)
        self.board = Board(self.connection, self.redis, self.keys)

    def publish_once(self) -> int:
        """Publish what is new in every pool, up to a chunk each; return how many entries were appended."""
        pools = list_published(self.connection)
        checking = time.monotonic() - self._checked > CHECK_SECONDS
        if checking:
            self._checked = time.monotonic()
            self._set_aside.clear()
        return sum(self.try_pool(pool, checking) for pool in pools if pool.name not in self._set_aside)

    def try_pool(self, pool: PublishedPool, checking: bool) -> int:
        """Publish one pool; one whose keys cannot be written holds up no other."""
        try:
            if checking:
                self.check_redis(pool)
            return self.publish_pool(pool)
        except (redis.ResponseError, psycopg.DataError) as error:
            log.error("pool_not_published", pool=pool.name, error=str(error).strip())  # noqa: TRY400
            self.cursors.pop(pool.name, None)
            self._set_aside.add(pool.name)
            return 0

    def check_redis(self, pool: PublishedPool) -> None:
        """Forget the pool's cursor if its stream is not as we left it; rebuild a board that is due."""
        cursor = self.cursors.get(pool.name)
        if cursor is None:
            return
        if self.stream.last_id(pool.name) != cursor.expected:
            log.warning("stream_not_as_left", pool=pool.name, expected=str(cursor.expected))
            del self.cursors[pool.name]
        elif self.board.is_due(pool, cursor.board):
            cursor.board = self.board.rebuild(pool, cursor.expected)

    def publish_pool(self, pool: PublishedPool) -> int:
        """Append the next chunk of one pool's entries, if there are any; return how many."""
        cursor = self.cursors.get(pool.name)
        if cursor is None:
            cursor = self.cursors[pool.name] = self.synchronise(pool)
        if cursor.seq >= pool.seq:
            return 0
        entries = outbox.read_entries(self.connection, pool.name, cursor.seq, CHUNK)
        if not entries:
            return 0
        changes = outbox.read_changes(self.connection, pool.name, cursor.seq, entries[-1].seq)
        moves = self.board.moves(pool, cursor.board, changes)
        batch = [
            StreamEntry(StreamId(cursor.epoch, entry.seq), event)
            for entry, event in zip(entries, render(pool.name, cursor.epoch, entries, changes), strict=True)
        ]
        length = pool_settings(pool.settings).stream_length
        last = self.stream.append(pool.name, cursor.expected, batch, moves, length)
        if last != batch[-1].id:
            log.warning("append_refused", pool=pool.name, expected=str(cursor.expected), found=str(last))
            del self.cursors[pool.name]
            return 0
        cursor.expected, cursor.seq = last, last.seq
        cursor.board.anybody = cursor.board.anybody or bool(moves.listed)
        self.redis.publish(self.keys.changed(), f"{pool.name} {last}")
        return len(batch)

    def synchronise(self, pool: PublishedPool) -> Cursor:
        """Return where to go on, from what the stream says of itself, with a board to go on from."""
        last = self.stream.last_id(pool.name)
        epoch, seq = pool.epoch, refill_from(pool)
        if last.epoch == pool.epoch and last.seq <= pool.seq and self.is_as_told(pool.name, last):
            seq = last.seq
        elif last.epoch >= pool.epoch:
            # A failover of Postgres lost commits that followers have seen: they must not take what comes
            # now for what follows.
            epoch = raise_epoch(self.connection, pool.name, last.epoch)
            log.error("redis_ahead_of_postgres", pool=pool.name, found=str(last), seq=pool.seq, epoch=epoch)
        # Else wiped, or a new epoch that nothing was published under: all that the stream should hold.
        return Cursor(epoch, last, seq, self.board.rebuild(pool, last))

    def is_as_told(self, pool: str, last: StreamId) -> bool:
        """Return whether the stream's last entries say what the ledger says in their places now.

        The same events are not enough: after lost commits they may have come again with other numbers. Nor is
        the last entry alone: before it they may have come in another order.
        """
        found = [entry for entry in self.stream.newest(pool, COMPARED) if entry.id.epoch == last.epoch]
        if not found or found[-1].id != last:
            return True  # trimmed away: nothing to compare
        first = found[0].id.seq
        entries = outbox.read_entries(self.connection, pool, first - 1, last.seq - first + 1)
        changes = outbox.read_changes(self.connection, pool, first - 1, last.seq)
        due = [told(event) for event in render(pool, last.epoch, entries, changes)]
        return due == [told(entry.event) for entry in found]


def refill_from(pool: PublishedPool) -> int:
    """Return the entry after which a stream has to be filled that holds nothing of use."""
    return max(0, pool.seq - pool_settings(pool.settings).stream_length)
