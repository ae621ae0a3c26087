"""The dispatcher: sees that events wait and rings the bell, which is to say it queues one drain per pool.

It runs in a thread of every worker; one in the fleet is active, the others try to take over. Nothing here is
needed for correctness: two active ones would ring at most twice, none for two seconds delays only.
"""

import time
from collections import deque
from collections.abc import Iterable, Sequence
from threading import Event
from typing import cast

import redis
import structlog
from redis import Redis

from petard_schema import Keys
from petard_worker.at_work import AtWork
from petard_worker.bell import QUEUED_MS, RELEASE_FUNCTION
from petard_worker.event_lists import SCAN_COUNT, glob_escape, readable
from petard_worker.jobs import DRAIN, new_drain_id
from petard_worker.rq_worker import JsonQueue, enqueue_job
from petard_worker.server_function import ALLOW_OOM, ServerFunction

log = structlog.get_logger()

LEASE_MS = 1_500
RENEW_SECONDS = 0.4
STANDBY_SECONDS = 0.3
BUSY_SECONDS = 0.05
IDLE_SECONDS = 0.25
BUSY_FOR_SECONDS = 2.0
AVOID_QUEUE_SECONDS = 30.0
# Anybody who may push may also poke with any name. What is forgotten here is found again by the scan.
MOST_POOLS = 10_000
MOST_POKES = 1_000
MOST_UNQUEUED = 1_000
# A pool whose list is empty most of the time is rung for without waiting for the scan.
FORGET_SECONDS = 60.0
POKE_GAP_SECONDS = 0.002
"""Between two pokes that are listened to: those of a busy pool come together."""

