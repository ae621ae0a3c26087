"""The publisher: the ledger is the outbox, and Redis itself is the cursor.

Every ledger entry of every pool is appended to the pool's change stream under the id `<epoch>-<seq>`, by a
script that appends only if the stream's last id is the expected predecessor. So a repeat is refused, a wiped
Redis is noticed and refilled, and nothing has to be marked as published. One publisher of the fleet is
active, by an advisory lock on its own session; the others wait.
"""

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, cast

import psycopg
import redis
import structlog
from pydantic import ValidationError
from redis import Redis

from petard_schema import Keys, RatingChanged
from petard_schema.envelope import read_traceparent
from petard_schema.times import format_time
from petard_worker.pool_settings import PoolSettings, pool_settings
from petard_worker.postgres import outbox
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.outbox import BoardRow, OutboxChange, OutboxEntry
from petard_worker.postgres.pools import PublishedPool, list_published, raise_epoch
from petard_worker.ratings.parameters import ParameterValue

log = structlog.get_logger()

CHUNK = 500
CHECK_SECONDS = 1.0
BOARD_CHUNK = 5_000
BOARD_REFRESH_SECONDS = 600.0
FRESH_BOARD_MS = 60_000
"""A board that was never put in place, because its publisher was killed, is gone after this."""
EVENT_TYPE = "petard.rating.changed.v1"
SOURCE = "/petard"

LAST_ID = """
local last = '0-0'
if redis.call('EXISTS', KEYS[1]) == 1 then
    local info = redis.call('XINFO', 'STREAM', KEYS[1])
    for i = 1, #info, 2 do
        if info[i] == 'last-generated-id' then last = info[i + 1] end
    end
end
"""

# KEYS: stream, leaderboard. ARGV: expected last id, stream length, number of entries, then id and event of
# each, number of players to list, then score and player of each, then the players to leave out.
# Answers the stream's last id; appended if it is the last id of the batch.
APPEND = (
    LAST_ID
    + """
if last ~= ARGV[1] then return last end
local at = 4
for _ = 1, tonumber(ARGV[3]) do
    last = redis.call('XADD', KEYS[1], ARGV[at], 'event', ARGV[at + 1])
    at = at + 2
end
redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', ARGV[2])
local listed = tonumber(ARGV[at])
at = at + 1
for _ = 1, listed do
    redis.call('ZADD', KEYS[2], ARGV[at], ARGV[at + 1])
    at = at + 2
end
for i = at, #ARGV do redis.call('ZREM', KEYS[2], ARGV[i]) end
return last
"""
)

# KEYS: stream, new board, leaderboard. ARGV: expected last id. Puts the new board in the old one's place, but
# not when the stream has gone on: another publisher took over, and what it has put on the board since would
# be lost.
PLACE_BOARD = (
    LAST_ID
    + """
if last ~= ARGV[1] then
    redis.call('DEL', KEYS[2])
    return 0
end
if redis.call('EXISTS', KEYS[2]) == 0 then
    redis.call('DEL', KEYS[3])
    return 1
end
redis.call('RENAME', KEYS[2], KEYS[3])
redis.call('PERSIST', KEYS[3])
return 1
"""
)


class StreamId(NamedTuple):
    """The id of a stream entry; 0-0 stands before the first."""

    epoch: int
    seq: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.seq}"

    @classmethod
    def parse(cls, text: bytes) -> "StreamId":
        """Return the id in Redis's form."""
        epoch, _, seq = text.decode().partition("-")
        return cls(int(epoch), int(seq))


NOTHING = StreamId(0, 0)


