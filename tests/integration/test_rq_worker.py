"""Hostile jobs, stops and outages against a real Redis (its database 9, or a server of the test's own)."""

import fcntl
import json
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from rq import Queue, Retry
from rq.group import Group
from rq.job import Job
from rq.rate_limit import RateLimit
from rq.registry import BaseRegistry, CanceledJobRegistry, FailedJobRegistry
from rq.serializers import JSONSerializer
from rq.webhook import Webhook
from structlog.testing import capture_logs

from petard_worker.rq_worker import (
    FAILURE_TTL_S,
    JOB_TIMEOUT_S,
    QUEUE,
    JsonQueue,
    PetardWorker,
    QueueUnusableError,
    connect_for_rq,
    enqueue_job,
    open_queue,
)

URL = "redis://127.0.0.1:6379/9"
GOOD = "petard_worker.jobs.good"
QUEUE_KEY = f"rq:queue:{QUEUE}"
INTERMEDIATE = f"{QUEUE_KEY}:intermediate"
STARTED = f"rq:wip:{QUEUE}"
FAILED = f"rq:failed:{QUEUE}"


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


@pytest.fixture(autouse=True)
def _signal_handlers() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def queue(redis: Redis, ran: list[str]) -> JsonQueue:
    return open_queue(redis, {GOOD: ran.append})


def work_off(queue: JsonQueue) -> list[dict[str, object]]:
    """Run a worker until the queue is empty and return what it logged."""
    with capture_logs() as logs:
        PetardWorker(queue).work(burst=True)
    return [dict(entry) for entry in logs]


