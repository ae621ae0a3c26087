"""RQ, made safe: jobs by name from a fixed table, JSON only, and a worker that outlives what it reads.

RQ trusts whoever can write to its keys: the default job is a pickle, a JSON job may name any function that
can be imported, and one malformed hash ends every worker that meets it. Here a job is an index into a
dictionary of callables made by this process. Everything that turns a stored hash into a job goes through
`CheckedJob`; what does not pass is logged as `job_refused`, removed, and reported to RQ as "no such job",
the one answer that all of RQ takes calmly. Losing a drain is safe: the events are elsewhere, the bell rings
again.

A lost Redis is waited for, for ever and in every command (`_Patience`), because RQ itself waits only while it
dequeues. What the worker cannot survive leaves `work()` as a redis ConnectionError: exit code 69.

A full Redis refuses whatever RQ says, a heartbeat included. The worker leaves RQ's loop then, runs the drains
that could not be queued itself, and tries RQ again every second.

Each RQ internal used here is pinned by a contract test.
"""

import re
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from logging import WARNING, NullHandler, getLogger
from typing import Any, ClassVar, Self, TypeAlias, cast

import structlog
from redis import Redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.client import Pipeline
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import OutOfMemoryError, ResponseError
from redis.retry import Retry
from rq import Queue, SimpleWorker
from rq.exceptions import DeserializationError, NoSuchJobError, StopRequested
from rq.intermediate_queue import IntermediateQueue
from rq.job import Job, parse_job_id
from rq.registry import CanceledJobRegistry, FailedJobRegistry
from rq.results import Result
from rq.serializers import JSONSerializer
from rq.suspension import is_suspended
from rq.timeouts import UnixSignalDeathPenalty

from petard_schema.keys import DEFAULT_PREFIX

log = structlog.get_logger()

QUEUE = DEFAULT_PREFIX
"""The one queue of a fleet with the default prefix; another fleet's queue is named by its own prefix.

One queue: with two, RQ pops without an intermediate list and a crash loses the job.
"""

Jobs: TypeAlias = Mapping[str, Callable[..., object]]
"""The dotted names that may stand in a job, and what each of them runs in this process."""

FAILURE_TTL_S = 86_400
# RQ's timeout is an alarm that may ring inside COMMIT: far above a slice and the timeouts set in Postgres.
JOB_TIMEOUT_S = 300
SLICE_S = 1
UNQUEUED_LOOK_S = 0.02
BEAT_S = 0.9
"""Between jobs a worker says so often that it is alive, once a slice, and so learns whether Redis is full."""
SOCKET_TIMEOUT_S = 5
MAX_DATA_BYTES = 131_072

# What a job carries that could run something else, run it again, or touch other keys.
FORBIDDEN_FIELDS = (
    b"success_callback_name",
    b"failure_callback_name",
    b"stopped_callback_name",
    b"webhooks",
    b"dependency_id",
    b"dependency_ids",
    b"group_id",
    b"rate_limit_key",
    b"repeats_left",
    b"repeat_intervals",
    b"retries_left",
    b"retry_intervals",
)
# RQ is shown these and no others, so a field that a later RQ invents has no effect here until it is listed.
KNOWN_FIELDS = (
    b"created_at",
    b"description",
    b"ended_at",
    b"enqueued_at",
    b"failure_ttl",
    b"last_heartbeat",
    b"origin",
    b"result_ttl",
    b"started_at",
    b"status",
    b"worker_name",
)

_JOB_ID = re.compile(rb"[A-Za-z0-9_-]{1,256}")
_EXECUTION_ID = re.compile(rb"[A-Za-z0-9_-]{1,256}:[A-Za-z0-9_-]{1,256}")
_SECONDS = re.compile(rb"-?[0-9]{1,9}")