@dataclass
class Cursor:
    """How far one pool has been published."""

    epoch: int
    """The epoch to publish under."""
    expected: StreamId
    """What must be the stream's last id."""
    seq: int
    """The last ledger entry that is in the stream, or that will not be."""
    board_due: float = 0.0
    board_settings: Mapping[str, ParameterValue] = field(default_factory=dict)
    board_seq: int = 0
    """The board is no older than this entry: what is appended up to it must not set players back."""


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
        self._append = self.redis.register_script(APPEND)
        self._place_board = self.redis.register_script(PLACE_BOARD)

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
        """Forget the pool's cursor if its stream is not as we left it; rebuild a board that is not."""
        cursor = self.cursors.get(pool.name)
        if cursor is None:
            return
        lost_board = cursor.seq > 0 and not self.redis.exists(self.keys.leaderboard(pool.name))
        if self.last_id(pool.name) != cursor.expected:
            log.warning("stream_not_as_left", pool=pool.name, expected=str(cursor.expected))
            del self.cursors[pool.name]
        elif lost_board or cursor.board_settings != pool.settings or time.monotonic() > cursor.board_due:
            self.rebuild_board(pool, cursor)

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
        ids = [StreamId(cursor.epoch, entry.seq) for entry in entries]
        events = render(pool.name, cursor.epoch, entries, changes)
        last = self.append(pool, cursor, list(zip(ids, events, strict=True)), changes)
        if last != ids[-1]:
            log.warning("append_refused", pool=pool.name, expected=str(cursor.expected), found=str(last))
            del self.cursors[pool.name]
            return 0
        cursor.expected, cursor.seq = ids[-1], ids[-1].seq
        self.redis.publish(self.keys.changed(), f"{pool.name} {ids[-1]}")
        return len(entries)

    def append(
        self,
        pool: PublishedPool,
        cursor: Cursor,
        batch: list[tuple[StreamId, str]],
        changes: list[OutboxChange],
    ) -> StreamId:
        """Append the batch if the stream is where it is expected; return the stream's last id.

        It is the batch's last id if the batch is in the stream, be it since an earlier try whose answer was
        lost.
        """
        settings = pool_settings(pool.settings)
        # An unpunished abandon is no rated event: it puts nobody on the board.
        latest = {
            change.player: change
            for change in changes
            if change.seq > cursor.board_seq and change.rd_aged is not None
        }
        listed: list[str | int] = []
        left_out: list[str] = []
        for change in latest.values():
            if settings.hide_provisional and change.rd_after > settings.provisional_rd:
                left_out.append(change.player)
            else:
                listed += [repr(settings.score(change.rating_after, change.rd_after)), change.player]
        arguments: list[str | int] = [str(cursor.expected), settings.stream_length, len(batch)]
        for stream_id, event in batch:
            arguments += [str(stream_id), event]
        arguments += [len(listed) // 2, *listed, *left_out]
        keys = [self.keys.changes(pool.name), self.keys.leaderboard(pool.name)]
        return StreamId.parse(cast("bytes", self._append(keys=keys, args=arguments)))

    def synchronise(self, pool: PublishedPool) -> Cursor:
        """Return where to go on, from what the stream says of itself."""
        last = self.last_id(pool.name)
        if last.epoch == pool.epoch and last.seq <= pool.seq and self.same_entry(pool.name, last):
            cursor = Cursor(pool.epoch, last, last.seq)
        elif last.epoch < pool.epoch:
            # Wiped, or a new epoch that nothing was published under: all that the stream should hold.
            cursor = Cursor(pool.epoch, last, refill_from(pool))
        else:
            # A failover of Postgres lost commits that followers have seen: they must not take what comes
            # now for what follows.
            epoch = raise_epoch(self.connection, pool.name, last.epoch)
            log.error("redis_ahead_of_postgres", pool=pool.name, found=str(last), seq=pool.seq, epoch=epoch)
            cursor = Cursor(epoch, last, refill_from(pool))
        self.rebuild_board(pool, cursor)
        return cursor

    def last_id(self, pool: str) -> StreamId:
        """Return the last id the stream has ever had, 0-0 if there is no stream."""
        return last_stream_id(self.redis, self.keys, pool)

    def same_entry(self, pool: str, last: StreamId) -> bool:
        """Return whether the stream's last entry is the ledger's entry of that seq."""
        newest = cast(
            "list[tuple[bytes, dict[bytes, bytes]]]",
            self.redis.xrevrange(self.keys.changes(pool), count=1),
        )
        if not newest or StreamId.parse(newest[0][0]) != last:
            return True  # trimmed away: nothing to compare
        cause = cause_of(newest[0][1])
        return cause is not None and outbox.find_entry(self.connection, pool, last.seq) == cause

    def rebuild_board(self, pool: PublishedPool, cursor: Cursor) -> None:
        """Write the whole leaderboard anew, from one snapshot, and put it in place at once.

        The snapshot may be ahead of the stream: after Redis was wiped, by all that has to be filled in again.
        """
        settings = pool_settings(pool.settings)
        scores = dict(listed(settings, outbox.read_board(self.connection, pool.name), datetime.now(UTC)))
        board = self.keys.leaderboard(pool.name)
        fresh = f"{board}:{uuid.uuid4().hex}"
        for chunk in chunks(list(scores), BOARD_CHUNK):
            self.redis.zadd(fresh, {player: scores[player] for player in chunk})
            self.redis.pexpire(fresh, FRESH_BOARD_MS)
        keys = [self.keys.changes(pool.name), fresh, board]
        if not self._place_board(keys=keys, args=[str(cursor.expected)]):
            log.warning("board_refused", pool=pool.name, expected=str(cursor.expected))
        cursor.board_seq, cursor.board_settings = pool.seq, pool.settings
        cursor.board_due = time.monotonic() + (
            BOARD_REFRESH_SECONDS if settings.hide_inactive_days else float("inf")
        )


def last_stream_id(redis_client: Redis, keys: Keys, pool: str) -> StreamId:
    """Return the last id the pool's stream has ever had, 0-0 if there is no stream."""
    try:
        info = cast("dict[str, bytes]", redis_client.xinfo_stream(keys.changes(pool)))
    except redis.ResponseError as error:
        if "no such key" not in str(error):
            raise
        return NOTHING
    return StreamId.parse(info["last-generated-id"])


def cause_of(fields: Mapping[bytes, bytes]) -> tuple[str, str] | None:
    """Return source and id of the event behind a stream entry, or None when the entry is none of ours."""
    try:
        message = RatingChanged.model_validate_json(fields.get(b"event", b""))
    except ValidationError:
        return None
    return message.data.cause.source, message.data.cause.id


def chunks(players: list[str], size: int) -> Iterator[list[str]]:
    """Yield the players in lists of at most `size`."""
    return (players[start : start + size] for start in range(0, len(players), size))


def refill_from(pool: PublishedPool) -> int:
    """Return the entry after which a stream has to be filled that holds nothing of use."""
    return max(0, pool.seq - pool_settings(pool.settings).stream_length)


def listed(settings: PoolSettings, rows: list[BoardRow], now: datetime) -> Iterator[tuple[str, float]]:
    """Yield the players who belong on the board with their scores."""
    oldest = now - timedelta(days=settings.hide_inactive_days) if settings.hide_inactive_days else None
    for row in rows:
        if settings.hide_provisional and row.rd > settings.provisional_rd:
            continue
        if row.last_played is None or (oldest is not None and row.last_played < oldest):
            continue
        yield row.player, settings.score(row.rating, row.rd)


def render(pool: str, epoch: int, entries: list[OutboxEntry], changes: list[OutboxChange]) -> Iterator[str]:
    """Yield the rating-changed event of every entry, as JSON."""
    by_seq = {seq: list(group) for seq, group in groupby(changes, key=attrgetter("seq"))}
    for entry in entries:
        yield json.dumps(
            rating_changed(pool, epoch, entry, by_seq.get(entry.seq, [])),
            ensure_ascii=False,
            separators=(",", ":"),
        )


def rating_changed(
    pool: str, epoch: int, entry: OutboxEntry, changes: list[OutboxChange]
) -> dict[str, object]:
    """Return the message as plain objects: RatingChanged of the schema, which a test holds it to."""
    message: dict[str, object] = {
        "specversion": "1.0",
        "id": f"{pool}/{epoch}-{entry.seq}",
        "source": SOURCE,
        "type": EVENT_TYPE,
        "subject": pool,
        "time": format_time(entry.received),
        "data": {
            "pool": pool,
            "epoch": epoch,
            "seq": entry.seq,
            "cause": {"id": entry.event_id, "source": entry.source, "type": entry.type, "game": entry.game},
            "outcome": entry.outcome,
            "reason": entry.reason,
            "changes": [as_change(change) for change in changes],
        },
    }
    traceparent = read_traceparent(entry.traceparent)
    if traceparent is not None:
        message["traceparent"] = traceparent
    return message


def as_change(change: OutboxChange) -> dict[str, object]:
    """Return one player's change as plain objects."""
    return {
        "player": change.player,
        "player_seq": change.player_seq,
        "before": {
            "rating": change.rating_before,
            "rd": change.rd_before,
            "volatility": change.volatility_before,
            "bomb": change.bomb_before,
            "games": change.games_before,
        },
        "after": {
            "rating": change.rating_after,
            "rd": change.rd_after,
            "volatility": change.volatility_after,
            "bomb": change.bomb_after,
            "games": change.games_after,
        },
        "explanation": {
            "expected": change.expected,
            "actual": change.actual,
            "rd_aged": change.rd_aged,
            "penalty": change.penalty,
            "late": change.late,
        },
    }
