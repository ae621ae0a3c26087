"""Records a drain keeps from batch to batch: only while nobody else has written to the pool."""

from petard_worker.fold import new_record
from petard_worker.known import MOST_PLAYERS, KnownRecords
from petard_worker.ratings.pool_rules import PoolRules

NEWCOMER = new_record(PoolRules())
PLAYED = NEWCOMER._replace(rating=1600.0, games=1)


def test_what_a_batch_left_is_known_at_its_seq() -> None:
    known = KnownRecords()

    known.learn(7, {"alice": PLAYED})

    assert known.at(7) == {"alice": PLAYED}


def test_nothing_is_known_once_somebody_else_has_written() -> None:
    known = KnownRecords()
    known.learn(7, {"alice": PLAYED})

    assert known.at(8) == {}
    assert known.at(7) == {}


def test_what_was_known_before_somebody_else_wrote_does_not_come_back() -> None:
    known = KnownRecords()
    known.learn(7, {"alice": PLAYED})
    known.at(8)

    known.learn(9, {"bob": PLAYED})

    assert known.at(9) == {"bob": PLAYED}


def test_a_later_batch_adds_to_what_is_known() -> None:
    known = KnownRecords()
    known.learn(7, {"alice": NEWCOMER, "bob": NEWCOMER})

    known.learn(9, {"alice": PLAYED})

    assert known.at(9) == {"alice": PLAYED, "bob": NEWCOMER}


def test_nothing_is_known_after_a_failure() -> None:
    known = KnownRecords()
    known.learn(7, {"alice": PLAYED})

    known.forget()

    assert known.at(7) == {}


def test_memory_is_bounded() -> None:
    known = KnownRecords()
    known.learn(1, dict.fromkeys(map(str, range(MOST_PLAYERS + 1)), PLAYED))

    known.learn(2, {"alice": PLAYED})

    assert known.at(2) == {"alice": PLAYED}