class JobRefusedError(NoSuchJobError):
    """The stored job is not one that this worker runs; it has been removed."""

    def __init__(self, reason: str, detail: str = "") -> None:
        """Keep the machine-readable reason and what it is about."""
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class QueueUnusableError(RedisConnectionError):
    """The worker's loop ended on an error; the log has it. Exit with 69 and be started again."""


class CheckedJob(Job):
    """A job that can only name what `allowed` holds; this class itself allows nothing."""

    allowed: ClassVar[Jobs] = {}
    queue_name: ClassVar[str] = QUEUE

    def __init__(
        self,
        id: str | None = None,  # noqa: A002 - RQ's name
        connection: Redis | None = None,
        serializer: Any = None,
    ) -> None:
        """Read and write JSON, also where RQ forgets to say so."""
        super().__init__(id, connection, _json_only(serializer))

    @classmethod
    def fetch(cls, id: str, connection: Redis | None = None, serializer: Any = None) -> Self:  # noqa: A002 - RQ's name
        """Return the job; raise JobRefusedError after removing what is stored there but is no such job."""
        assert connection is not None
        try:
            job = super().fetch(id, connection, serializer)
        except NoSuchJobError as error:
            if not isinstance(error, JobRefusedError):
                raise
            refused = error
        except ValueError as error:
            refused = JobRefusedError("malformed_id", str(error))
        except ResponseError as error:
            if "WRONGTYPE" not in str(error):
                raise
            refused = JobRefusedError("wrong_type")
        else:
            assert isinstance(job, cls)
            return job
        _remove_refused(connection, cls.queue_name, parse_job_id(id).encode(errors="surrogatepass"), refused)
        raise refused

    @classmethod
    def fetch_many(
        cls, job_ids: Iterable[str], connection: Redis, serializer: Any = None
    ) -> list[Job | None]:
        """Return the jobs, with None for each that is missing or refused."""
        return [cls._fetch_or_none(job_id, connection, serializer) for job_id in job_ids]

    @classmethod
    def _fetch_or_none(cls, job_id: str, connection: Redis, serializer: Any) -> Job | None:
        try:
            return cls.fetch(job_id, connection, serializer)
        except NoSuchJobError:
            return None

    def restore(self, raw_data: Mapping[bytes, bytes]) -> None:
        """Take over a stored hash, or raise JobRefusedError; limits are the worker's, not the hash's."""
        for field in FORBIDDEN_FIELDS:
            if raw_data.get(field):
                raise JobRefusedError("forbidden_field", field.decode())
        if not _SECONDS.fullmatch(raw_data.get(b"timeout", b"")):
            raise JobRefusedError("malformed_field", "timeout")
        known = {field: raw_data[field] for field in KNOWN_FIELDS if field in raw_data}
        known[b"data"] = _inflated(raw_data.get(b"data", b""))
        try:
            super().restore(known)
            self._check_call()
        except (ValueError, DeserializationError) as error:
            raise JobRefusedError("malformed_field", repr(error.__cause__ or error)) from error
        self.timeout = JOB_TIMEOUT_S
        self.result_ttl = 0
        self.failure_ttl = FAILURE_TTL_S

    def _check_call(self) -> None:
        if self.origin != self.queue_name:
            raise JobRefusedError("foreign_queue", repr(self.origin))
        if self.instance is not None:
            raise JobRefusedError("instance")
        if not isinstance(self.func_name, str) or self.func_name not in self.allowed:
            raise JobRefusedError("not_allowed", repr(self.func_name))
        if not isinstance(self.args, list) or not isinstance(self.kwargs, dict):
            raise JobRefusedError("malformed_field", "arguments")

    def cleanup(
        self, ttl: int | None = None, pipeline: Pipeline | None = None, remove_from_queue: bool = True
    ) -> None:
        """Delete a job that has run, without RQ's six questions about what else there is of it.

        They are asked one after the other. The worker itself removes the execution that has ended; what
        earlier ones have left expires.
        """
        if ttl != 0 or pipeline is None or remove_from_queue:
            super().cleanup(ttl, pipeline, remove_from_queue)
            return
        results = Result.get_key(self.id)  # type: ignore[no-untyped-call]
        pipeline.delete(self.key, self.dependents_key, self.execution_registry.key, results)
        # Whoever took it for dead, or wanted it to be, has written it down there.
        for registry in (FailedJobRegistry, CanceledJobRegistry):
            pipeline.zrem(registry(self.origin, self.connection).key, self.id)

    @property
    def func(self) -> Callable[..., object]:
        """What the name in the job means in this process; nothing is ever imported."""
        return self.allowed[self.func_name or ""]

    @property
    def success_callback(self) -> None:
        """No callbacks."""

    @property
    def failure_callback(self) -> None:
        """No callbacks."""

    @property
    def stopped_callback(self) -> None:
        """No callbacks."""


