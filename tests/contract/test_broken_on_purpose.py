"""The list of safety rules that are broken on purpose keeps up with the source."""

from pathlib import Path

import pytest

from broken_on_purpose.rules import RULES, Rule
from broken_on_purpose.run import TOP, broken

NAMES = [rule.name for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_rule_can_be_broken(rule: Rule) -> None:
    text = (TOP / rule.file).read_text(encoding="utf-8")

    assert broken(text, rule) != text


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_tests_that_notice_are_there(rule: Rule) -> None:
    assert rule.tests
    for test in rule.tests:
        assert (TOP / test.partition("::")[0]).is_file()


def test_every_rule_stands_in_the_readme_of_the_tests() -> None:
    told = Path(TOP / "tests/README.md").read_text(encoding="utf-8")

    assert [name for name in NAMES if f"| {name} |" not in told] == []


def test_no_rule_is_listed_twice() -> None:
    assert len(set(NAMES)) == len(NAMES)
