"""The change stream of a pool: Redis itself is the cursor, and what does not follow is refused."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import redis
from redis import Redis

from petard_schema import Keys
from petard_worker.server_function import ServerFunction

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
# The board moves by one call for many players, as many as Lua's stack has room for, with some to spare.
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
local function at_once(command, from, to)
    for i = from, to, 2000 do
        redis.call(command, KEYS[2], unpack(ARGV, i, math.min(i + 1999, to)))
    end
end
local listed = 2 * tonumber(ARGV[at])
at_once('ZADD', at + 1, at + listed)
at_once('ZREM', at + 1 + listed, #ARGV)
return last
"""
)
APPEND_FUNCTION = ServerFunction("append", APPEND)


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

    def append(
        self,
        pool: str,
        expected: StreamId,
        entries: Sequence[StreamEntry],
        moves: BoardMoves,
        length: int,
    ) -> StreamId:
        """Append the entries if the stream ends with `expected`, cut it to `length`, return its last id.

        That is the last entry's id if the entries are in the stream, be it since an earlier try whose answer
        was lost.
        """
        arguments: list[str | bytes | int] = [str(expected), length, len(entries)]
        for entry in entries:
            arguments += [str(entry.id), entry.event]
        arguments.append(len(moves.listed))
        for player, score in moves.listed.items():
            arguments += [repr(score), player]
        arguments += moves.left_out
        keys = [self.keys.changes(pool), self.keys.leaderboard(pool)]
        return StreamId.parse(cast("bytes", self._append(keys=keys, args=arguments)))

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
