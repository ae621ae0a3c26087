"""Exceptions of ours in groups: by where they came from and what they are, not by what they say."""

from collections.abc import Callable

import pytest

from petard_schema import parse
from petard_worker import batch, failures
from petard_worker.failures import Failure, failure_of


def raised(function: Callable[[], object]) -> Exception:
    try:
        function()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the test is about
        return error
    pytest.fail("nothing was raised")


def through_parse(value: object) -> Failure:
    return failure_of(raised(lambda: parse.read_json(value)))  # type: ignore[arg-type]


def test_same_place_is_the_same_group_whatever_the_values() -> None:
    assert through_parse(1).hash == through_parse(2.5).hash != ""


def test_another_place_or_another_type_is_another_group() -> None:
    hashes = {
        through_parse(1).hash,
        failure_of(raised(lambda: batch.affordable([1]))).hash,  # type: ignore[list-item]
        failure_of(raised(lambda: batch.affordable(1))).hash,  # type: ignore[arg-type]
        failure_of(ValueError("no traceback")).hash,
    }

    assert len(hashes) == 4


def test_lines_and_texts_and_depth_make_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    def module(blank_lines: int) -> Callable[[int], None]:
        source = (
            "\n" * blank_lines + "def dive(depth):\n    if not depth:\n        raise KeyError(depth_of)\n"
        )
        source += "    dive(depth - 1)\n"
        scope = {"depth_of": blank_lines}
        exec(compile(source, str(failures.PACKAGE / "dive.py"), "exec"), scope)
        return scope["dive"]  # type: ignore[return-value]

    first, second = raised(lambda: module(0)(3)), raised(lambda: module(7)(30))

    assert failure_of(first).hash == failure_of(second).hash
    assert "dive.py" in failure_of(first).traceback


def test_cause_is_part_of_the_group() -> None:
    def caused(by: Exception) -> Exception:
        error = ValueError("x")
        error.__cause__ = by
        return error

    assert failure_of(caused(KeyError())).hash != failure_of(caused(OSError())).hash


def test_traceback_is_bounded_and_holds_no_locals() -> None:
    secret = "s3cret" * 10
    failure = failure_of(raised(lambda: batch.affordable([secret])))  # type: ignore[list-item]

    assert "s3cret" not in failure.traceback
    assert len(failure_of(ValueError("x" * 100_000)).traceback) < 10_000
