"""How many events a batch may take."""

from petard_worker.batch_size import FEWEST, FIRST, LOCK_SECONDS, BatchSize


def test_a_first_batch_is_of_the_usual_size() -> None:
    assert BatchSize().most_events() == FIRST


def test_batches_grow_where_events_are_fast_and_shrink_where_they_are_slow() -> None:
    fast, slow = BatchSize(), BatchSize()
    for _ in range(20):
        fast.learn(1_000, 0.02)
        slow.learn(1_000, 2.0)

    assert abs(fast.most_events() - LOCK_SECONDS / 0.00002) < 50
    assert abs(slow.most_events() - LOCK_SECONDS / 0.002) < 2


def test_one_slow_batch_does_not_make_the_next_a_tiny_one() -> None:
    size = BatchSize()

    size.learn(500, 0.5)

    assert size.most_events() > FIRST / 5


def test_a_batch_of_few_events_says_nothing_of_their_cost() -> None:
    size = BatchSize()

    size.learn(FEWEST - 1, 5.0)

    assert size.most_events() == FIRST


def test_however_slow_some_are_taken() -> None:
    size = BatchSize()
    for _ in range(20):
        size.learn(FEWEST, 600.0)

    assert size.most_events() == FEWEST
