"""What our RQ worker takes for granted about RQ and redis-py: an upgrade that breaks it fails here."""

import fcntl
import inspect
import json
import logging
import os
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry
from rq import Queue, SimpleWorker
from rq.exceptions import DequeueTimeout, DeserializationError, NoSuchJobError, StopRequested
from rq.intermediate_queue import IntermediateQueue
from rq.job import Job, parse_job_id
from rq.logutils import setup_loghandlers
from rq.registry import ReadyJobRegistry, StartedJobRegistry
from rq.repeat import Repeat
from rq.serializers import JSONSerializer, PickleSerializer
from rq.webhook import Webhook
from rq.worker import BaseWorker

from petard_worker import rq_worker
from petard_worker.rq_worker import (
    FORBIDDEN_FIELDS,
    KNOWN_FIELDS,
    QUEUE,
    CheckedJob,
    JobRefusedError,
    JsonQueue,
    PetardWorker,
    connect_for_rq,
    job_class,
    open_queue,
)

URL = "redis://127.0.0.1:6379/9"
GOOD = "petard_worker.jobs.good"


@pytest.fixture
def redis() -> Iterator[Redis]:
    """An empty database 9; the lock keeps parallel test processes from emptying each other's."""
    with (Path(tempfile.gettempdir()) / "petard-tests-redis-9.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection = connect_for_rq(URL)
        connection.flushdb()
        yield connection
        connection.flushdb()
        connection.close()


# --- signatures -------------------------------------------------------------------------------------------

OVERRIDES: dict[type, tuple[type, dict[str, list[str] | type]]] = {
    CheckedJob: (
        Job,
        {
            "__init__": ["self", "id", "connection", "serializer"],
            "fetch": ["id", "connection", "serializer"],
            "fetch_many": ["job_ids", "connection", "serializer"],
            "restore": ["self", "raw_data"],
            "cleanup": ["self", "ttl", "pipeline", "remove_from_queue"],
            "func": property,
            "success_callback": property,
            "failure_callback": property,
            "stopped_callback": property,
        },
    ),
    JsonQueue: (
        Queue,
        {
            "__init__": [
                "self",
                "name",
                "connection",
                "default_timeout",
                "is_async",
                "job_class",
                "serializer",
                "death_penalty_class",
                "kwargs",
            ],
            "dequeue_any": [
                "queues",
                "timeout",
                "connection",
                "job_class",
                "serializer",
                "death_penalty_class",
            ],
            "job_class": type,
        },
    ),
    PetardWorker: (
        SimpleWorker,
        {
            "__init__": [
                "self",
                "queues",
                "name",
                "default_result_ttl",
                "connection",
                "exception_handlers",
                "maintenance_interval",
                "default_worker_ttl",
                "worker_ttl",
                "job_class",
                "queue_class",
                "log_job_description",
                "job_monitoring_interval",
                "disable_default_exception_handler",
                "prepare_for_work",
                "serializer",
                "work_horse_killed_handler",
            ],
            "work": [
                "self",
                "burst",
                "logging_level",
                "date_format",
                "log_format",
                "max_jobs",
                "max_idle_time",
                "with_scheduler",
                "dequeue_strategy",
            ],
            "request_stop": ["self", "signum", "frame"],
            "death_penalty_class": type,
            "dequeue_timeout": property,
            "connection_timeout": property,
            "subscribe": ["self"],
            "check_for_suspension": ["self", "burst"],
            "heartbeat": ["self", "timeout", "pipeline"],
            "dequeue_job_and_maintain_ttl": ["self", "timeout", "max_idle_time"],
            "execute_job": ["self", "job", "queue"],
            "run_maintenance_tasks": ["self"],
        },
    ),
}
PINNED = [(base, name, pin) for base, pins in OVERRIDES.values() for name, pin in pins.items()]


@pytest.mark.parametrize(("base", "name", "pin"), PINNED, ids=[f"{b.__name__}.{n}" for b, n, _ in PINNED])
def test_overridden_member_of_rq_has_kept_its_form(base: type, name: str, pin: list[str] | type) -> None:
    member = getattr(base, name)

    if isinstance(pin, type):
        assert isinstance(member, pin)
    else:
        assert list(inspect.signature(member).parameters) == pin


@pytest.mark.parametrize(("ours", "base", "pins"), [(o, b, p) for o, (b, p) in OVERRIDES.items()])
def test_every_override_is_pinned(ours: type, base: type, pins: dict[str, object]) -> None:
    ignored = {"__module__", "__doc__", "__annotations__", "__dict__", "__weakref__", "__firstlineno__"}
    ignored |= {"__static_attributes__", "__annotate_func__", "__annotations_cache__", "__annotate__"}

    overridden = {name for name in vars(ours) if hasattr(base, name)} - ignored

    assert overridden == set(pins)


def test_stop_flag_of_rq_is_the_event(redis: Redis) -> None:
    base = SimpleWorker([QUEUE], connection=redis, prepare_for_work=False)
    ours = PetardWorker(open_queue(redis, {}))

    ours.stop.set()

    assert base._stop_requested is False
    assert ours._stop_requested is True


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (Queue.lmove, ["connection", "queue_key", "timeout"]),
        (Queue.enqueue_call, ["self", "func", "args", "kwargs", "timeout", "result_ttl"]),
        (IntermediateQueue.get_intermediate_queue_key, ["queue_key"]),
        (BaseWorker._install_signal_handlers, ["self"]),
        (parse_job_id, ["job_or_execution_id"]),
    ],
)
def test_called_function_of_rq_takes_what_it_is_given(
    function: Callable[..., object], parameters: list[str]
) -> None:
    assert list(inspect.signature(function).parameters)[: len(parameters)] == parameters


