"""The list of events waiting for a pool: looked at from the head, trimmed only after commit."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

from redis import Redis, RedisError

from petard_schema import Keys
from petard_worker.batch import OF_THE_PROCESS, Arrival, read_arrival
from petard_worker.keyring import Keyring
from petard_worker.recent import RecentLimits
from petard_worker.server_function import ALLOW_OOM, NO_WRITES, ServerFunction
from petard_worker.signing_keys import NO_KEYS, SigningKeys

# Trims the batch only if the head of the list still is that batch, element for element. Whoever else was at
# work meanwhile: everything this removes has been committed. The first and last element alone would not do,
# since events repeat (X A X against X B X). Comparing costs less than a digest and cannot collide.
#
# What it removes stays a while as a copy (recent.py says how), in the same step: an event is in the list or
# in a copy, never in neither. The oldest copies go first, a few at a time. When Redis is nearly full, or it
# takes no copy, all copies of the pool go and the trim succeeds: events must get out. Events are copied one
# by one: to join them in Lua costs more.
#
# KEYS: events, copies, since when copies are made. ARGV: for how many ms copies stay (0: none are made), how
# many bytes of them, then the events. Answers how many events it removed, negative when Redis had no room for
# their copy.
TRIM = """
local count = #ARGV - 2
local head = redis.call('LRANGE', KEYS[1], 0, count - 1)
if #head ~= count then return 0 end
local bytes = 0
for i = 1, count do
    local event = ARGV[i + 2]
    if head[i] ~= event then return 0 end
    bytes = bytes + #event
end

local function nearly_full()
    local memory = redis.pcall('INFO', 'memory')
    if type(memory) ~= 'string' then return true end
    local used = tonumber(string.match(memory, '\\nused_memory:(%d+)') or 0)
    local most = tonumber(string.match(memory, '\\nmaxmemory:(%d+)') or 0)
    return most > 0 and used > 0.9 * most
end

local function label_at(index)
    local label = redis.pcall('LINDEX', KEYS[2], index)
    if type(label) ~= 'string' then return nil end
    local at, events, place, before, size = string.match(label, '^(%d+) %d+ (%d+) (%d+) (%d+) (%d+)$')
    return at and {at = tonumber(at), events = tonumber(events), place = tonumber(place),
                   before = tonumber(before), size = tonumber(size)}
end

local function drop_oldest(now, through)
    local dropped, elements = 0, 0
    while dropped < 16 do
        local oldest = label_at(elements)
        if not oldest then break end
        local young = oldest.at >= now - tonumber(ARGV[1])
        if young and through - oldest.before <= tonumber(ARGV[2]) then break end
        dropped, elements = dropped + 1, elements + oldest.events + 2
    end
    if dropped > 0 then redis.call('LTRIM', KEYS[2], elements, -1) end
end

local function keep_copy()
    local time = redis.call('TIME')
    local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
    local marked = redis.pcall('GET', KEYS[3])
    local since, window = string.match(type(marked) == 'string' and marked or '', '^(%d+) (%d+)$')
    if window ~= ARGV[1] then since = now end
    local after, place, before = math.max(tonumber(since), now - tonumber(ARGV[1])), 0, 0
    local newest = label_at(-1)
    if newest then
        after, place, before = newest.at, newest.place + newest.events + 2, newest.before + newest.size
        now = math.max(now, newest.at)
    else
        redis.call('DEL', KEYS[2])
    end
    local size = bytes + 4 * count + 150
    local label = string.format('%.0f %.0f %d %.0f %.0f %.0f', now, after, count, place, before, size)
    if type(redis.pcall('RPUSH', KEYS[2], label, unpack(ARGV, 3))) == 'table' then return false end
    redis.call('RPUSH', KEYS[2], label)
    drop_oldest(now, before + size)
    -- A batch that is too large alone leaves a pool without copies which is not a quiet one.
    if window ~= ARGV[1] or redis.call('EXISTS', KEYS[2]) == 0 then
        redis.call('SET', KEYS[3], string.format('%.0f %s', now, ARGV[1]))
    end
    redis.call('PEXPIRE', KEYS[2], ARGV[1])
    return true
end

local wanted = tonumber(ARGV[1]) > 0
local kept = wanted and not nearly_full() and keep_copy()
if not kept then redis.call('DEL', KEYS[2], KEYS[3]) end
redis.call('LTRIM', KEYS[1], count, -1)
if wanted and not kept then return -count end
return count
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
FRESH_SECONDS = 1.0
"""A bell answers for longer: until then nobody else drains the pool."""
MOST_BYTES = 16 * 1024 * 1024


