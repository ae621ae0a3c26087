"""Which K counts for a player, and why."""

from enum import StrEnum
from typing import NamedTuple, cast

from petard_worker.ratings.calculator.accepted import (
    MOST_GAMES,
    OLDEST,
    CalculatorInputError,
    check_count,
    check_k,
    check_range,
    check_rating,
    is_number,
    read_number,
    shortened,
    stripped,
)
from petard_worker.ratings.k_factors import K_RULES, KFactor, KReason, Results, limited
from petard_worker.ratings.parameters import PLAIN_NUMBER
from petard_worker.ratings.system import PlayerState

RULES = ("auto", "fide", "calculator")
"""Rules by name; auto is fide."""
ONE_GAME = Results(1, 0.0, 0.0)
GAMES_ASSUMED = 30


class Assumption(StrEnum):
    """What had to be assumed to find K."""

    GAMES = "games"
    """That GAMES_ASSUMED or more had been rated."""


class KChoice(NamedTuple):
    """How K is found: by a rule, from what is known of the player, or as it is given."""

    rule: str = "auto"
    given: float | None = None
    """K itself: then the rule does not count."""
    games: int | None = None
    """Rated before; None: not known."""
    age: float | None = None
    """In years at the end of the calendar year; None: not known, taken for a grown-up."""
    peak: float | None = None
    """The highest rating before; None: the rating as it is."""

    @property
    def assumed(self) -> Assumption | None:
        """Return what had to be assumed to find K, if anything had to be."""
        by_games = self.given is None and self.rule != "calculator"
        return Assumption.GAMES if by_games and self.games is None else None


def read_k(
    text: str, games: int | None = None, age: float | None = None, peak: float | None = None
) -> KChoice:
    """Return the choice that a text says: a rule's name or a number."""
    word = stripped(text, "K").lower()
    if word in RULES:
        return check_choice(KChoice(word, None, games, age, peak))
    if not PLAIN_NUMBER.fullmatch(word):
        raise CalculatorInputError(
            f"K is {shortened(text)}, but must be {', '.join(RULES)} or a number such as 20"
        )
    return check_choice(KChoice("auto", read_number(word, "K"), games, age, peak))


def check_choice(choice: KChoice | float) -> KChoice:
    """Return the choice if everything in it is in range; a number is K itself."""
    if is_number(choice):
        return KChoice(given=check_k(cast("float", choice)))
    if not isinstance(choice, KChoice):
        raise CalculatorInputError(
            f"K is {shortened(choice)}, but must be a number such as 20 or a KChoice, such as KChoice('fide')"
        )
    if choice.rule not in RULES:
        raise CalculatorInputError(
            f"the rule for K is {shortened(choice.rule)}, but must be {', '.join(RULES)}"
        )
    if choice.given is not None:
        check_k(choice.given)
    if choice.games is not None:
        check_count(choice.games, 0, MOST_GAMES, "the number of games")
    if choice.age is not None:
        check_range(choice.age, 0, OLDEST, "the age")
    if choice.peak is not None:
        check_rating(choice.peak, "the highest rating")
    return choice


def k_for(choice: KChoice | float, rating: float, together: int = 1, since: int = 0) -> KFactor:
    """Return K and why. Raises CalculatorInputError.

    together: how many games are rated together; since: how many were rated since the choice was made.
    """
    check_rating(rating)
    check_count(together, 1, MOST_GAMES, "the number of games rated together")
    check_count(since, 0, MOST_GAMES, "the number of games since")
    return found_k(check_choice(choice), rating, together, since)


def found_k(choice: KChoice, rating: float, together: int = 1, since: int = 0) -> KFactor:
    """Return K and why, of what was checked or calculated."""
    return limited(unlimited_k(choice, rating, since), together)


def unlimited_k(choice: KChoice, rating: float, since: int) -> KFactor:
    """Return K for a single game."""
    if choice.given is not None:
        return KFactor(choice.given, KReason.GIVEN)
    games = GAMES_ASSUMED if choice.games is None else choice.games
    player = PlayerState(rating, 0.0, games=games + since, peak=choice.peak, age=choice.age)
    rule = "fide" if choice.rule == "auto" else choice.rule
    return K_RULES[rule](player, ONE_GAME)
