"""What the benchmark makes of its numbers."""

import os
import time
from pathlib import Path

import pytest

from benchmarks import fairness, idle, latency
from benchmarks.latency import Latency, summarise
from benchmarks.lines import Line, at_least, at_most, shown
from benchmarks.plan import read_order
from benchmarks.pokes import chunks_of, rate_by_pokes
from benchmarks.processes import cpu_seconds, resident_mb
from benchmarks.pushing import table
from benchmarks.report import Report, Round, Summary, summary
from benchmarks.throughput import ratios

SLOW = Line("slow", "slow", "events/s")
RATIO = Line("ratio", "fast / slow", "", at_least(50))
WAIT = Line("wait", "wait", "ms", at_most(10))
ROUNDS: list[Round] = [
    {"slow": 100.0, "ratio": 60.0, "wait": 12.0},
    {"slow": 400.0, "ratio": 40.0, "wait": None},
    {"slow": 200.0, "ratio": 90.0, "wait": 4.0},
]


def report(*lines: Line, rounds: list[Round] = ROUNDS) -> Report:
    return Report({"postgres": "18"}, read_order([]).plan, {"Throughput": lines}, rounds)


def test_each_line_has_the_median_of_the_rounds_and_their_spread() -> None:
    assert summary(SLOW, ROUNDS) == Summary(200.0, 100.0, 400.0)


def test_rounds_in_which_the_system_did_not_tell_do_not_count() -> None:
    assert summary(WAIT, ROUNDS) == Summary(8.0, 4.0, 12.0)
    assert summary(WAIT, ROUNDS[1:2]) is None


def test_ratios_are_taken_within_a_round() -> None:
    rates = {
        "floor": 1000.0,
        "petard": 500.0,
        "petard_two": 750.0,
        "rq": 5.0,
        "dramatiq": 10.0,
        "procrastinate": 2.0,
    }

    assert dict(ratios(rates)) == {
        "petard_of_floor": 0.5,
        "petard_two_over_one": 1.5,
        "petard_over_rq": 100.0,
        "petard_over_dramatiq": 50.0,
        "petard_over_procrastinate": 250.0,
    }


def test_percentiles_are_values_that_occurred() -> None:
    waits = [number / 1000 for number in range(200, 0, -1)]

    assert summarise(waits) == pytest.approx(Latency(100.0, 190.0, 198.0, 200.0))


def test_of_one_wait_every_percentile_is_it() -> None:
    assert summarise([0.007]) == pytest.approx(Latency(7.0, 7.0, 7.0, 7.0))


def test_a_target_is_reached_by_the_median_and_on_the_bound() -> None:
    assert at_least(50).reached_by(50)
    assert not at_least(50).reached_by(49.9)
    assert at_most(10).reached_by(10)
    assert not at_most(10).reached_by(10.1)


@pytest.mark.parametrize(("flooded", "reached"), [(30.0, True), (31.0, False)])
def test_a_quiet_pool_may_wait_three_times_as_long_beside_a_flooded_one(
    flooded: float, reached: bool
) -> None:
    plan = read_order([]).plan
    targets = {line.key: line.target for line in fairness.lines(plan)}

    values = dict(fairness.compared(alone=10.0, flooded=flooded))

    assert values.keys() == targets.keys()
    assert targets["fairness"] is not None
    assert targets["fairness"].reached_by(values["fairness"]) is reached


def test_an_idle_fleet_has_a_target_for_one_pool_and_for_a_thousand() -> None:
    lines = idle.lines(read_order([]).plan)

    assert [(line.key, str(line.target)) for line in lines] == [
        ("idle_1", "at most 0.01"),
        ("idle_1000", "at most 0.01"),
    ]


def test_cpu_of_which_one_process_does_not_tell_is_unknown() -> None:
    assert idle.share([1.0, 2.0], [1.1, 2.3], seconds=10.0) == pytest.approx(0.04)
    assert idle.share([1.0, None], [1.1, None], seconds=10.0) is None


