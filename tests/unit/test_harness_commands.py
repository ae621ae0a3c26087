"""Commands that live in the tests say what to do where there are none."""

from pathlib import Path

import pytest

from petard_worker.cli import bench, chaos, harness
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.harness import Harness, find_tests, words

both = pytest.mark.parametrize("found", [bench.HARNESS, chaos.HARNESS], ids=lambda found: found.module)


@both
def test_in_a_checkout_the_tests_are_found(found: Harness) -> None:
    assert find_tests(found) == Path(__file__).resolve().parents[1]


@both
def test_without_a_checkout_the_remedy_is_said(
    found: Harness, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(harness, "CHECKOUT", tmp_path)

    with pytest.raises(CommandFailed, match="clone the repository") as refused:
        find_tests(found)

    assert refused.value.code == USAGE


@both
def test_without_the_dev_extra_the_remedy_is_said(found: Harness) -> None:
    without = found._replace(needed=("pytest", "a_package_that_is_not_there"))

    with pytest.raises(
        CommandFailed, match=r"\(a_package_that_is_not_there missing\).*'\.\[dev\]'"
    ) as refused:
        find_tests(without)

    assert refused.value.code == USAGE


def test_options_become_the_words_of_a_command_line() -> None:
    options = {
        "job_events": 20,
        "seconds": 0.5,
        "only": ["one", "two"],
        "json": True,
        "quiet": False,
        "report": None,
        "none": [],
    }

    assert words(options) == [
        "--job-events",
        "20",
        "--seconds",
        "0.5",
        "--only",
        "one",
        "--only",
        "two",
        "--json",
    ]