def test_keys_of_rq_are_where_they_were(redis: Redis) -> None:
    queue = open_queue(redis, {})

    keys = [
        queue.key,
        queue.intermediate_queue_key,
        queue.started_job_registry.key,
        queue.ready_job_registry.key,
        queue.failed_job_registry.key,
        Job.key_for("a"),
        Job.dependents_key_for("a"),
    ]

    assert keys == [
        "rq:queue:petard",
        "rq:queue:petard:intermediate",
        "rq:wip:petard",
        "rq:ready:petard",
        "rq:failed:petard",
        "rq:job:a",
        "rq:job:a:dependents",
    ]


# --- jobs -------------------------------------------------------------------------------------------------


def test_rq_itself_runs_whatever_a_json_job_names(redis: Redis) -> None:
    job = Queue(QUEUE, connection=redis, serializer="json").enqueue("os.system", "true")

    assert Job.fetch(job.id, redis, "json").func is os.system
    with pytest.raises(JobRefusedError, match="not_allowed"):
        job_class({GOOD: print}).fetch(job.id, redis)


def test_rq_itself_pickles_unless_told_otherwise(redis: Redis) -> None:
    assert Job(connection=redis).serializer is PickleSerializer
    assert Queue(connection=redis).serializer is PickleSerializer
    assert CheckedJob(connection=redis).serializer is JSONSerializer
    assert JsonQueue(QUEUE, connection=redis).serializer is JSONSerializer


@pytest.mark.parametrize("serializer", [PickleSerializer, "pickle", "rq.serializers.DefaultSerializer"])
def test_other_serializer_is_an_error(redis: Redis, serializer: object) -> None:
    with pytest.raises(ValueError, match="only JSON"):
        CheckedJob(connection=redis, serializer=serializer)
    with pytest.raises(ValueError, match="only JSON"):
        JsonQueue(QUEUE, connection=redis, serializer=serializer)


def test_fetch_hands_the_raw_hash_to_restore(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[bytes, bytes]] = []
    monkeypatch.setattr(Job, "restore", lambda _, raw: seen.append(raw))
    redis.hset("rq:job:a", "data", b"\xff")

    Job.fetch("a:execution", redis)

    assert seen == [{b"data": b"\xff"}]


