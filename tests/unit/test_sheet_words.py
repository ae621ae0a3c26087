"""Why K is what it is, said in the language of the page and in no other."""

from itertools import product

import pytest

from petard_worker.ratings.calculator import RULES, KChoice, KReason, k_for
from petard_worker.sheet.words import K_REASONS, WORDS, k_reason

EVERY_K = {
    (k_for(choice, rating, together), choice)
    for rule, given, rating, games, age, peak, together in product(
        RULES, (None, 40), (1500, 2200, 2450), (None, 0, 100), (None, 18), (None, 2450), (1, 20)
    )
    for choice in [KChoice(rule, given, games, age, peak)]
}
"""All that a rule of the calculator says, for players of every kind."""


def test_every_rule_has_its_reason_in_both_languages():
    said = {factor: [k_reason(factor, choice, lang) for lang in WORDS] for factor, choice in EVERY_K}

    assert all(english != french and english and french for english, french in said.values())
    reasons = {factor.reason for factor in said}
    assert reasons == set(KReason) - {KReason.EGF, KReason.DWZ}  # no rules of the calculator
    assert all(reasons == of_language.keys() for of_language in K_REASONS.values())


def test_reason_of_a_limited_k_says_what_it_would_be_and_for_how_many_games():
    choice = KChoice(games=0)

    factor = k_for(choice, 1500, together=20)

    assert [k_reason(factor, choice, lang) for lang in ("en", "fr")] == [
        "not 40: 20 games in one period, at most 700 in all: FIDE 8.3.3",
        "non 40 : 20 parties dans la période, 700 au plus en tout : FIDE 8.3.3",
    ]


@pytest.mark.parametrize(
    ("choice", "english", "french"),
    [
        (KChoice(games=5), "fewer than 30 games: FIDE 8.3.3", "moins de 30 parties : FIDE 8.3.3"),
        (KChoice(given=24), "as given", "indiqué"),
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


def test_french_has_no_typewriter_apostrophes():
    said = [*WORDS["fr"].values(), *K_REASONS["fr"].values()]

    assert not [text for text in said if "'" in text]
