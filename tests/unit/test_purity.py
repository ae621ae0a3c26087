"""The middle is pure: numbers in, numbers out, so that replaying a ledger gives the same bits every time."""

import ast
import builtins
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from itertools import product
from pathlib import Path

import pytest

import petard_worker.fold
import petard_worker.ratings
from petard_worker.ratings.pool_rules import SYSTEMS, pool_rules
from petard_worker.ratings.system import Game, GameSide, GameUnsupportedError, PlayerState

WORKER = Path(petard_worker.fold.__file__).parent
RATINGS = sorted((WORKER / "ratings").glob("**/*.py"))
MATHEMATICS = {
    *("abc", "bisect", "cmath", "collections", "dataclasses", "decimal", "enum", "fractions", "functools"),
    *("heapq", "itertools", "math", "numbers", "operator", "re", "statistics", "typing"),
}
"""What of the standard library knows of no clock, no dice, no files, no network and no process."""
OUTSIDE = {"open", "print", "input", "exec", "eval", "compile", "__import__", "id", "hash", "globals", "vars"}
"""Builtins that speak to the world, or answer otherwise in another process."""


def imports_of(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever the import stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def names_of(path: Path) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}


def attributes_of(path: Path) -> set[str]:
    return {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}


def test_there_are_ratings_to_look_at() -> None:
    assert {"glicko.py", "bombs.py", "system.py", "parameters.py", "pool_rules.py"} <= {
        path.name for path in RATINGS
    }


@pytest.mark.parametrize("path", RATINGS, ids=lambda path: path.name)
def test_ratings_import_mathematics_and_each_other_only(path: Path) -> None:
    imported = set(imports_of(path))

    others = {name for name in imported if name.partition(".")[0] not in MATHEMATICS}
    assert all(name.startswith("petard_worker.ratings") for name in others), others
    assert MATHEMATICS.issubset(sys.stdlib_module_names)


@pytest.mark.parametrize("path", RATINGS, ids=lambda path: path.name)
def test_ratings_touch_nothing_outside(path: Path) -> None:
    assert OUTSIDE.issubset(dir(builtins))

    assert not names_of(path) & OUTSIDE
    assert not [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Global)]


def test_fold_knows_times_but_no_clock() -> None:
    path = WORKER / "fold.py"

    imported = {name.partition(".")[0] for name in imports_of(path)}

    assert imported <= {"collections", "datetime", "itertools", "typing", "petard_schema", "petard_worker"}
    assert not attributes_of(path) & {"now", "utcnow", "today", "fromtimestamp"}
    assert not names_of(path) & OUTSIDE


def player(n: int) -> PlayerState:
    """Somebody, told apart by a number."""
    rating, rd = 700 + 1600 * (n * 7919 % 1009) / 1009, 30 + 320 * (n * 104729 % 997) / 997
    return PlayerState(rating, rd, 0.06, n % 50, 2300.0, n * 31 % 400 / 7)


def rate_many() -> Iterator[str]:
    """Rate games of many shapes by every system and yield all bits of the outcome: repr loses none."""
    for name, n in product(sorted(SYSTEMS), range(100)):
        system = pool_rules(name, {}).system
        for sizes in ((1, 1), (2, 3), (1, 1, 1, 1, 1, 1), (3, 1, 2)):
            sides = [
                GameSide([player(n + 10 * i + j) for j in range(size)], 1 + (n + i) % 3, float(i), i == 0)
                for i, size in enumerate(sizes)
            ]
            try:
                yield f"{name} {sizes} {system.rate(Game(sides))}"
            except GameUnsupportedError as error:
                yield f"{name} {sizes} {error}"


def rate_in_another_process(seed_of_hashes: str) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": seed_of_hashes}
    done = subprocess.run(
        [sys.executable, __file__], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("seed_of_hashes", ["1", "2"])
def test_same_games_give_the_same_bits_in_any_process(seed_of_hashes: str) -> None:
    here = [*rate_many()]

    there = rate_in_another_process(seed_of_hashes)

    assert there == here
    assert {line.partition(" (1, 1) [Rated(")[0] for line in here} >= SYSTEMS.keys()


def test_rating_a_game_leaves_no_trace_in_the_system() -> None:
    once = [*rate_many()]

    again = [*rate_many()]

    assert again == once


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_parameters_of_a_system_cannot_be_changed(name: str) -> None:
    system = pool_rules(name, {}).system
    parameter = next(iter(pool_rules(name, {}).parameters()))

    with pytest.raises(FrozenInstanceError):
        setattr(system, parameter, 0)


if __name__ == "__main__":
    for line in rate_many():
        print(line)  # noqa: T201 - the parent process reads it
