"""The leaderboard of a pool: a sorted set that moves with the stream and is rebuilt from Postgres at will.

Who is listed, and by what score, is said in one place, `postgres/boards.py`: it is asked for all players when
the board is rebuilt, and for those whom new entries concern when it moves.
"""

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from redis import Redis

from petard_schema import Keys
from petard_worker.change_stream import LAST_ID_OF, BoardMoves, StreamId
from petard_worker.pool_settings import pool_settings
from petard_worker.postgres.boards import Listing, list_by, read_board, read_scores
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.outbox import OutboxChange
from petard_worker.postgres.pools import PublishedPool
from petard_worker.ratings.parameters import ParameterValue
from petard_worker.server_function import ALLOW_OOM, ServerFunction

log = structlog.get_logger()

CHUNK = 5_000
REFRESH_SECONDS = 600.0
FRESH_BOARD_MS = 60_000
"""A board that was never put in place, because its publisher was killed, is gone after this."""

# KEYS: stream, new board, leaderboard. ARGV: expected last id, number of players. Puts the new board in the
# old one's place, but not when the stream has gone on (another publisher took over, and what it has put on
# the board since would be lost), nor when its publisher was frozen for so long that a part has expired.
PLACE_BOARD = (
    LAST_ID_OF
    + """
if last_id_of(KEYS[1]) ~= ARGV[1] or redis.call('ZCARD', KEYS[2]) ~= tonumber(ARGV[2]) then
    redis.call('DEL', KEYS[2])
    return 0
end
if ARGV[2] == '0' then
    redis.call('DEL', KEYS[3])
    return 1
end
redis.call('RENAME', KEYS[2], KEYS[3])
redis.call('PERSIST', KEYS[3])
return 1
"""
)
PLACE_BOARD_FUNCTION = ServerFunction("place_board", PLACE_BOARD, ALLOW_OOM)


@dataclass
class BoardState:
    """What is known of a board that was rebuilt."""

    settings: Mapping[str, ParameterValue]
    seq: int
    """The board is no older than this entry: entries up to it need not move it."""
    due: float
    """When to rebuild it, by the monotonic clock."""
    anybody: bool
    """Whether somebody was put on it; a board of nobody is no key at all."""


@dataclass
class Board:
    """The boards of all pools."""

    connection: Connection
    redis: Redis
    keys: Keys

    def __post_init__(self) -> None:
        self._place = PLACE_BOARD_FUNCTION.on(self.redis)

    def is_due(self, pool: PublishedPool, state: BoardState) -> bool:
        """Return whether the board is of other settings, or so old that players are inactive now."""
        return state.settings != pool.settings or time.monotonic() > state.due

    def moves(self, pool: PublishedPool, state: BoardState, changes: Iterable[OutboxChange]) -> BoardMoves:
        """Return how the board moves with these changes.

        The scores are those of now, and not those of the changes: what came since cannot be set back.
        """
        players = {change.player for change in changes if change.seq > state.seq}
        listed = read_scores(self.connection, listing_of(pool), players) if players else {}
        return BoardMoves(listed, players - listed.keys())

    def rebuild(self, pool: PublishedPool, expected: StreamId) -> BoardState:
        """Write the whole board anew, from one snapshot, and put it in place at once.

        The snapshot may be ahead of the stream: after Redis was wiped, by all that has to be filled in again.
        """
        board = self.keys.leaderboard(pool.name)
        fresh = f"{board}:{uuid.uuid4().hex}"
        count = 0
        # The transaction only reads: it is one snapshot for a board that may be too large for the memory.
        with self.connection.transaction():
            for scores in read_board(self.connection, listing_of(pool), CHUNK):
                with self.redis.pipeline() as both:
                    both.zadd(fresh, scores)
                    both.pexpire(fresh, FRESH_BOARD_MS)
                    both.execute()
                count += len(scores)
        keys = [self.keys.changes(pool.name), fresh, board]
        refresh = REFRESH_SECONDS if pool_settings(pool.settings).hide_inactive_days else float("inf")
        if not self._place(keys=keys, args=[str(expected), count]):
            log.warning("board_refused", pool=pool.name, expected=str(expected))
            refresh = 0.0
        return BoardState(pool.settings, pool.seq, time.monotonic() + refresh, anybody=count > 0)


def listing_of(pool: PublishedPool) -> Listing:
    """Return who is listed in the pool now."""
    return list_by(pool.name, pool_settings(pool.settings), datetime.now(UTC))
