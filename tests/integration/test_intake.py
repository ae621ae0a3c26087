"""Rule 4 of the pipeline: only what was committed leaves the list, whoever else was at work."""

import threading

import pytest
from redis import Redis

from petard_schema import Keys
from petard_worker.intake import Intake
from petard_worker.redis_client import connect_redis

X, A, B = b"x", b"a", b"b"


@pytest.fixture
def intake(client: Redis, keys: Keys) -> Intake:
    return Intake(client, keys, "p")


def fill(intake: Intake, *events: bytes) -> None:
    intake.redis.delete(intake.keys.events("p"))
    if events:
        intake.redis.rpush(intake.keys.events("p"), *events)


def content(intake: Intake) -> list[bytes]:
    return intake.peek(1000)


def test_peeking_takes_nothing_away(intake: Intake) -> None:
    fill(intake, A, B)

    assert intake.peek(1) == [A]
    assert intake.peek(5) == [A, B]
    assert intake.waiting() == 2


def test_the_batch_leaves_and_what_came_behind_it_stays(intake: Intake) -> None:
    fill(intake, A, B, X)

    assert intake.trim([A, B])

    assert content(intake) == [X]


@pytest.mark.parametrize(
    ("now", "batch"),
    [
        ([X, B, X], [X, A, X]),
        ([X, A], [X, A, X]),
        ([], [A]),
        ([B, A], [A, B]),
        ([A + B], [A, B]),
        ([A, B], [A + B]),
        ([A, A, B], [A, B]),
        ([b"", A], [A]),
    ],
)
def test_another_head_is_left_alone(intake: Intake, now: list[bytes], batch: list[bytes]) -> None:
    """First and last element may be the same: events repeat."""
    fill(intake, *now)

    assert not intake.trim(batch)

    assert content(intake) == now


def test_trimming_twice_takes_a_repeat_only_if_it_is_one(intake: Intake) -> None:
    """Sent again after a lost answer: what it removes then are repeats of what was committed."""
    fill(intake, A, A, B)

    assert intake.trim([A])
    assert intake.trim([A])
    assert not intake.trim([A])

    assert content(intake) == [B]


def test_a_wiped_list_is_nobodys(intake: Intake) -> None:
    fill(intake, A, B)
    batch = intake.peek(2)
    intake.redis.flushdb()

    assert not intake.trim(batch)

    assert content(intake) == []


def test_bytes_are_bytes(intake: Intake) -> None:
    odd = [b"\x00", b"\xff\xfe", b"", b"x" * 100_000, "美".encode(), b"\r\n"]
    fill(intake, *odd, A)

    assert intake.peek(len(odd)) == odd
    assert intake.trim(odd)

    assert content(intake) == [A]


def test_the_largest_batch_can_be_trimmed(intake: Intake) -> None:
    events = [b"%d" % number for number in range(5001)]
    fill(intake, *events)

    assert intake.trim(intake.peek(5000))

    assert content(intake) == [b"5000"]


def test_nothing_is_lost_between_many_trimmers_and_a_producer(
    redis_url: str, keys: Keys, client: Redis
) -> None:
    """Every event is seen by the one whose trim removed it."""
    taken: list[list[bytes]] = [[], [], []]
    pushed = [b"%d" % (number % 7) for number in range(3000)]
    done = threading.Event()

    def take(mine: list[bytes]) -> None:
        with connect_redis(redis_url) as own:
            intake = Intake(own, keys, "p")
            while not done.is_set() or intake.waiting():
                batch = intake.peek(5)
                if batch and intake.trim(batch):
                    mine.extend(batch)

    threads = [threading.Thread(target=take, args=(mine,)) for mine in taken]
    for thread in threads:
        thread.start()
    for start in range(0, len(pushed), 10):
        client.rpush(keys.events("p"), *pushed[start : start + 10])
    done.set()
    for thread in threads:
        thread.join(30)

    assert sorted(raw for mine in taken for raw in mine) == sorted(pushed)


def test_a_batch_is_bounded_by_bytes_too(intake: Intake) -> None:
    large = [bytes([number]) * 6_000_000 for number in range(5)]
    fill(intake, *large)

    assert intake.peek(100) == large[:2]
    assert intake.peek(100, skip=4) == large[4:]


def test_one_event_is_taken_however_large(intake: Intake) -> None:
    fill(intake, b"x" * 20_000_000, A)

    assert [len(event) for event in intake.peek(100)] == [20_000_000]
