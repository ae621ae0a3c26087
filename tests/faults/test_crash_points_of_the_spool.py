"""Each step of the spool's I/O × each way in which it can end badly: what was acknowledged is sent in order.

Random kills hardly ever hit the microseconds that matter, so each of them is tried. The next process starts
from the files as they were, with connections that work.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis

from faults.life_of_a_spool import Died, End, Life, Steps, process, steps_to_redis, steps_to_sqlite
from petard_producer.send_spool import SpoolSender
from petard_producer.write_spool import SpoolWriter
from petard_schema import Keys

Try = Callable[[int | None, End], Steps]


def live(life: Life) -> None:
    """Push and send what exercises every path: alone, together, two pools, nothing to send, and a rest."""
    life.push({"a": [b"a1"], "b": [b"b1"]})
    life.send()
    life.push({"a": [b"a2", b"a3"]}, {"b": [b"b2"]}, {"a": [b"a4"]})
    life.push({"b": [b"b3"]})
    life.send()
    life.send()
    life.push({"a": [b"a5"]})


@pytest.fixture
def attempt(tmp_path: Path, redis_url: str, client: Redis, monkeypatch: pytest.MonkeyPatch) -> Try:
    """A function that lets a life end badly at a step, recovers, and checks what Redis has got."""

    def attempt(at: int | None, end: End) -> Steps:
        folder = tmp_path / f"{at}-{end.name}"
        folder.mkdir()
        steps, keys = Steps(folder, at, end), Keys(folder.name)
        lives: list[Life] = []
        with steps_to_redis(steps, redis_url) as stepped, monkeypatch.context() as patch:
            patch.setattr(sqlite3, "connect", steps_to_sqlite(steps))
            try:
                with process(folder, stepped, keys) as life:
                    lives.append(life)
                    live(life)
            except Died:
                pass
            stepped.connection_pool.disconnect()
        steps.bury()
        send_the_rest(steps, client, keys)
        for life in lives:
            check(life, client, keys, f"step {at}, {steps.names[at - 1] if at else ''}: {end.value}")
        assert lives or steps.dead
        return steps

    return attempt


def send_the_rest(steps: Steps, client: Redis, keys: Keys) -> None:
    with process(steps.remains, client, keys) as heir:
        while heir.sender.send_once():
            pass


def check(life: Life, client: Redis, keys: Keys, where: str) -> None:
    """Check that the first appearance of each event is in order and that nothing acknowledged is missing."""
    for pool in ("a", "b"):
        found = list(dict.fromkeys(client.lrange(keys.events(pool), 0, -1)))
        asked = [element for name, element in life.asked if name == pool]
        acknowledged = [element for name, element in life.acknowledged if name == pool]
        assert found == [element for element in asked if element in found], f"{where}: order of {pool}"
        assert set(acknowledged) <= set(found), f"{where}: lost of {pool}"


def test_life_without_a_fault_sends_everything_once(attempt: Try, client: Redis) -> None:
    steps = attempt(None, End.FAILS)

    keys = Keys("None-FAILS")
    assert client.lrange(keys.events("a"), 0, -1) == [b"a1", b"a2", b"a3", b"a4", b"a5"]
    assert client.lrange(keys.events("b"), 0, -1) == [b"b1", b"b2", b"b3"]
    assert steps.names.count("sqlite: COMMIT") == 7  # the tables, four times to write, two removals
    assert len(steps.names) > 50


@pytest.mark.timeout(600)
@pytest.mark.parametrize("end", End)
def test_every_step_may_end_badly(attempt: Try, end: End) -> None:
    total = len(attempt(None, end).names)

    for at in range(1, total + 1):
        steps = attempt(at, end)

        assert len(steps.names) >= at, "the steps of a life do not repeat"
        assert steps.dead == (end in {End.DIES_BEFORE, End.DIES_AFTER})


def removes_first(sender: SpoolSender) -> bool:
    """Send as one must not: mark, then send."""
    chunk = sender._spool.oldest(500)
    if not chunk:
        return False
    sender._spool.remove({pool: events[-1].place for pool, events in chunk.items()})
    sender._lists.append({pool: [event.element for event in events] for pool, events in chunk.items()})
    return True


def sends_newest_first(sender: SpoolSender) -> bool:
    """Send as one must not: an event before an older one was confirmed."""
    chunk = sender._spool.oldest(500)
    if not chunk:
        return False
    for pool, events in chunk.items():
        for event in reversed(events):
            sender._lists.append({pool: [event.element]})
    sender._spool.remove({pool: events[-1].place for pool, events in chunk.items()})
    return True


def keeps_in_memory_only(writer: SpoolWriter) -> bool:
    """Write as one must not: not at all."""
    for request in writer._take():
        request.settled.set()
    return True


@pytest.mark.parametrize(
    ("owner", "method", "broken", "found"),
    [
        (SpoolSender, "send_once", removes_first, "lost of"),
        (SpoolSender, "send_once", sends_newest_first, "order of"),
        (SpoolWriter, "write_once", keeps_in_memory_only, "lost of"),
    ],
)
def test_check_finds_what_is_broken_on_purpose(
    attempt: Try,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    method: str,
    broken: Callable[[object], bool],
    found: str,
) -> None:
    steps = len(attempt(None, End.FAILS).names)
    monkeypatch.setattr(owner, method, broken)

    def try_all() -> None:
        for at in [None, *range(1, steps + 1)]:
            attempt(at, End.DIES_BEFORE)

    with pytest.raises(AssertionError, match=found):
        try_all()