def job_class(allowed: Jobs, queue_name: str = QUEUE) -> type[Job]:
    """RQ job class of one queue whose func is looked up in `allowed`, and nowhere else."""

    class AllowedJob(CheckedJob):
        pass

    AllowedJob.allowed = dict(allowed)
    AllowedJob.queue_name = queue_name
    return AllowedJob


class JsonQueue(Queue):
    """A queue that speaks JSON, and that loses no time and no worker on ids without a proper job."""

    job_class = CheckedJob

    def __init__(self, name: str, serializer: Any = None, **kwargs: Any) -> None:
        """Take RQ's arguments, except a serializer other than JSON."""
        super().__init__(name, serializer=_json_only(serializer), **kwargs)

    @classmethod
    def dequeue_any(  # noqa: PLR0917 - RQ's signature
        cls,
        queues: Iterable[Queue],
        timeout: int | None,
        connection: Redis,
        job_class: type[Job] | None = None,
        serializer: Any = None,
        death_penalty_class: Any = None,
    ) -> tuple[Job, Queue] | None:
        """Move the next id to the intermediate list and return its job, skipping and removing bad ones."""
        (queue,) = queues
        while (moved := cls.lmove(connection, queue.key, timeout)) is not None:
            raw_id = moved[1]
            with suppress(JobRefusedError):
                return _fetch_moved(raw_id, queue, connection, job_class or queue.job_class), queue
        return None


def open_queue(connection: Redis, allowed: Jobs, name: str = QUEUE) -> JsonQueue:
    """Return a fleet's queue, for jobs named in `allowed`; who only enqueues may allow nothing.

    Its name is the fleet's key prefix, so that two fleets on one Redis never take each other's drains.
    """
    return JsonQueue(name, connection=connection, job_class=job_class(allowed, name))


def enqueue_job(queue: JsonQueue, name: str, *args: str, job_id: str | None = None) -> None:
    """Append one job; sent again after a lost answer it may stand in the queue twice."""
    queue.enqueue_call(
        name,
        args=args,
        timeout=JOB_TIMEOUT_S,
        result_ttl=0,
        failure_ttl=FAILURE_TTL_S,
        description=" ".join((name.rpartition(".")[2], *args))[:80],
        job_id=job_id,
    )


def connect_for_rq(url: str) -> Redis:
    """Return a client fit for RQ: bytes, and a socket timeout above the time that a dequeue blocks."""
    return Redis.from_url(
        url,
        decode_responses=False,
        socket_connect_timeout=SOCKET_TIMEOUT_S,
        socket_timeout=SOCKET_TIMEOUT_S,
        socket_keepalive=True,
        retry=Retry(ExponentialWithJitterBackoff(base=0.05, cap=0.5), 3),
    )


class Overdue(BaseException):
    """RQ's alarm rang in the middle of a job."""


class Alarm(UnixSignalDeathPenalty):
    """RQ's alarm, which no event has to answer for: code that buries what fails must not take it for that."""

    def __init__(self, timeout: int, *_exception: object, **settings: object) -> None:
        super().__init__(timeout, Overdue, **settings)  # type: ignore[no-untyped-call]


