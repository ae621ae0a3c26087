import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from petard_producer import new_event_id
from petard_producer.event_ids import CROCKFORD, RANDOM_BITS, crockford, successor


def milliseconds_of(event_id: str) -> int:
    number = 0
    for character in event_id:
        number = number << 5 | CROCKFORD.index(character)
    return number >> RANDOM_BITS


def test_id_is_26_characters_that_hold_the_time():
    before = time.time_ns() // 1_000_000

    event_id = new_event_id()

    assert len(event_id) == 26
    assert before <= milliseconds_of(event_id) <= time.time_ns() // 1_000_000


def test_text_of_a_time_is_that_of_the_ulid_specification():
    text = crockford(1_469_918_176_385 << RANDOM_BITS)

    assert text == "01ARYZ6S41" + "0" * 16


def test_text_sorts_as_the_number_does():
    numbers = [0, 1, 31, 32, 33, 1 << 79, 1 << 80, (1 << 80) + 1, 1 << 127, (1 << 128) - 1]

    texts = [crockford(number) for number in numbers]

    assert texts == sorted(texts)
    assert texts[-1] == "7" + "Z" * 25


def test_same_millisecond_is_counted_up():
    last = 1000 << RANDOM_BITS | 5

    assert successor(last, now_ms=1000, random_bits=3) == last + 1


def test_later_millisecond_is_drawn_afresh():
    last = 1000 << RANDOM_BITS | 5

    assert successor(last, now_ms=1001, random_bits=3) == 1001 << RANDOM_BITS | 3


def test_clock_that_was_set_back_does_not_set_ids_back():
    last = 1000 << RANDOM_BITS | 5

    assert successor(last, now_ms=1, random_bits=3) == last + 1


def test_full_millisecond_runs_over_into_the_next():
    last = (1001 << RANDOM_BITS) - 1

    following = successor(last, now_ms=1000, random_bits=3)

    assert following == 1001 << RANDOM_BITS
    assert successor(following, now_ms=1000, random_bits=3) == following + 1


def test_threads_get_rising_ids_and_never_the_same():
    def draw(_: int) -> list[str]:
        return [new_event_id() for _ in range(5000)]

    with ThreadPoolExecutor(4) as threads:
        drawn = list(threads.map(draw, range(4)))

    assert all(ids == sorted(ids) for ids in drawn)
    assert len({event_id for ids in drawn for event_id in ids}) == 20_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_child_does_not_repeat_the_ids_of_its_parent():
    program = """
import os, sys
from petard_producer import event_ids
# A clock that stands still: without a new start in the child both would count up the same number.
event_ids.time = type("Clock", (), {"time_ns": staticmethod(lambda: 10**18)})
event_ids.new_event_id()
child = os.fork()
sys.stdout.write(event_ids.new_event_id() + "\\n")
sys.stdout.flush()
if child:
    os.waitpid(child, 0)
"""

    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    ids = printed.split()
    assert len(ids) == 2
    assert ids[0] != ids[1]
