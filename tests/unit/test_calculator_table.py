"""The table of expected scores against what is printed in FIDE's handbook and follows from the formula."""

import pytest

from petard_worker.ratings.calculator import CalculatorInputError, expected_table


def test_default_goes_in_fifties_from_minus_800_to_800() -> None:
    rows = expected_table()

    assert [row.difference for row in rows] == list(range(-800, 801, 50))


# Logistic by 1 / (1 + 10^(-D / 400)); table 8.1.2 as printed.
@pytest.mark.parametrize(
    ("difference", "logistic", "table"),
    [
        (-400, 1 / 11, 0.08),
        (0, 0.5, 0.5),
        (100, 0.6400649998028851, 0.64),
        (400, 10 / 11, 0.92),
        (800, 100 / 101, 1),
    ],
)
def test_rows_have_both_readings(difference: int, logistic: float, table: float) -> None:
    rows = {row.difference: row for row in expected_table(100)}

    assert rows[difference].logistic == pytest.approx(logistic, abs=1e-15)
    assert rows[difference].table == table


def test_every_step_has_zero_in_the_middle_and_ends_within_800() -> None:
    for step in (1, 7, 300, 800):
        rows = expected_table(step)

        assert rows[len(rows) // 2].difference == 0
        assert rows[0].difference == -rows[-1].difference >= -800
        assert rows[-1].difference + step > 800


@pytest.mark.parametrize("step", [0, -50, 801])
def test_step_out_of_range_is_refused(step: int) -> None:
    with pytest.raises(CalculatorInputError, match="the step is"):
        expected_table(step)
