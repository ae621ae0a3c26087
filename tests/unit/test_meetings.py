"""How often somebody met at the same time, in files of any length."""

import tracemalloc
from collections import Counter
from random import Random

from petard_worker.import_games.meetings import Meetings


def test_every_meeting_is_counted_by_itself() -> None:
    chance = Random(1)
    found = [str(chance.randrange(300)) for _ in range(2_000)]
    meetings = Meetings()
    expected: Counter[str] = Counter()

    for meeting in found:
        expected[meeting] += 1
        assert meetings.count(meeting) == expected[meeting]


def test_two_files_know_nothing_of_each_other() -> None:
    one, other = Meetings(), Meetings()

    assert (one.count("a"), one.count("a"), other.count("a")) == (1, 2, 1)


def test_meetings_do_not_pile_up_in_memory() -> None:
    meetings = Meetings()
    meetings.count("the first")
    tracemalloc.start()
    try:
        for number in range(50_000):
            meetings.count(f"meeting {number}")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < 200_000
    assert meetings.count("meeting 0") == 2
