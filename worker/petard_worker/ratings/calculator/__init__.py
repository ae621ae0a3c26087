"""The Elo calculator: what people ask about ratings, answered in numbers.

Every function takes numbers and returns a frozen result; what is refused is refused as CalculatorInputError.
Randomness, files and tables of pools stay outside. Sources are named where the formulas stand, and in `cite`.

    >>> from petard_worker.ratings.calculator import KChoice, change, expectation, performance
    >>> round(expectation(1500, 1700).player.logistic, 4)
    0.2403
    >>> moves = change(1200, 1800, 1, 40).player  # a win with K = 40
    >>> round(moves.plain.change, 2), round(moves.fide.change, 2)
    (38.77, 36.8)
    >>> change(1200, 1800, 1, KChoice("fide", games=12)).player.k.k
    40
    >>> performance([(1500, 1), (1600, 0.5), (1700, 0)]).fide
    1600.0

A forecast needs random numbers from its caller:

    >>> from random import Random
    >>> from petard_worker.ratings.calculator import Setting, simulate_round_robin
    >>> players = [("Ann", 1900), ("Bob", 1800), ("Cem", 1750)]
    >>> found = simulate_round_robin(players, Setting(runs=1000), Random(1).random)
    >>> found.players[0].name
    'Ann'
"""

from petard_worker.ratings.calculator.accepted import (
    HIGHEST_K,
    HIGHEST_RATING,
    LOWEST_RATING,
    RESULTS,
    CalculatorInputError,
    PlayedGame,
    check_count,
    check_range,
    read_count,
    read_game,
    read_number,
    read_rating,
    read_score,
    shortened,
)
from petard_worker.ratings.calculator.citation import (
    CITED,
    PETARD,
    STYLES,
    SYSTEMS,
    Citation,
    alphabetical,
    cite,
    cite_software,
)
from petard_worker.ratings.calculator.curve import WIDEST, Point, fide_line, logistic_line
from petard_worker.ratings.calculator.entrants import read_entrant, read_entrants
from petard_worker.ratings.calculator.expected import (
    BOUNDS,
    LOGISTIC_FORMULA,
    SCALE,
    TABLE_FORMULA,
    Bound,
    Expectation,
    Odds,
    PlayerExpectation,
    counted_difference,
    counted_score,
    expectation,
    logistic,
)
from petard_worker.ratings.calculator.field import (
    MOST_PLAYERS,
    MOST_RUNS,
    USUAL_DRAWS,
    USUAL_RUNS,
    Chances,
    Entrant,
    Forecast,
    Setting,
    check_setting,
    simulate_round_robin,
    simulate_swiss,
)
from petard_worker.ratings.calculator.game_effect import (
    FIDE_CHANGE_FORMULA,
    PLAIN_FORMULA,
    GameEffect,
    Move,
    Moves,
    change,
)
from petard_worker.ratings.calculator.game_rows import read_games
from petard_worker.ratings.calculator.performance_rating import (
    EXACT_FORMULA,
    FIDE_PERFORMANCE_FORMULA,
    LINEAR_FORMULA,
    Performance,
    PerformanceNote,
    Record,
    performance,
)
from petard_worker.ratings.calculator.share_below import (
    GERMANY_2007,
    Estimate,
    Percentile,
    Reference,
    estimated_percentile,
    percentile,
    percentile_of_counts,
)
from petard_worker.ratings.calculator.table import STEP, TableRow, expected_table
from petard_worker.ratings.calculator.tournament import (
    GameLine,
    PeriodGame,
    PeriodLine,
    Tournament,
    fide_tournament,
    plain_tournament,
)
from petard_worker.ratings.calculator.which_k import (
    GAMES_ASSUMED,
    RULES,
    Assumption,
    KChoice,
    k_for,
    read_k,
)
from petard_worker.ratings.k_factors import KFactor, KReason

__all__ = [
    "BOUNDS",
    "CITED",
    "EXACT_FORMULA",
    "FIDE_CHANGE_FORMULA",
    "FIDE_PERFORMANCE_FORMULA",
    "GAMES_ASSUMED",
    "GERMANY_2007",
    "HIGHEST_K",
    "HIGHEST_RATING",
    "LINEAR_FORMULA",
    "LOGISTIC_FORMULA",
    "LOWEST_RATING",
    "MOST_PLAYERS",
    "MOST_RUNS",
    "PETARD",
    "PLAIN_FORMULA",
    "RESULTS",
    "RULES",
    "SCALE",
    "STEP",
    "STYLES",
    "SYSTEMS",
    "TABLE_FORMULA",
    "USUAL_DRAWS",
    "USUAL_RUNS",
    "WIDEST",
    "Assumption",
    "Bound",
    "CalculatorInputError",
    "Chances",
    "Citation",
    "Entrant",
    "Estimate",
    "Expectation",
    "Forecast",
    "GameEffect",
    "GameLine",
    "KChoice",
    "KFactor",
    "KReason",
    "Move",
    "Moves",
    "Odds",
    "Percentile",
    "Performance",
    "PerformanceNote",
    "PeriodGame",
    "PeriodLine",
    "PlayedGame",
    "PlayerExpectation",
    "Point",
    "Record",
    "Reference",
    "Setting",
    "TableRow",
    "Tournament",
    "alphabetical",
    "change",
    "check_count",
    "check_range",
    "check_setting",
    "cite",
    "cite_software",
    "counted_difference",
    "counted_score",
    "estimated_percentile",
    "expectation",
    "expected_table",
    "fide_line",
    "fide_tournament",
    "k_for",
    "logistic",
    "logistic_line",
    "percentile",
    "percentile_of_counts",
    "performance",
    "plain_tournament",
    "read_count",
    "read_entrant",
    "read_entrants",
    "read_game",
    "read_games",
    "read_k",
    "read_number",
    "read_rating",
    "read_score",
    "shortened",
    "simulate_round_robin",
    "simulate_swiss",
]
