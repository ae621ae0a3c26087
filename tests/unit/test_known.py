"""Records a drain keeps from batch to batch: only while nobody else has written to the pool."""

from petard_worker.fold import new_record
from petard_worker.known import MOST_PLAYERS, Known, Place
from petard_worker.ratings.pool_rules import PoolRules, pool_rules

NEWCOMER = new_record(PoolRules())
PLAYED = NEWCOMER._replace(rating=1600.0, games=1)


def test_what_a_batch_left_is_known_at_its_seq() -> None:
    known = Known()

    known.learn(Place(7, 1), {"alice": PLAYED}, all_new=True)

    assert known.at(Place(7, 1)) == {"alice": PLAYED}


def test_nothing_is_known_once_somebody_else_has_written() -> None:
    known = Known()
    known.learn(Place(7, 1), {"alice": PLAYED}, all_new=True)

    assert known.at(Place(8, 1)) == {}
    assert known.at(Place(7, 1)) == {}


def test_what_was_known_before_somebody_else_wrote_does_not_come_back() -> None:
    known = Known()
    known.learn(Place(7, 1), {"alice": PLAYED}, all_new=True)
    known.at(Place(8, 1))

    known.learn(Place(9, 1), {"bob": PLAYED}, all_new=True)

    assert known.at(Place(9, 1)) == {"bob": PLAYED}


def test_nothing_is_known_under_other_parameters() -> None:
    known = Known()
    known.learn(Place(7, 1), {"alice": PLAYED}, all_new=True)

    assert known.at(Place(7, 2)) == {}


def test_a_later_batch_adds_to_what_is_known() -> None:
    known = Known()
    known.learn(Place(7, 1), {"alice": NEWCOMER, "bob": NEWCOMER}, all_new=True)

    known.learn(Place(9, 1), {"alice": PLAYED}, all_new=True)

    assert known.at(Place(9, 1)) == {"alice": PLAYED, "bob": NEWCOMER}


def test_nothing_is_known_after_a_failure() -> None:
    known = Known()
    known.learn(Place(7, 1), {"alice": PLAYED}, all_new=True)

    known.forget()

    assert known.at(Place(7, 1)) == {}


def test_memory_is_bounded() -> None:
    known = Known()
    known.learn(Place(1, 1), dict.fromkeys(map(str, range(MOST_PLAYERS + 1)), PLAYED), all_new=True)

    known.learn(Place(2, 1), {"alice": PLAYED}, all_new=True)

    assert known.at(Place(2, 1)) == {"alice": PLAYED}


def test_rules_are_those_of_the_version() -> None:
    known = Known()
    first = known.rules(1, "glicko", {"c": 1.0})

    assert known.rules(1, "glicko", {"c": 1.0}) is first
    assert known.rules(2, "glicko", {"c": 2.0}) == pool_rules("glicko", {"c": 2.0})
