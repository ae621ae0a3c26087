import re
from dataclasses import fields
from typing import Any

import pytest

from petard_worker.ratings.bombs import BombRules
from petard_worker.ratings.glicko import Glicko
from petard_worker.ratings.parameters import BadParameterError, Limits, ParameterValue, build
from petard_worker.ratings.pool_rules import BOMB_PREFIX, AbandonRules, PoolRules, pool_rules

NUMBERS: list[tuple[str, float, float, float]] = [
    ("rating", 1500.0, -10_000, 10_000),
    ("rd", 350.0, 1, 1_000),
    ("c", 4.826, 0, 1_000),
    ("rd_floor", 30.0, 1, 1_000),
    ("rating_min", 0.0, -10_000, 10_000),
    ("rating_max", 3000.0, -10_000, 10_000),
]
WHOLE: list[tuple[str, float, float, float]] = [
    ("bomb_step", 10, 0, 10_000),
    ("bomb_cap", 50, 0, 10_000),
    ("bomb_forgive", 1, 0, 10_000),
    ("bomb_threshold", 20, 0, 10_000),
    ("period", 0, 0, 366),
]
SWITCHES = ["bomb_inclusive", "award_win"]
BESIDE: dict[str, dict[str, ParameterValue]] = {
    "rating": {"rating_min": -10_000, "rating_max": 10_000},
    "rd": {"rd_floor": 1},
    "rd_floor": {"rd": 1_000},
    "rating_min": {"rating": 10_000, "rating_max": 10_000},
    "rating_max": {"rating": -10_000, "rating_min": -10_000},
}
"""What must stand beside a parameter for its whole range to make sense."""

HOSTILE: list[Any] = [
    *("nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e999", "-1e999", "", " ", " 5", "5 ", "5\n", "1_0"),
    *("٥", "５", "0x10", "1,5", "1e", "e1", ".", "+", "--1", "true", "five", "9" * 5000, "1e99999999999"),
    *(float("nan"), float("inf"), float("-inf"), True, False, None, [], {}, [5], 10**400, -(10**400), 5j),
]


def given(name: str, value: ParameterValue) -> PoolRules:
    return pool_rules("glicko", {**BESIDE.get(name, {}), name: value})


def test_every_parameter_is_in_these_tests() -> None:
    declared = set(pool_rules("glicko", {}).parameters())

    assert declared == {name for name, *_ in NUMBERS + WHOLE} | set(SWITCHES) | {"bomb_check"}


def test_rules_without_parameters_are_the_documented_ones() -> None:
    parameters = pool_rules("glicko", {}).parameters()

    documented: dict[str, ParameterValue] = {name: default for name, default, *_ in NUMBERS + WHOLE}
    assert parameters == {**documented, "bomb_inclusive": False, "award_win": False, "bomb_check": "before"}
    assert PoolRules() == pool_rules("glicko", {})


@pytest.mark.parametrize(("name", "default", "low", "high"), NUMBERS + WHOLE)
def test_both_ends_of_the_range_are_accepted(name: str, default: float, low: float, high: float) -> None:
    for value in (low, high):
        assert given(name, value).parameters()[name] == value
        assert given(name, str(value)).parameters()[name] == value


@pytest.mark.parametrize(("name", "default", "low", "high"), NUMBERS + WHOLE)
def test_beyond_the_range_the_error_names_parameter_value_range_and_default(
    name: str, default: float, low: float, high: float
) -> None:
    kind = "a whole number" if (name, default, low, high) in WHOLE else "a number"

    for value in (low - 1, high + 1):
        with pytest.raises(BadParameterError) as refused:
            given(name, value)

        assert str(refused.value) == (
            f"{name} is {value!r}, but must be {kind} from {low:g} to {high:g} (default {default})"
        )


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: ascii(value)[:20])
@pytest.mark.parametrize("name", [name for name, *_ in NUMBERS + WHOLE])
def test_hostile_value_is_refused_with_the_name_of_the_parameter(name: str, value: Any) -> None:
    with pytest.raises(BadParameterError, match=f"^{name} is "):
        given(name, value)


@pytest.mark.parametrize("value", [5.5, "5.5", -0.5, "1e-3", 1e-300])
@pytest.mark.parametrize("name", [name for name, *_ in WHOLE])
def test_fraction_is_refused_where_a_whole_number_belongs(name: str, value: ParameterValue) -> None:
    with pytest.raises(BadParameterError, match=r"a whole number from 0 to (10000|366)"):
        given(name, value)


