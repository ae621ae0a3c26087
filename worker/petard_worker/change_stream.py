"""The change stream of a pool: Redis itself is the cursor, and what does not follow is refused."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import redis
from redis import Redis

from petard_schema import Keys
from petard_worker.server_function import NO_WRITES, ServerFunction

LAST_ID_OF = """
local function last_id_of(key)
    if redis.call('EXISTS', key) == 0 then return '0-0' end
    local info = redis.call('XINFO', 'STREAM', key)
    for i = 1, #info, 2 do
        if info[i] == 'last-generated-id' then return info[i + 1] end
    end
end
"""

# KEYS: stream, leaderboard. ARGV: expected last id, stream length, channel to poke and pool to name there,
# number of entries, then id and event of each, number of players to list, then score and player of each, then
# the players to leave out.
# The board moves by one call for many players, as many as Lua's stack has room for, with some to spare.
# Answers the stream's last id; appended if it is the last id of the batch.
APPEND = (
    LAST_ID_OF
    + """
local last = last_id_of(KEYS[1])
if last ~= ARGV[1] then return last end
local at = 6
for _ = 1, tonumber(ARGV[5]) do
    last = redis.call('XADD', KEYS[1], ARGV[at], 'event', ARGV[at + 1])
    at = at + 2
end
redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', ARGV[2])
local function at_once(command, from, to)
    for i = from, to, 2000 do
        redis.call(command, KEYS[2], unpack(ARGV, i, math.min(i + 1999, to)))
    end
end
local listed = 2 * tonumber(ARGV[at])
at_once('ZADD', at + 1, at + listed)
at_once('ZREM', at + 1 + listed, #ARGV)
redis.call('PUBLISH', ARGV[3], ARGV[4] .. ' ' .. last)
return last
"""
)
APPEND_FUNCTION = ServerFunction("append", APPEND)

# KEYS: stream and leaderboard of each pool. ARGV: of each the last id its stream should have, and 1 if it
# should have a leaderboard. Answers which pools' streams are not so, and which other pools lack their board.
CHANGED = (
    LAST_ID_OF
    + """
local streams, boards = {}, {}
for i = 1, #KEYS, 2 do
    local found, last = pcall(last_id_of, KEYS[i])
    if not found or last ~= ARGV[i] then
        streams[#streams + 1] = (i - 1) / 2
    elseif ARGV[i + 1] == '1' and redis.call('EXISTS', KEYS[i + 1]) == 0 then
        boards[#boards + 1] = (i - 1) / 2
    end
end
return {streams, boards}
"""
)
CHANGED_FUNCTION = ServerFunction("changed", CHANGED, NO_WRITES)


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


class StreamEntry(NamedTuple):
    """An entry and the event in it, as JSON; what is not ours may have no event."""

    id: StreamId
    event: bytes | str


class Left(NamedTuple):
    """How a pool was left in Redis."""

    pool: str
    last: StreamId
    has_board: bool


class NotAsLeft(NamedTuple):
    """Pools that are not as they were left."""

    streams: list[str]
    """Their stream ends with another entry, or is no stream."""
    boards: list[str]
    """Only the board is missing."""


class BoardMoves(NamedTuple):
    """What entries do to the board: scores of those who are listed, and who is not."""

    listed: Mapping[str, float]
    left_out: Collection[str]


@dataclass
class ChangeStream:
    """The change streams of all pools, with the boards that move in the same step."""

    redis: Redis
    keys: Keys

    def __post_init__(self) -> None:
        self._append = APPEND_FUNCTION.on(self.redis)
        self._changed = CHANGED_FUNCTION.on(self.redis)

    def append(
        self,
        pool: str,
        expected: StreamId,
        entries: Sequence[StreamEntry],
        moves: BoardMoves,
        length: int,
    ) -> StreamId:
        """Append the entries if the stream ends with `expected`, cut it to `length`, return its last id.

        Followers are poked in the same step.
        That is the last entry's id if the entries are in the stream, be it since an earlier try whose answer
        was lost.
        """
        arguments: list[str | bytes | int] = [str(expected), length, self.keys.changed(), pool, len(entries)]
        for entry in entries:
            arguments += [str(entry.id), entry.event]
        arguments.append(len(moves.listed))
        for player, score in moves.listed.items():
            arguments += [repr(score), player]
        arguments += moves.left_out
        keys = [self.keys.changes(pool), self.keys.leaderboard(pool)]
        return StreamId.parse(cast("bytes", self._append(keys=keys, args=arguments)))

    def not_as_left(self, left: Sequence[Left]) -> NotAsLeft:
        """Return which of these pools are not in Redis as they were left there."""
        keys = [key for one in left for key in (self.keys.changes(one.pool), self.keys.leaderboard(one.pool))]
        arguments = [word for one in left for word in (str(one.last), int(one.has_board))]
        streams, boards = cast("tuple[list[int], list[int]]", self._changed(keys=keys, args=arguments))
        return NotAsLeft([left[at].pool for at in streams], [left[at].pool for at in boards])

    def last_id(self, pool: str) -> StreamId:
        """Return the last id the pool's stream has ever had, 0-0 if there is no stream."""
        return last_stream_id(self.redis, self.keys, pool)

    def newest(self, pool: str, count: int) -> list[StreamEntry]:
        """Return the newest entries that are in the stream, at most so many, the oldest of them first."""
        found = cast(
            "list[tuple[bytes, dict[bytes, bytes]]]",
            self.redis.xrevrange(self.keys.changes(pool), count=count),
        )
        entries = [StreamEntry(StreamId.parse(one), fields.get(b"event", b"")) for one, fields in found]
        return entries[::-1]


def last_stream_id(redis_client: Redis, keys: Keys, pool: str) -> StreamId:
    """Return the last id the pool's stream has ever had, 0-0 if there is no stream."""
    try:
        info = cast("dict[str, bytes]", redis_client.xinfo_stream(keys.changes(pool)))
    except redis.ResponseError as error:
        if "no such key" not in str(error):
            raise
        return NOTHING
    return StreamId.parse(info["last-generated-id"])
