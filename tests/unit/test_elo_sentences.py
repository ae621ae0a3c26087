"""Every key of the calculator's results has its sentence, in words and in JSON."""

import pytest

from petard_worker.cli.elo.facts import as_facts
from petard_worker.cli.elo.sentences import K_REASONS, assumed, k_why
from petard_worker.ratings.calculator import (
    Assumption,
    KChoice,
    KFactor,
    KReason,
    PeriodGame,
    PlayedGame,
    Setting,
    expectation,
    fide_tournament,
    k_for,
    performance,
    simulate_round_robin,
)
from petard_worker.ratings.calculator.entrants import read_entrant


def test_every_reason_of_a_k_has_a_sentence_of_its_own() -> None:
    assert K_REASONS.keys() == set(KReason)
    assert len(set(K_REASONS.values())) == len(KReason)


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (k_for(KChoice(given=32), 1500), "K 32: as given"),
        (k_for(KChoice(games=3), 1500), "K 40: fewer than 30 games (FIDE B.02, 8.3.3)"),
        (
            k_for(KChoice(games=3), 1500, together=20),
            "K 35 instead of 40: 20 games in one period, and K times games is at most 700 (FIDE B.02, 8.3.3)",
        ),
    ],
    ids=str,
)
def test_sentence_names_k_and_why(factor: KFactor, said: str) -> None:
    assert k_why(factor) == said


def test_assumption_is_said_with_its_number() -> None:
    assert assumed(Assumption.GAMES) == "number of games not given: 30 or more assumed"


def test_json_has_key_and_sentence_of_a_limited_k() -> None:
    assert as_facts(k_for(KChoice(games=3), 1500, together=20)) == {
        "k": 35,
        "reason": "fide_new",
        "unlimited": 40,
        "together": 20,
        "why": "K 35 instead of 40: 20 games in one period, and K times games is at most 700"
        " (FIDE B.02, 8.3.3)",
    }


def test_json_has_key_and_sentence_of_the_notes_of_a_performance() -> None:
    facts = as_facts(performance([PlayedGame(1500, 0)]))

    assert isinstance(facts, dict)
    assert facts["fide_note"] == {
        "key": "notional",
        "why": "for 0 % table 8.1.1 has no difference of its own: FIDE takes -800 notionally",
    }
    assert facts["exact_note"] == {
        "key": "no_exact",
        "why": "none expects 0 % exactly: the one that comes closest is infinite",
    }


def test_json_has_all_that_a_tournament_knows() -> None:
    facts = as_facts(fide_tournament(1402, [PeriodGame(PlayedGame(1402, 0))], KChoice(given=40)))

    assert isinstance(facts, dict)
    assert facts["ratings"] == [1402, 1382]
    assert facts["record"] == {"wins": 0, "draws": 0, "losses": 1, "games": 1, "points": 0}
    assert facts["periods"][0]["below_floor"] is True
    assert facts["assumed"] is None


def test_json_has_the_mean_place_and_whether_the_cap_matters() -> None:
    field = [read_entrant("A:9000"), read_entrant("B:-9000")]

    forecast = as_facts(simulate_round_robin(field, Setting(10), lambda: 0.5, lambda _done: None))
    expected = as_facts(expectation(1200, 1800))

    assert isinstance(forecast, dict)
    assert isinstance(expected, dict)
    assert [player["mean_place"] for player in forecast["players"]] == [1, 2]
    assert expected["player"]["cap_matters"] is True