@pytest.mark.parametrize("value", [5, 5.0, "5", "5.0", "+5", "05", "0.5e1"])
@pytest.mark.parametrize(("name", "kind"), [("c", float), ("bomb_step", int)])
def test_number_is_kept_in_the_type_of_its_parameter(
    name: str, kind: type[float], value: ParameterValue
) -> None:
    kept = given(name, value).parameters()[name]

    assert kept == 5
    assert type(kept) is kind


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize(("value", "kept"), [(True, True), (False, False), ("true", True), ("false", False)])
def test_switch_is_true_or_false(name: str, value: ParameterValue, kept: bool) -> None:
    assert given(name, value).parameters()[name] is kept


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("value", ["True", "yes", "", 0, 1, 1.0, None, [], {}], ids=ascii)
def test_switch_takes_nothing_else(name: str, value: Any) -> None:
    with pytest.raises(BadParameterError, match=rf"^{name} is .* must be true or false \(default False\)$"):
        given(name, value)


@pytest.mark.parametrize("value", ["before", "after"])
def test_choice_is_one_of_its_words(value: str) -> None:
    assert given("bomb_check", value).parameters()["bomb_check"] == value


@pytest.mark.parametrize("value", ["Before", "", "before ", 0, True, None, ["before"], {}], ids=ascii)
def test_choice_takes_nothing_else(value: Any) -> None:
    with pytest.raises(BadParameterError, match=r"must be one of before, after \(default before\)$"):
        given("bomb_check", value)


@pytest.mark.parametrize(
    "name",
    ["", "C", "c ", "step", "bomb_", "bomb_c", "bomb_award_win", "awardwin", "name", "tau", "__class__"],
)
def test_unknown_parameter_is_refused_and_the_known_ones_are_named(name: str) -> None:
    with pytest.raises(BadParameterError, match=rf"^no parameter {re.escape(repr(name))}; there are \w+"):
        pool_rules("glicko", {name: 1})


@pytest.mark.parametrize("system", ["", "Glicko", "glicko ", "__init__", "Elo++"])
def test_unknown_system_is_refused_and_the_known_ones_are_named(system: str) -> None:
    with pytest.raises(BadParameterError, match=rf"^no system {re.escape(repr(system))}; there are .*glicko"):
        pool_rules(system, {})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rating": 3500}, "rating 3500 is not between rating_min 0 and rating_max 3000"),
        ({"rating_min": 1600}, "rating 1500 is not between rating_min 1600 and rating_max 3000"),
        ({"rating_max": 1400}, "rating 1500 is not between rating_min 0 and rating_max 1400"),
        (
            {"rating_min": 2000, "rating_max": 1000},
            "rating 1500 is not between rating_min 2000 and rating_max 1000",
        ),
        ({"rd_floor": 351}, "rd_floor 351 is above rd 350"),
        ({"rd": 29}, "rd_floor 30 is above rd 29"),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(
    parameters: dict[str, ParameterValue], message: str
) -> None:
    with pytest.raises(BadParameterError) as refused:
        pool_rules("glicko", parameters)

    assert str(refused.value) == message


def test_limits_that_meet_do_not_contradict_each_other() -> None:
    rules = pool_rules("glicko", {"rating_min": 1500, "rating_max": 1500, "rd": 30, "rd_floor": 30})

    assert rules.system == Glicko(rd=30, rd_floor=30, rating_min=1500, rating_max=1500)


def test_parameters_read_back_give_the_same_rules() -> None:
    rules = pool_rules(
        "glicko",
        {
            "c": "2.5",
            "rating": -20,
            "rating_min": -100,
            "bomb_step": 3,
            "bomb_check": "after",
            "award_win": True,
        },
    )

    assert pool_rules("glicko", rules.parameters()) == rules


def test_other_parameters_keep_their_defaults() -> None:
    assert build(Glicko, {"c": 1}) == Glicko(c=1.0)
    assert build(BombRules, {"bomb_cap": 99}, BOMB_PREFIX) == BombRules(cap=99)


@pytest.mark.parametrize("rules", [Glicko, BombRules, AbandonRules])
def test_every_parameter_says_what_it_means_and_has_a_default_within_its_limits(rules: type[Any]) -> None:
    for declared in fields(rules):
        limits: Limits = declared.metadata["limits"]

        assert limits.meaning, declared.name
        assert declared.name == declared.name.lower()
        if limits.choices:
            assert declared.default in limits.choices
        else:
            assert limits.low <= float(declared.default) <= limits.high  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["rating", "bomb_cap", "award_win"])
def test_declaration_of_a_parameter_is_found_by_its_public_name(name: str) -> None:
    rules = pool_rules("glicko", {})

    (declared,) = rules.declared(name)

    assert declared.name == name.removeprefix(BOMB_PREFIX)
    assert declared.default == rules.parameters()[name]
    assert not [*rules.declared("cap")]
