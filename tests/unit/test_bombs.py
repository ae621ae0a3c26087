from datetime import UTC, datetime

import pytest

from petard_schema import GameAbandoned
from petard_worker.fold import fold_event, new_record
from petard_worker.ratings.bombs import BombRules
from petard_worker.ratings.parameters import BadParameterError, build
from petard_worker.ratings.pool_rules import PoolRules

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def abandons_from_zero(rules: BombRules, count: int) -> list[tuple[int, bool]]:
    """The bomb after every one of so many abandons in a row, and whether it was punished."""
    bomb = 0
    seen = []
    for _ in range(count):
        bomb, punished = rules.abandon(bomb)
        seen.append((bomb, punished))
    return seen


def finished(rules: BombRules, bomb: int, games: int) -> int:
    for _ in range(games):
        bomb = rules.finish(bomb)
    return bomb


def test_first_three_abandons_are_free_and_the_fourth_is_punished() -> None:
    seen = abandons_from_zero(BombRules(), 4)

    assert seen == [(10, False), (20, False), (30, False), (40, True)]


# The four ways to read "abandoning adds 10, and more than 20 is punished".
@pytest.mark.parametrize(
    ("check", "inclusive", "punished"),
    [
        ("before", False, [False, False, False, True]),
        ("after", False, [False, False, True, True]),
        ("before", True, [False, False, True, True]),
        ("after", True, [False, True, True, True]),
    ],
)
def test_each_reading_of_the_rule_frees_as_many_abandons_as_it_should(
    check: str, inclusive: bool, punished: list[bool]
) -> None:
    rules = BombRules(check=check, inclusive=inclusive)

    seen = abandons_from_zero(rules, 4)

    assert seen == list(zip([10, 20, 30, 40], punished, strict=True))


def test_long_story_of_abandons_and_finished_games_goes_as_the_rules_tell_it() -> None:
    rules = BombRules()
    story = [
        ("A", 10, False), ("A", 20, False), ("A", 30, False), ("A", 40, True),
        ("F×10", 30, False), ("A", 40, True),
        ("F×30", 10, False), ("A", 20, False), ("A", 30, False),
        ("F×50", 0, False), ("A", 10, False),
    ]  # fmt: skip
    bomb = 0
    told = []

    for what, _, _ in story:
        if what == "A":
            bomb, punished = rules.abandon(bomb)
        else:
            bomb, punished = finished(rules, bomb, int(what.removeprefix("F×"))), False
        told.append((what, bomb, punished))

    assert told == story


@pytest.mark.parametrize("bomb", range(41, 51))
def test_cap_cuts_the_step_so_that_ten_finished_games_no_longer_undo_it(bomb: int) -> None:
    rules = BombRules()

    after, punished = rules.abandon(bomb)

    assert (after, punished) == (50, True)
    assert finished(rules, after, 10) == 40


@pytest.mark.parametrize("bomb", range(41))
def test_ten_finished_games_undo_one_abandon_below_the_cap(bomb: int) -> None:
    rules = BombRules()

    after, _ = rules.abandon(bomb)

    # So who leaves one game in eleven neither rises nor falls.
    assert after == bomb + 10
    assert finished(rules, after, 10) == bomb


def test_test_comes_before_the_addition_at_the_threshold_itself() -> None:
    rules = BombRules()

    assert not rules.abandon(20).punished
    assert rules.abandon(21).punished


def test_finished_games_never_take_the_bomb_below_zero() -> None:
    assert finished(BombRules(), 3, 10) == 0
    assert BombRules(forgive=7).finish(5) == 0


def test_every_parameter_has_its_say() -> None:
    rules = BombRules(step=7, cap=25, forgive=3, threshold=13, inclusive=True, check="after")

    seen = abandons_from_zero(rules, 4)

    assert seen == [(7, False), (14, True), (21, True), (25, True)]
    assert rules.finish(25) == 22


def test_bomb_above_a_lowered_cap_comes_down_to_it() -> None:
    rules = BombRules(cap=30)

    assert rules.abandon(50).bomb == 30
    assert rules.finish(50) == 29


def test_steps_of_zero_switch_the_counter_off() -> None:
    seen = abandons_from_zero(BombRules(step=0), 100)

    assert seen == [(0, False)] * 100


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", -1),
        ("cap", 10_001),
        ("forgive", -1),
        ("threshold", 2.5),
        ("inclusive", 1),
        ("check", "never"),
    ],
)
def test_parameter_out_of_its_range_is_refused(name: str, value: float | str) -> None:
    with pytest.raises(BadParameterError, match=f"bomb_{name} is "):
        build(BombRules, {f"bomb_{name}": value}, "bomb_")


def abandoned(*leavers: str) -> GameAbandoned:
    sides = ({"players": ["alice"]}, {"players": ["bob"]})
    data = {"pool": "p", "game": "g", "sides": sides, "abandoned_by": leavers}
    return GameAbandoned.model_validate({"id": "1", "source": "/s", "time": NOON, "data": data})


# Loss to the phantom that holds the pool's lowest rating, 0, with deviation 30.
@pytest.mark.parametrize(
    ("rd", "loss"), [(350, -701.3), (200, -229.1), (100, -57.3), (50, -14.3), (30, -5.2)]
)
def test_penalty_costs_a_loss_to_the_lowest_possible_opponent(rd: float, loss: float) -> None:
    rules = PoolRules()
    alice = new_record(rules)._replace(rating=1500.0, rd=float(rd), bomb=30)

    verdict = fold_event(rules, {"alice": alice, "bob": new_record(rules)}, abandoned("alice"))

    (change,) = verdict.changes
    assert change.penalty
    assert change.after.rating - 1500 == pytest.approx(loss, abs=0.05)
    assert change.after.bomb == 40


@pytest.mark.parametrize("rd", [350, 200, 100, 50, 30])
def test_penalty_of_who_is_at_the_bottom_stays_there(rd: float) -> None:
    rules = PoolRules()
    alice = new_record(rules)._replace(rating=0.0, rd=float(rd), bomb=30)

    verdict = fold_event(rules, {"alice": alice, "bob": new_record(rules)}, abandoned("alice"))

    (change,) = verdict.changes
    assert change.penalty
    assert change.after.rating == 0.0
