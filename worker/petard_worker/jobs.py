"""The jobs RQ may run: `drain` applies a pool's waiting events, `submit_event` pushes one.

RQ finds them by the names below and nowhere else; `allowed_jobs` gives them what the process has at hand.
"""

import json
import random
import time
import uuid
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event

import psycopg
import redis
import structlog

from petard_schema import Keys, read_element
from petard_worker.apply import (
    Applied,
    PoolStoppedError,
    apply_batch,
    apply_or_bury_head,
    is_of_one_event,
)
from petard_worker.at_work import AtWork
from petard_worker.batch_size import BatchSize
from petard_worker.bell import WORKING_MS, Bell
from petard_worker.breaker import Breaker
from petard_worker.intake import Intake
from petard_worker.keyring import Keyring
from petard_worker.known import Known
from petard_worker.postgres.connect import RoleMissingError
from petard_worker.postgres.frozen import end_frozen_holders
from petard_worker.postgres.migrate import SchemaMismatchError
from petard_worker.postgres.session import Session
from petard_worker.ratings.parameters import BadParameterError
from petard_worker.recent import RecentLimits
from petard_worker.rq_worker import Jobs, JsonQueue, enqueue_job

log = structlog.get_logger()

DRAIN = "petard_worker.jobs.drain"
SUBMIT_EVENT = "petard_worker.jobs.submit_event"

SHARED_SLICE_SECONDS = 0.005
"""After so long a drain goes to the back if others wait for its worker: a flooded pool and a quiet one."""
SHARED_BATCH_SIZE = 20
SHARED_FOR_SECONDS = 2.0
"""So long after others have waited for its worker a drain takes fewer events at a time: they will again."""
WAITING_LOOK_SECONDS = 0.01
"""Whether others wait is looked at so often."""
LINGER_SECONDS = 0.1
LOOK_SECONDS = 0.002
POKED_LOOK_SECONDS = 0.02
"""So often a drain that lingers looks by itself if pokes wake it: not every producer pokes."""
HOLD_SECONDS = 0.25
"""A drain at work renews its bell this often."""
LONGEST_WAIT_SECONDS = 2.0
RENEW_SECONDS = 0.5
"""A drain that waits renews its bell this often."""


OUTAGES = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)


class DatabaseUnusableError(Exception):
    """Postgres answers, but a bad deploy or a missing right makes it useless; the message is its own."""


@dataclass
class Workshop:
    """What a worker process has at hand for its jobs."""

    redis: "redis.Redis"
    keys: Keys
    session: Session
    stop: Event
    batch_size: int = 1_000
    slice_seconds: float = 5.0
    breaker: Breaker = field(default_factory=Breaker)
    keyring: Keyring = field(default_factory=Keyring)
    recent: RecentLimits = field(default_factory=RecentLimits)
    queue: JsonQueue | None = None
    """Where the next drain goes; set when the worker has opened its queue."""
    shared_until: float = 0.0
    """By the monotonic clock: until then other drains are expected."""
    at_work: AtWork = field(default_factory=AtWork)
    """What it shares with the dispatcher."""


def allowed_jobs(workshop: Workshop) -> Jobs:
    """Return the jobs RQ may run in this process, by the names it may use."""
    return {
        DRAIN: partial(drain, workshop=workshop),
        SUBMIT_EVENT: partial(submit_event, workshop=workshop),
    }


def submit_event(event: str | Mapping[str, object], *, workshop: Workshop) -> None:
    """Validate one event, given as JSON text, signed or not, or as an object, and push it to its pool's list.

    Raises EventRefused when it is not an event. Signatures are for the drain to verify.
    """
    # A lone surrogate is refused like every other text that is no JSON.
    raw = (event if isinstance(event, str) else json.dumps(event)).encode(errors="surrogatepass")
    parsed = read_element(raw)
    workshop.redis.rpush(workshop.keys.events(parsed.data.pool), raw)
    workshop.redis.publish(workshop.keys.pushed(), parsed.data.pool)


def drain(pool: str, drain_id: str, *, workshop: Workshop) -> None:
    """Apply the pool's waiting events for a slice of seconds, then let other pools have their turn."""
    Drain(workshop, pool, drain_id).run()


def run_unqueued(unqueued: deque[tuple[str, str]], workshop: Workshop) -> bool:
    """Run one of the drains (pool and id) that a full Redis did not queue; False when there is none."""
    try:
        pool, drain_id = unqueued.popleft()
    except IndexError:
        return False
    try:
        drain(pool, drain_id, workshop=workshop)
    # An edge of the process: what RQ would keep as a failed job. The events wait, and the bell rings again.
    except Exception:
        log.exception("drain_failed", pool=pool)
    return True


def new_drain_id() -> str:
    """Return an id for a drain; it is the RQ job's id and the bell's content."""
    return f"drain-{uuid.uuid4().hex}"


