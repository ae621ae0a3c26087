from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError, NoPermissionError, ResponseError, TimeoutError  # noqa: A004

from petard_producer.file_lock import FileLock
from petard_producer.rpush import CHUNK
from petard_producer.send_spool import SpoolSender
from petard_producer.spool import Spool
from petard_producer.waker import Waker

Sent = list[tuple[str, bytes]]


class Lists:
    """Lists that take only so much at once, and nothing for some pools."""

    def __init__(self, most: int = CHUNK) -> None:
        self.most = most
        self.refused: set[str] = set()
        self.sent: Sent = []

    def append(self, elements_by_pool: Mapping[str, Sequence[bytes]]) -> Mapping[str, ResponseError]:
        if sum(map(len, elements_by_pool.values())) > self.most:
            raise TimeoutError("Timeout reading from socket")
        taken = elements_by_pool.keys() - self.refused
        self.sent += [
            (pool, element)
            for pool in elements_by_pool
            if pool in taken
            for element in elements_by_pool[pool]
        ]
        return {pool: NoPermissionError("no") for pool in elements_by_pool if pool in self.refused}


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    spool = Spool(tmp_path / "spool.db", prefix="petard", limit=1 << 20)
    yield spool
    spool.close()


@pytest.fixture
def lists() -> Lists:
    return Lists()


@pytest.fixture
def sender(spool: Spool, lists: Lists) -> Iterator[SpoolSender]:
    lock, waker = FileLock(spool.path, "sending"), Waker(spool.path)
    sender = SpoolSender(spool, lists, lock, waker)  # type: ignore[arg-type] - has the one method that is called
    yield sender
    sender.ask_to_stop()
    assert sender.ended(10)
    lock.close()
    waker.close()


def keep(spool: Spool, *events: tuple[str, bytes]) -> None:
    with spool.adding() as add:
        for pool, element in events:
            add({pool: [element]})


def test_line_that_is_too_slow_for_a_large_chunk_gets_smaller_ones(
    spool: Spool, lists: Lists, sender: SpoolSender, wait_until: Callable[..., None]
) -> None:
    events = [("a", str(number).encode()) for number in range(300)]
    keep(spool, *events)
    lists.most = 50

    sender.start()

    wait_until(lambda: len(lists.sent) == len(events), "everything to be sent", 60)
    assert lists.sent == events


def test_later_event_of_a_refused_pool_does_not_overtake(
    spool: Spool, lists: Lists, sender: SpoolSender, wait_until: Callable[..., None]
) -> None:
    lists.refused = {"a"}
    keep(spool, ("a", b"a1"), ("b", b"b1"))
    sender.send_once()
    keep(spool, ("a", b"a2"), ("b", b"b2"))
    while_refused = [sender.send_once(), sender.send_once()]

    lists.refused = set()

    wait_until(lambda: sender.send_once() or spool.held().events == 0, "the next attempt")
    assert while_refused == [True, False]
    assert lists.sent == [("b", b"b1"), ("b", b"b2"), ("a", b"a1"), ("a", b"a2")]


def test_what_was_confirmed_is_not_sent_again_when_it_could_not_be_removed(
    spool: Spool, lists: Lists, sender: SpoolSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(spool, ("a", b"a1"))
    with monkeypatch.context() as patch:
        patch.setattr(spool, "remove", lambda _: (_ for _ in ()).throw(ConnectionError))
        with pytest.raises(ConnectionError):
            sender.send_once()

    sender.send_once()

    assert lists.sent == [("a", b"a1")]
    assert spool.held().events == 0
