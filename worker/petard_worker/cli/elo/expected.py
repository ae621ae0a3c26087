"""`petard elo expected`."""

from petard_worker.cli.elo.arguments import OpponentArgument, RatingArgument, calculator_errors
from petard_worker.cli.elo.facts import as_facts, note, percent, rating
from petard_worker.cli.output import JsonOption, print_json, print_table
from petard_worker.ratings.calculator import BOUNDS, Expectation, expectation, read_rating

NO_CHANCE = (
    "an expected score counts draws as half: 75 % is 75 wins and 25 losses of 100, or 50 wins and 50 draws"
)


def expected(player: RatingArgument, opponent: OpponentArgument, json: JsonOption = False) -> None:
    """Show the expected scores of two ratings, by the logistic curve and by FIDE's table 8.1.2.

    The words go by the logistic expected score of the better one: even below 55 %, slight favourite below
    65 %, favourite below 80 %, strong favourite below 95 %, overwhelming favourite from there on; the other
    one is an underdog by the same bounds.

    Example: petard elo expected 1850 1700. Ratings below 0: petard elo expected -- -50 100
    """
    with calculator_errors():
        found = expectation(read_rating(player), read_rating(opponent, "the opponent's rating"))
    if json:
        print_json(as_facts(found))
        return
    show(found)


def show(found: Expectation) -> None:
    """Print what is expected of both."""
    sides = (found.player, found.opponent)
    rows = [
        ("rating", *(rating(side.rating) for side in sides)),
        ("difference", *(f"{side.difference:+g}" for side in sides)),
        ("expected, logistic", *(percent(side.logistic) for side in sides)),
        ("expected, FIDE table 8.1.2", *(percent(side.table) for side in sides)),
    ]
    if any(side.cap_matters for side in sides):
        rows.append(
            ("rated by FIDE (difference at most 400 below 2650)", *(percent(side.counted) for side in sides))
        )
    rows.append(("in words", *(str(side.odds) for side in sides)))
    print_table(("", "player", "opponent"), rows)
    note(NO_CHANCE)
    note(bounds())


def bounds() -> str:
    """Return from which expected score on which words are used."""
    return ", ".join(f"{bound.better} from {bound.lowest:.0%}" for bound in reversed(BOUNDS))