def test_the_hot_pool_is_measured_whatever_the_rates() -> None:
    lines = latency.lines(read_order(["--latency-rates", "7"]).plan)

    assert {line.key: str(line.target) for line in lines if line.target} == {latency.HOT: "at most 5"}


def test_table_has_a_heading_and_says_what_was_reached() -> None:
    heading, slow, ratio, wait = report(SLOW, RATIO, WAIT).rows()

    assert [cell.strip() for cell in heading if cell] == ["Throughput"]
    assert [cell.strip() for cell in slow] == ["slow", "200", "100", "400", "events/s", "5,000", ""]
    assert [cell.strip() for cell in ratio] == [
        "fast / slow",
        "60",
        "40",
        "90",
        "",
        "",
        "reached: at least 50",
    ]
    assert [cell.strip() for cell in wait] == ["wait", "8", "4", "12", "ms", "", "reached: at most 10"]


def test_what_nobody_told_is_neither_reached_nor_missed() -> None:
    silent = report(WAIT, rounds=[{"wait": None}])

    assert [cell.strip() for cell in list(silent.rows())[1]] == [
        *("wait", "-", "-", "-", "ms", "", "unknown: at most 10")
    ]
    assert silent.as_json()["summary"] == {
        "wait": {
            "label": "wait",
            "unit": "ms",
            "median": None,
            "min": None,
            "max": None,
            "us_each": None,
            "target": "at most 10",
            "reached": None,
        }
    }


def test_json_has_every_round_and_numbers_as_they_are() -> None:
    found = report(SLOW, RATIO).as_json()

    assert found["rounds"] == ROUNDS
    assert found["summary"] == {
        "slow": {
            "label": "slow",
            "unit": "events/s",
            "median": 200.0,
            "min": 100.0,
            "max": 400.0,
            "us_each": 5000.0,
            "target": None,
            "reached": None,
        },
        "ratio": {
            "label": "fast / slow",
            "unit": "",
            "median": 60.0,
            "min": 40.0,
            "max": 90.0,
            "us_each": None,
            "target": "at least 50",
            "reached": True,
        },
    }


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0.06251, "0.0625"), (1.3, "1.3"), (12345.6, "12,346"), (100.4, "100")]
)
def test_numbers_are_as_long_as_they_mean_something(value: float | None, text: str) -> None:
    assert shown(value) == text


def test_parts_are_measured_in_one_order_and_once() -> None:
    assert read_order(["--only", "cpu", "--only", "latency", "--only", "cpu"]).plan.parts == (
        "latency",
        "cpu",
    )


def test_no_more_jobs_than_events() -> None:
    assert read_order(["--events", "3500", "--job-events", "5000"]).plan.jobs == 3500


def test_a_rate_by_pokes_leaves_out_what_the_first_one_told_of() -> None:
    assert chunks_of(1_200, 500) == 3
    assert rate_by_pokes([10.0, 10.5, 11.0], 1_200, 500) == 700
    with pytest.raises(ValueError, match="more events"):
        rate_by_pokes([10.0], 400, 500)


def test_no_meeting_stands_in_a_table_twice() -> None:
    rows = list(table(300, 5))

    assert len(set(rows)) == 300
    assert not any(row.split(",")[0] == row.split(",")[1] for row in rows)


def test_what_nobody_can_tell_of_a_process_is_none() -> None:
    assert cpu_seconds(None) is None
    assert cpu_seconds(2**22 + 1) is None  # above the highest process id there is
    assert resident_mb(2**22 + 1) is None


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells")
def test_this_process_needs_cpu_and_memory() -> None:
    user, system, *_ = os.times()

    assert cpu_seconds(os.getpid()) >= user + system - 0.05
    assert 1 < resident_mb(os.getpid()) < 10_000


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells")
def test_work_of_less_than_a_clock_tick_is_seen() -> None:
    before = cpu_seconds(os.getpid())
    until = time.thread_time() + 0.001
    while time.thread_time() < until:
        pass

    assert 0.001 <= cpu_seconds(os.getpid()) - before < 0.5
