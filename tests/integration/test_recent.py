"""What was trimmed stays as a copy for a while: an event is in the list or in a copy, never in neither."""

import threading
from collections.abc import Iterator

import pytest
from redis import Redis

from integration.dying_redis import RedisServer
from petard_schema import Keys
from petard_worker.intake import Intake
from petard_worker.recent import (
    Copy,
    RecentLimits,
    copied_pools,
    drop_copies,
    find_window,
    read_copies,
    redis_now,
)
from petard_worker.redis_client import connect_redis

A, B, C = b"a", b"b", b"c"
ODD = [b"\x00", b"\xff\xfe", b"", b"x" * 100_000, "美".encode(), b"\r\n", b"1 2 3 4 5 6"]
HOUR_MS = 3_600_000


@pytest.fixture
def intake(client: Redis, keys: Keys) -> Intake:
    return Intake(client, keys, "p")


def trim(intake: Intake, *batch: bytes) -> None:
    """Have the events come and go."""
    intake.redis.rpush(intake.keys.events(intake.pool), *batch)
    assert intake.trim(batch)


def copies(intake: Intake) -> list[Copy]:
    window = find_window(intake.redis, intake.keys, intake.pool)
    return [] if window is None else list(read_copies(intake.redis, intake.keys, intake.pool, window))


def copied(intake: Intake) -> list[list[bytes]]:
    return [copy.events for copy in copies(intake)]


def waiting(intake: Intake) -> list[bytes]:
    return intake.peek(10_000)


def limited(client: Redis, keys: Keys, **limits: int) -> Intake:
    return Intake(client, keys, "p", recent=RecentLimits(**limits))


def make_older(intake: Intake, ms: int, batches: int) -> None:
    """Move the oldest copies into the past, as if the others had come so much later."""
    key = intake.keys.recent(intake.pool)
    elements = intake.redis.lrange(key, 0, -1)
    for copy in copies(intake)[:batches]:
        at, after, *rest = elements[copy.label.place].split()
        label = b" ".join([b"%d" % (int(at) - ms), b"%d" % (int(after) - ms), *rest])
        intake.redis.lset(key, copy.label.place, label)
        intake.redis.lset(key, copy.label.end - 1, label)


def test_batches_are_copied_in_order_as_they_were(intake: Intake) -> None:
    trim(intake, A, B)
    trim(intake, *ODD)
    trim(intake, A)

    assert copied(intake) == [[A, B], ODD, [A]]
    assert waiting(intake) == []


def test_a_refused_trim_copies_nothing(intake: Intake) -> None:
    intake.redis.rpush(intake.keys.events("p"), A, C)

    assert not intake.trim([A, B])

    assert copied(intake) == []
    assert not intake.redis.exists(intake.keys.recent("p"), intake.keys.recent_since())


def test_the_largest_batch_is_copied(intake: Intake) -> None:
    events = [b"%d" % number for number in range(5_000)]

    trim(intake, *events)

    assert copied(intake) == [events]


def test_a_large_copy_behind_small_ones_is_read_whole(intake: Intake) -> None:
    large = [b"%d" % number for number in range(3_000)]
    trim(intake, A)
    trim(intake, *large)
    trim(intake, B)

    assert copied(intake) == [[A], large, [B]]


def test_a_pool_has_its_own_copies(client: Redis, keys: Keys, intake: Intake) -> None:
    other = Intake(client, keys, "q")
    trim(intake, A)
    trim(other, B)

    assert copied(other) == [[B]]
    assert copied_pools(client, keys) == {"p", "q"}


def test_nothing_is_copied_when_nothing_is_to_be_kept(client: Redis, keys: Keys, intake: Intake) -> None:
    trim(intake, A)

    trim(limited(client, keys, seconds=0), B)

    # Not even what was there: with a hole in it nobody could say from when on it is complete.
    assert find_window(client, keys, "p") is None
    assert not client.exists(keys.recent("p"), keys.recent_since())


