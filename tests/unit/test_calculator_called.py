"""The calculator as other programs call it: what they get wrong is named, and what the examples say is so."""

import doctest
import importlib
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from petard_worker.ratings import calculator
from petard_worker.ratings.calculator import (
    CalculatorInputError,
    Entrant,
    KChoice,
    PeriodGame,
    PlayedGame,
    Setting,
    change,
    cite,
    estimated_percentile,
    expectation,
    expected_table,
    fide_tournament,
    k_for,
    percentile,
    performance,
    plain_tournament,
    read_entrant,
    read_game,
    read_k,
    read_rating,
    read_score,
    simulate_round_robin,
    simulate_swiss,
)

README = Path(__file__).parents[2] / "README.md"
TWO = [Entrant("Ann", 1900), Entrant("Bob", 1800)]
dice = Random(1).random
ANY: Any = None


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: expectation(ANY or "1500", 1600), "rating is '1500', but must be a number"),
        (lambda: expectation(1500, ANY), "the opponent's rating is None, but must be a number"),
        (lambda: expectation(1500, ANY or []), "the opponent's rating is .*, but must be a number"),
        (lambda: change(1500, 1600, 1, ANY or "20"), "K is '20', but must be a number such as 20"),
        (lambda: change(1500, 1600, 1, 0), "K is 0, but must be a number above 0"),
        (lambda: change(1500, 1600, ANY or "win", 20), "score is 'win', but must be 1"),
        (
            lambda: change(1500, 1600, 1, KChoice(given=ANY or "20")),
            "K is '20', but must be a number above 0",
        ),
        (lambda: change(1500, 1600, 1, KChoice(rule=ANY)), "the rule for K is None, but must be auto"),
        (
            lambda: change(1500, 1600, 1, KChoice(games=ANY or "5")),
            "number of games is '5', but must be a whole",
        ),
        (lambda: k_for(20, ANY or "1500"), "rating is '1500', but must be a number"),
        (lambda: performance(ANY), "the games are None, but must be a list"),
        (lambda: performance([ANY or 1500]), r"game is 1500, but must be PlayedGame\(opponent, score\)"),
        (lambda: performance([(ANY or "1500", 1)]), "the opponent's rating is '1500', but must be a number"),
        (lambda: performance([(1500, ANY or "1")]), "score is '1', but must be 1"),
        (lambda: plain_tournament(1500, ANY, 20), "the games are None, but must be a list"),
        (lambda: plain_tournament(ANY, [(1500, 1)], 20), "the starting rating is None"),
        (lambda: fide_tournament(1500, [PeriodGame(ANY)], 20), "game is None, but must be PlayedGame"),
        (
            lambda: fide_tournament(1500, [PeriodGame(PlayedGame(1500, 1), ANY or 5)], 20),
            "period is 5, but must be a text",
        ),
        (lambda: percentile(1500, [ANY or "1"]), "a listed rating is '1', but must be a number"),
        (lambda: estimated_percentile(ANY or "1500"), "rating is '1500', but must be a number"),
        (lambda: expected_table(ANY or "50"), "the step is '50', but must be a whole number"),
        (lambda: simulate_round_robin(ANY, Setting(), dice), "the players are None, but must be a list"),
        (lambda: simulate_round_robin([ANY or "Ann"], Setting(), dice), r"must be Entrant\(name, rating\)"),
        (lambda: simulate_round_robin([(ANY or 5, 1)], Setting(), dice), "player is named 5"),
        (lambda: simulate_round_robin(TWO, ANY or 100, dice), r"setting is 100, but must be a Setting\("),
        (lambda: simulate_swiss(TWO, 1, Setting(), ANY), "uniform is None, but must be a function"),
        (lambda: read_rating(ANY or 1500), "rating is 1500, but must be a text"),
        (lambda: read_score(ANY or 1), "result is 1, but must be a text"),
        (lambda: read_game(ANY or 1), "game is 1, but must be a text"),
        (lambda: read_k(ANY or 20), "K is 20, but must be a text"),
        (lambda: read_entrant(ANY), "player is None, but must be a text"),
        (lambda: cite("apa", ANY or ["elo"]), "but must be one of elo"),
    ],
)
def test_argument_of_a_wrong_type_is_refused_by_name(call, said: str) -> None:
    with pytest.raises(CalculatorInputError, match=said):
        call()


def test_number_is_k_itself() -> None:
    assert change(1500, 1600, 1, 20, 40) == change(1500, 1600, 1, KChoice(given=20), KChoice(given=40))
    assert plain_tournament(1500, [(1600, 1)], 20) == plain_tournament(
        1500, [PeriodGame(PlayedGame(1600, 1))], KChoice(given=20)
    )


def test_pair_is_a_game_or_a_player() -> None:
    assert performance([(1500, 1), (1600, 0.5)]) == performance([PlayedGame(1500, 1), PlayedGame(1600, 0.5)])
    assert simulate_round_robin([("Ann", 1900), ("Bob", 1800)], Setting(50), Random(1).random) == (
        simulate_round_robin(TWO, Setting(50), Random(1).random)
    )


def test_examples_in_the_package_are_so() -> None:
    failed, tried = doctest.testmod(calculator)

    assert (failed, tried > 5) == (0, True)


def test_examples_in_the_readme_are_so() -> None:
    section = README.read_text(encoding="utf-8").partition("## The calculator")[2].partition("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    told = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README.md", None, 0)

    assert len(told.examples) > 3
    assert doctest.DocTestRunner().run(told).failed == 0


def test_no_function_stands_in_the_way_of_a_module() -> None:
    parts = [path.stem for path in Path(calculator.__file__).parent.glob("[a-z]*.py")]

    for part in parts:
        module = importlib.import_module(f"{calculator.__name__}.{part}")
        assert getattr(calculator, part) is module