class PetardWorker(SimpleWorker):
    """Runs the jobs of one queue in this process until `stop` is set.

    Only the main thread can run it (RQ's job timeout is a signal). From then on the queue's connection waits
    for a lost Redis until the stop, so other threads use one of their own.
    """

    death_penalty_class = Alarm

    def __init__(
        self,
        queue: JsonQueue,
        stop: threading.Event | None = None,
        run_unqueued: Callable[[], bool] | None = None,
        on_full: Callable[[], None] | None = None,
    ) -> None:
        """Register nothing yet; raise a redis ConnectionError if Redis is not there.

        `stop` is set when a signal asks for it. `run_unqueued` is called between jobs: it runs one job that
        RQ could not queue and says whether there was one.
        """
        self.stop = stop or threading.Event()
        self._run_unqueued = run_unqueued or (lambda: False)
        self._on_full = on_full or (lambda: None)
        self._full = False
        self._full_logged = False
        self._signalled = False
        self._beat_at = 0.0
        self._ended = False
        _quieten_rq()
        super().__init__(
            [queue],
            connection=queue.connection,
            job_class=queue.job_class,
            queue_class=JsonQueue,
            serializer=JSONSerializer,
            default_result_ttl=0,
            worker_ttl=60,
            maintenance_interval=60,
            log_job_description=False,
        )
        queue.connection.set_retry(Retry(_Patience(self.stop), -1))

    def work(self, burst: bool = False) -> bool:  # type: ignore[override]  # no scheduler, no strategies
        """Work until the stop, or with `burst` until the queue is empty; say whether a job was run.

        Raises QueueUnusableError when the loop ended on an error, which RQ logs and then takes for an end.
        """
        self._install_signal_handlers()  # type: ignore[no-untyped-call]  # RQ does so only once it is registered
        # Raised by a command that waited for Redis until the stop; there is nobody to say goodbye to.
        with suppress(StopRequested):
            while True:
                worked = self._work_until_full(burst)
                if not self._full:
                    return worked
                worked = self._work_while_full(burst)
                if self.stop.is_set() or (burst and not worked):
                    return worked
        return False

    def _work_until_full(self, burst: bool) -> bool:
        """Run RQ's loop; whether it ended because Redis is full stands in `_full` afterwards."""
        self._ended = self._full = False
        try:
            worked = super().work(burst=burst)
        except OutOfMemoryError:  # from the worker's registration, at either end of the loop
            self._full = True
            return False
        if not (self._ended or self._full or self.stop.is_set() or is_suspended(self.connection)):
            raise QueueUnusableError("the worker's loop ended on an error")
        return worked

    def _work_while_full(self, burst: bool) -> bool:
        """Run for a moment, without RQ, what could not be queued; say whether there was anything."""
        if not self._full_logged:
            log.warning("redis_full", worker=self.name)
            self._full_logged = True
        self._on_full()
        self.connection.delete(self.key)  # else RQ takes this worker for another one with its name
        worked = False
        until = time.monotonic() + SLICE_S
        while time.monotonic() < until and not self.stop.is_set():
            if self._run_unqueued():
                worked = True
            elif burst:
                break
            else:
                self.stop.wait(UNQUEUED_LOOK_S)
        return worked

    @contextmanager
    def _left_when_full(self) -> Iterator[None]:
        """Leave RQ's loop, quietly, when Redis is full."""
        try:
            yield
        except OutOfMemoryError:
            self._full = True
            raise StopRequested from None

    def check_for_suspension(self, burst: bool) -> None:
        """Wait while workers are suspended."""
        with self._left_when_full():
            super().check_for_suspension(burst)

    def heartbeat(self, timeout: int | None = None, pipeline: Pipeline | None = None) -> None:
        """Say that the worker is alive, unless it has just said so: RQ asks for it three times a job."""
        if pipeline is None:
            if (now := time.monotonic()) < self._beat_at:
                return
            self._beat_at = now + BEAT_S
        with self._left_when_full():
            super().heartbeat(timeout, pipeline)

    def request_stop(self, signum: int, frame: object) -> None:
        """Ask for the stop at the first signal and ignore the others: a running transaction is finished."""
        if self._signalled:
            return
        self._signalled = True
        # Event.set takes a lock that the interrupted code may be holding; in a thread it can wait for it.
        threading.Thread(target=self._stop, args=(signum,), daemon=True).start()

    def _stop(self, signum: int) -> None:
        self.stop.set()
        log.info("stop_requested", signal=signum)

    @property
    def _stop_requested(self) -> bool:
        """RQ's own flag, looked at between jobs and while suspended, is the event."""
        return self.stop.is_set()

    @_stop_requested.setter
    def _stop_requested(self, requested: bool) -> None:
        if requested:
            self.stop.set()

    @property
    def dequeue_timeout(self) -> int:
        """Block for a second at a time, so that a stop is seen between two blocks and never inside one."""
        return SLICE_S

    @property
    def connection_timeout(self) -> int:
        """Keep RQ from raising the client's socket timeout to a minute."""
        return SOCKET_TIMEOUT_S

    def subscribe(self) -> None:
        """Take no commands over Redis: a signal stops a worker, `rq suspend` pauses it."""

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[Job, Queue] | None:
        """Wait for a job, in slices, until the stop; without a timeout (burst) only look once."""
        while not self.stop.is_set():
            if self._run_unqueued():
                continue
            with self._left_when_full():
                found = super().dequeue_job_and_maintain_ttl(timeout, SLICE_S)
            self._full_logged = False
            if found is not None:
                return found
            if timeout is None:
                break
        self._ended = True
        return None

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Run one job; if RQ cannot write down how it went, drop the job and not the worker."""
        try:
            super().execute_job(job, queue)
        except StopRequested:
            raise
        # The edge of the process towards Redis: keys beside the job may hold anything, RQ may fail anyhow.
        except Exception as error:  # noqa: BLE001 - no traceback: it may hold text that no log can be encoded in
            log.error("job_not_recorded", job=job.id, error=repr(error)[:300])  # noqa: TRY400
            if isinstance(error, OutOfMemoryError):
                self._on_full()
            self.executions.clear()
            self.last_cleaned_at = None  # the next thing to do is to repair the registries
            _forget(self.connection, queue.name, job.id.encode())

    def run_maintenance_tasks(self) -> None:
        """Let RQ clean up, and go on with the jobs if it cannot."""
        try:
            self._remove_malformed_entries()
            super().run_maintenance_tasks()  # type: ignore[no-untyped-call]
        except StopRequested:
            raise
        # As above: workers, groups and rate limits are cleaned too, and any of their keys may hold anything.
        except Exception as error:
            log.exception("maintenance_failed")
            if isinstance(error, OutOfMemoryError):
                self._on_full()
            self.last_cleaned_at = datetime.now(UTC)  # type: ignore[assignment]  # RQ's type is inferred

    def _remove_malformed_entries(self) -> None:
        """Take out of the registries what would stop RQ's clean-up before it reaches the rest."""
        (queue,) = self.queues
        for registry, pattern in (
            (queue.started_job_registry.key, _EXECUTION_ID),
            (queue.ready_job_registry.key, _JOB_ID),
        ):
            self._remove_if_not(b"zset", registry)
            for entry in cast("list[bytes]", self.connection.zrange(registry, 0, -1)):
                if not pattern.fullmatch(entry):
                    log.warning(
                        "job_refused", job=repr(entry)[:300], reason="malformed_id", registry=registry
                    )
                    self.connection.zrem(registry, entry)
        moved = queue.intermediate_queue_key
        self._remove_if_not(b"list", moved)
        for entry in cast("list[bytes]", self.connection.lrange(moved, 0, -1)):
            if not _JOB_ID.fullmatch(entry):
                _remove_refused(self.connection, queue.name, entry, JobRefusedError("malformed_id"))

    def _remove_if_not(self, kind: bytes, key: str) -> None:
        if self.connection.type(key) not in (b"none", kind):
            log.warning("registry_refused", registry=key, reason="wrong_type")
            self.connection.delete(key)


