import pytest

from petard_worker.breaker import Breaker, BreakerTrippedError

OURS = True
FINE = False
HALF = [OURS, FINE] * 50


def breaker_that_saw(outcomes: list[bool], pool: str = "p") -> Breaker:
    breaker = Breaker()
    breaker.record(pool, outcomes)
    return breaker


def test_forty_nine_failures_in_a_row_are_borne() -> None:
    Breaker().check("p", [OURS] * 49)


def test_fifty_failures_in_a_row_stop_the_pool() -> None:
    with pytest.raises(BreakerTrippedError, match="50 events in a row"):
        Breaker().check("p", [OURS] * 50)


def test_fifty_in_a_row_are_found_inside_a_batch_that_ends_well() -> None:
    with pytest.raises(BreakerTrippedError, match="50 events in a row"):
        Breaker().check("p", [FINE] * 200 + [OURS] * 50 + [FINE] * 200)


def test_row_of_failures_is_counted_across_batches() -> None:
    breaker = breaker_that_saw([FINE, *[OURS] * 30])
    breaker.record("p", [OURS] * 19)

    with pytest.raises(BreakerTrippedError, match="50 events in a row"):
        breaker.check("p", [OURS])


def test_half_of_the_last_hundred_is_borne() -> None:
    Breaker().check("p", HALF * 3)


def test_more_than_half_of_the_last_hundred_stops_the_pool() -> None:
    breaker = breaker_that_saw(HALF)

    # This failure pushes an old failure out of the window, the next one an event that went well.
    breaker.check("p", [OURS])
    breaker.record("p", [OURS])

    with pytest.raises(BreakerTrippedError, match="51 of the last 100"):
        breaker.check("p", [OURS])


def test_what_is_older_than_a_hundred_events_is_forgotten() -> None:
    breaker = breaker_that_saw([*[OURS] * 49, *[FINE] * 100])

    breaker.check("p", [OURS] * 49)


def test_row_is_broken_by_one_event_that_goes_well() -> None:
    breaker = breaker_that_saw([FINE] * 100)

    breaker.check("p", [*[OURS] * 25, FINE, *[OURS] * 25])


def test_events_that_are_bad_themselves_never_stop_a_pool() -> None:
    breaker = breaker_that_saw([FINE] * 1000)

    breaker.check("p", [FINE] * 1000)


def test_checking_remembers_nothing_until_it_is_recorded() -> None:
    breaker = Breaker()

    for _ in range(10):
        breaker.check("p", [OURS] * 49)


def test_pools_without_failures_take_no_memory() -> None:
    breaker = Breaker()

    for number in range(10):
        breaker.record(f"unknown-{number}", [])
        breaker.record(f"good-{number}", [FINE] * 500)
        breaker.record(f"mended-{number}", [OURS])
        breaker.record(f"mended-{number}", [FINE] * 100)

    assert breaker._recent == {}


def test_pool_does_not_pay_for_another_pool() -> None:
    breaker = breaker_that_saw([OURS] * 49, pool="other")

    breaker.check("p", [OURS] * 49)


def test_quiet_batch_passes_even_after_too_many_failures() -> None:
    breaker = breaker_that_saw([OURS] * 60)

    # The pool was stopped and resumed: what goes well must not stop it again.
    breaker.check("p", [FINE] * 10)


def test_pool_that_was_stopped_and_resumed_starts_with_a_clean_slate() -> None:
    breaker = breaker_that_saw([OURS] * 49)
    with pytest.raises(BreakerTrippedError):
        breaker.check("p", [OURS])

    breaker.check("p", [OURS] * 49)
