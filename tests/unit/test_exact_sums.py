from fractions import Fraction
from itertools import permutations
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from petard_worker.ratings.exact_sums import add, add_terms, totals

FLOATS = st.floats(-1e100, 1e100, allow_subnormal=False)


@given(st.lists(FLOATS, max_size=60))
def test_partial_sums_hold_the_exact_sum(values: list[float]) -> None:
    partials: tuple[float, ...] = ()

    for value in values:
        partials = add(partials, value)

    assert sum(map(Fraction, partials)) == sum(map(Fraction, values))
    assert totals([partials]) == (float(sum(map(Fraction, values))),)


def test_every_order_gives_the_same_bits() -> None:
    # Added up one after the other these come to 0, 1 or 2, as the order has it.
    values = (1e100, 1.0, -1e100, 1.0)

    found = set()
    for order in permutations(values):
        sums: tuple[tuple[float, ...], ...] = ((),)
        for value in order:
            sums = add_terms(sums, (value,))
        found.add(totals(sums))

    assert found == {(2.0,)}


@settings(max_examples=30)
@given(st.integers(0, 2**32))
@example(23_835)
def test_a_thousand_terms_take_a_handful_of_floats(seed: int) -> None:
    random = Random(seed)
    partials: tuple[float, ...] = ()

    for _ in range(1_000):
        partials = add(partials, random.uniform(-1, 1) * 10 ** random.uniform(-12, 0))

    # Floats of 53 bits that do not overlap, between 2**-93 (the last bit of 1e-12) and 2**10.
    assert len(partials) <= 103