class _Patience(ExponentialWithJitterBackoff):
    """The pauses before a lost Redis is tried again, as long as nobody asks for the stop."""

    def __init__(self, stop: threading.Event) -> None:
        super().__init__(base=0.05, cap=1)
        self._stop = stop

    def __deepcopy__(self, memo: object) -> Self:
        """Be shared: redis-py copies the policy for each connection, and all must see the one stop."""
        return self

    def compute(self, failures: int) -> float:
        """Return the seconds to wait; raise StopRequested, which ends RQ's loop, after the stop."""
        if self._stop.is_set():
            raise StopRequested
        if failures in (1, 10) or failures % 60 == 0:
            log.warning("redis_lost", failures=failures, error=str(sys.exc_info()[1]))
        return super().compute(failures)


def _fetch_moved(raw_id: bytes, queue: Queue, connection: Redis, job_class: type[Job]) -> Job:
    """Return the job of an id in the intermediate list, or remove the id and raise JobRefusedError."""
    refused = JobRefusedError("malformed_id")
    if _JOB_ID.fullmatch(raw_id):
        try:
            return job_class.fetch(raw_id.decode(), connection)
        except JobRefusedError:
            raise
        except NoSuchJobError:
            # Also the second of two equal ids, after an enqueue was repeated.
            refused = JobRefusedError("no_such_job")
    _remove_refused(connection, queue.name, raw_id, refused)
    raise refused


