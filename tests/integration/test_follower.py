import random
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest
import redis

from integration.dying_redis import LossyProxy, RedisServer
from petard_producer import (
    EntryUnreadable,
    EpochChanged,
    Follower,
    GapFound,
    Position,
    RatingChanged,
    SnapshotNeeded,
)
from petard_producer.follow import BATCH
from petard_schema import Cause, Change, Explanation, Keys, LedgerEntry, Standing

pytestmark = pytest.mark.timeout(60)

URL = "redis://127.0.0.1:6379/8"
POOL = "chess-blitz"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def change(epoch: int, seq: int, pool: str = POOL) -> RatingChanged:
    moved = Change(
        player="alice",
        player_seq=seq,
        before=Standing(rating=1500.0, rd=350.0, bomb=0, games=seq - 1),
        after=Standing(rating=1500.5 + seq, rd=290.25, bomb=0, games=seq),
        explanation=Explanation(expected=0.5, actual=1.0),
    )
    entry = LedgerEntry(
        pool=pool,
        epoch=epoch,
        seq=seq,
        cause=Cause(
            id=f"event-{seq}", source="/servers/test", type="petard.game.finished.v1", game=f"g-{seq}"
        ),
        outcome="rated",
        changes=(moved,),
    )
    return RatingChanged(id=f"{pool}/{epoch}-{seq}", source="/petard", time=NOON, subject=pool, data=entry)


