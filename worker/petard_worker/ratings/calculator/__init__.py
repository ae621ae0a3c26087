"""The Elo calculator: what people ask about ratings, answered in numbers.

Every function takes numbers and returns a frozen result; what is refused is refused as CalculatorInputError.
Randomness, files and tables of pools stay outside. Sources are named where the formulas stand, and in `cite`.
"""

from petard_worker.ratings.calculator.accepted import (
    HIGHEST_K,
    HIGHEST_RATING,
    LOWEST_RATING,
    RESULTS,
    CalculatorInputError,
    Result,
    read_game,
    read_number,
    read_rating,
    read_score,
    shortened,
)
from petard_worker.ratings.calculator.change import Change, Move, Moves, change
from petard_worker.ratings.calculator.cite import STYLES, SYSTEMS, Citation, cite, cite_software
from petard_worker.ratings.calculator.expected import (
    BOUNDS,
    Expectation,
    Odds,
    PlayerExpectation,
    expectation,
)
from petard_worker.ratings.calculator.field import (
    MOST_RUNS,
    USUAL_DRAWS,
    USUAL_RUNS,
    Chances,
    Entrant,
    Forecast,
    Setting,
    simulate_round_robin,
    simulate_swiss,
)
from petard_worker.ratings.calculator.game_rows import read_games
from petard_worker.ratings.calculator.percentile import (
    GERMANY_2007,
    Estimate,
    Percentile,
    Reference,
    estimated_percentile,
    percentile,
    percentile_of_counts,
)
from petard_worker.ratings.calculator.performance import Performance, Record, performance
from petard_worker.ratings.calculator.table import STEP, WIDEST, TableRow, expected_table
from petard_worker.ratings.calculator.tournament import (
    GameLine,
    PeriodGame,
    PeriodLine,
    Tournament,
    fide_tournament,
    plain_tournament,
)
from petard_worker.ratings.calculator.which_k import KChoice, k_for, read_k

__all__ = [
    "BOUNDS",
    "GERMANY_2007",
    "HIGHEST_K",
    "HIGHEST_RATING",
    "LOWEST_RATING",
    "MOST_RUNS",
    "RESULTS",
    "STEP",
    "STYLES",
    "SYSTEMS",
    "USUAL_DRAWS",
    "USUAL_RUNS",
    "WIDEST",
    "CalculatorInputError",
    "Chances",
    "Change",
    "Citation",
    "Entrant",
    "Estimate",
    "Expectation",
    "Forecast",
    "GameLine",
    "KChoice",
    "Move",
    "Moves",
    "Odds",
    "Percentile",
    "Performance",
    "PeriodGame",
    "PeriodLine",
    "PlayerExpectation",
    "Record",
    "Reference",
    "Result",
    "Setting",
    "TableRow",
    "Tournament",
    "change",
    "cite",
    "cite_software",
    "estimated_percentile",
    "expectation",
    "expected_table",
    "fide_tournament",
    "k_for",
    "percentile",
    "percentile_of_counts",
    "performance",
    "plain_tournament",
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