class Drain:
    """One drain of one pool: the only one that is queued or running, as long as it keeps the bell."""

    def __init__(self, workshop: Workshop, pool: str, drain_id: str) -> None:
        self.workshop = workshop
        self.pool = pool
        self.intake = Intake(workshop.redis, workshop.keys, pool, workshop.keyring, workshop.recent)
        self.bell = Bell.of(workshop.redis, workshop.keys, pool, drain_id)
        self.known = Known()
        self.size = BatchSize()
        self.suspect = 0
        """How many events at the head hold one that Postgres refuses; 0 when none is suspected."""
        self.failures = 0
        self.applied = 0
        """How many events have left the list."""
        self._started = time.monotonic()
        self._renew_at = 0.0
        self._look_at = SHARED_SLICE_SECONDS
        """After so many seconds of its turn it looks whether others wait."""

    def run(self) -> None:
        """Drain until nothing is left, the slice is over, or somebody else answers for the pool."""
        try:
            self.answer()
        finally:
            self.workshop.at_work.answer_for(None)

    def answer(self) -> None:
        """Do what run does, and answer for the pool meanwhile."""
        self._started = time.monotonic()
        try:
            while self.hold():
                if self.workshop.stop.is_set():
                    self.release()
                    return
                if self.is_slice_over(time.monotonic() - self._started):
                    self._renew_at = 0.0
                    if self.hold():  # nobody passes on what has become another's
                        self.pass_on()
                    return
                if self.step() or self.linger():
                    continue
                # Released before the last look: an event that comes after the look finds no bell and rings.
                self.release()
                if self.intake.waiting() == 0:
                    return
        except PoolStoppedError as stopped:
            # The bell stays until it expires, so that a stopped pool is not rung again and again.
            log.error("pool_stopped", pool=self.pool, reason=str(stopped))  # noqa: TRY400 - nothing to trace
        except BadParameterError as error:
            # The pool is not marked as stopped: a newer worker may know the system or the parameter.
            log.error("pool_not_understood", pool=self.pool, reason=str(error))  # noqa: TRY400
        except (SchemaMismatchError, RoleMissingError, DatabaseUnusableError) as error:
            # For the operator to put right: the events wait, and the next drain looks again, over a new
            # connection.
            self.workshop.session.close()
            log.error("database_unusable", pool=self.pool, reason=str(error))  # noqa: TRY400
        except redis.RedisError as error:
            # Lost, full, read-only, or a key of another type. Nothing is lost: the list keeps what was not
            # trimmed, and the sweep rings again.
            log.warning("drain_interrupted", pool=self.pool, error=str(error))

    def hold(self) -> bool:
        """Keep the bell, which answers for much longer than it takes until it is renewed."""
        if (now := time.monotonic()) < self._renew_at:
            return True
        self._renew_at = now + HOLD_SECONDS
        held = self.bell.hold()
        self.workshop.at_work.answer_for(self.pool if held else None, WORKING_MS / 1000)
        return held

    def release(self) -> None:
        """Let go of the bell: from now on the dispatcher rings for what comes."""
        self._renew_at = 0.0
        self.workshop.at_work.answer_for(None)
        self.bell.release()

    def is_slice_over(self, seconds: float) -> bool:
        """Return whether this drain has had its turn: a short one if others wait for this worker.

        Even then it applies a batch first, and looks to the end for an event that Postgres refuses: the next
        drain would begin anew.
        """
        if seconds >= self.workshop.slice_seconds:
            return True
        queue = self.workshop.queue
        if not self.applied or self.suspect or queue is None:
            return False
        if seconds < (SHARED_SLICE_SECONDS if self.workshop.at_work.others else self._look_at):
            return False
        self.workshop.at_work.others = False
        if queue.count > 0:
            self.workshop.shared_until = time.monotonic() + SHARED_FOR_SECONDS
            if self.intake.waiting() > 0:
                return True
        self.look_later()
        return False

    def look_later(self) -> None:
        """Look a while from now whether others wait for this worker, and not before the next batch."""
        self._look_at = time.monotonic() - self._started + WAITING_LOOK_SECONDS

    def step(self) -> bool:
        """Apply one batch, or connect first; False when nothing waits.

        Raises DatabaseUnusableError when Postgres refuses for a reason that waiting does not mend.
        """
        limit = max(1, self.suspect // 2) if self.suspect else self.batch_size()
        started, work_started = time.monotonic(), time.thread_time()
        try:
            if not self.workshop.session.is_open:
                # A step of its own, since connecting may take as long as a bell answers.
                self.workshop.session.open()
                return True
            connection = self.workshop.session.open()
            if self.suspect == 1:
                applied = apply_or_bury_head(
                    connection, self.intake, self.workshop.breaker, self.wake_publisher
                )
            else:
                applied = apply_batch(
                    connection, self.intake, self.workshop.breaker, limit, self.known, self.wake_publisher
                )
        except (SchemaMismatchError, RoleMissingError):
            raise
        except Exception as error:
            self.known.forget()
            if is_of_one_event(error) and self.suspect != 1:
                # Halve the batch around the event, until it stands alone at the head.
                self.suspect = min(limit, self.intake.waiting())
            elif not isinstance(error, psycopg.Error):
                raise
            elif isinstance(error, psycopg.errors.LockNotAvailable):
                self.end_frozen_holders()
                self.wait("pool_busy", error)
            elif isinstance(error, OUTAGES) and not is_of_one_event(error):
                # A session may keep what has been mended since: read-only, say.
                self.workshop.session.close()
                self.wait("postgres_unavailable", error)
            else:
                raise DatabaseUnusableError(f"{type(error).__name__}: {error}".strip()) from None
            return True
        self.size.learn(applied.events, time.thread_time() - work_started)
        self.failures = 0
        self.suspect = max(0, self.suspect - applied.events)
        self.applied += applied.events
        self.report(applied, started)
        return applied.events > 0

    def batch_size(self) -> int:
        """Return how many events to apply at a time.

        As many as wait, but no more than the lock of the pool may be held for, and fewer while others wait
        for this worker now and then.
        """
        most = min(self.workshop.batch_size, self.size.most_events())
        return min(SHARED_BATCH_SIZE, most) if time.monotonic() < self.workshop.shared_until else most

    def wake_publisher(self, applied: Applied) -> None:
        """Tell the publisher of new entries, also of those whose drain may have died before it could."""
        if not applied.entries and not applied.repeats:
            return
        try:
            self.workshop.redis.publish(self.workshop.keys.committed(), self.pool)
        except redis.RedisError as error:
            # The publisher looks by itself; if Redis is gone, the trim will say so.
            log.warning("publisher_not_woken", pool=self.pool, error=str(error))

    def report(self, applied: Applied, started: float) -> None:
        """Log what was done."""
        if applied.events:
            took_ms = round((time.monotonic() - started) * 1000, 1)
            log.info("batch_applied", pool=self.pool, took_ms=took_ms, **applied._asdict())

    def wait(self, what: str, error: psycopg.Error) -> None:
        """Log what is waited for, and wait a little longer every time, with jitter, keeping the bell.

        Comes back at once when the worker is stopped, or another drain answers for the pool.
        """
        self.failures += 1
        self._renew_at = 0.0  # the bell is asked again, whatever it says here
        log.warning(what, pool=self.pool, failures=self.failures, error=str(error).strip())
        longest = min(LONGEST_WAIT_SECONDS, 0.05 * 2 ** min(self.failures, 16))
        until = time.monotonic() + random.uniform(longest / 2, longest)  # noqa: S311 - jitter, not a secret
        while (left := until - time.monotonic()) > 0 and self.bell.hold():
            if self.workshop.stop.wait(min(left, RENEW_SECONDS)):
                return

    def end_frozen_holders(self) -> None:
        """Free the pool from a worker that was frozen with its lock."""
        try:
            ended = end_frozen_holders(self.workshop.session.open())
        except psycopg.Error as error:
            log.warning("frozen_workers_not_ended", pool=self.pool, error=str(error).strip())
            return
        if ended:
            log.warning("frozen_workers_ended", pool=self.pool, sessions=ended)

    def linger(self) -> bool:
        """Wait a moment for more events unless another pool waits for this worker; True when some came.

        The dispatcher of this process ends a wait between two looks, if it is the one that hears of both.
        """
        at_work, queue = self.workshop.at_work, self.workshop.queue
        until = time.monotonic() + LINGER_SECONDS
        while time.monotonic() < until and not self.workshop.stop.is_set():
            at_work.news.clear()
            if self.intake.has_work(self.batch_size()):
                self.look_later()
                return True
            if queue is None:
                return False
            if queue.count:
                self.workshop.shared_until = time.monotonic() + SHARED_FOR_SECONDS
                return False
            self.look_later()
            at_work.news.wait(POKED_LOOK_SECONDS if at_work.hears_pokes else LOOK_SECONDS)
        return False

    def pass_on(self) -> None:
        """Queue the next drain of this pool behind the other pools, and hand it the bell."""
        next_id = new_drain_id()
        try:
            self.bell.pass_on(next_id)
            if self.workshop.queue is not None:
                enqueue_job(self.workshop.queue, DRAIN, self.pool, next_id, job_id=next_id)
        except redis.OutOfMemoryError:
            # A full Redis queues nothing. Without a bell the dispatcher rings at once, and finds another way.
            for bell in (self.bell, replace(self.bell, drain_id=next_id)):
                bell.release()