def _remove_refused(connection: Redis, queue_name: str, raw_id: bytes, refused: JobRefusedError) -> None:
    """Log why, and delete the job and its place in the intermediate list; RQ's clean-up does the rest."""
    shown = raw_id.decode() if _JOB_ID.fullmatch(raw_id) else repr(raw_id)
    log.warning("job_refused", job=shown[:300], reason=refused.reason, detail=refused.detail[:300])
    _forget(connection, queue_name, raw_id)


def _forget(connection: Redis, queue_name: str, raw_id: bytes) -> None:
    # No MULTI: at its memory limit Redis refuses every command inside one, deletions too.
    with connection.pipeline(transaction=False) as pipe:
        for suffix in (b"", b":dependents"):
            pipe.delete(Job.redis_job_namespace_prefix.encode() + raw_id + suffix)
        pipe.lrem(
            IntermediateQueue.get_intermediate_queue_key(Queue.redis_queue_namespace_prefix + queue_name),
            0,
            raw_id,  # type: ignore[arg-type]  # may not be text at all
        )
        pipe.execute()


def _inflated(data: bytes) -> bytes:
    """Return the JSON text in a job's data, which RQ compresses; never more than a bomb's first bytes."""
    if not data:
        raise JobRefusedError("malformed_field", "data")
    try:
        text = zlib.decompressobj().decompress(data, MAX_DATA_BYTES + 1)
    except zlib.error:
        text = data  # RQ takes plain text too
    if len(text) > MAX_DATA_BYTES:
        raise JobRefusedError("too_large")
    if not text.startswith(b"["):
        raise JobRefusedError("not_json")  # a pickle, or a second layer of compression
    return text


def _json_only(serializer: Any) -> type[JSONSerializer]:
    if serializer not in (None, "json", JSONSerializer):
        raise ValueError(f"only JSON is spoken here, not {serializer!r}")
    return JSONSerializer


def _quieten_rq() -> None:
    """Leave RQ's warnings to the process's own logging; the handler keeps RQ from adding one on stdout."""
    rq = getLogger("rq")
    if not rq.handlers:
        rq.addHandler(NullHandler())
    for name in ("rq", "rq.worker"):  # RQ sets the second to INFO on import
        getLogger(name).setLevel(WARNING)