def test_copies_that_are_too_old_go(intake: Intake) -> None:
    for event in (A, B, C):
        trim(intake, event)
    make_older(intake, HOUR_MS + 1, batches=2)

    trim(intake, b"d")

    assert copied(intake) == [[C], [b"d"]]


def test_copies_that_are_too_many_bytes_go_oldest_first(client: Redis, keys: Keys) -> None:
    intake = limited(client, keys, megabytes=1)
    for number in range(12):
        trim(intake, bytes([number]) * 200_000)

    assert [events[0][0] for events in copied(intake)] == [7, 8, 9, 10, 11]
    window = find_window(client, keys, "p")
    assert window is not None
    assert 1_000_000 <= window.size <= 1024 * 1024


def test_a_batch_too_large_for_the_limit_leaves_no_copy_and_says_so(client: Redis, keys: Keys) -> None:
    intake = limited(client, keys, megabytes=1)
    trim(intake, A)
    before = redis_now(client)

    trim(intake, b"x" * 1_100_000)

    assert copied(intake) == []
    window = find_window(client, keys, "p")
    assert window is None or window.complete_from >= before


def test_many_old_copies_go_a_few_at_a_time(intake: Intake) -> None:
    for number in range(100):
        trim(intake, b"%d" % number)
    make_older(intake, HOUR_MS + 1, batches=100)

    trim(intake, A)

    assert len(copied(intake)) == 101 - 16
    for _ in range(6):
        trim(intake, A)
    assert copied(intake) == [[A]] * 7


def test_copies_of_a_quiet_pool_expire(client: Redis, keys: Keys) -> None:
    trim(limited(client, keys, seconds=100), A)

    assert 90_000 < client.pttl(keys.recent("p")) <= 100_000
    assert client.pttl(keys.recent_since()) == -1


def test_copies_are_complete_from_the_batch_before_the_oldest(intake: Intake) -> None:
    for event in (A, B, C):
        trim(intake, event)
    make_older(intake, HOUR_MS + 1_000, batches=1)
    lost = copies(intake)[0].label

    trim(intake, A)

    assert copied(intake) == [[B], [C], [A]]
    window = find_window(intake.redis, intake.keys, "p")
    assert window is not None
    # B remembers when A was trimmed by what it was told then.
    assert lost.at + HOUR_MS + 1_000 == window.complete_from == copies(intake)[0].label.after


def test_a_new_redis_knows_that_it_knows_nothing(client: Redis, keys: Keys, intake: Intake) -> None:
    assert find_window(client, keys, "p") is None

    before = redis_now(client)
    trim(intake, A)

    window = find_window(client, keys, "p")
    assert window is not None
    assert before <= window.complete_from <= redis_now(client)


def test_a_pool_that_was_quiet_is_complete_since_copies_are_made(client: Redis, keys: Keys) -> None:
    """Its copies have expired; those of another pool, or its first ones, say nothing of it."""
    intake = limited(client, keys, seconds=3_600)
    trim(intake, A)
    long_ago = redis_now(client) - 10 * HOUR_MS
    client.set(keys.recent_since(), f"{long_ago} {HOUR_MS}")
    client.delete(keys.recent("p"))

    quiet = find_window(client, keys, "p")
    trim(intake, B)
    busy_again = find_window(client, keys, "p")

    assert quiet is not None
    assert busy_again is not None
    for window in (quiet, busy_again):
        assert abs(redis_now(client) - HOUR_MS - window.complete_from) < 10_000


def test_a_longer_time_to_keep_is_not_taken_for_one_that_was_kept(client: Redis, keys: Keys) -> None:
    trim(limited(client, keys, seconds=10), A)
    client.set(keys.recent_since(), f"{redis_now(client) - HOUR_MS} 10000")
    client.delete(keys.recent("p"))
    before = redis_now(client)

    trim(limited(client, keys, seconds=3_600), B)

    window = find_window(client, keys, "p")
    assert window is not None
    assert window.complete_from >= before


