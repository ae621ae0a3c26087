"""Sends what is in the spool, oldest first, and removes what Redis has confirmed.

Send, then remove: a reply that was lost makes the same bytes be sent again, which count once. Only one thread
of one process sends at a time. That saves work and is not what order rests on: an event is sent for the first
time only after all older ones of its pool were confirmed, whoever sent them.

What Redis refuses stays, and so does everything behind it in the same pool; other pools go on.
"""

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from redis.backoff import EqualJitterBackoff
from redis.exceptions import RedisError

from petard_producer.connect import worth_retrying
from petard_producer.file_lock import FileLock
from petard_producer.rpush import CHUNK, Lists
from petard_producer.spool import Spool
from petard_producer.spool_errors import SpoolBusy, SpoolError
from petard_producer.waker import Waker

LOOK_S = 0.5
"""How soon an idle sender looks without having been woken."""
LOCK_LOOK_S = 0.2
"""How soon somebody else sends when the process that did so is gone."""
BUSY_S = 0.01

log = logging.getLogger(__name__)


@dataclass
class Refusal:
    """Why a pool is held back, and until when (time.monotonic)."""

    error: str
    attempts: int
    until: float


class SpoolSender:
    """The one thread of a process that sends what the spool holds, while it has the lock."""

    def __init__(self, spool: Spool, lists: Lists, lock: FileLock, waker: Waker) -> None:
        self._spool = spool
        self._lists = lists
        self._lock = lock
        self._waker = waker
        self._confirmed: dict[str, int] = {}
        self._refusals: Mapping[str, Refusal] = MappingProxyType({})
        self._lost_backoff = EqualJitterBackoff(base=0.05, cap=1.0)
        self._refused_backoff = EqualJitterBackoff(base=0.5, cap=5.0)
        self._failures = 0
        self._size = CHUNK
        self._last_error: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="petard-spool-sender", daemon=True)

    @property
    def last_error(self) -> str | None:
        """Why this process cannot send, None while it can."""
        return self._last_error

    @property
    def refused(self) -> Mapping[str, str]:
        """The pools that are held back because Redis refuses their events, with what it says."""
        return {pool: refusal.error for pool, refusal in self._refusals.items()}

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Let the thread end after the round trip that it is in."""
        self._stopping.set()
        self._waker.wake()

    def ended(self, within: float) -> bool:
        """Wait for the end of the thread, and say whether it has come."""
        if self._thread.is_alive():
            self._thread.join(within)
        return not self._thread.is_alive()

    def send_once(self) -> bool:
        """Send one chunk and remove what Redis has confirmed; say whether that was anything.

        Raises redis.RedisError when nothing is known about the chunk, SpoolError when the file failed: what
        was confirmed by then is removed by the next call.
        """
        self._remove_confirmed()
        chunk = self._spool.oldest(self._size, without=self._held_back())
        if not chunk:
            return False
        refused = self._lists.append(
            {pool: [event.element for event in events] for pool, events in chunk.items()}
        )
        self._confirmed = {pool: events[-1].place for pool, events in chunk.items() if pool not in refused}
        self._note({pool: described(error) for pool, error in refused.items()}, taken=self._confirmed)
        sent = bool(self._confirmed)
        self._remove_confirmed()
        return sent

    def _remove_confirmed(self) -> None:
        if self._confirmed:
            self._spool.remove(self._confirmed)
            self._confirmed = {}

    def _held_back(self) -> set[str]:
        now = time.monotonic()
        return {pool for pool, refusal in self._refusals.items() if refusal.until > now}

    def _note(self, refused: Mapping[str, str], taken: Mapping[str, int]) -> None:
        """Remember which pools are refused, with a line in the log for every change."""
        refusals = {pool: refusal for pool, refusal in self._refusals.items() if pool not in taken}
        for pool in self._refusals.keys() - refusals.keys():
            log.info("spool_pool_accepted spool=%s pool=%s", self._spool.path, pool)
        for pool, error in refused.items():
            before = self._refusals.get(pool)
            attempts = 1 if before is None else before.attempts + 1
            until = time.monotonic() + seconds(self._refused_backoff, attempts)
            refusals[pool] = Refusal(error, attempts, until)
            if before is None or before.error != error:
                log.error(
                    "spool_pool_refused spool=%s pool=%s error=%s: its events are kept and tried again",
                    self._spool.path,
                    pool,
                    error,
                )
        self._refusals = MappingProxyType(refusals)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._step()
        self._lock.release()

    def _step(self) -> None:
        """Send one chunk, or wait for what must come before the next."""
        try:
            if not self._lock.take():
                self._last_error = None  # what the process that sends meets is not known here
                self._stopping.wait(LOCK_LOOK_S)
                return
            sent = self.send_once()
        except SpoolBusy:
            self._stopping.wait(BUSY_S)
            return
        except RedisError as error:
            # Perhaps it was too much for a slow line to be answered in time.
            self._size = max(1, self._size // 2)
            # A login that is refused fills the server's ACL log: do not knock at it as often.
            slow = not worth_retrying(error)
            self._failed(error, self._refused_backoff if slow else self._lost_backoff)
            return
        except SpoolError as error:
            self._failed(error, self._refused_backoff)
            return
        except Exception as error:  # noqa: BLE001 - the edge of the thread: events must not wait for ever unseen
            self._failed(error, self._refused_backoff)
            return
        self._succeeded()
        self._size = min(CHUNK, self._size * 2)
        if not sent:
            self._waker.wait(LOOK_S)

    def _failed(self, error: Exception, backoff: EqualJitterBackoff) -> None:
        self._failures += 1
        text = described(error)
        if self._last_error is None:
            log.warning("spool_sending_interrupted spool=%s error=%s", self._spool.path, text)
        self._last_error = text
        self._stopping.wait(seconds(backoff, self._failures))

    def _succeeded(self) -> None:
        if self._last_error is not None:
            log.info("spool_sending_resumed spool=%s failures=%d", self._spool.path, self._failures)
        self._failures = 0
        self._last_error = None


def described(error: Exception) -> str:
    """Return an error in one line of a log."""
    return f"{type(error).__name__}: {error}"


def seconds(backoff: EqualJitterBackoff, failures: int) -> float:
    """Return how long to wait after so many failures in a row."""
    return float(backoff.compute(min(failures, 10)))  # it raises 2 to that power, and outages are long
