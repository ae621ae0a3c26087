"""What README.md claims is there: its tests, its commands, its links."""

import re
from pathlib import Path

import pytest

from petard_worker.ratings.parameters import ParameterValue
from petard_worker.ratings.pool_rules import pool_rules

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "path"), re.findall(r"\[`(test_\w+)`\]\((tests/[\w/.]+)\)", README))
def test_promise_has_its_test(name: str, path: str) -> None:
    assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


def test_promises_are_found_at_all() -> None:
    assert len(re.findall(r"\[`test_\w+`\]", README)) >= 10


@pytest.mark.parametrize("folder", ["", "schema", "producer", "worker", "tests", "deploy"])
def test_links_lead_somewhere(folder: str) -> None:
    readme = ROOT / folder / "README.md"

    links = re.findall(r"\]\((?!http|#)([^)#]+)\)", readme.read_text(encoding="utf-8"))

    assert [link for link in links if not (readme.parent / link).exists()] == []


def test_commands_that_ci_runs_are_marked() -> None:
    assert README.count("<!-- demo -->\n```sh\n") == 1
    assert README.count("<!-- tests -->\n```sh\n") == 1


RECIPES = re.findall(r"`--system (\w+)((?: -p \w+=[\w.]+)*)`", (ROOT / "worker" / "README.md").read_text())


@pytest.mark.parametrize(("system", "parameters"), RECIPES)
def test_recipe_makes_a_pool(system: str, parameters: str) -> None:
    given: dict[str, ParameterValue] = dict(re.findall(r"-p (\w+)=(\S+)", parameters))

    rules = pool_rules(system, given)

    assert rules.parameters().keys() >= given.keys()


def test_there_are_recipes() -> None:
    assert {system for system, _ in RECIPES} == {"glicko", "glicko2", "elo", "weng_lin"}
    assert len(RECIPES) >= 7
