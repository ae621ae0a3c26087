"""The bell of a pool: who rang it answers for the pool's events.

The bell holds the id of the one drain that is queued or running. It is never needed for correctness: a bell
that is lost lets a second drain in, which finds the pool locked; a bell whose drain died expires.
"""

from dataclasses import dataclass, field

from redis import Redis

from petard_schema import Keys
from petard_worker.server_function import ALLOW_OOM, FunctionOnServer, ServerFunction

QUEUED_MS = 5_000
"""How long a bell answers for a drain in the queue; the dispatcher renews it while the drain waits there."""
WORKING_MS = 3_500
"""How long a bell answers for a drain that has stopped renewing it: a dead one is replaced after that.

Longer than anything a drain waits for between two renewals: a connection to Postgres (3 s), a lock (2 s).
"""

# Keeps the bell if it is ours or nobody's; 0 means that another drain answers for the pool. What is no string
# is nobody's: SET replaces it.
HOLD = """
local owner = redis.pcall('GET', KEYS[1])
if type(owner) == 'string' and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
HOLD_FUNCTION = ServerFunction("hold", HOLD, ALLOW_OOM)
RELEASE = "if redis.pcall('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
RELEASE_FUNCTION = ServerFunction("release", RELEASE, ALLOW_OOM)


@dataclass(frozen=True)
class Bell:
    """The bell of one pool as seen by one drain."""

    redis: Redis
    key: str
    drain_id: str
    _hold: FunctionOnServer = field(init=False, repr=False, compare=False)
    _release: FunctionOnServer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hold", HOLD_FUNCTION.on(self.redis))
        object.__setattr__(self, "_release", RELEASE_FUNCTION.on(self.redis))

    @classmethod
    def of(cls, redis: Redis, keys: Keys, pool: str, drain_id: str) -> "Bell":
        """Return the pool's bell for the drain with this id."""
        return cls(redis, keys.bell(pool), drain_id)

    def hold(self) -> bool:
        """Take or renew the bell; False means that another drain answers for the pool."""
        return bool(self._hold(keys=[self.key], args=[self.drain_id, WORKING_MS]))

    def pass_on(self, next_id: str) -> None:
        """Hand the bell to the drain that is about to be queued."""
        self.redis.set(self.key, next_id, px=QUEUED_MS)

    def release(self) -> None:
        """Let go of the bell if it is ours, so that the next event rings it."""
        self._release(keys=[self.key], args=[self.drain_id])