@pytest.mark.parametrize("kind", ["string", "foreign list"])
def test_a_foreign_key_in_the_way_is_replaced(client: Redis, keys: Keys, intake: Intake, kind: str) -> None:
    if kind == "string":
        client.set(keys.recent("p"), "mine")
    else:
        client.rpush(keys.recent("p"), "mine")

    trim(intake, A)
    trim(intake, B)

    assert copied(intake) == [[A], [B]]


def test_a_reader_misses_nothing_that_is_not_dropped(redis_url: str, client: Redis, keys: Keys) -> None:
    """While others trim, and with that drop, copies are read: each comes once, in order, none is torn."""
    intake = limited(client, keys, megabytes=1)
    for number in range(300):
        trim(intake, *(b"%d-%d" % (number, part) + bytes(1_000) for part in range(5)))
    done = threading.Event()

    def go_on_trimming() -> None:
        with connect_redis(redis_url) as own:
            mine = limited(own, keys, megabytes=1)
            number = 300
            while not done.is_set():
                trim(mine, *(b"%d-%d" % (number, part) + bytes(1_000) for part in range(5)))
                number += 1

    thread = threading.Thread(target=go_on_trimming)
    thread.start()
    try:
        for _ in range(10):
            found = [[event.rstrip(b"\0") for event in events] for events in copied(intake)]
            numbers = [int(events[0].partition(b"-")[0]) for events in found]
            assert found == [[b"%d-%d" % (number, part) for part in range(5)] for number in numbers]
            assert numbers == sorted(set(numbers))
            assert numbers
    finally:
        done.set()
        thread.join()


def test_copies_of_all_pools_can_be_dropped(client: Redis, keys: Keys, intake: Intake) -> None:
    trim(intake, A)
    trim(Intake(client, keys, "q"), A)
    client.set("somebody:recent:p", "else's")

    assert drop_copies(client, keys) == 2

    assert find_window(client, keys, "p") is None
    assert drop_copies(client, keys) == 0
    assert client.delete("somebody:recent:p") == 1


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.close()


def test_copies_give_way_when_redis_is_nearly_full_and_come_back(server: RedisServer, keys: Keys) -> None:
    client = server.client
    intake = Intake(client, keys, "p")
    trim(intake, b"x" * 3_000_000)
    used = int(client.info("memory")["used_memory"])
    client.config_set("maxmemory", used + 150_000)  # not full, but by more than nine tenths

    trim(intake, A)

    assert find_window(client, keys, "p") is None
    trim(intake, B)  # there is room again
    assert copied(intake) == [[B]]


def test_a_trim_succeeds_on_a_full_redis(server: RedisServer, keys: Keys) -> None:
    client = server.client
    intake = Intake(client, keys, "p")
    trim(intake, A)
    client.rpush(keys.events("p"), B, C)
    client.config_set("maxmemory", 1)

    assert intake.trim([B])
    assert intake.trim([C])

    assert waiting(intake) == []
    assert not client.exists(keys.recent("p"), keys.recent_since())


def test_who_may_not_ask_for_the_memory_gets_no_copies(server: RedisServer, keys: Keys) -> None:
    """They might fill it, and nobody would know."""
    server.client.acl_setuser("plain", enabled=True, nopass=True, keys="*", commands=["+@all", "-info"])
    with connect_redis(server.url.replace("//", "//plain:x@")) as client:
        intake = Intake(client, keys, "p")

        trim(intake, A)

        assert waiting(intake) == []
        assert not client.exists(keys.recent("p"), keys.recent_since())


def test_the_log_says_once_that_copies_gave_way_and_once_that_they_are_back(
    server: RedisServer, keys: Keys, capsys: pytest.CaptureFixture[str]
) -> None:
    intake = Intake(server.client, keys, "p")
    for most in (0, 1, 1, 0, 0):
        server.client.config_set("maxmemory", 0)
        server.client.rpush(keys.events("p"), A)
        server.client.config_set("maxmemory", most)
        assert intake.trim([A])

    said = capsys.readouterr().out
    assert (said.count("recent_gave_way"), said.count("recent_kept_again")) == (1, 1)