class Stream:
    """What a publisher does to the stream of the pool."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self.client = client
        self.keys = keys
        self.name = keys.changes(POOL)

    def append(self, epoch: int, *seqs: int) -> None:
        for seq in seqs:
            self.client.xadd(self.name, {"event": change(epoch, seq).to_json()}, id=f"{epoch}-{seq}")

    def trim(self, length: int) -> None:
        self.client.xtrim(self.name, maxlen=length, approximate=False)

    def wipe(self) -> None:
        self.client.delete(self.name)


@pytest.fixture
def stream() -> Iterator[Stream]:
    with redis.Redis.from_url(URL) as client:
        stream = Stream(client, Keys(f"test-{uuid.uuid4().hex}"))
        yield stream
        stream.wipe()


@pytest.fixture
def follower(stream: Stream) -> Iterator[Follower]:
    with Follower.from_url(URL, pool=POOL, prefix=stream.keys.prefix) as follower:
        yield follower


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    yield server
    server.close()


def seqs(changes: Iterator[RatingChanged], count: int) -> list[int]:
    return [change.data.seq for change in islice(changes, count)]


def test_changes_come_as_they_were_published(stream, follower):
    stream.append(1, 1, 2)

    changes = list(islice(follower.follow(), 2))

    assert changes == [change(1, 1), change(1, 2)]


def test_changes_come_in_order_over_many_batches(stream, follower):
    stream.append(1, *range(1, 2 * BATCH + 8))

    assert seqs(follower.follow(), 2 * BATCH + 7) == list(range(1, 2 * BATCH + 8))


def test_following_starts_after_any_position(stream, follower):
    stream.append(1, *range(1, 10))

    assert seqs(follower.follow(after=Position(1, 4)), 5) == [5, 6, 7, 8, 9]


def test_following_starts_after_the_oldest_entry_but_one(stream, follower):
    stream.append(1, *range(1, 10))
    stream.trim(5)

    assert seqs(follower.follow(after=Position(1, 4)), 5) == [5, 6, 7, 8, 9]


def test_following_from_now_on_leaves_the_past_out(stream, follower):
    stream.append(1, 1, 2, 3)
    changes = follower.follow(after=follower.newest())
    stream.append(1, 4)

    assert seqs(changes, 1) == [4]


def test_stream_without_entries_has_no_newest(follower):
    assert follower.newest() is None


def test_change_that_is_published_while_we_wait_arrives(stream, follower):
    changes = follower.follow()
    waiting = threading.Thread(target=stream.append, args=(1, 1))

    waiting.start()

    assert seqs(changes, 1) == [1]
    waiting.join()


def test_stream_that_was_trimmed_before_we_came_is_a_gap(stream, follower):
    stream.append(1, *range(1, 101))
    stream.trim(10)

    with pytest.raises(GapFound) as gap:
        next(follower.follow(after=Position(1, 41)))

    assert (gap.value.expected, gap.value.got) == (Position(1, 42), Position(1, 91))
    assert isinstance(gap.value, SnapshotNeeded)


def test_stream_that_is_trimmed_while_we_are_away_is_a_gap(stream, follower):
    stream.append(1, 1, 2, 3)
    changes = follower.follow()
    assert seqs(changes, 3) == [1, 2, 3]
    stream.append(1, *range(4, 11))
    stream.trim(2)

    with pytest.raises(GapFound) as gap:
        next(changes)

    assert (gap.value.expected, gap.value.got) == (Position(1, 4), Position(1, 9))


def test_hole_is_a_gap_after_the_entries_before_it(stream, follower):
    stream.append(1, 1, 2, 4)
    changes = follower.follow()

    assert seqs(changes, 2) == [1, 2]
    with pytest.raises(GapFound, match="expected entry 1-3, the stream goes on with 1-4"):
        next(changes)


def test_beginning_that_was_trimmed_away_is_a_gap(stream, follower):
    stream.append(3, 7, 8)

    with pytest.raises(GapFound, match="expected entry 3-1, the stream goes on with 3-7"):
        next(follower.follow())


def test_rise_of_the_epoch_is_told_after_the_last_entry_of_the_old_one(stream, follower):
    stream.append(1, 1, 2)
    stream.append(2, 3)
    changes = follower.follow()

    assert seqs(changes, 2) == [1, 2]
    with pytest.raises(EpochChanged) as raised:
        next(changes)

    assert (raised.value.old, raised.value.new) == (Position(1, 2), Position(2, 3))
    assert isinstance(raised.value, SnapshotNeeded)


def test_following_goes_on_in_the_new_epoch_after_a_snapshot(stream, follower):
    stream.append(1, 1, 2)
    stream.append(2, 2, 3, 4)

    assert seqs(follower.follow(after=Position(2, 3)), 1) == [4]


def test_wiped_stream_is_waited_for_and_nothing_comes_twice(stream, follower):
    stream.append(1, *range(1, 6))
    changes = follower.follow()
    assert seqs(changes, 5) == [1, 2, 3, 4, 5]
    stream.wipe()
    refill = threading.Thread(target=stream.append, args=(1, *range(1, 8)))

    refill.start()

    assert seqs(changes, 2) == [6, 7]
    refill.join()


def test_refill_that_starts_too_late_is_a_gap(stream, follower):
    stream.append(1, *range(1, 6))
    changes = follower.follow()
    assert seqs(changes, 5) == [1, 2, 3, 4, 5]
    stream.wipe()
    stream.append(1, 8, 9)

    with pytest.raises(GapFound, match="expected entry 1-6, the stream goes on with 1-8"):
        next(changes)


def test_stream_behind_our_position_is_waited_for(stream, follower):
    stream.append(1, *range(1, 40))
    refill = threading.Thread(target=stream.append, args=(1, *range(40, 44)))
    changes = follower.follow(after=Position(1, 41))

    refill.start()

    assert seqs(changes, 2) == [42, 43]
    refill.join()


@pytest.mark.parametrize("seed", range(5))
def test_stream_that_is_wiped_at_random_is_followed_without_gap_or_repeat(stream, follower, seed):
    chance = random.Random(seed)

    def publish() -> None:
        for seq in range(1, 301):
            if chance.random() < 0.1:
                stream.wipe()
                stream.append(1, *range(1, seq))
            stream.append(1, seq)

    publisher = threading.Thread(target=publish)
    publisher.start()

    assert seqs(follower.follow(), 300) == list(range(1, 301))
    publisher.join()


def test_killed_redis_is_waited_for(own_server):
    stream = Stream(own_server.client, Keys())
    stream.append(1, 1, 2)
    with Follower.from_url(own_server.url, pool=POOL) as follower:
        changes = follower.follow()
        assert seqs(changes, 2) == [1, 2]
        own_server.kill()

        def come_back() -> None:
            own_server.start()
            stream.append(1, 3)

        comeback = threading.Thread(target=come_back)
        comeback.start()

        assert seqs(changes, 1) == [3]
        comeback.join()


def test_redis_that_comes_back_empty_is_waited_for_until_it_is_refilled(own_server):
    stream = Stream(own_server.client, Keys())
    stream.append(1, 1, 2, 3)
    with Follower.from_url(own_server.url, pool=POOL) as follower:
        changes = follower.follow()
        assert seqs(changes, 3) == [1, 2, 3]
        own_server.kill()
        own_server.lose_everything()

        def come_back() -> None:
            own_server.start()
            assert stream.client.exists(stream.name) == 0
            stream.append(1, 1, 2, 3, 4)

        comeback = threading.Thread(target=come_back)
        comeback.start()

        assert seqs(changes, 1) == [4]
        comeback.join()


def test_lost_reply_neither_skips_nor_repeats(stream):
    stream.append(1, *range(1, 4))
    with (
        LossyProxy(("127.0.0.1", 6379)) as proxy,
        Follower.from_url(
            f"redis://127.0.0.1:{proxy.port}/8", pool=POOL, prefix=stream.keys.prefix
        ) as follower,
    ):
        changes = follower.follow()
        assert seqs(changes, 3) == [1, 2, 3]
        stream.append(1, *range(4, 9))
        proxy.lose_next_reply()

        assert seqs(changes, 5) == [4, 5, 6, 7, 8]
        assert proxy.lost.is_set()


def test_lost_connection_is_logged_once_and_so_is_its_return(stream, caplog):
    caplog.set_level("INFO", logger="petard_producer")
    with (
        LossyProxy(("127.0.0.1", 6379)) as proxy,
        Follower.from_url(
            f"redis://127.0.0.1:{proxy.port}/8", pool=POOL, prefix=stream.keys.prefix
        ) as follower,
    ):
        stream.append(1, 1)
        changes = follower.follow()
        next(changes)
        stream.append(1, 2)
        proxy.lose_next_reply()
        next(changes)

    assert [record.getMessage().split()[0] for record in caplog.records] == ["redis_lost", "redis_found"]


def test_refused_login_is_raised(own_server):
    url = f"redis://nobody:wrong@127.0.0.1:{own_server.port}/0"

    with Follower.from_url(url, pool=POOL) as follower, pytest.raises(redis.AuthenticationError):
        next(follower.follow())


def test_user_who_may_read_the_stream_and_nothing_else_follows_it(own_server):
    stream = Stream(own_server.client, Keys())
    stream.append(1, 1)
    own_server.client.execute_command(
        *("ACL", "SETUSER", "board", "on", ">secret", "resetkeys"),
        *("%R~petard:changes:*", "-@all", "+xread", "+xrevrange"),
    )
    url = f"redis://board:secret@127.0.0.1:{own_server.port}/0"

    with Follower.from_url(url, pool=POOL) as follower:
        assert follower.newest() == Position(1, 1)
        assert seqs(follower.follow(), 1) == [1]

    assert own_server.client.acl_log() == []


def test_stop_ends_a_waiting_iteration_within_two_seconds(stream, follower):
    stream.append(1, 1)
    first_seen = threading.Event()
    seen: list[int] = []

    def follow() -> None:
        for changed in follower.follow():
            seen.append(changed.data.seq)
            first_seen.set()

    waiting = threading.Thread(target=follow)
    waiting.start()
    assert first_seen.wait(10)
    began = time.monotonic()

    follower.stop()
    waiting.join(10)

    assert not waiting.is_alive()
    assert time.monotonic() - began < 2
    assert seen == [1]


def test_stop_ends_an_iteration_that_waits_for_a_dead_redis():
    with Follower.from_url("redis://127.0.0.1:1/0", pool=POOL) as follower:
        waiting = threading.Thread(target=lambda: list(follower.follow()))
        waiting.start()
        began = time.monotonic()

        follower.stop()
        waiting.join(10)

        assert not waiting.is_alive()
        assert time.monotonic() - began < 2


def test_stop_ends_the_iteration_before_the_next_entry(stream, follower):
    stream.append(1, 1, 2, 3)
    changes = follower.follow()
    assert seqs(changes, 1) == [1]

    follower.stop()

    assert list(changes) == []
    assert list(follower.follow()) == []


@pytest.mark.parametrize(
    ("entry_id", "fields", "detail"),
    [
        ("1-1", {"event": b"{"}, "EOF"),
        ("1-1", {"event": change(1, 1).to_json()[:-40]}, "EOF"),
        ("1-1", {"event": b"{}"}, "id: Field required"),
        ("1-1", {"other": b"x"}, "no field 'event'"),
        ("1-1", {"event": change(1, 2).to_json()}, "it says that it is 1-2 of chess-blitz"),
        ("1-1", {"event": change(2, 1).to_json()}, "it says that it is 2-1 of chess-blitz"),
        ("1-1", {"event": change(1, 1, pool="race").to_json()}, "it says that it is 1-1 of race"),
        ("0-1", {"event": change(1, 1).to_json()}, "no position"),
        ("1732968000000-0", {"event": b"rubbish"}, "expected value"),
    ],
)
def test_entry_that_is_no_change_of_its_place_is_unreadable(stream, follower, entry_id, fields, detail):
    stream.client.xadd(stream.name, fields, id=entry_id)

    with pytest.raises(EntryUnreadable) as broken:
        next(follower.follow())

    assert (broken.value.stream, broken.value.entry) == (stream.name, entry_id)
    assert detail in broken.value.detail


def test_fields_of_a_later_version_are_ignored(stream, follower):
    text = change(1, 1).to_json().replace(b'"outcome":', b'"new":{"a":1},"outcome":')
    stream.client.xadd(stream.name, {"event": text}, id="1-1")

    assert list(islice(follower.follow(), 1)) == [change(1, 1)]


def test_pool_that_cannot_exist_is_refused_at_once():
    with pytest.raises(ValueError, match="a pool is"):
        Follower.from_url(URL, pool="Chess Blitz")


def test_position_reads_what_it_prints():
    assert Position.parse("1-41") == Position(epoch=1, seq=41)
    assert str(Position.parse("12-0")) == "12-0"


def test_positions_are_ordered_by_epoch_and_then_by_seq():
    assert sorted([Position(2, 1), Position(1, 10), Position(1, 9)]) == [
        Position(1, 9),
        Position(1, 10),
        Position(2, 1),
    ]


def test_position_of_a_change_is_its_place_in_the_ledger():
    assert Position.of(change(3, 14)) == Position(3, 14)


@pytest.mark.parametrize(
    "text", ["", "1", "1-", "-1", "1-41\n", "a-b", "1--4", "01-4", "0-1", "1-٣", "1-41-2"]
)
def test_text_that_is_no_position_is_refused(text):
    with pytest.raises(ValueError, match="no position"):
        Position.parse(text)