@dataclass
class Intake:
    """The events waiting for one pool, and what one drain has read of them ahead."""

    redis: Redis
    keys: Keys
    pool: str
    keyring: Keyring = field(default_factory=Keyring)
    recent: RecentLimits = field(default_factory=RecentLimits)
    """How much of what is trimmed stays as copies."""
    _parsed: dict[bytes, Arrival] = field(default_factory=dict, init=False, repr=False)
    """Events that were parsed ahead last, by their bytes."""
    _judged_by: SigningKeys = field(default_factory=lambda: NO_KEYS, init=False, repr=False)
    """The keys by which they were verified."""
    _ahead: list[bytes] = field(default_factory=list, init=False, repr=False)
    """What is taken for the head of the list, repeats included."""
    _next: list[bytes] = field(default_factory=list, init=False, repr=False)
    """What will be the head when the current batch is trimmed."""

    _looked_at: float = field(default=-math.inf, init=False, repr=False)
    """When the list was last asked, by the monotonic clock: never later than it was looked at."""

    def __post_init__(self) -> None:
        self._peek = PEEK_FUNCTION.on(self.redis)
        self._trim = TRIM_FUNCTION.on(self.redis)

    def peek(self, limit: int, skip: int = 0) -> list[bytes]:
        """Return up to `limit` events behind the first `skip`, oldest first, and leave them there.

        Fewer when they are large: at most 16 MiB, but at least one.
        """
        self._next = []  # expected behind another head
        self._looked_at = time.monotonic()
        events = self._peek(*self._span(limit, skip))
        return cast("list[bytes]", events)

    def has_work(self, limit: int) -> bool:
        """Return whether events wait, as far as can be known without a lock; they are parsed then."""
        self.keyring.look_again()
        if not self._ahead:
            self._ahead = self.peek(limit)
            self._parse(self._ahead)
        return bool(self._ahead)

    def read(self, limit: int, *, same: bool) -> list[Arrival]:
        """Return up to `limit` events at the head, parsed.

        What was read before is not fetched again if the list still begins and ends like it. That may take for
        the head what another drain has trimmed meanwhile: the ledger has counted those events, and the trim,
        which compares every one, will refuse. `same` says that nobody else has written to the pool: shortly
        after the list was looked at, when no other drain can have been rung, that is enough.
        """
        entries = self._ahead[:limit]
        # Not to be taken again, whatever comes of this batch: only its trim says what the head is then.
        self._ahead, self._next = [], []
        fresh = same and entries and time.monotonic() - self._looked_at < FRESH_SECONDS
        if not fresh and not self._begins_and_ends(entries):
            entries = self.peek(limit)
        self._forget_other_keys()
        return [self._parsed.get(raw) or self.judge(raw) for raw in entries]

    @contextmanager
    def looking_ahead(self) -> Iterator["LookAhead"]:
        """Yield a look at what stands behind the batch.

        Whether to ask shows under the lock of the pool; what was asked for is given up at the end of this
        block, which has to reach beyond COMMIT.
        """
        with ExitStack() as stack:
            yield LookAhead(self, stack)

    def ask(self, limit: int, skip: int) -> AbstractContextManager[Callable[[], object]]:
        """Ask for up to `limit` events behind the first `skip`, as `FunctionOnServer.asked` does."""
        return self._peek.asked(*self._span(limit, skip))

    def expect(self, entries: Sequence[bytes], looked_at: float) -> None:
        """Parse what will be the head of the list when the current batch is trimmed."""
        self._next, self._looked_at = list(entries), looked_at
        self._parse(self._next)

    def _span(self, limit: int, skip: int) -> tuple[list[str], list[int]]:
        """Return keys and arguments of PEEK for up to `limit` events behind the first `skip`."""
        return [self.keys.events(self.pool)], [skip, skip + limit - 1, MOST_BYTES]

    def trim(self, batch: Sequence[bytes]) -> bool:
        """Remove the batch if it still is the head of the list; call it only after its commit."""
        keys = [self.keys.events(self.pool), self.keys.recent(self.pool), self.keys.recent_since()]
        limits = [self.recent.seconds * 1000, self.recent.megabytes * 1024 * 1024]
        trimmed = cast("int", self._trim(keys=keys, args=[*limits, *batch]))
        self._ahead, self._next = (self._next if trimmed else []), []
        if trimmed:
            self.recent.note(self.pool, kept=trimmed > 0)
        return trimmed != 0

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

    def _forget_other_keys(self) -> None:
        if self._judged_by is not self.keyring.keys:
            # What a key has let in that was revoked since is judged again.
            self._parsed, self._judged_by = {}, self.keyring.keys

    def _parse(self, entries: Sequence[bytes]) -> None:
        self._forget_other_keys()
        self._parsed = {raw: self._parsed.get(raw) or self.judge(raw) for raw in entries}

    def waiting(self) -> int:
        """Return how many events wait."""
        return self.redis.llen(self.keys.events(self.pool))


class LookAhead:
    """What stands behind a batch: Redis collects it while the batch is folded, and it is parsed later."""

    def __init__(self, intake: Intake, stack: ExitStack) -> None:
        """Ask for nothing yet; an answer that nobody has waited for when the stack ends is thrown away."""
        self._intake = intake
        self._stack = stack
        self._answer: Callable[[], object] | None = None
        self._asked_at = 0.0

    def ask(self, limit: int, skip: int) -> None:
        """Ask for up to `limit` events behind the first `skip`."""
        self._asked_at = time.monotonic()
        self._answer = self._stack.enter_context(self._intake.ask(limit, skip))

    def parse(self) -> None:
        """Parse what was asked for, if anything was. A failure is for the next look at the list to meet."""
        if self._answer is not None:
            with suppress(RedisError, *OF_THE_PROCESS):
                self._intake.expect(cast("list[bytes]", self._answer()), self._asked_at)
