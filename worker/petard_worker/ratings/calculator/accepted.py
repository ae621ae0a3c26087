"""What the calculator accepts: ratings, results, K and counts, from numbers or from text.

Everything refused is refused in one way, CalculatorInputError, whose message names the value and what was
expected. So no other file here ever sees a number that is not finite.
"""

from collections.abc import Iterable
from numbers import Real
from typing import NamedTuple

from petard_worker.ratings import fide
from petard_worker.ratings.parameters import as_number

LOWEST_RATING, HIGHEST_RATING = -10_000, 10_000
"""Those of the pools: what a pool can hold, the calculator can calculate with."""
HIGHEST_K = fide.MOST_K_N
"""A larger one would be lowered for a single game already (FIDE's 8.3.3), but not in the plain formula."""
MOST_GAMES = 1_000_000
OLDEST = 150
LONGEST_SHOWN = 40

SCORES = {
    **dict.fromkeys(("win", "w"), 1.0),
    **dict.fromkeys(("draw", "d", "1/2", "½"), 0.5),
    **dict.fromkeys(("loss", "l"), 0.0),
}
RESULTS = {1.0: "win", 0.5: "draw", 0.0: "loss"}


class CalculatorInputError(ValueError):
    """Something the calculator cannot calculate with; the message says which value and what was expected."""


class PlayedGame(NamedTuple):
    """A game that was played: the opponent's rating, and 1 for a win, 0.5 for a draw, 0 for a loss."""

    opponent: float
    score: float


def check_rating(value: float, what: str = "rating") -> float:
    """Return the rating if it is finite and in range."""
    return check_range(value, LOWEST_RATING, HIGHEST_RATING, what)


def check_k(value: float) -> float:
    """Return K if it is above 0 and in range."""
    if is_number(value) and 0 < value <= HIGHEST_K:
        return value
    raise CalculatorInputError(
        f"K is {shortened(value)}, but must be a number above 0 and at most {HIGHEST_K}"
    )


def check_count(value: int, lowest: int, highest: int, what: str) -> int:
    """Return a whole number if it is in range."""
    if isinstance(value, int) and lowest <= value <= highest:
        return value
    raise CalculatorInputError(
        f"{what} is {shortened(value)}, but must be a whole number from {lowest} to {highest}"
    )


def check_range(value: float, lowest: float, highest: float, what: str) -> float:
    """Return the number if it is finite and in range."""
    if is_number(value) and lowest <= value <= highest:  # neither infinities nor nan are
        return value
    raise CalculatorInputError(
        f"{what} is {shortened(value)}, but must be a number from {lowest:g} to {highest:g}"
    )


def is_number(value: object) -> bool:
    """Return whether it is a number, of whatever type; the text of one is not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_score(value: float) -> float:
    """Return the score if a game can end with it."""
    if is_number(value) and value in RESULTS:
        return float(value)
    raise CalculatorInputError(f"score is {shortened(value)}, but must be 1 (win), 0.5 (draw) or 0 (loss)")


def check_results(results: Iterable[PlayedGame | tuple[float, float]]) -> tuple[PlayedGame, ...]:
    """Return the results if there are any and all of them can have been played."""
    if not isinstance(results, Iterable):
        raise CalculatorInputError(f"the games are {shortened(results)}, but must be a list of them")
    played = tuple(check_game(result) for result in results)
    if not played:
        raise CalculatorInputError("there are no games, but at least one is needed")
    return played


def check_game(game: PlayedGame | tuple[float, float]) -> PlayedGame:
    """Return the game if it can have been played; a pair of opponent's rating and score is one too."""
    if not isinstance(game, tuple) or len(game) != 2:
        raise CalculatorInputError(
            f"game is {shortened(game)}, but must be PlayedGame(opponent, score), such as PlayedGame(1800, 1)"
        )
    opponent, score = game
    return PlayedGame(check_rating(opponent, "the opponent's rating"), check_score(score))


def read_rating(text: str, what: str = "rating") -> float:
    """Return the rating that a text says; numbers are as people write them, `1500` or `-12.5`."""
    return check_rating(read_number(text, what), what)


def read_number(text: str, what: str) -> float:
    """Return the finite number that a text says."""
    number = as_number(stripped(text, what), whole=False)
    if number is None:
        raise CalculatorInputError(f"{what} is {shortened(text)}, but must be a number such as 1500 or -12.5")
    return number


def read_count(text: str, what: str) -> int:
    """Return the whole number that a text says."""
    number = as_number(stripped(text, what), whole=True)
    if number is None:
        raise CalculatorInputError(f"{what} is {shortened(text)}, but must be a whole number such as 30")
    return int(number)


def read_score(text: str) -> float:
    """Return the score that a result stands for: 1, 0.5 or 0, in whatever decimals."""
    word = stripped(text, "result").lower()
    score = SCORES.get(word)
    if score is None:
        # A result has no thousands: its comma is a decimal one everywhere.
        score = as_number(word.replace(",", "."), whole=False)
    if score not in RESULTS:
        raise CalculatorInputError(
            f"result is {shortened(text)}, but must be win, draw or loss (or w, d, l, 1, 0.5, 1/2, ½, 0)"
        )
    return float(score)


def read_game(text: str) -> PlayedGame:
    """Return the game that `OPPONENT:RESULT` stands for, such as `1800:win`."""
    opponent, colon, result = stripped(text, "game").partition(":")
    if not colon:
        raise CalculatorInputError(
            f"game is {shortened(text)}, but must be OPPONENT:RESULT such as 1800:win or 1650:draw"
        )
    return PlayedGame(read_rating(opponent, "the opponent's rating"), read_score(result))


def stripped(text: str, what: str) -> str:
    """Return a text without the spaces around it."""
    if isinstance(text, str):
        return text.strip()
    raise CalculatorInputError(f"{what} is {shortened(text)}, but must be a text")


def shortened(value: object) -> str:
    """Return a value as a message can show it, a text in quotes, whatever it is and however long."""
    if not isinstance(value, str):
        shown = ascii(value)
        return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}..."
    return ascii(value) if len(value) <= LONGEST_SHOWN else f"{value[:LONGEST_SHOWN]!a}..."