def test_rq_says_no_such_job_for_a_missing_hash_only_from_fetch(redis: Redis) -> None:
    with pytest.raises(NoSuchJobError):
        Job.fetch("a", redis)
    assert Job.fetch_many(["a"], redis) == [None]


def test_rq_takes_data_that_is_not_compressed(redis: Redis) -> None:
    job = Job("a", redis, JSONSerializer)

    job.restore({b"data": b'["name", null, [1], {"b": 2}]'})

    assert (job.func_name, job.instance, job.args, job.kwargs) == ("name", None, [1], {"b": 2})


def test_rq_reads_data_late_and_wraps_what_goes_wrong(redis: Redis) -> None:
    job = Job("a", redis, JSONSerializer)

    job.restore({b"data": b"[1]"})

    with pytest.raises(DeserializationError):
        _ = job.func_name


def test_rq_writes_no_field_that_we_have_not_judged(redis: Redis) -> None:
    judged = {field.decode() for field in (*KNOWN_FIELDS, *FORBIDDEN_FIELDS)}
    # Not shown to RQ's restore: read by us, or of no effect on how a job runs.
    not_shown = {"data", "timeout", "meta", "result", "exc_info", "ttl", "number_of_retries"}
    not_shown |= {"enqueue_at_front", "enqueue_at_front_on_retry", "allow_dependency_failures"}
    not_shown |= {"success_callback_timeout", "failure_callback_timeout", "stopped_callback_timeout"}
    not_shown |= {"rate_limit_concurrency"}
    job = Queue(QUEUE, connection=redis, serializer="json").create_job(
        "name",
        timeout=1,
        result_ttl=1,
        ttl=1,
        failure_ttl=1,
        description="d",
        depends_on=["x"],
        meta={"a": 1},
        retry=rq_retry(),
        repeat=Repeat(1),
        webhooks=[Webhook("http://127.0.0.1:1/", "finished")],
        group_id="g",
    )
    job._result = job._exc_info = "x"
    job.number_of_retries = job._success_callback_timeout = job._failure_callback_timeout = 1
    job._stopped_callback_timeout = job.rate_limit_concurrency = 1
    job.rate_limit_key = "k"
    job.enqueue_at_front = job.allow_dependency_failures = True
    job.enqueued_at = job.created_at

    written = set(job.to_dict())

    assert written - judged - not_shown == set()
    assert {field.decode() for field in KNOWN_FIELDS} <= written


def rq_retry() -> object:
    from rq import Retry as RetryJob  # noqa: PLC0415 - redis-py's class of the same name is used here too

    return RetryJob(1, enqueue_at_front=True)


FUZZED = [*KNOWN_FIELDS, b"data", b"timeout"]
PROPER = {
    b"data": zlib.compress(json.dumps([GOOD, None, [], {}]).encode()),
    b"origin": QUEUE.encode(),
    b"timeout": b"180",
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(GOOD),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    fields=st.dictionaries(st.sampled_from(FUZZED), st.binary() | st.text().map(str.encode), max_size=5),
    data=st.none() | st.binary() | st.lists(JSON, max_size=5).map(lambda tree: json.dumps(tree).encode()),
)
def test_any_hash_is_a_job_or_refused(fields: dict[bytes, bytes], data: bytes | None) -> None:
    stored = PROPER | fields | ({} if data is None else {b"data": data})
    job = job_class({GOOD: print})("a", connection=Mock())

    try:
        job.restore(stored)
    except JobRefusedError:
        return

    assert job.func is print
    assert (job.instance, job.webhooks, job.result_ttl) == (None, [], 0)
    assert (job.success_callback, job.failure_callback, job.stopped_callback) == (None, None, None)


# --- RQ takes "no such job" calmly ------------------------------------------------------------------------


