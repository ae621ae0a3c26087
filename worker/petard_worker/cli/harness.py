"""Commands that are programs of the tests: found in the checkout, and run in place of this process."""

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

from petard_worker.cli.errors import USAGE, CommandFailed

CHECKOUT = Path(__file__).resolve().parents[3]


class Harness(NamedTuple):
    """A program of the tests."""

    name: str
    module: str
    needed: tuple[str, ...]
    """Packages that only the dev extra brings."""


def run_harness(harness: Harness, options: Mapping[str, object]) -> NoReturn:
    """Become the harness, with options by their names; raise CommandFailed when it cannot be used."""
    tests = find_tests(harness)
    paths = [str(tests), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    # In place of this process: signals and exit code need nobody who passes them on.
    os.execve(  # noqa: S606 - no shell
        sys.executable, [sys.executable, "-m", harness.module, *words(options)], environment
    )


def find_tests(harness: Harness) -> Path:
    """Return the folder of the tests, or say why the harness cannot be used."""
    tests = CHECKOUT / "tests"
    if not tests.joinpath(*harness.module.split("."), "__main__.py").is_file():
        raise CommandFailed(
            f"{harness.name} is part of the tests, and there are none in {CHECKOUT}: clone the repository"
            " and run it there after pip install -e '.[dev]'",
            USAGE,
        )
    missing = [package for package in harness.needed if importlib.util.find_spec(package) is None]
    if missing:
        raise CommandFailed(
            f"{harness.name} needs the dev extra ({', '.join(missing)} missing): in {CHECKOUT}"
            " run pip install -e '.[dev]'",
            USAGE,
        )
    return tests


def words(options: Mapping[str, object]) -> list[str]:
    """Return options as words of a command line: several of a list, none of what is None or off."""
    found = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            found.append(option)
        elif isinstance(value, list):
            found += [word for one in value for word in (option, str(one))]
        elif value is not None and value is not False:
            found += [option, str(value)]
    return found
