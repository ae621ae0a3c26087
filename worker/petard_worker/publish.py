"""The publisher: the ledger is the outbox, and Redis itself is the cursor.

Every ledger entry of every pool is appended to the pool's change stream under the id `<epoch>-<seq>`, by a
script that appends only if the stream's last id is the expected predecessor. So a repeat is refused, a wiped
Redis is noticed and refilled, and nothing has to be marked as published. One publisher of the fleet is
active, by an advisory lock on its own session; the others wait.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
import redis
import structlog
from redis import Redis

from petard_schema import Keys
from petard_worker.board import Board, BoardState
from petard_worker.change_stream import ChangeStream, Left, StreamEntry, StreamId
from petard_worker.chunks import chunks
from petard_worker.pool_settings import pool_settings
from petard_worker.postgres import outbox
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.pools import PublishedPool, list_published, raise_epoch
from petard_worker.rating_changed import render, told

log = structlog.get_logger()

CHUNK = 500
SHARED_CHUNK = 50
SHARED_FOR_SECONDS = 2.0
"""So long after several pools had news at once fewer entries are published at a time: they may again."""
COMPARED = 500
"""Entries at the end of a stream that are compared with the ledger before it is gone on with."""
LOOK_SECONDS = 1.0
"""Between two looks at all pools: drains poke about what they commit, this finds what no poke told."""
POOLS_A_SECOND = 330
"""Looks at more pools than this come less often, but more often than Postgres ends an idle session."""
MOST_LOOK_SECONDS = 3.0
CHECK_SECONDS = 1.0
CHECKED_AT_ONCE, CHECKED_IN_LOOKS = 100, 3
"""So many pools at least are compared with Redis at each check, and all of them by so many checks; all at
once when one is not as it was left."""


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
    pools: dict[str, PublishedPool] = field(default_factory=dict)
    """As the last look at all of them found them."""
    behind: set[str] = field(default_factory=set)
    """Pools of which more waits than was published at a time."""
    _look_at: float = 0.0
    _shared_until: float = 0.0
    _checked: float = 0.0
    _next_checked: int = 0
    _suspicious: bool = False
    _set_aside: set[str] = field(default_factory=set)
    """Pools that could not be published; tried again at the next check."""

    def __post_init__(self) -> None:
        self.stream = ChangeStream(self.redis, self.keys)
        self.board = Board(self.connection, self.redis, self.keys)

    def publish_once(self) -> int:
        """Publish what is new in every pool, up to a chunk each; return how many entries were appended."""
        self.pools = {pool.name: pool for pool in list_published(self.connection)}
        seconds = min(MOST_LOOK_SECONDS, max(LOOK_SECONDS, len(self.pools) / POOLS_A_SECOND))
        self._look_at = time.monotonic() + seconds
        if time.monotonic() - self._checked > CHECK_SECONDS:
            self._checked = time.monotonic()
            self._set_aside.clear()
            self.check_redis()
        return sum(self.try_pool(pool) for pool in self.pools.values() if pool.name not in self._set_aside)

    def publish_poked(self, names: Iterable[str]) -> int:
        """Publish what is new in these pools, up to a chunk each; return how many entries were appended.

        A pool that is new here is left to the next look at all pools, which is due then.
        """
        # A pool that is behind has its turn after those that are not.
        found = [self.pools.get(name) for name in sorted(names, key=self.behind.__contains__)]
        if None in found:
            self._look_at = 0.0
        if len(found) > 1:
            self._shared_until = time.monotonic() + SHARED_FOR_SECONDS
        return sum(self.try_next(pool) for pool in found if pool is not None and pool.name in self.cursors)

    def is_look_due(self) -> bool:
        """Return whether it is time to look at all pools."""
        return time.monotonic() >= self._look_at

    def try_pool(self, pool: PublishedPool) -> int:
        """Publish one pool as publish_pool does; one whose keys cannot be written holds up no other."""
        cursor = self.cursors.get(pool.name)
        if cursor is not None and cursor.seq >= pool.seq:
            return 0
        with self.setting_aside(pool):
            return self.publish_pool(pool)
        return 0

    def try_next(self, pool: PublishedPool) -> int:
        """Publish one pool as publish_next does; one whose keys cannot be written holds up no other."""
        with self.setting_aside(pool):
            return self.publish_next(pool, self.cursors[pool.name])
        return 0

    @contextmanager
    def setting_aside(self, pool: PublishedPool) -> Iterator[None]:
        """Set the pool aside when its keys or its rows are refused."""
        try:
            yield
        except (redis.ResponseError, psycopg.DataError) as error:
            log.error("pool_not_published", pool=pool.name, error=str(error).strip())  # noqa: TRY400
            self.cursors.pop(pool.name, None)
            self.behind.discard(pool.name)
            self._set_aside.add(pool.name)

    def suspect_redis(self) -> None:
        """Compare every pool with Redis at the next look: it was away, and may have lost something."""
        self._look_at, self._checked = 0.0, float("-inf")
        self._suspicious = True

    def check_redis(self) -> None:
        """Forget cursors whose streams are not as we left them; rebuild boards that are lost or due.

        Some pools at a time, so that a thousand idle ones cost little, but all once one is not as we left it.
        """
        for name, cursor in list(self.cursors.items()):
            if self.board.is_due(self.pools[name], cursor.board):
                self.rebuild_board(name)
        names = list(self.cursors)
        at_once = max(CHECKED_AT_ONCE, len(names) // CHECKED_IN_LOOKS)
        some = names[self._next_checked : self._next_checked + at_once]
        self._next_checked += at_once
        if self._next_checked >= len(names):
            self._next_checked = 0
        if not self.are_as_left(some) or self._suspicious:
            for others in chunks(names, CHECKED_AT_ONCE):
                self.are_as_left([name for name in others if name in self.cursors])
        self._suspicious = False

    def are_as_left(self, names: Sequence[str]) -> bool:
        """Return whether these pools are in Redis as we left them; see to those that are not."""
        if not names:
            return True
        cursors = [self.cursors[name] for name in names]
        left = [
            Left(name, cursor.expected, cursor.board.anybody)
            for name, cursor in zip(names, cursors, strict=True)
        ]
        found = self.stream.not_as_left(left)
        for name in found.streams:
            log.warning("stream_not_as_left", pool=name, expected=str(self.cursors[name].expected))
            del self.cursors[name]
        for name in found.boards:
            self.rebuild_board(name)
        return not (found.streams or found.boards)

    def rebuild_board(self, name: str) -> None:
        """Put up a new board of a pool."""
        pool, cursor = self.pools[name], self.cursors[name]
        with self.setting_aside(pool):
            cursor.board = self.board.rebuild(pool, cursor.expected)

    def publish_pool(self, pool: PublishedPool) -> int:
        """Append the next chunk of one pool's entries, if there are any; return how many."""
        cursor = self.cursors.get(pool.name)
        if cursor is None:
            cursor = self.cursors[pool.name] = self.synchronise(pool)
        return self.publish_next(pool, cursor) if cursor.seq < pool.seq else 0

    def publish_next(self, pool: PublishedPool, cursor: Cursor) -> int:
        """Append the chunk that follows the cursor, if there is one; return how many entries that were."""
        limit = SHARED_CHUNK if time.monotonic() < self._shared_until else CHUNK
        # No pipeline: Postgres waits without a limit for the rest of one, so a publisher that is frozen in
        # the middle would keep its lock.
        entries = outbox.read_entries(self.connection, pool.name, cursor.seq, limit)
        (self.behind.add if len(entries) == limit else self.behind.discard)(pool.name)
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
            self.suspect_redis()
            return 0
        cursor.expected, cursor.seq = last, last.seq
        cursor.board.anybody = cursor.board.anybody or bool(moves.listed)
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
