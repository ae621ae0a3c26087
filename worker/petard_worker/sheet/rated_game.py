"""The sheet of a game that the calculator has rated."""

from datetime import date
from typing import Literal, NamedTuple

from petard_worker.ratings.calculator import GameEffect, KChoice, counted_difference
from petard_worker.sheet.elo_sheet import Sheet
from petard_worker.sheet.words import k_reason


class Heading(NamedTuple):
    """What a sheet says that no calculation needs: who played, when, and in which language it says so."""

    player: str
    opponent: str
    date: date
    lang: Literal["en", "fr"]


def sheet_of(found: GameEffect, choice: KChoice, heading: Heading) -> Sheet:
    """Return the sheet of a game, as the player has it; `choice` is how the player's K was chosen.

    Raises ValueError for a name that is too long and for an unknown language.
    """
    moves = found.player
    return Sheet(
        player=heading.player,
        opponent=heading.opponent,
        rating=moves.rating,
        opponent_rating=found.opponent_rating,
        score=moves.score,
        k=moves.k.k,
        k_reason=k_reason(moves.k, choice, heading.lang),
        expected=moves.plain.expected,
        expected_fide=moves.fide.expected,
        difference_fide=counted_difference(moves.rating, found.opponent_rating),
        change=moves.plain.change,
        change_fide=moves.fide.change,
        new_rating=moves.plain.new,
        new_rating_fide=moves.fide.new,
        performance=found.performance.exact,
        performance_fide=found.performance.fide,
        date=heading.date,
        games=choice.games,
        age=choice.age,
        lang=heading.lang,
    )