# Takes or renews the lease; 0 means that another dispatcher is the active one. A lease that is to last longer
# than any does was taken before the clock was put back: a dead leader would keep it for as long as that.
LEAD = """
local leader = redis.call('GET', KEYS[1])
if leader and leader ~= ARGV[1] then
    if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
    return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
LEAD_FUNCTION = ServerFunction("lead", LEAD, ALLOW_OOM)

# KEYS: RQ's queue, then a list of events and a bell for every pool. ARGV: how long a bell lasts, the ids of
# drains before their number.
# For every pool: rings if events wait and nobody answers for them; keeps a bell
# alive whose drain still waits in RQ's queue, however long that takes; cuts short one that is to last longer
# than any does, as after the clock was put back. Answers which it rang for, and which have no list.
RING = """
local rung, gone = {}, {}
for i = 2, #KEYS, 2 do
    local events, bell, id = KEYS[i], KEYS[i + 1], ARGV[2] .. '-' .. i / 2
    if redis.call('TYPE', events).ok == 'list' then
        local owner = redis.pcall('GET', bell)
        if type(owner) ~= 'string' then
            redis.call('SET', bell, id, 'PX', ARGV[1])
            rung[#rung + 1] = i / 2
        elseif redis.call('LPOS', KEYS[1], owner) or redis.call('PTTL', bell) > tonumber(ARGV[1]) then
            redis.call('PEXPIRE', bell, ARGV[1])
        end
    else
        gone[#gone + 1] = i / 2
    end
end
return {rung, gone}
"""
RING_FUNCTION = ServerFunction("ring", RING, ALLOW_OOM)


class Dispatcher:
    """Rings for every list of events that has nobody to answer for it."""

    def __init__(
        self, client: Redis, keys: Keys, queue: JsonQueue, name: str, at_work: AtWork | None = None
    ) -> None:
        """Dispatch over a client of its own; `queue` must be on a connection no other thread uses.

        `at_work` is what the drains of this process share with it, if there are any.
        """
        self.redis = client
        self.keys = keys
        self.queue = queue
        self.name = name
        self.at_work = at_work or AtWork()
        self.pools: set[str] = set()
        self.unqueued: deque[tuple[str, str]] = deque(maxlen=MOST_UNQUEUED)
        """Drains (pool and id) that a full Redis did not queue: for this process to run, no harm if lost."""
        self.leading = False
        self._gone_since: dict[str, float] = {}
        self._unreadable: set[str] = set()
        self._cursor = 0
        self._queue_from = 0.0
        self._renew_at = 0.0
        self._lead = LEAD_FUNCTION.on(client)
        self._resign = RELEASE_FUNCTION.on(client)
        self._ring = RING_FUNCTION.on(client)
        self._pokes = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]

    def run(self, stop: Event) -> None:
        """Dispatch until the stop; a Redis that is away is waited for."""
        busy_until = look_at = time.monotonic()
        while not stop.is_set():
            try:
                if time.monotonic() >= look_at:
                    if not self.keep_leading():
                        self.at_work.hears_pokes = False
                        stop.wait(STANDBY_SECONDS)
                        continue
                    if self.dispatch_once():
                        busy_until = time.monotonic() + BUSY_FOR_SECONDS
                    look_at = time.monotonic() + (
                        BUSY_SECONDS if time.monotonic() < busy_until else IDLE_SECONDS
                    )
                if poked := self.wait_for_poke(max(0.0, look_at - time.monotonic())):
                    if self.answer(poked):
                        busy_until = time.monotonic() + BUSY_FOR_SECONDS
                    stop.wait(POKE_GAP_SECONDS)
            except redis.RedisError as error:
                log.warning("dispatch_interrupted", error=str(error))
                self.at_work.hears_pokes = False
                self._pokes.close()
                stop.wait(STANDBY_SECONDS)
        self.resign()

    def lead(self) -> bool:
        """Take or keep the lease and return whether this is the active dispatcher."""
        leading = bool(self._lead(keys=[self.keys.dispatcher()], args=[self.name, LEASE_MS]))
        if leading != self.leading:
            log.info("dispatcher_active" if leading else "dispatcher_standing_by", worker=self.name)
        self.leading = leading
        return leading

    def keep_leading(self) -> bool:
        """Return whether this is the active dispatcher; its lease is renewed well before it is over."""
        if self.leading and time.monotonic() < self._renew_at:
            return True
        self._renew_at = time.monotonic() + RENEW_SECONDS
        return self.lead()

    def dispatch_once(self) -> int:
        """Look for lists once, ring where nobody answers, and return how many drains were queued."""
        if len(self.pools) > MOST_POOLS:
            self.pools.clear()
            self._gone_since.clear()
        if len(self._unreadable) > MOST_POOLS:
            self._unreadable.clear()
        self.discover()
        return self.ring()

    def answer(self, poked: Iterable[str]) -> int:
        """Ring for the pools that were poked about, or wake the drain of this process that answers for one.

        Returns how many drains were queued. What this misses is found by the next look at all pools.
        """
        return self.ring_for([pool for pool in sorted(poked) if not self.at_work.answers_for(pool)])

    def ring(self) -> int:
        """Ring for every known pool that has events and nobody to answer for them; return how many."""
        return self.ring_for(sorted(self.pools))

    def ring_for(self, pools: Sequence[str]) -> int:
        """Ring for those of these pools that have events and nobody to answer for them; return how many."""
        if not pools:
            return 0
        base = new_drain_id()
        names = [key for pool in pools for key in (self.keys.events(pool), self.keys.bell(pool))]
        # A full Redis hands out no queued drain either: their bells are left to expire then.
        avoided = time.monotonic() < self._queue_from
        queue = f"{self.queue.key}:avoided" if avoided else self.queue.key
        answer = self._ring(keys=[queue, *names], args=[QUEUED_MS, base])
        rung, gone = cast("tuple[list[int], list[int]]", answer)
        for index in rung:
            self.enqueue(pools[index - 1], f"{base}-{index}")
        self.forget(pools, [pools[index - 1] for index in gone])
        return len(rung)

    def enqueue(self, pool: str, drain_id: str) -> None:
        """Queue a drain; Redis takes no job while it is full, and then this process has to run it."""
        if time.monotonic() < self._queue_from:
            self.unqueued.append((pool, drain_id))
            return
        try:
            enqueue_job(self.queue, DRAIN, pool, drain_id, job_id=drain_id)
        except redis.OutOfMemoryError:
            self.avoid_queue()
            self.unqueued.append((pool, drain_id))
        self.at_work.tell_of_another()

    def avoid_queue(self) -> None:
        """Queue nothing for a while: Redis is full, or so nearly that RQ can take a job and not run it."""
        self._queue_from = time.monotonic() + AVOID_QUEUE_SECONDS

    def forget(self, looked_at: Iterable[str], gone: Iterable[str]) -> None:
        """Forget pools that have had no list for a while; a poke or the scan finds them again."""
        now = time.monotonic()
        since = {pool: self._gone_since.get(pool, now) for pool in gone}
        for pool in looked_at:
            self._gone_since.pop(pool, None)
        forgotten = {pool for pool, moment in since.items() if now - moment >= FORGET_SECONDS}
        self._gone_since.update((pool, since[pool]) for pool in since.keys() - forgotten)
        self.pools -= forgotten

    def discover(self) -> None:
        """Learn of lists nobody has poked about: one step through the key space per look."""
        pattern = glob_escape(self.keys.events("")) + "*"
        self._cursor, found = cast(
            "tuple[int, list[bytes]]",
            self.redis.scan(self._cursor, match=pattern, count=SCAN_COUNT, _type="list"),
        )
        prefix = self.keys.events("").encode()
        for key in found:
            pool = key.removeprefix(prefix)
            name = readable(pool)
            if name.encode() == pool or self.rename(key, name):
                self.pools.add(name)

    def discover_all(self) -> None:
        """Learn of every list there is."""
        self._cursor = 0
        self.discover()
        while self._cursor:
            self.discover()

    def waiting(self) -> int:
        """Return how many events wait in all known pools."""
        return sum(self.redis.llen(self.keys.events(pool)) for pool in self.pools)

    def rename(self, key: bytes, name: str) -> bool:
        """Give a list whose name no job could carry a readable one, so that its events are not stuck."""
        renamed = bool(self.redis.renamenx(key, self.keys.events(name)))
        if renamed:
            log.warning("list_renamed", key=repr(key), pool=name)
            self._unreadable.discard(name)
        elif name not in self._unreadable:  # every look finds it, until the list with that name is empty
            log.warning("list_unreadable", key=repr(key), pool=name)
            self._unreadable.add(name)
        return renamed

    def wait_for_poke(self, seconds: float) -> set[str]:
        """Wait until a producer pokes or the time is over; return the pools that were poked about."""
        if not self._pokes.subscribed:
            self._pokes.subscribe(self.keys.pushed())
        self.at_work.hears_pokes = True
        poked: set[str] = set()
        for count in range(MOST_POKES):  # the lease must be kept, however fast they come
            message = self._pokes.get_message(timeout=0 if count else seconds)
            if message is None:
                break
            pool = cast("bytes", message["data"])
            if isinstance(pool, bytes) and readable(pool).encode() == pool:
                poked.add(pool.decode())
        self.pools |= poked
        return poked

    def resign(self) -> None:
        """Let another dispatcher take over at once."""
        try:
            if self.leading:
                self._resign(keys=[self.keys.dispatcher()], args=[self.name])
            self._pokes.close()
        except redis.RedisError:
            log.info("lease_left_to_expire", worker=self.name)
