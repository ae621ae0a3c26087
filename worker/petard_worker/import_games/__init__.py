"""Other people's files of games, read as events."""

from petard_worker.import_games.csv_games import CsvColumns, read_csv
from petard_worker.import_games.pgn_games import read_pgn
from petard_worker.import_games.rows import BadRow

__all__ = ["BadRow", "CsvColumns", "read_csv", "read_pgn"]
