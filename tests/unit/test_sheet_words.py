"""Why K is what it is, said in the language of the page and in no other."""

from itertools import product

import pytest

from petard_worker.ratings.calculator import KChoice, k_for
from petard_worker.ratings.calculator.which_k import RULES
from petard_worker.ratings.k_factors import CALCULATOR_BANDS
from petard_worker.sheet.words import K_REASONS, WORDS, k_reason

EVERY_K = {
    (k_for(choice, rating), choice)
    for rule, rating, games, age, peak in product(
        RULES, (1500, 2200, 2350, 2450), (None, 0, 29, 30, 100), (None, 12, 18, 40), (None, 2450)
    )
    for choice in [KChoice(rule, None, games, age, peak)]
}
"""All that a rule of the calculator says, for players of every kind."""


def test_every_rule_has_its_reason_in_both_languages():
    reasons = {factor: [k_reason(factor, choice, lang) for lang in WORDS] for factor, choice in EVERY_K}

    assert len(reasons) == 4 + len(CALCULATOR_BANDS)
    assert all(english != french and english and french for english, french in reasons.values())
    assert all(reasons.keys() == of_language.keys() for of_language in K_REASONS.values())


@pytest.mark.parametrize(
    ("choice", "english", "french"),
    [
        (KChoice(games=5), "fewer than 30 games: FIDE 8.3.3", "moins de 30 parties : FIDE 8.3.3"),
        (KChoice(given=24), "as given", "indiqué"),
        (
            KChoice(given=900.5),
            "900.5 given, but at most 700 for one game: FIDE 8.3.3",
            "900,5 indiqué, mais 700 au plus pour une partie : FIDE 8.3.3",
        ),
        (
            KChoice(),
            "30 games or more, never rated 2400: FIDE 8.3.3; number of games not given",
            "30 parties ou plus, jamais classé 2400 : FIDE 8.3.3 ; nombre de parties non indiqué",
        ),
        (
            KChoice("calculator"),
            "rated below 2100: many online calculators, not FIDE",
            "classé sous 2100 : de nombreux calculateurs en ligne, pas la FIDE",
        ),
    ],
    ids=str,
)
def test_reason_says_who_gave_k_and_what_was_assumed(choice, english, french):
    factor = k_for(choice, 1500)

    assert [k_reason(factor, choice, lang) for lang in ("en", "fr")] == [english, french]


def test_languages_say_the_same_things():
    assert WORDS["en"].keys() == WORDS["fr"].keys()
