"""The dispatcher: one drain for every list that has events and nobody to answer for them."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, cast

import psycopg
import pytest
from redis import Redis
from rq.job import Job
from structlog.testing import capture_logs

from integration.arena import (
    counted,
    dead_letters,
    finished,
    games,
    ids_of,
    make_pool,
    open_workshop,
    push,
    run_drain,
)
from petard_schema import Keys
from petard_worker import dispatch
from petard_worker.bell import QUEUED_MS, WORKING_MS
from petard_worker.dispatch import LEASE_MS, MOST_POKES, MOST_POOLS, Dispatcher
from petard_worker.event_lists import readable
from petard_worker.jobs import Drain, Workshop
from petard_worker.postgres.connect import Connection
from petard_worker.redis_client import connect_redis
from petard_worker.rq_worker import JsonQueue, open_queue
from petard_worker.settings import Settings


class Commands(Protocol):
    environment: dict[str, str]

    def start(self, *arguments: str) -> subprocess.Popen[str]: ...

    def log_of(self, process: subprocess.Popen[str]) -> str: ...


@pytest.fixture
def queue(client: Redis) -> JsonQueue:
    return open_queue(client, {})


@pytest.fixture
def dispatcher(client: Redis, keys: Keys, queue: JsonQueue) -> Dispatcher:
    return Dispatcher(client, keys, queue, "ours")


def listen(dispatcher: Dispatcher) -> None:
    """Let the dispatcher subscribe, and wait until Redis has heard of it."""
    channel = dispatcher.keys.pushed()
    for _ in range(1000):
        dispatcher.wait_for_poke(0.01)
        if dict(dispatcher.redis.pubsub_numsub(channel)) == {channel.encode(): 1}:
            return
    raise AssertionError("Redis does not hear of the subscription")


def queued(queue: JsonQueue) -> list[tuple[str, str]]:
    """Return pool and id of every drain in the queue, and check that the job carries the id."""
    found = []
    for job_id in queue.get_job_ids():
        job = Job.fetch(job_id, queue.connection, "json")
        pool, drain_id = job.args
        assert drain_id == job_id
        found.append((pool, drain_id))
    return found


def run_queued(client: Redis, queue: JsonQueue, workshop: Workshop) -> int:
    """Run the drains in the queue, one after the other, as a worker does; return how many."""
    count = 0
    for pool, drain_id in queued(queue):
        client.lpop(queue.key)
        Drain(workshop, pool, drain_id).run()
        count += 1
    return count


@contextmanager
def runner(url: str, run: Callable[[str, str], None], stop: threading.Event) -> Iterator[None]:
    """Take drains from the queue and run them in a thread, as a worker does, until the stop."""

    def serve() -> None:
        with connect_redis(url) as client:
            queue = open_queue(client, {})
            while not stop.is_set():
                taken = client.blpop([queue.key], timeout=0.1)  # type: ignore[arg-type]
                if taken is not None:
                    job_id = cast("tuple[bytes, bytes]", taken)[1].decode()
                    pool, drain_id = Job.fetch(job_id, client, "json").args
                    run(pool, drain_id)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(20)


def test_a_list_with_events_gets_one_drain(
    client: Redis, keys: Keys, queue: JsonQueue, dispatcher: Dispatcher
) -> None:
    push(client, keys, games(10))

    rung = dispatcher.dispatch_once()

    assert rung == 1
    ((pool, drain_id),) = queued(queue)
    assert pool == "p"
    assert client.get(keys.bell("p")) == drain_id.encode()
    assert WORKING_MS < client.pttl(keys.bell("p")) <= QUEUED_MS


def test_a_held_bell_is_not_rung(client: Redis, keys: Keys, queue: JsonQueue, dispatcher: Dispatcher) -> None:
    push(client, keys, games(10))
    client.set(keys.bell("p"), "somebody", px=WORKING_MS)

    rung = dispatcher.dispatch_once()

    assert rung == 0
    assert queued(queue) == []
    assert client.pttl(keys.bell("p")) <= WORKING_MS, "a dead drain's bell must be left to expire"


def test_no_events_no_drain(dispatcher: Dispatcher) -> None:
    dispatcher.pools.add("p")

    assert dispatcher.dispatch_once() == 0


def test_a_drain_that_waits_in_the_queue_keeps_its_bell_for_as_long_as_it_waits(
    client: Redis, keys: Keys, queue: JsonQueue, dispatcher: Dispatcher
) -> None:
    push(client, keys, games(10))
    dispatcher.dispatch_once()

    for _ in range(3):  # each time the bell is about to expire
        client.pexpire(keys.bell("p"), 200)
        assert dispatcher.dispatch_once() == 0
        assert client.pttl(keys.bell("p")) > WORKING_MS

    assert len(queued(queue)) == 1


def test_a_bell_from_before_the_clock_was_put_back_is_cut_short(
    client: Redis, keys: Keys, dispatcher: Dispatcher
) -> None:
    push(client, keys, games(1))
    an_hour_too_long = 3_600_000 + WORKING_MS
    client.set(keys.bell("p"), "a dead drain", px=an_hour_too_long)

    dispatcher.dispatch_once()

    assert 0 < client.pttl(keys.bell("p")) <= QUEUED_MS


def test_a_lease_from_before_the_clock_was_put_back_is_cut_short(
    client: Redis, keys: Keys, dispatcher: Dispatcher
) -> None:
    an_hour_too_long = 3_600_000 + LEASE_MS
    client.set(keys.dispatcher(), "a dead dispatcher", px=an_hour_too_long)

    leading = dispatcher.lead()

    assert not leading
    assert 0 < client.pttl(keys.dispatcher()) <= LEASE_MS


def test_a_full_redis_gets_no_drain_to_queue_and_keeps_no_bell_of_a_queued_one(
    client: Redis, keys: Keys, queue: JsonQueue, dispatcher: Dispatcher
) -> None:
    """A queued drain could not be taken from a full Redis: renewing its bell would stop the pool for ever."""
    push(client, keys, games(10))
    dispatcher.dispatch_once()
    client.pexpire(keys.bell("p"), 200)

    dispatcher.avoid_queue()

    assert dispatcher.dispatch_once() == 0
    assert client.pttl(keys.bell("p")) <= 200
    client.delete(keys.bell("p"))
    assert dispatcher.dispatch_once() == 1
    assert [pool for pool, _ in dispatcher.unqueued] == ["p"]
    assert len(queued(queue)) == 1


@pytest.mark.usefixtures("pool")
def test_a_lost_bell_lets_a_second_drain_in_and_nothing_counts_twice(
    client: Redis,
    keys: Keys,
    queue: JsonQueue,
    dispatcher: Dispatcher,
    workshop: Workshop,
    owner: psycopg.Connection,
) -> None:
    push(client, keys, games(10))
    dispatcher.dispatch_once()
    client.delete(keys.bell("p"))
    dispatcher.dispatch_once()
    assert len(queued(queue)) == 2

    run_queued(client, queue, workshop)

    assert counted(owner) == ids_of(games(10))


@pytest.mark.usefixtures("pool")
def test_a_poke_makes_a_pool_known_at_once(
    client: Redis, keys: Keys, settings: Settings, queue: JsonQueue, dispatcher: Dispatcher
) -> None:
    listen(dispatcher)
    push(client, keys, games(1))
    client.publish(keys.pushed(), "p")

    dispatcher.wait_for_poke(5)

    assert dispatcher.ring() == 1


def test_a_poke_that_names_no_pool_is_ignored(client: Redis, keys: Keys, dispatcher: Dispatcher) -> None:
    listen(dispatcher)
    client.publish(keys.pushed(), b"\xff\x00")

    dispatcher.wait_for_poke(5)

    assert dispatcher.pools == set()


def test_a_flood_of_pokes_does_not_fill_the_memory(client: Redis, keys: Keys, dispatcher: Dispatcher) -> None:
    listen(dispatcher)
    pipe = client.pipeline(transaction=False)
    for number in range(MOST_POOLS + 10):
        pipe.publish(keys.pushed(), f"junk-{number}")
    pipe.execute()
    push(client, keys, games(1))

    waits = 0
    while len(dispatcher.pools) <= MOST_POOLS:
        before = len(dispatcher.pools)
        dispatcher.wait_for_poke(5)
        assert len(dispatcher.pools) - before <= MOST_POKES, "it must come back to its lease"
        waits += 1
        assert waits < 1000
    dispatcher.ring()
    remembered = len(dispatcher._gone_since)
    rung = dispatcher.dispatch_once()

    assert dispatcher.pools == {"p"}
    assert rung == 1
    assert remembered > MOST_POOLS
    assert not dispatcher._gone_since


@pytest.mark.parametrize("kind", ["a string", "a hash", "a set"])
def test_a_key_that_is_no_list_stops_nobody(
    client: Redis, keys: Keys, queue: JsonQueue, dispatcher: Dispatcher, kind: str
) -> None:
    odd = keys.events("odd")
    {
        "a string": lambda: client.set(odd, "x"),
        "a hash": lambda: client.hset(odd, "a", "b"),
        "a set": lambda: client.sadd(odd, "x"),
    }[kind]()
    dispatcher.pools.add("odd")
    push(client, keys, games(1))

    dispatcher.dispatch_once()

    assert [pool for pool, _ in queued(queue)] == ["p"]


def test_a_bell_of_the_wrong_type_stops_nobody(
    client: Redis, keys: Keys, queue: JsonQueue, dispatcher: Dispatcher
) -> None:
    client.rpush(keys.bell("a"), "not a bell")
    push(client, keys, games(1), "a")
    push(client, keys, games(1))

    dispatcher.dispatch_once()

    assert sorted(pool for pool, _ in queued(queue)) == ["a", "p"]


def test_events_of_an_unknown_pool_are_found_and_become_dead_letters(
    client: Redis,
    keys: Keys,
    queue: JsonQueue,
    dispatcher: Dispatcher,
    workshop: Workshop,
    owner: psycopg.Connection,
) -> None:
    push(client, keys, [b"anything"], "no such pool: 美")
    dispatcher.dispatch_once()

    run_queued(client, queue, workshop)

    assert dead_letters(owner, "no such pool: 美") == [(b"anything", "unknown_pool")]
    assert not client.keys(keys.events("*"))


@pytest.mark.parametrize(
    "name",
    [
        b"\xff\xfe",
        b"a\x00b",
        b"line\nbreak",
        b"",
        b" ",
        b"*?[a-z]",
        b"x" * 5000,
        b"\xed\xa0\x80",
        "\u202eevil".encode(),
        b"'\"\\",
    ],
)
def test_no_name_of_a_list_keeps_its_events_stuck(
    client: Redis,
    keys: Keys,
    queue: JsonQueue,
    dispatcher: Dispatcher,
    workshop: Workshop,
    owner: psycopg.Connection,
    name: bytes,
) -> None:
    client.rpush(keys.events("").encode() + name, b"stuck?")
    dispatcher.discover_all()
    dispatcher.ring()

    run_queued(client, queue, workshop)

    letters = owner.execute("SELECT pool, body, reason FROM petard.dead_letter").fetchall()
    assert letters == [(readable(name), b"stuck?", "unknown_pool")]
    assert readable(readable(name).encode()) == readable(name)
    assert not client.keys(keys.events("") + "*")


def test_an_unreadable_list_waits_for_the_one_whose_name_it_takes(
    client: Redis,
    keys: Keys,
    queue: JsonQueue,
    dispatcher: Dispatcher,
    workshop: Workshop,
    owner: psycopg.Connection,
) -> None:
    push(client, keys, [b"first"], readable(b"\xff"))
    client.rpush(keys.events("").encode() + b"\xff", b"second")

    for _ in range(2):
        dispatcher.discover_all()
        dispatcher.ring()
        run_queued(client, queue, workshop)

    assert [body for body, _ in dead_letters(owner, readable(b"\xff"))] == [b"first", b"second"]


def test_lists_under_another_prefix_are_left_alone(client: Redis, keys: Keys, dispatcher: Dispatcher) -> None:
    client.rpush(f"{keys.prefix}x:events:p", "x")
    client.rpush(f"x{keys.prefix}:events:p", "x")

    dispatcher.discover_all()

    assert dispatcher.pools == set()


@pytest.mark.usefixtures("pool")
def test_no_wake_up_is_lost_in_200_bursts_of_push_while_leaving(
    client: Redis,
    keys: Keys,
    redis_url: str,
    database_url: str,
    dispatcher: Dispatcher,
    owner: psycopg.Connection,
    wait_until: Callable[..., None],
) -> None:
    """Each burst comes the moment the one before has been applied, when its drain is about to leave.

    Every burst is rung for once and there is no sweep: a wake-up that got lost would stay lost.
    """
    stop = threading.Event()
    dispatcher.pools.add("p")
    seq = "SELECT seq FROM petard.pool"
    with connect_redis(redis_url) as own:
        workshop = open_workshop(database_url, own, keys)

        def run(pool: str, drain_id: str) -> None:
            Drain(workshop, pool, drain_id).run()

        with runner(redis_url, run, stop):
            for burst in range(200):
                push(client, keys, games(3, first=1 + 3 * burst))
                dispatcher.ring()
                wait_until(lambda: owner.execute(seq).fetchone() == (3 * burst + 3,), f"burst {burst}", 10)  # noqa: B023
        workshop.session.close()

    assert counted(owner) == ids_of(games(600))


def test_at_most_one_drain_per_pool_is_queued_or_running(
    connection: Connection,
    client: Redis,
    keys: Keys,
    redis_url: str,
    database_url: str,
    owner: psycopg.Connection,
    wait_until: Callable[..., None],
) -> None:
    """With two dispatchers that both believe they are the active one, and three that run drains."""
    pools = ["a", "b", "c"]
    for pool in pools:
        make_pool(connection, pool)
    working: Counter[str] = Counter()
    most: Counter[str] = Counter()
    longest_queue: list[int] = []
    guard = threading.Lock()
    stop = threading.Event()

    class Watched(Drain):
        """A drain that is seen at work."""

        def step(self) -> bool:
            with guard:
                working[self.pool] += 1
                most[self.pool] = max(most[self.pool], working[self.pool])
            found = super().step()
            with guard:
                working[self.pool] -= 1
            return found

    def keep_ringing(name: str) -> None:
        with connect_redis(redis_url) as own:
            ringer = Dispatcher(own, keys, open_queue(own, {}), name)
            ringer.pools.update(pools)
            while not stop.is_set():
                ringer.ring()
                longest_queue.append(ringer.queue.count)

    def drain_of(workshop: Workshop) -> Callable[[str, str], None]:
        def run(pool: str, drain_id: str) -> None:
            Watched(workshop, pool, drain_id).run()

        return run

    ringers = [threading.Thread(target=keep_ringing, args=(name,)) for name in ("one", "two")]
    clients = [connect_redis(redis_url) for _ in range(3)]
    # Slices so short that drains are passed on all the time.
    workshops = [
        open_workshop(database_url, own, keys, batch_size=5, slice_seconds=0.02, queue=open_queue(own, {}))
        for own in clients
    ]
    runners = [runner(redis_url, drain_of(workshop), stop) for workshop in workshops]
    with runners[0], runners[1], runners[2]:
        for ringer in ringers:
            ringer.start()
        for round_ in range(10):
            for pool in pools:
                data = [finished(30 * round_ + n, f"x{n}", f"y{n}", pool=pool) for n in range(30)]
                push(client, keys, data, pool)
        done = "SELECT min(seq), max(seq) FROM petard.pool"
        wait_until(lambda: owner.execute(done).fetchone() == (300, 300), "all events to be applied", 30)
    for ringer in ringers:
        ringer.join(5)
    for workshop, own in zip(workshops, clients, strict=True):
        workshop.session.close()
        own.close()

    assert most == {"a": 1, "b": 1, "c": 1}
    assert max(longest_queue) <= 3


def leader_of(client: Redis, keys: Keys) -> str:
    return cast("bytes", client.get(keys.dispatcher()) or b"").decode()


def start_two_workers(
    petard: Commands, client: Redis, keys: Keys, wait_until: Callable[..., None]
) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
    """Start two workers and return the one whose dispatcher is active, then the other."""
    workers = [petard.start("worker"), petard.start("worker")]
    wait_until(lambda: all("worker_started" in petard.log_of(worker) for worker in workers), "both workers")
    wait_until(lambda: leader_of(client, keys), "a dispatcher to be active")
    leader = leader_of(client, keys)
    first, second = sorted(workers, key=lambda worker: f'"worker": "{leader}"' not in petard.log_of(worker))
    return first, second


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize(
    "fate", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM], ids=["killed", "frozen", "stopped"]
)
def test_another_dispatcher_takes_over_within_two_seconds(
    petard: Commands,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    wait_until: Callable[..., None],
    fate: signal.Signals,
) -> None:
    active, _ = start_two_workers(petard, client, keys, wait_until)
    leader = leader_of(client, keys)

    os.kill(active.pid, fate)

    wait_until(lambda: leader_of(client, keys) not in {"", leader}, "another active dispatcher", 2)
    push(client, keys, games(5))
    wait_until(lambda: counted(owner) == ids_of(games(5)), "the events to be applied", 5)
    os.kill(active.pid, signal.SIGCONT)


def test_a_dispatcher_that_was_frozen_stands_by(client: Redis, keys: Keys, redis_url: str) -> None:
    frozen = Dispatcher(client, keys, open_queue(client, {}), "frozen")
    assert frozen.lead()
    client.set(keys.dispatcher(), "other")  # its lease ran out, and somebody took over

    leading = frozen.lead()
    frozen.resign()

    assert not leading
    assert leader_of(client, keys) == "other"


def test_a_dispatcher_that_wakes_up_to_its_stop_leaves_the_lease_of_another(
    client: Redis, keys: Keys
) -> None:
    frozen = Dispatcher(client, keys, open_queue(client, {}), "frozen")
    assert frozen.lead()
    client.set(keys.dispatcher(), "other")

    frozen.resign()

    assert leader_of(client, keys) == "other"


def test_a_dispatcher_waits_for_a_redis_that_refuses(
    client: Redis, keys: Keys, redis_url: str, wait_until: Callable[..., None]
) -> None:
    """An error of Redis interrupts one look and not the dispatcher."""
    stop = threading.Event()
    client.rpush(keys.dispatcher(), "not a lease")
    own = connect_redis(redis_url)
    thread = threading.Thread(target=Dispatcher(own, keys, open_queue(own, {}), "ours").run, args=(stop,))
    thread.start()
    push(client, keys, games(1))
    client.delete(keys.dispatcher())

    wait_until(lambda: client.exists(keys.bell("p")), "the bell to ring", 5)

    stop.set()
    thread.join(5)
    own.close()
    assert not client.exists(keys.dispatcher())


@pytest.mark.usefixtures("pool")
def test_a_drain_that_was_queued_twice_does_its_work_once(
    client: Redis,
    keys: Keys,
    queue: JsonQueue,
    dispatcher: Dispatcher,
    workshop: Workshop,
    owner: psycopg.Connection,
) -> None:
    """An enqueue that was repeated after a lost answer."""
    push(client, keys, games(5))
    dispatcher.dispatch_once()
    client.rpush(queue.key, queue.get_job_ids()[0])

    run_queued(client, queue, workshop)
    run_drain(workshop)

    assert counted(owner) == ids_of(games(5))


def test_a_pool_whose_list_is_gone_is_forgotten_after_a_while(
    client: Redis, keys: Keys, dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(client, keys, games(1))
    dispatcher.pools.add("gone")
    dispatcher.dispatch_once()
    assert dispatcher.pools == {"gone", "p"}, "it may soon have events again"

    monkeypatch.setattr(dispatch, "FORGET_SECONDS", 0.0)
    dispatcher.dispatch_once()

    assert dispatcher.pools == {"p"}


def test_a_list_that_stays_unreadable_is_logged_once(
    client: Redis, keys: Keys, dispatcher: Dispatcher
) -> None:
    push(client, keys, [b"first"], readable(b"\xff"))
    client.rpush(keys.events("").encode() + b"\xff", b"second")

    with capture_logs() as logs:
        for _ in range(5):
            dispatcher.discover_all()

    assert [entry["event"] for entry in logs] == ["list_unreadable"]


def test_a_worker_whose_dispatcher_fails_says_so_and_exits_1(petard: Commands) -> None:
    broken = (
        "from petard_worker.dispatch import Dispatcher; Dispatcher.discover = lambda self: 1 / 0;"
        "from petard_worker.cli import main; main()"
    )

    ended = subprocess.run(
        [sys.executable, "-c", broken, "worker"],
        env=petard.environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert ended.returncode == 1
    assert '"event": "dispatcher_failed"' in ended.stderr
    assert "ZeroDivisionError" in ended.stderr