class NoJob(Job):
    @classmethod
    def fetch(cls, *_: object, **__: object) -> Job:
        raise NoSuchJobError

    @classmethod
    def fetch_many(cls, job_ids: list[str], *_: object, **__: object) -> list[Job | None]:  # type: ignore[override]
        return [None for _ in job_ids]


def test_started_registry_forgets_a_refused_job(redis: Redis) -> None:
    redis.zadd("rq:wip:petard", {"a:1": 1})

    StartedJobRegistry(QUEUE, redis, NoJob, serializer="json").cleanup()

    assert not redis.exists("rq:wip:petard")


def test_ready_registry_forgets_a_refused_job(redis: Redis) -> None:
    redis.zadd("rq:ready:petard", {"a": 1})

    ReadyJobRegistry(QUEUE, redis, NoJob, serializer="json").cleanup()

    assert not redis.exists("rq:ready:petard")


def test_intermediate_queue_forgets_a_refused_job(redis: Redis) -> None:
    queue = Queue(QUEUE, connection=redis, job_class=NoJob, serializer="json")
    redis.rpush(queue.key, "a")
    redis.rpush(queue.intermediate_queue_key, "a")

    queue.intermediate_queue.cleanup(Mock(), queue)

    assert not redis.exists(queue.key, queue.intermediate_queue_key)


def test_clean_up_uses_the_job_class_of_the_queue(redis: Redis) -> None:
    redis.zadd("rq:wip:petard", {"a:1": 1})
    redis.zadd("rq:ready:petard", {"a": 1})
    redis.rpush("rq:queue:petard:intermediate", "a")
    for key in ("rq:job:a", "rq:job:b"):
        redis.hset(key, "data", b"\xff")
    worker = PetardWorker(open_queue(redis, {}))

    worker.run_maintenance_tasks()

    assert not redis.exists("rq:job:a", "rq:wip:petard", "rq:ready:petard", "rq:queue:petard:intermediate")


# --- dequeuing --------------------------------------------------------------------------------------------


def test_lmove_returns_the_raw_id_and_leaves_it_in_the_intermediate_list(redis: Redis) -> None:
    redis.rpush("rq:queue:petard", b"\xff")

    moved = Queue.lmove(redis, "rq:queue:petard", None)

    assert moved == ("rq:queue:petard", b"\xff")
    assert redis.lrange("rq:queue:petard:intermediate", 0, -1) == [b"\xff"]


def test_lmove_of_an_empty_queue_returns_none_or_times_out(redis: Redis) -> None:
    assert Queue.lmove(redis, "rq:queue:petard", None) is None
    with pytest.raises(DequeueTimeout):
        Queue.lmove(redis, "rq:queue:petard", 1)


def test_one_slice_of_waiting_returns_none_and_touches_nothing(redis: Redis) -> None:
    worker = SimpleWorker([QUEUE], connection=redis, prepare_for_work=False)

    assert worker.dequeue_job_and_maintain_ttl(1, 1) is None


# --- the worker's loop ------------------------------------------------------------------------------------