def wait_until(condition: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        threading.Event().wait(0.005)


def test_alarm_is_no_error_of_what_it_interrupts(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("petard_worker.rq_worker.JOB_TIMEOUT_S", 1)
    buried: list[BaseException] = []

    def buries_whatever_fails(_word: str) -> None:
        try:
            threading.Event().wait(20)
        except Exception as error:  # noqa: BLE001 - as code does that isolates what fails
            buried.append(error)

    queue = open_queue(redis, {GOOD: buries_whatever_fails})
    enqueue_job(queue, GOOD, "a")

    work_off(queue)

    assert buried == []
    assert redis.zcard(FAILED) == 1


# --- hostile jobs -----------------------------------------------------------------------------------------


def call(name: object = GOOD, instance: object = None, args: object = (), kwargs: object = None) -> bytes:
    return json.dumps([name, instance, args, kwargs if kwargs is not None else {}]).encode()


def job_hash(**fields: bytes) -> dict[str, bytes]:
    """What RQ stores for a proper job, except for the given fields."""
    proper = {
        "created_at": b"2026-11-30T12:00:00.000000Z",
        "data": zlib.compress(call(args=["hostile"])),
        "origin": QUEUE.encode(),
        "status": b"started",
        "timeout": b"180",
    }
    return proper | fields


class Explosive:
    """Unpickling this runs a command."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.marker}",)


GARBAGE = b"\xff\xfe\x00garbage"
DEEP = b"[" * 100_000
BOMB = zlib.compress(b"[" + b" " * 50_000_000)

HASHES: dict[str, tuple[dict[str, bytes], str]] = {
    "an instance": (job_hash(data=call(instance={"a": 1})), "instance"),
    "an unknown name": (job_hash(data=call("petard_worker.jobs.bad")), "not_allowed"),
    "os.system": (job_hash(data=call("os.system", args=["false"])), "not_allowed"),
    "a name that is a list": (job_hash(data=call([GOOD])), "not_allowed"),
    "no name": (job_hash(data=call(None)), "not_allowed"),
    "arguments that are no list": (job_hash(data=call(args="abc")), "malformed_field"),
    "keywords that are no object": (job_hash(data=call(kwargs=[1])), "malformed_field"),
    "a success callback": (job_hash(success_callback_name=b"os.abort"), "forbidden_field"),
    "a failure callback": (job_hash(failure_callback_name=b"os.abort"), "forbidden_field"),
    "a stopped callback": (job_hash(stopped_callback_name=b"os.abort"), "forbidden_field"),
    "a garbage callback": (job_hash(success_callback_name=GARBAGE), "forbidden_field"),
    "webhooks": (job_hash(webhooks=b'[{"url": "http://127.0.0.1:1/"}]'), "forbidden_field"),
    "retries": (job_hash(retries_left=b"1000000"), "forbidden_field"),
    "repeats": (job_hash(repeats_left=b"1000000"), "forbidden_field"),
    "a rate limit": (job_hash(rate_limit_key=b"k", rate_limit_concurrency=b"1"), "forbidden_field"),
    "a group that does not exist": (job_hash(group_id=b"nobody"), "forbidden_field"),
    "dependencies": (job_hash(dependency_ids=b'["a"]'), "forbidden_field"),
    "dependencies that are a number": (job_hash(dependency_ids=b"17"), "forbidden_field"),
    "no field that RQ needs": ({"colour": b"red"}, "malformed_field"),
    "empty data": (job_hash(data=b""), "malformed_field"),
    "garbage in data": (job_hash(data=GARBAGE), "not_json"),
    "garbage after a bracket": (job_hash(data=b"[" + GARBAGE), "malformed_field"),
    "too few elements": (job_hash(data=b'["a"]'), "malformed_field"),
    "half of the data": (job_hash(data=zlib.compress(call())[:20]), "malformed_field"),
    "a JSON object": (job_hash(data=b'{"a":1,"b":2,"c":3,"d":4}'), "not_json"),
    "a number of 9,000 digits": (job_hash(data=b"[" + b"9" * 9_000 + b",1,1,1]"), "malformed_field"),
    "deep nesting": (job_hash(data=DEEP), "malformed_field"),
    "a zip bomb": (job_hash(data=BOMB), "too_large"),
    "a zip bomb in a zip": (job_hash(data=zlib.compress(BOMB)), "not_json"),
    "garbage in created_at": (job_hash(created_at=GARBAGE), "malformed_field"),
    "no time in created_at": (job_hash(created_at=b"yesterday"), "malformed_field"),
    "garbage in timeout": (job_hash(timeout=GARBAGE), "malformed_field"),
    "a word in timeout": (job_hash(timeout=b"soon"), "malformed_field"),
    "an endless timeout": (job_hash(timeout=b"9" * 400), "malformed_field"),
    "no timeout": ({k: v for k, v in job_hash().items() if k != "timeout"}, "malformed_field"),
    "garbage in result_ttl": (job_hash(result_ttl=GARBAGE), "malformed_field"),
    "garbage in failure_ttl": (job_hash(failure_ttl=GARBAGE), "malformed_field"),
    "garbage in status": (job_hash(status=GARBAGE), "malformed_field"),
    "garbage in description": (job_hash(description=GARBAGE), "malformed_field"),
    "garbage in worker_name": (job_hash(worker_name=GARBAGE), "malformed_field"),
    "garbage in last_heartbeat": (job_hash(last_heartbeat=GARBAGE), "malformed_field"),
    "garbage in origin": (job_hash(origin=GARBAGE), "malformed_field"),
    "another queue's job": (job_hash(origin=b"default"), "foreign_queue"),
    "no origin": ({k: v for k, v in job_hash().items() if k != "origin"}, "foreign_queue"),
}

Store = Callable[[Redis, str], object]

OTHER_TYPES: dict[str, Store] = {
    "a string": lambda redis, key: redis.set(key, "x"),
    "a list": lambda redis, key: redis.rpush(key, "x"),
    "a sorted set": lambda redis, key: redis.zadd(key, {"x": 1}),
    "a stream": lambda redis, key: redis.xadd(key, {"x": "y"}),
}


def store_hash(fields: dict[str, bytes]) -> Store:
    return lambda redis, key: redis.hset(key, mapping=fields)


HOSTILE: dict[str, tuple[Store, str]] = {
    **{kind: (store_hash(fields), reason) for kind, (fields, reason) in HASHES.items()},
    **{f"{kind} for a hash": (store, "wrong_type") for kind, store in OTHER_TYPES.items()},
}
hostile_kinds = pytest.mark.parametrize(("store", "reason"), HOSTILE.values(), ids=HOSTILE.keys())


@hostile_kinds
def test_hostile_job_is_refused_and_the_job_behind_it_runs(
    redis: Redis, queue: JsonQueue, ran: list[str], store: Store, reason: str
) -> None:
    store(redis, "rq:job:evil")
    redis.rpush(QUEUE_KEY, "evil")
    enqueue_job(queue, GOOD, "good")

    logs = work_off(queue)

    assert ran == ["good"]
    refusals = [(entry["job"], entry["reason"]) for entry in logs if entry["event"] == "job_refused"]
    assert refusals == [("evil", reason)]
    assert not redis.exists("rq:job:evil", QUEUE_KEY, INTERMEDIATE)


@hostile_kinds
def test_maintenance_survives_hostile_job_in_the_registries(
    redis: Redis, queue: JsonQueue, ran: list[str], store: Store, reason: str
) -> None:
    store(redis, "rq:job:evil")
    redis.zadd(STARTED, {"evil:0123456789abcdef": 1})
    redis.zadd(f"rq:ready:{QUEUE}", {"evil": 1})
    redis.zadd(FAILED, {"evil": 1})
    redis.rpush(INTERMEDIATE, "evil")
    enqueue_job(queue, GOOD, "good")

    logs = work_off(queue)

    assert ran == ["good"]
    assert ("evil", reason) in [(entry["job"], entry["reason"]) for entry in logs if "reason" in entry]
    assert not [entry for entry in logs if entry["event"] == "maintenance_failed"]
    assert not redis.exists("rq:job:evil", STARTED, f"rq:ready:{QUEUE}", FAILED, INTERMEDIATE)


@pytest.mark.parametrize("serializer", ["json", "pickle"])
def test_plain_rq_job_naming_os_system_does_not_run(
    redis: Redis, queue: JsonQueue, ran: list[str], tmp_path: Path, serializer: str
) -> None:
    marker = tmp_path / "pwned"
    Queue(QUEUE, connection=redis, serializer=serializer).enqueue(
        "os.system", f"touch {marker}", job_id="evil"
    )
    enqueue_job(queue, GOOD, "good")

    logs = work_off(queue)

    assert ran == ["good"]
    assert not marker.exists()
    assert logs[0]["reason"] == {"json": "not_allowed", "pickle": "not_json"}[serializer]


@pytest.mark.parametrize("field", ["data", "meta", "result", "exc_info"])
@pytest.mark.parametrize("compress", [zlib.compress, bytes], ids=["compressed", "plain"])
def test_pickle_is_never_loaded(
    redis: Redis,
    queue: JsonQueue,
    ran: list[str],
    tmp_path: Path,
    field: str,
    compress: Callable[[bytes], bytes],
) -> None:
    marker = tmp_path / "pwned"
    redis.hset("rq:job:evil", mapping=job_hash(**{field: compress(pickle.dumps(Explosive(marker)))}))
    redis.rpush(QUEUE_KEY, "evil")
    redis.zadd(STARTED, {"evil:0123456789abcdef": 1})
    enqueue_job(queue, GOOD, "good")

    work_off(queue)

    assert "good" in ran
    assert not marker.exists()


@pytest.mark.parametrize("option", ["on_success", "webhooks", "retry", "depends_on", "rate_limit", "group"])
def test_plain_rq_job_with_more_than_a_call_is_refused(
    redis: Redis, queue: JsonQueue, ran: list[str], option: str
) -> None:
    plain = Queue(QUEUE, connection=redis, serializer=JSONSerializer)
    options = {
        "webhooks": [Webhook("http://127.0.0.1:1/", "finished")],
        "retry": Retry(3),
        "rate_limit": RateLimit("k", 1),
    }
    if option == "group":
        Group(redis, "g").enqueue_many(plain, [Queue.prepare_data(GOOD, args=("evil",), job_id="evil")])
    elif option == "depends_on":
        plain.enqueue(GOOD, "first", job_id="first")
        plain.enqueue(GOOD, "evil", job_id="evil", depends_on="first")
    elif option == "on_success":
        plain.enqueue(GOOD, "evil", job_id="evil")
        redis.hset("rq:job:evil", "success_callback_name", "os.abort")
    else:
        plain.enqueue(GOOD, "evil", job_id="evil", **{option: options[option]})
    enqueue_job(queue, GOOD, "good")

    logs = work_off(queue)

    assert "evil" not in ran
    assert "good" in ran
    assert ("evil", "forbidden_field") in [(entry.get("job"), entry.get("reason")) for entry in logs]


@pytest.mark.parametrize(
    "entry", [GARBAGE, b"", b"two words", b"a:b:c", b"../x", b"x" * 10_000, "ö".encode(), b"\n"], ids=repr
)
def test_malformed_id_is_refused_wherever_it_stands(
    redis: Redis, queue: JsonQueue, ran: list[str], entry: bytes
) -> None:
    redis.rpush(QUEUE_KEY, entry)
    redis.rpush(INTERMEDIATE, entry, entry)
    redis.zadd(STARTED, {entry: 1, entry + b"::": 9e12})
    redis.zadd(f"rq:ready:{QUEUE}", {entry: 1})
    redis.zadd(FAILED, {entry: 1})
    enqueue_job(queue, GOOD, "good")

    logs = work_off(queue)

    assert ran == ["good"]
    assert {entry["event"] for entry in logs} == {"job_refused"}
    assert not redis.exists(QUEUE_KEY, INTERMEDIATE, STARTED, f"rq:ready:{QUEUE}", FAILED)


def test_id_without_a_hash_is_refused(redis: Redis, queue: JsonQueue, ran: list[str]) -> None:
    redis.rpush(QUEUE_KEY, "gone", "gone")
    enqueue_job(queue, GOOD, "good")

    logs = work_off(queue)

    assert ran == ["good"]
    assert [(entry["job"], entry["reason"]) for entry in logs] == [("gone", "no_such_job")] * 2
    assert not redis.exists(INTERMEDIATE)


@pytest.mark.parametrize("store", OTHER_TYPES.values(), ids=OTHER_TYPES.keys())
@pytest.mark.parametrize(
    "key", ["rq:executions:evil", "rq:results:evil", "rq:job:evil:dependents", STARTED, FAILED, INTERMEDIATE]
)
def test_key_of_the_wrong_type_beside_a_job_does_not_end_the_worker(
    redis: Redis, queue: JsonQueue, ran: list[str], key: str, store: Store
) -> None:
    store(redis, key)
    enqueue_job(queue, GOOD, "evil", job_id="evil")
    enqueue_job(queue, GOOD, "good")

    work_off(queue)

    assert ran[-1] == "good"
    assert not redis.exists(QUEUE_KEY)
    assert redis.type(INTERMEDIATE) in {b"none", b"list"}
    assert redis.type(INTERMEDIATE) == b"none" or not redis.lrange(INTERMEDIATE, 0, -1)


def test_garbage_dependents_do_not_end_the_worker(redis: Redis, queue: JsonQueue, ran: list[str]) -> None:
    redis.hset("rq:job:child", mapping={"data": GARBAGE, "timeout": GARBAGE})
    enqueue_job(queue, GOOD, "parent", job_id="parent")
    redis.sadd("rq:job:parent:dependents", "child", GARBAGE)
    redis.hset("rq:job:dead", mapping=job_hash())
    redis.sadd("rq:job:dead:dependents", "child", GARBAGE)
    redis.zadd(STARTED, {"dead:0123456789abcdef": 1})
    enqueue_job(queue, GOOD, "good")

    work_off(queue)

    assert ran == ["parent", "good"]


@pytest.mark.parametrize("key", ["rq:groups", "rq:rate_limit:keys", f"rq:workers:{QUEUE}", "rq:workers"])
def test_garbage_in_other_registries_does_not_end_the_worker(
    redis: Redis, queue: JsonQueue, ran: list[str], key: str
) -> None:
    redis.sadd(key, GARBAGE)
    enqueue_job(queue, GOOD, "good")

    work_off(queue)

    assert ran == ["good"]


def test_error_message_that_is_no_unicode_does_not_end_the_worker(
    redis: Redis, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # RQ logs the message too, and pytest-xdist cannot send such text to its controller.
    monkeypatch.setattr(logging.getLogger("rq.worker"), "disabled", True)

    def refuse(name: str) -> None:
        raise LookupError(name)

    queue = open_queue(redis, {GOOD: ran.append, "refuse": refuse})
    redis.hset("rq:job:evil", mapping=job_hash(data=call("refuse", args=["\ud800"])))
    redis.rpush(QUEUE_KEY, "evil")
    enqueue_job(queue, GOOD, "good")

    logs = work_off(queue)

    assert ran == ["good"]
    assert "job_not_recorded" in [entry["event"] for entry in logs]


def test_job_whose_hash_vanishes_while_it_runs_does_not_end_the_worker(redis: Redis, ran: list[str]) -> None:
    queue = open_queue(redis, {GOOD: ran.append, "vanish": lambda: redis.delete("rq:job:evil")})
    enqueue_job(queue, "vanish", job_id="evil")
    enqueue_job(queue, GOOD, "good")

    work_off(queue)

    assert ran == ["good"]


def test_registry_spoiled_while_working_costs_one_job_and_is_repaired(redis: Redis, ran: list[str]) -> None:
    def spoil() -> None:
        redis.delete(STARTED)
        redis.set(STARTED, "x")

    queue = open_queue(redis, {GOOD: ran.append, "spoil": spoil})
    enqueue_job(queue, "spoil")
    enqueue_job(queue, GOOD, "dropped")
    enqueue_job(queue, GOOD, "good")

    logs = work_off(queue)

    assert ran == ["good"]
    assert [entry["event"] for entry in logs] == ["job_not_recorded", "registry_refused"]


def test_failing_job_is_kept_for_a_day_and_not_tried_again(redis: Redis, ran: list[str]) -> None:
    def fail() -> None:
        ran.append("tried")
        raise LookupError("no")

    queue = open_queue(redis, {GOOD: ran.append, "fail": fail})
    enqueue_job(queue, "fail", job_id="sad")
    enqueue_job(queue, GOOD, "good")

    work_off(queue)

    assert ran == ["tried", "good"]
    assert queue.failed_job_registry.get_job_ids(cleanup=False) == ["sad"]
    assert 0 < redis.ttl("rq:job:sad") <= FAILURE_TTL_S
    assert 0 < redis.ttl("rq:results:sad") <= FAILURE_TTL_S


def test_plain_rq_call_runs_under_the_limits_of_the_worker(redis: Redis) -> None:
    seen: list[tuple[object, ...]] = []

    def look(*args: object, **kwargs: object) -> str:
        job = Job.fetch("plain", connection=redis, serializer="json")
        seen.append((args, kwargs, job.get_status(refresh=False).value))
        return "a result"

    queue = open_queue(redis, {"look": look})
    Queue(QUEUE, connection=redis, serializer="json").enqueue("look", 1, b=2, job_timeout=1, job_id="plain")

    work_off(queue)

    assert seen == [((1,), {"b": 2}, "started")]
    assert not redis.keys("rq:results:*")
    assert not redis.keys("rq:job:*")


def test_enqueued_job_carries_its_limits_and_leaves_nothing_behind(
    redis: Redis, queue: JsonQueue, ran: list[str]
) -> None:
    enqueue_job(queue, GOOD, "chess-blitz", job_id="one")
    stored = redis.hgetall("rq:job:one")

    work_off(queue)

    assert ran == ["chess-blitz"]
    assert (stored[b"result_ttl"], stored[b"failure_ttl"]) == (b"0", str(FAILURE_TTL_S).encode())
    assert (stored[b"timeout"], stored[b"description"]) == (str(JOB_TIMEOUT_S).encode(), b"good chess-blitz")
    assert not [key for key in redis.keys("rq:*") if b"one" in key]


def test_job_that_has_run_is_deleted_without_the_questions_of_rq(
    redis: Redis, queue: JsonQueue, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Job, "delete", None)
    enqueue_job(queue, GOOD, "chess-blitz", job_id="one")

    work_off(queue)

    assert ran == ["chess-blitz"]
    assert not [key for key in redis.keys("rq:*") if b"one" in key]


@pytest.mark.parametrize("registry", [FailedJobRegistry, CanceledJobRegistry])
def test_job_that_was_taken_for_dead_and_has_run_leaves_nothing_behind(
    redis: Redis, ran: list[str], registry: type[BaseRegistry]
) -> None:
    def run(_pool: str) -> None:
        ran.append("run")
        redis.zadd(registry(queue.name, redis).key, {"one": time.time() + 1000})
        redis.xadd("rq:results:one", {"type": "2"})

    queue = open_queue(redis, {GOOD: run})
    enqueue_job(queue, GOOD, "chess-blitz", job_id="one")

    work_off(queue)

    assert ran == ["run"]
    assert not registry(queue.name, redis).get_job_ids(cleanup=False)
    assert not [key for key in redis.keys("rq:*") if b"one" in key]


def test_stuck_job_is_given_up_by_maintenance(redis: Redis, queue: JsonQueue, ran: list[str]) -> None:
    enqueue_job(queue, GOOD, "stuck", job_id="stuck")
    redis.lmove(QUEUE_KEY, INTERMEDIATE)
    redis.set(f"{INTERMEDIATE}:first_seen:stuck", time.time() - 120)

    work_off(queue)

    assert ran == []
    assert not redis.exists(INTERMEDIATE)
    assert queue.failed_job_registry.get_job_ids(cleanup=False) == ["stuck"]


def test_queue_of_the_wrong_type_is_an_exit_and_not_a_silent_end(redis: Redis, queue: JsonQueue) -> None:
    redis.set(QUEUE_KEY, "x")

    with pytest.raises(QueueUnusableError):
        PetardWorker(queue).work(burst=True)


def test_one_worker_may_work_burst_after_burst(redis: Redis, queue: JsonQueue, ran: list[str]) -> None:
    worker = PetardWorker(queue)

    for number in ("1", "2", "3"):
        enqueue_job(queue, GOOD, number)
        assert worker.work(burst=True) is True

    assert ran == ["1", "2", "3"]
    assert worker.work(burst=True) is False


def test_suspended_burst_is_a_proper_end(redis: Redis, queue: JsonQueue, ran: list[str]) -> None:
    redis.set("rq:suspended", 1)
    enqueue_job(queue, GOOD, "good")

    worked = PetardWorker(queue).work(burst=True)

    assert (worked, ran) == (False, [])


def test_worker_without_redis_does_not_start() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        queue = open_queue(connect_for_rq(f"redis://127.0.0.1:{unused.getsockname()[1]}/0"), {})

        with pytest.raises(RedisConnectionError):
            PetardWorker(queue)


def test_two_fleets_on_one_redis_never_take_each_others_jobs(redis: Redis, ran: list[str]) -> None:
    others: list[str] = []
    ours = open_queue(redis, {GOOD: ran.append}, "ours")
    theirs = open_queue(redis, {GOOD: others.append}, "theirs")
    enqueue_job(theirs, GOOD, "theirs")
    enqueue_job(ours, GOOD, "ours")
    redis.rpush(theirs.key, b"no job")

    worked = PetardWorker(ours).work(burst=True)

    assert (worked, ran, others) == (True, ["ours"], [])
    assert theirs.count == 2
    assert PetardWorker(theirs).work(burst=True)
    assert (ran, others) == (["ours"], ["theirs"])
    assert not redis.exists(theirs.key, theirs.intermediate_queue_key)


def test_job_of_another_fleet_is_refused(redis: Redis, queue: JsonQueue, ran: list[str]) -> None:
    enqueue_job(open_queue(redis, {}, "theirs"), GOOD, "theirs", job_id="stray")
    redis.rpush(QUEUE_KEY, "stray")

    logs = work_off(queue)

    assert ran == []
    assert [(entry["event"], entry["reason"]) for entry in logs] == [("job_refused", "foreign_queue")]


# --- stops and outages, with the worker in a process of its own -------------------------------------------

WORKER = """
import os, signal, sys, threading
import structlog
from petard_worker.rq_worker import PetardWorker, connect_for_rq, open_queue

structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
url = sys.argv[1]
stop = threading.Event()
own = connect_for_rq(url)

def count():
    own.incr("done")

def linger():
    own.set("lingering", 1)
    own.blpop("go", 4) or own.blpop("go", 4) or own.blpop("go", 4)
    own.set("lingered", 1)

def until_stopped():
    own.set("waiting", 1)
    if stop.wait(30):
        own.set("saw_stop", 1)

def kill(pid):
    os.kill(int(pid), signal.SIGKILL)

jobs = {"count": count, "linger": linger, "until_stopped": until_stopped, "kill": kill}
queue = open_queue(connect_for_rq(url), jobs)
PetardWorker(queue, stop).work()
print("ended", flush=True)
"""


class WorkerProcess:
    """A worker in a process of its own, with every warning an error."""

    def __init__(self, url: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WORKER, url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait_for_log(self, *words: str) -> None:
        assert self.process.stderr is not None
        while line := self.process.stderr.readline():
            if all(word in line for word in words):
                return
        raise AssertionError("the worker ended")

    def wait(self, seconds: float = 20) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, err


@pytest.fixture
def start_worker() -> Iterator[Callable[[str], WorkerProcess]]:
    started: list[WorkerProcess] = []

    def start(url: str) -> WorkerProcess:
        started.append(WorkerProcess(url))
        return started[-1]

    yield start
    for worker in started:
        with worker.process:  # closes its pipes
            worker.process.kill()


StartWorker = Callable[[str], WorkerProcess]


@pytest.mark.parametrize("trial", range(20))
def test_stop_under_load_exits_0_and_strands_nothing(
    redis: Redis, start_worker: StartWorker, trial: int
) -> None:
    queue = open_queue(redis, {})
    jobs = 1_000
    for _ in range(jobs):
        enqueue_job(queue, "count")
    worker = start_worker(URL)
    wait_until(lambda: int(redis.get("done") or 0) > 2 + 3 * trial)

    worker.signal((signal.SIGTERM, signal.SIGINT)[trial % 2])
    code, out, err = worker.wait()

    assert (code, out) == (0, "ended\n"), err
    assert not redis.exists(INTERMEDIATE, STARTED, FAILED)
    assert redis.llen(QUEUE_KEY) == jobs - int(redis.get("done") or 0) > 0
    assert not redis.smembers("rq:workers")


def test_idle_worker_stops_within_seconds(redis: Redis, start_worker: StartWorker) -> None:
    worker = start_worker(URL)
    wait_until(lambda: redis.smembers("rq:workers"))

    worker.signal(signal.SIGTERM)
    code, out, err = worker.wait(5)

    assert (code, out) == (0, "ended\n"), err


def test_signals_are_heard_before_the_worker_is_registered(
    redis: Redis, queue: JsonQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = PetardWorker(queue)
    heard: list[object] = []
    register = worker.register_birth
    monkeypatch.setattr(
        worker, "register_birth", lambda: (heard.append(signal.getsignal(signal.SIGTERM)), register())
    )

    worker.work(burst=True)

    assert heard == [worker.request_stop]


def test_suspended_worker_stops_within_seconds(redis: Redis, start_worker: StartWorker) -> None:
    redis.set("rq:suspended", 1)
    worker = start_worker(URL)
    wait_until(lambda: redis.smembers("rq:workers"))

    worker.signal(signal.SIGTERM)
    code, _, err = worker.wait(5)

    assert code == 0, err


def test_second_signal_does_not_cut_off_the_running_job(redis: Redis, start_worker: StartWorker) -> None:
    enqueue_job(open_queue(redis, {}), "linger")
    worker = start_worker(URL)
    wait_until(lambda: redis.exists("lingering"))

    worker.signal(signal.SIGTERM)
    worker.wait_for_log("stop_requested")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        worker.signal(number)
    redis.rpush("go", 1)
    code, out, err = worker.wait()

    assert (code, out) == (0, "ended\n"), err
    assert redis.exists("lingered")
    assert not redis.exists(INTERMEDIATE, STARTED, FAILED)


def test_running_job_sees_the_stop(redis: Redis, start_worker: StartWorker) -> None:
    enqueue_job(open_queue(redis, {}), "until_stopped")
    worker = start_worker(URL)
    wait_until(lambda: redis.exists("waiting"))

    worker.signal(signal.SIGTERM)
    code, _, err = worker.wait(10)

    assert code == 0, err
    assert redis.exists("saw_stop")


class OwnRedis:
    """A Redis that a test may kill; what it acknowledged is there again after a start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        options = f"--port {self.port} --bind 127.0.0.1 --appendonly yes --appendfsync always --save ''"
        self.process = subprocess.Popen(
            ["/usr/bin/redis-server", *options.replace("''", "").split(), "", "--dir", str(self.folder)],
            stdout=subprocess.DEVNULL,
        )
        self.connection = connect_for_rq(self.url)
        wait_until(self.answers)

    def answers(self) -> bool:
        try:
            return bool(self.connection.ping())
        except RedisConnectionError:
            return False

    def kill(self) -> None:
        self.process.kill()
        self.wait_for_death()

    def wait_for_death(self) -> None:
        self.process.wait(10)
        self.connection.close()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[OwnRedis]:
    server = OwnRedis(tmp_path)
    yield server
    server.kill()


def test_idle_worker_survives_a_lost_redis(own_redis: OwnRedis, start_worker: StartWorker) -> None:
    worker = start_worker(own_redis.url)
    wait_until(lambda: own_redis.connection.smembers("rq:workers"))

    own_redis.kill()
    worker.wait_for_log("redis_lost", "failures=10")  # longer than redis-py would try by itself
    own_redis.start()
    enqueue_job(open_queue(own_redis.connection, {}), "count")
    wait_until(lambda: own_redis.connection.get("done"))
    worker.signal(signal.SIGTERM)
    code, out, err = worker.wait()

    assert (code, out.splitlines()[-1]) == (0, "ended"), err


def test_worker_survives_a_redis_that_dies_under_its_job(
    own_redis: OwnRedis, start_worker: StartWorker
) -> None:
    queue = open_queue(own_redis.connection, {})
    enqueue_job(queue, "kill", str(own_redis.process.pid))
    enqueue_job(queue, "count")

    worker = start_worker(own_redis.url)
    own_redis.wait_for_death()
    own_redis.start()
    wait_until(lambda: own_redis.connection.get("done"))
    worker.signal(signal.SIGTERM)
    code, out, err = worker.wait()

    assert (code, out.splitlines()[-1]) == (0, "ended"), err
    assert not own_redis.connection.exists(INTERMEDIATE, STARTED, FAILED)


@pytest.mark.parametrize("fault", ["kill", "hang"])
def test_worker_stops_while_redis_is_lost(own_redis: OwnRedis, start_worker: StartWorker, fault: str) -> None:
    worker = start_worker(own_redis.url)
    wait_until(lambda: own_redis.connection.smembers("rq:workers"))
    if fault == "kill":
        own_redis.kill()
    else:
        own_redis.process.send_signal(signal.SIGSTOP)

    worker.signal(signal.SIGTERM)
    code, _, err = worker.wait(25)

    assert code == 0, err
