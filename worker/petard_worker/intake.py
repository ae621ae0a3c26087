"""The list of events waiting for a pool: looked at from the head, trimmed only after commit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from redis import Redis

from petard_schema import Keys
from petard_worker.batch import Arrival, read_arrival
from petard_worker.keyring import Keyring
from petard_worker.server_function import ALLOW_OOM, NO_WRITES, ServerFunction
from petard_worker.signing_keys import NO_KEYS, SigningKeys

# Trims the batch only if the head of the list still is that batch, element for element. Whoever else was at
# work meanwhile: everything this removes has been committed. The first and last element alone would not do,
# since events repeat (X A X against X B X). Comparing costs less than a digest and cannot collide.
TRIM = """
local head = redis.call('LRANGE', KEYS[1], 0, #ARGV - 1)
if #head ~= #ARGV then return 0 end
for i = 1, #ARGV do
    if head[i] ~= ARGV[i] then return 0 end
end
redis.call('LTRIM', KEYS[1], #ARGV, -1)
return #ARGV
"""
TRIM_FUNCTION = ServerFunction("trim", TRIM, ALLOW_OOM)


# Like LRANGE, but ends where the events become too many bytes for one batch: who may push may push a lot.
PEEK = """
local events, bytes = {}, 0
for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do
    local event = redis.call('LINDEX', KEYS[1], i)
    if not event then break end
    bytes = bytes + #event
    if bytes > tonumber(ARGV[3]) and #events > 0 then break end
    events[#events + 1] = event
end
return events
"""
PEEK_FUNCTION = ServerFunction("peek", PEEK, NO_WRITES)
MOST_BYTES = 16 * 1024 * 1024


@dataclass
class Intake:
    """The events waiting for one pool, and what one drain has read of them ahead."""

    redis: Redis
    keys: Keys
    pool: str
    keyring: Keyring = field(default_factory=Keyring)
    _parsed: dict[bytes, Arrival] = field(default_factory=dict, init=False, repr=False)
    """Events that were parsed last."""
    _judged_by: SigningKeys = field(default_factory=lambda: NO_KEYS, init=False, repr=False)
    """The keys by which they were verified."""
    _ahead: list[bytes] = field(default_factory=list, init=False, repr=False)
    """What is taken for the head of the list, repeats included."""
    _next: list[bytes] = field(default_factory=list, init=False, repr=False)
    """What will be the head when the current batch is trimmed."""

    def __post_init__(self) -> None:
        self._peek = PEEK_FUNCTION.on(self.redis)
        self._trim = TRIM_FUNCTION.on(self.redis)

    def peek(self, limit: int, skip: int = 0) -> list[bytes]:
        """Return up to `limit` events behind the first `skip`, oldest first, and leave them there.

        Fewer when they are large: at most 16 MiB, but at least one.
        """
        events = self._peek(keys=[self.keys.events(self.pool)], args=[skip, skip + limit - 1, MOST_BYTES])
        return cast("list[bytes]", events)

    def has_work(self, limit: int) -> bool:
        """Return whether events wait, as far as can be known without a lock; they are parsed then."""
        self.keyring.look_again()
        if not self._ahead:
            self._ahead = self.peek(limit)
            self._parse(self._ahead)
        return bool(self._ahead)

    def read(self, limit: int) -> list[Arrival]:
        """Return up to `limit` events at the head, parsed.

        What was read before is not fetched again if the list still begins and ends like it. That may take
        for the head what another drain has trimmed meanwhile: the ledger has counted those events, and the
        trim, which compares every one, will refuse.
        """
        entries = self._ahead[:limit]
        # Not to be taken again, whatever comes of this batch: only its trim says what the head is then.
        self._ahead, self._next = [], []
        if not self._begins_and_ends(entries):
            entries = self.peek(limit)
        self._parse(entries)
        return [self._parsed[raw] for raw in entries]

    def read_ahead(self, limit: int, skip: int) -> None:
        """Parse up to `limit` events behind the first `skip`: the head, once those are trimmed."""
        self._next = self.peek(limit, skip)
        self._parse(self._next)

    def trim(self, batch: Sequence[bytes]) -> bool:
        """Remove the batch if it still is the head of the list; call it only after its commit."""
        trimmed = bool(self._trim(keys=[self.keys.events(self.pool)], args=list(batch)))
        self._ahead, self._next = (self._next if trimmed else []), []
        return trimmed

    def _begins_and_ends(self, entries: Sequence[bytes]) -> bool:
        if not entries:
            return False
        key = self.keys.events(self.pool)
        with self.redis.pipeline(transaction=False) as pipe:
            pipe.lindex(key, 0)
            pipe.lindex(key, len(entries) - 1)
            return cast("list[bytes]", pipe.execute()) == [entries[0], entries[-1]]

    def judge(self, raw: bytes) -> Arrival:
        """Return what came, verified by the keys in force and parsed."""
        return read_arrival(raw, self.keyring.keys)

    def _parse(self, entries: Sequence[bytes]) -> None:
        if self._judged_by is not self.keyring.keys:
            # What a key has let in that was revoked since is judged again.
            self._parsed, self._judged_by = {}, self.keyring.keys
        self._parsed = {raw: self._parsed.get(raw) or self.judge(raw) for raw in entries}

    def waiting(self) -> int:
        """Return how many events wait."""
        return self.redis.llen(self.keys.events(self.pool))