@pytest.fixture
def plain_worker(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> SimpleWorker:
    """RQ's own worker, without signals, commands and clean-up."""
    monkeypatch.setattr(SimpleWorker, "_install_signal_handlers", lambda _: None)
    monkeypatch.setattr(SimpleWorker, "subscribe", lambda _: None)
    monkeypatch.setattr(SimpleWorker, "run_maintenance_tasks", lambda _: None)
    monkeypatch.setattr(logging.getLogger("rq.worker"), "disabled", True)
    return SimpleWorker([QUEUE], connection=redis)


@pytest.mark.parametrize(
    "step", ["check_for_suspension", "run_maintenance_tasks", "dequeue_job_and_maintain_ttl", "execute_job"]
)
def test_loop_returns_as_if_all_were_well_after_an_error_in_any_step(
    redis: Redis, plain_worker: SimpleWorker, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    Queue(QUEUE, connection=redis).enqueue("os.getpid")
    failing = Mock(side_effect=LookupError)
    monkeypatch.setattr(SimpleWorker, step, failing)

    worked = plain_worker.work(burst=True)

    assert (failing.call_count, worked) == (1, False)


def test_loop_ends_quietly_when_a_step_says_stop(
    redis: Redis, plain_worker: SimpleWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimpleWorker, "dequeue_job_and_maintain_ttl", Mock(side_effect=StopRequested))
    died = Mock()
    monkeypatch.setattr(SimpleWorker, "register_death", died)

    plain_worker.work()

    assert died.call_count == 1


def test_loop_looks_at_the_stop_flag_before_it_dequeues(
    redis: Redis, plain_worker: SimpleWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    dequeue = Mock(return_value=None)
    monkeypatch.setattr(SimpleWorker, "dequeue_job_and_maintain_ttl", dequeue)
    plain_worker._stop_requested = True

    plain_worker.work()

    assert not dequeue.called


def test_loop_dequeues_with_the_dequeue_timeout_or_none_in_a_burst(
    redis: Redis, plain_worker: SimpleWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    dequeue = Mock(return_value=None)
    monkeypatch.setattr(SimpleWorker, "dequeue_job_and_maintain_ttl", dequeue)
    monkeypatch.setattr(SimpleWorker, "dequeue_timeout", 7)

    plain_worker.work()
    plain_worker.work(burst=True)

    assert [made.args for made in dequeue.call_args_list] == [(7, None), (None, None)]


def test_error_in_a_job_stays_inside_execute_job(redis: Redis, plain_worker: SimpleWorker) -> None:
    queue = Queue(QUEUE, connection=redis)
    queue.enqueue("os.remove", "/does/not/exist", job_id="a")

    worked = plain_worker.work(burst=True)

    assert worked is True
    assert queue.failed_job_registry.get_job_ids(cleanup=False) == ["a"]


def test_worker_without_a_subscription_unsubscribes_from_nothing(plain_worker: SimpleWorker) -> None:
    plain_worker.unsubscribe()

    assert plain_worker.pubsub_thread is None


def test_worker_is_born_due_for_maintenance_and_without_executions(plain_worker: SimpleWorker) -> None:
    assert plain_worker.last_cleaned_at is None
    assert plain_worker.should_run_maintenance_tasks
    assert plain_worker.executions == {}


def test_worker_keeps_the_socket_timeout_of_the_client(redis: Redis) -> None:
    worker = PetardWorker(open_queue(redis, {}))

    assert redis.get_connection_kwargs()["socket_timeout"] == rq_worker.SOCKET_TIMEOUT_S
    assert worker.dequeue_timeout < rq_worker.SOCKET_TIMEOUT_S
    assert (worker.worker_ttl, worker.maintenance_interval) == (60, 60)


def test_rq_adds_no_log_handler_below_a_logger_that_has_one(redis: Redis) -> None:
    PetardWorker(open_queue(redis, {}))

    setup_loghandlers(name="rq.worker")

    assert logging.getLogger("rq.worker").handlers == []
    assert logging.getLogger("rq.worker").getEffectiveLevel() == logging.WARNING
    assert logging.getLogger("rq.job").getEffectiveLevel() == logging.WARNING


# --- redis-py ---------------------------------------------------------------------------------------------


def test_negative_number_of_retries_means_for_ever() -> None:
    attempts = Mock(side_effect=[RedisConnectionError] * 50 + ["at last"])

    answer = Retry(NoBackoff(), -1).call_with_retry(attempts, lambda _: None)

    assert answer == "at last"


def test_patience_ends_with_the_stop(redis: Redis) -> None:
    stop = threading.Event()
    PetardWorker(open_queue(redis, {}), stop)
    policy = redis.get_retry()
    assert policy is not None
    stop.set()

    with pytest.raises(StopRequested):
        policy.call_with_retry(Mock(side_effect=RedisConnectionError), lambda _: None)
