"""A producer with a spool, against Redis as it is on good and on bad days."""

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import pytest
import redis
from redis import Redis

from integration.dying_redis import LossyProxy, RedisServer
from petard_producer import (
    EventRefused,
    GameFinished,
    Producer,
    SpoolBusy,
    Spooled,
    SpoolFull,
    SpoolUnusable,
    duel,
)
from petard_producer.file_lock import FileLock
from petard_producer.push import CHUNK
from petard_schema import FinishedGame, Keys, parse_event

SOURCE = "/servers/test"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
Open = Callable[..., Producer]
WaitUntil = Callable[..., None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spool.db"


@pytest.fixture
def open_producer(redis_url: str, keys: Keys, path: Path) -> Iterator[Open]:
    """A function that opens a producer with the test's spool; closed quickly at the end."""
    opened: list[Producer] = []

    def open_producer(url: str = redis_url, **options: object) -> Producer:
        arguments = {"source": SOURCE, "prefix": keys.prefix, "spool": path, "block_at_most": 10.0} | options
        opened.append(Producer.from_url(url, **arguments))
        return opened[-1]

    yield open_producer
    for producer in opened:
        producer.close(timeout=0)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(folder)
    yield server
    server.close()


def game(number: int, pool: str = "chess-blitz", source: str = SOURCE) -> GameFinished:
    data = FinishedGame(pool=pool, game=f"g-{number}", sides=duel(winner="alice", loser="bob"))
    return GameFinished(id=f"event-{number}", source=source, time=NOON, data=data)


def texts(first: int, last: int, pool: str = "chess-blitz") -> list[bytes]:
    return [game(number, pool).to_json() for number in range(first, last)]


def on_list(client: Redis, keys: Keys, pool: str = "chess-blitz") -> list[bytes]:
    return client.lrange(keys.events(pool), 0, -1)


def without_repeats(found: list[bytes]) -> list[bytes]:
    return list(dict.fromkeys(found))


def test_events_arrive_byte_for_byte_and_leave_the_spool(
    client: Redis, keys: Keys, open_producer: Open
) -> None:
    text = game(1).to_json().replace(b'"rated":true', b'"rated" : true, "unknown": "kept"')
    producer = open_producer()

    producer.push_json(text)
    event = producer.finished(pool="chess-blitz", game="g-2", sides=duel(winner="alice", loser="bob"))
    count = producer.push_many([game(3), game(4, pool="race")])

    assert producer.flush(10)
    assert on_list(client, keys) == [text, event.to_json(), game(3).to_json()]
    assert on_list(client, keys, "race") == [game(4, pool="race").to_json()]
    assert count == 2
    assert producer.spooled() == Spooled()


def test_what_a_worker_would_refuse_never_reaches_the_spool(open_producer: Open) -> None:
    producer = open_producer()

    with pytest.raises(EventRefused):
        producer.push_many_json([b"{"])

    assert producer.spooled().events == 0


def test_order_is_kept_across_an_outage(own_server: RedisServer, keys: Keys, open_producer: Open) -> None:
    producer = open_producer(own_server.url)
    producer.push_many_json(texts(0, 700))
    own_server.kill()
    producer.push_many_json(texts(700, 1_900))
    for text in texts(1_900, 1_910):
        producer.push_json(text)
    waiting = producer.spooled()
    flushed = producer.flush(0.1)

    own_server.start()

    producer.push_many_json(texts(1_910, 2_000))
    assert producer.flush(20)
    assert without_repeats(on_list(own_server.client, keys)) == texts(0, 2_000)
    assert waiting.events >= 1_210
    assert not flushed


def test_outage_is_seen_and_logged_once(
    own_server: RedisServer,
    open_producer: Open,
    wait_until: WaitUntil,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "petard_producer")
    producer = open_producer(own_server.url)
    own_server.kill()
    producer.push(game(1))
    wait_until(lambda: producer.spooled().last_error, "the sender to notice")
    time_of_trouble = producer.spooled()

    own_server.start()

    assert producer.flush(20)
    wait_until(lambda: producer.spooled().last_error is None, "the sender to have recovered")
    assert time_of_trouble.events == 1
    assert time_of_trouble.bytes == len(game(1).to_json())
    assert 0 <= time_of_trouble.oldest_age_s < 60
    assert "ConnectionError" in time_of_trouble.last_error
    events = [record.getMessage().split()[0] for record in caplog.records]
    assert events == ["spool_sending_interrupted", "spool_sending_resumed"]


def test_next_process_sends_what_the_last_one_left(
    client: Redis, keys: Keys, own_server: RedisServer, open_producer: Open
) -> None:
    own_server.kill()
    first = open_producer(own_server.url)
    first.push_many_json(texts(0, 10))
    began = time.monotonic()
    first.close(timeout=0.2)
    took = time.monotonic() - began

    second = open_producer()

    assert second.flush(10)
    assert on_list(client, keys) == texts(0, 10)
    assert took < 5


def test_closing_sends_what_waits(client: Redis, keys: Keys, open_producer: Open) -> None:
    producer = open_producer()
    producer.push_many_json(texts(0, 1_200))

    producer.close(timeout=20)

    assert on_list(client, keys) == texts(0, 1_200)


def test_closed_producer_says_so(open_producer: Open) -> None:
    producer = open_producer()
    producer.close()
    producer.close()

    with pytest.raises(SpoolUnusable, match="was closed"):
        producer.push(game(1))
    with pytest.raises(SpoolUnusable, match="was closed"):
        producer.spooled()


def test_full_spool_refuses_clearly_and_takes_events_again_after_the_outage(
    own_server: RedisServer, keys: Keys, open_producer: Open, path: Path
) -> None:
    size = len(game(100).to_json())
    producer = open_producer(own_server.url, spool_limit=size * 3 + 10)
    own_server.kill()
    for number in (100, 101, 102):
        producer.push(game(number))

    with pytest.raises(SpoolFull, match="raise spool_limit") as full:
        producer.push(game(103))

    own_server.start()
    assert producer.flush(20)
    producer.push(game(103))
    assert producer.flush(20)
    assert without_repeats(on_list(own_server.client, keys)) == texts(100, 104)
    assert (full.value.limit, full.value.held, full.value.path) == (size * 3 + 10, size * 3, path)


def test_push_never_waits_longer_than_its_bound(
    client: Redis, keys: Keys, open_producer: Open, path: Path
) -> None:
    producer = open_producer(block_at_most=0.3)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()

    with pytest.raises(SpoolBusy, match="was not kept"):
        producer.push(game(1))

    took = time.monotonic() - began
    other.execute("ROLLBACK")
    other.close()
    with suppress(SpoolBusy):  # 0.3 s can be short on a busy machine
        producer.push(game(2))
    assert producer.flush(10)
    assert 0.3 <= took < 1.3
    assert game(1).to_json() not in on_list(client, keys)


def test_frozen_redis_holds_no_push_up(own_server: RedisServer, keys: Keys, open_producer: Open) -> None:
    producer = open_producer(own_server.url)
    producer.push(game(0))
    assert producer.flush(10)
    own_server.process.send_signal(signal.SIGSTOP)
    began = time.monotonic()

    for text in texts(1, 6):
        producer.push_json(text)

    took = time.monotonic() - began
    own_server.process.send_signal(signal.SIGCONT)
    assert producer.flush(20)
    assert without_repeats(on_list(own_server.client, keys)) == texts(0, 6)
    assert took < 2, "Redis answers to nothing for 2 s: the sender waits for that, not the caller"


def test_lost_reply_sends_the_same_bytes_again(
    client: Redis, redis_url: str, keys: Keys, open_producer: Open
) -> None:
    address, _, number = redis_url.removeprefix("redis://").partition("/")
    host, _, port = address.partition(":")
    with LossyProxy((host, int(port))) as proxy:
        producer = open_producer(f"redis://127.0.0.1:{proxy.port}/{number}")
        producer.push(game(1))
        assert producer.flush(10)
        proxy.lose_next_reply()

        producer.push(game(2))

        assert producer.flush(10)
        assert proxy.lost.is_set()
        producer.close()
    assert on_list(client, keys) == texts(1, 2) + texts(2, 3) * 2


def test_pool_that_redis_refuses_holds_up_no_other_and_goes_on_in_order(
    own_server: RedisServer,
    open_producer: Open,
    wait_until: WaitUntil,
    caplog: pytest.LogCaptureFixture,
) -> None:
    allow = "ACL", "SETUSER", "game-server", "on", ">secret", "resetkeys", "%W~petard:events:open*", "-@all"
    own_server.client.execute_command(*allow, "+rpush")
    url = f"redis://game-server:secret@127.0.0.1:{own_server.port}/0"
    producer = open_producer(url, prefix="petard")
    producer.push_many([game(1, "closed"), game(2, "open-1"), game(3, "closed")])
    wait_until(lambda: producer.spooled().refused, "the refusal")
    producer.push_many([game(4, "closed"), game(5, "open-2"), game(6, "open-1")])
    wait_until(lambda: producer.spooled().events == 3, "the other pools to be sent")
    refused = producer.spooled()
    flushed = producer.flush(0.1)

    own_server.client.execute_command("ACL", "SETUSER", "game-server", "%W~petard:events:closed")

    producer.push(game(7, "closed"))
    assert producer.flush(30)
    keys = Keys()
    closed = [game(number, "closed").to_json() for number in (1, 3, 4, 7)]
    assert on_list(own_server.client, keys, "closed") == closed
    assert on_list(own_server.client, keys, "open-1") == [game(n, "open-1").to_json() for n in (2, 6)]
    assert on_list(own_server.client, keys, "open-2") == [game(5, "open-2").to_json()]
    assert not flushed
    assert list(refused.refused) == ["closed"]
    assert "NoPermissionError" in refused.refused["closed"]
    assert refused.last_error == refused.refused["closed"]
    assert producer.spooled().refused == {}
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1
    assert "spool_pool_refused" in lines[0]
    assert "pool=closed" in lines[0]


def test_list_that_is_none_and_a_full_redis_are_waited_for(
    own_server: RedisServer, keys: Keys, open_producer: Open, wait_until: WaitUntil
) -> None:
    producer = open_producer(own_server.url)
    own_server.client.set(keys.events("chess-blitz"), "a string")
    producer.push(game(1))
    wait_until(lambda: "WRONGTYPE" in (producer.spooled().last_error or ""), "the wrong type to be told")
    own_server.client.config_set("maxmemory", "1")
    own_server.client.delete(keys.events("chess-blitz"))
    producer.push(game(2))
    producer.push(game(3, "race"))
    wait_until(lambda: len(producer.spooled().refused) == 2, "the full server to be told")

    own_server.client.config_set("maxmemory", "0")

    assert producer.flush(30)
    assert on_list(own_server.client, keys) == texts(1, 3)
    assert on_list(own_server.client, keys, "race") == [game(3, "race").to_json()]


def test_refused_login_keeps_the_events(
    own_server: RedisServer, keys: Keys, open_producer: Open, wait_until: WaitUntil
) -> None:
    producer = open_producer(f"redis://late:secret@127.0.0.1:{own_server.port}/0")
    producer.push(game(1))
    wait_until(lambda: producer.spooled().last_error, "the refusal")
    refused = producer.spooled().last_error

    own_server.client.execute_command("ACL", "SETUSER", "late", "on", ">secret", "~*", "+@all", "&*")

    assert producer.flush(30)
    assert on_list(own_server.client, keys) == texts(1, 2)
    assert "AuthenticationError" in refused


def test_user_who_may_rpush_and_nothing_else_is_enough(own_server: RedisServer, open_producer: Open) -> None:
    allow = "ACL", "SETUSER", "game-server", "on", ">secret", "resetkeys", "%W~petard:events:*", "-@all"
    own_server.client.execute_command(*allow, "+rpush")
    producer = open_producer(f"redis://game-server:secret@127.0.0.1:{own_server.port}/0", prefix="petard")

    for number in range(3):
        producer.push(game(number))
        assert producer.flush(10)

    assert on_list(own_server.client, Keys()) == texts(0, 3)
    assert [(entry["object"], entry["count"]) for entry in own_server.client.acl_log()] == [("publish", 1)]


def test_producer_in_the_way_of_another_program_says_so(redis_url: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("My notes, which are not a database. " * 300)

    for path, words in (
        (tmp_path / "notes.txt", "no SQLite database"),
        (tmp_path / "a" / "b", "cannot"),
    ):
        with pytest.raises(SpoolUnusable, match=words):
            Producer.from_url(redis_url, source=SOURCE, spool=path)

    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("option", [{"spool_limit": 0}, {"block_at_most": 0}])
def test_bounds_must_be_positive(redis_url: str, path: Path, option: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        Producer.from_url(redis_url, source=SOURCE, spool=path, **option)


def test_without_a_spool_a_dead_redis_is_an_exception_within_seconds(own_server: RedisServer) -> None:
    own_server.kill()
    with Producer.from_url(own_server.url, source=SOURCE) as producer:
        began = time.monotonic()

        with pytest.raises(redis.ConnectionError):
            producer.push(game(1))

        assert time.monotonic() - began < 6
        assert producer.flush(0)
        assert producer.spooled() == Spooled()


def test_without_a_spool_a_frozen_redis_is_an_exception_within_its_bound(own_server: RedisServer) -> None:
    with Producer.from_url(own_server.url, source=SOURCE) as producer:
        producer.push(game(1))
        own_server.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()

        with pytest.raises(redis.TimeoutError):
            producer.push(game(2))

        took = time.monotonic() - began
        own_server.process.send_signal(signal.SIGCONT)
    assert 5 < took < 20


def test_threads_may_share_a_producer(client: Redis, keys: Keys, open_producer: Open) -> None:
    producer = open_producer()

    def push(thread: int) -> None:
        for number in range(50):
            producer.push(game(number, source=f"/threads/{thread}"))

    threads = [threading.Thread(target=push, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert producer.flush(20)
    assert_each_source_in_order(on_list(client, keys), sources=6, events=50)


def assert_each_source_in_order(found: list[bytes], sources: int, events: int) -> None:
    assert len(found) == sources * events
    by_source = sorted(
        ((event.source, event.id) for event in map(parse_event, found)), key=lambda pair: pair[0]
    )
    groups = {
        source: [event_id for _, event_id in group] for source, group in groupby(by_source, lambda p: p[0])
    }
    assert len(groups) == sources
    for ids in groups.values():
        assert ids == [f"event-{number}" for number in range(events)]


GAME_SERVER = """
import sys
from datetime import UTC, datetime
from petard_producer import FinishedGame, GameFinished, Producer, duel

url, prefix, spool, source, count, linger = sys.argv[1:]
with Producer.from_url(url, source=source, prefix=prefix, spool=spool, block_at_most=30) as producer:
    for number in range(int(count)):
        data = FinishedGame(pool="chess-blitz", game=f"g-{number}", sides=duel(winner="alice", loser="bob"))
        time = datetime(2026, 11, 30, tzinfo=UTC)
        producer.push(GameFinished(id=f"event-{number}", source=source, time=time, data=data))
        print(number, flush=True)
    if linger == "linger":
        sys.stdin.read()
"""


def game_server(
    url: str, keys: Keys, path: Path, source: str, count: int, linger: str = ""
) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", GAME_SERVER, url, keys.prefix, str(path), source, str(count), linger]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


def test_processes_may_share_a_spool(
    client: Redis, redis_url: str, keys: Keys, path: Path, open_producer: Open
) -> None:
    servers = [game_server(redis_url, keys, path, f"/servers/{number}", 100) for number in range(3)]
    for server in servers:
        server.communicate(timeout=90)

    assert [server.returncode for server in servers] == [0, 0, 0]
    assert open_producer().flush(10)
    assert_each_source_in_order(on_list(client, keys), sources=3, events=100)


def test_what_another_process_keeps_is_sent_at_once_and_its_death_hands_the_sending_over(
    client: Redis, redis_url: str, keys: Keys, path: Path, open_producer: Open, wait_until: WaitUntil
) -> None:
    other = game_server(redis_url, keys, path, "/servers/other", 1, linger="linger")
    assert other.stdout is not None
    assert other.stdout.readline() == "0\n"
    wait_until(lambda: len(on_list(client, keys)) == 1, "the other process to send")
    producer = open_producer()
    took: list[float] = []

    for number in range(1, 8):  # the other one sends them: it has the lock
        began = time.monotonic()
        producer.push(game(number))
        assert producer.flush(10)
        took.append(time.monotonic() - began)
    other.kill()
    other.communicate()
    producer.push(game(8))

    assert producer.flush(10)
    assert on_list(client, keys)[1:] == texts(1, 9)
    # Not found by the look twice a second, which comes just after the one before was sent.
    assert min(took[1:]) < 0.3


FORK = """
import os, sys
from datetime import UTC, datetime
from petard_producer import FinishedGame, GameFinished, Producer, duel

url, prefix, spool = sys.argv[1:]
def game(name):
    data = FinishedGame(pool="chess-blitz", game=name, sides=duel(winner="alice", loser="bob"))
    return GameFinished(id=name, source="/s", time=datetime(2026, 11, 30, tzinfo=UTC), data=data)

with Producer.from_url(url, source="/s", prefix=prefix, spool=spool, block_at_most=30) as producer:
    for number in range(20):
        producer.push(game(f"parent-{number}-before"))
        child = os.fork()
        if child == 0:
            inherited = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
            assert not {spool, spool + "-wal", spool + "-shm"} & set(inherited)
            producer.push(game(f"child-{number}"))
            os._exit(0 if producer.spooled().events >= 0 else 1)
        producer.push(game(f"parent-{number}-after"))
        assert os.waitpid(child, 0)[1] == 0
    last = os.fork()
    if last == 0:
        producer.push(game("last-child"))
        sys.exit(0)  # runs every `finally` and `with` of its parent, too
    assert os.waitpid(last, 0)[1] == 0
    producer.push(game("parent-last"))
    assert producer.flush(30)
"""


def test_forked_process_may_go_on_with_the_producer(
    client: Redis, redis_url: str, keys: Keys, path: Path, open_producer: Open
) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK, redis_url, keys.prefix, str(path)]

    subprocess.run(command, check=True, timeout=100)

    assert open_producer().flush(10)
    found = [parse_event(text).id for text in on_list(client, keys)]
    expected = [
        f"{who.format(n)}" for n in range(20) for who in ("parent-{}-before", "parent-{}-after", "child-{}")
    ]
    assert sorted(set(found)) == sorted([*expected, "last-child", "parent-last"])
    parents = [event_id for event_id in dict.fromkeys(found) if event_id.startswith("parent")]
    assert parents == [e for e in expected if e.startswith("parent")] + ["parent-last"]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


ORPHAN = """
import os, signal, sys, time
from petard_producer import Producer

producer = Producer.from_url(sys.argv[1], source="/s", prefix=sys.argv[2], spool=sys.argv[3])
assert producer.flush(30)
child = os.fork()
if child == 0:
    time.sleep(120)
    os._exit(0)
print(child, flush=True)
sys.stdin.read()
"""


def test_forked_child_that_outlives_its_parent_does_not_hold_up_the_sending(
    client: Redis, redis_url: str, keys: Keys, path: Path, open_producer: Open, wait_until: WaitUntil
) -> None:
    command = [sys.executable, "-W", "ignore", "-c", ORPHAN, redis_url, keys.prefix, str(path)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        lock = FileLock(path, "sending")
        wait_until(lambda: not lock.take() or lock.release(), "the parent to have the lock")
        lock.close()
        parent.kill()
        parent.wait()
        producer = open_producer()

        producer.push(game(1))

        assert producer.flush(10)
        assert on_list(client, keys) == texts(1, 2)
    finally:
        os.kill(child, signal.SIGKILL)
        parent.communicate()


def test_fork_while_other_threads_push_neither_hangs_nor_loses(
    client: Redis, redis_url: str, keys: Keys, path: Path, open_producer: Open
) -> None:
    program = FORK.replace(
        "    for number in range(20):\n        producer.push",
        """    import threading
    def push(thread):
        for number in range(40):
            producer.push(game(f"thread-{thread}-{number}"))
    threads = [threading.Thread(target=push, args=(thread,)) for thread in range(3)]
    for thread in threads: thread.start()
    for number in range(20):
        producer.push""",
    ).replace("    last = os.fork()", "    for thread in threads: thread.join()\n    last = os.fork()")
    command = [sys.executable, "-W", "ignore", "-c", program, redis_url, keys.prefix, str(path)]

    subprocess.run(command, check=True, timeout=100)

    assert open_producer().flush(10)
    found = list(dict.fromkeys(parse_event(text).id for text in on_list(client, keys)))
    assert len(found) == 20 * 3 + 2 + 3 * 40
    for thread in range(3):
        mine = [event_id for event_id in found if event_id.startswith(f"thread-{thread}-")]
        assert mine == [f"thread-{thread}-{number}" for number in range(40)]


def test_idle_sender_costs_next_to_nothing(open_producer: Open) -> None:
    open_producer()
    before = time.process_time()

    threading.Event().wait(1.0)

    assert time.process_time() - before < 0.05


def test_a_call_of_many_is_kept_by_chunks(own_server: RedisServer, open_producer: Open) -> None:
    size = len(game(1_000).to_json())
    own_server.kill()
    producer = open_producer(own_server.url, spool_limit=size * (CHUNK + 10))

    with pytest.raises(SpoolFull):
        producer.push_many_json(texts(1_000, 1_000 + CHUNK + 20))

    assert producer.spooled().events == CHUNK
