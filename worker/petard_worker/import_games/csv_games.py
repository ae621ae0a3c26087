"""CSV files with one game of two players (or teams) per row.

Nothing is guessed silently: a result, a score, a time or a truth value that is not on the lists below makes
its row a BadRow, and a file that lacks a column is refused as a whole.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from petard_schema import EventRefused, GameFinished
from petard_schema.ijson import shorten
from petard_schema.times import parse_time
from petard_worker.import_games.rows import (
    DRAWN,
    FIRST_WON,
    SECOND_WON,
    BadRow,
    GameRows,
    Outcome,
    Pairing,
    Ranks,
    RowRefused,
    without_bom,
)

if TYPE_CHECKING:
    from _csv import Reader

RESULTS: dict[str, Ranks] = {
    **dict.fromkeys(("1-0", "1", "1.0", "win"), FIRST_WON),
    **dict.fromkeys(("0-1", "0", "0.0", "loss"), SECOND_WON),
    **dict.fromkeys(("1/2-1/2", "½-½", "0.5-0.5", "1/2", "½", "0.5", "draw", "drawn", "tie", "d"), DRAWN),
}
"""Results as the first player sees them."""

WINNERS = {"white": "white", "black": "black", "home": "home", "away": "away", "h": "home", "a": "away"}
"""Results that name a winner by a word, which must stand in the name of that player's column."""

TRUTH = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}

_iso = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"([Tt ](?P<clock>\d\d:\d\d(:\d\d(\.\d{1,9})?)?) ?(?P<zone>UTC|Z|z|[+-]\d\d:?\d\d)?)?\Z",
    re.ASCII,
)
_score = re.compile(r"[+-]?\d+(\.\d+)?\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvColumns:
    """Which columns of the file say what: `result`, or `first_score` and `second_score`."""

    first: str
    second: str
    time: str
    result: str | None = None
    """Seen from the first player: 1-0, 0-1, 1/2-1/2, 1, 0, 0.5, win, loss, draw; or the winner's name."""
    first_score: str | None = None
    second_score: str | None = None
    """More is better."""
    time_format: str | None = None
    """As for strptime; without it ISO 8601. Where no zone is given it is UTC, where no time it is 00:00."""
    game: str | None = None
    """Names of games; without it they are made of players and time."""
    neutral: str | None = None
    """True where nobody is at home; where it is false, the first player is."""
    first_at_home: bool = False
    """The first player is always at home; for files without a column that says so."""
    delimiter: str = ","

    def __post_init__(self) -> None:
        """Raise ValueError for columns that cannot tell who won, or a format that cannot tell when."""
        scores = (self.first_score, self.second_score)
        if (self.result is None) == (scores == (None, None)) or (self.result is None and None in scores):
            raise ValueError("name either the column of the result or the columns of both scores")
        if self.neutral is not None and self.first_at_home:
            raise ValueError("a column for neutral ground and 'first at home' exclude each other")
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            raise ValueError("the delimiter is one character, no quote and no end of line")
        if self.time_format is not None:
            check_format(self.time_format)

    def names(self) -> list[str]:
        """Return the columns that the file must have."""
        columns = (
            self.first,
            self.second,
            self.time,
            self.result,
            self.first_score,
            self.second_score,
            self.game,
            self.neutral,
        )
        return [column for column in columns if column is not None]


def read_csv(
    lines: Iterable[str], columns: CsvColumns, pool: str, source: str
) -> Iterator[GameFinished | BadRow]:
    """Return the games and bad rows in the order of the file, which is read as they are asked for.

    Raises ValueError at once where the file has no such columns or no event could carry the pool or source.
    """
    rows = GameRows(pool, source)
    reader = csv.reader(without_bom(lines), delimiter=columns.delimiter, strict=True)
    header = read_header(reader)
    check_columns(header, columns)
    return read_rows(reader, header, columns, rows)


def read_header(reader: "Reader") -> list[str]:
    """Return the names of the columns: the first line that is not empty."""
    try:
        for row in reader:
            if not is_empty(row):
                return [name.strip() for name in row]
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: not the header of a CSV file: {error}") from None
    raise ValueError("the file is empty: it has no header")


def check_columns(header: list[str], columns: CsvColumns) -> None:
    """Raise ValueError where a column is missing or stands twice."""
    count = Counter(header)
    for name in columns.names():
        if not count[name]:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(map(repr, header))}")
        if count[name] > 1:
            raise ValueError(f"the column {name!r} stands in the header {count[name]} times")


def read_rows(
    reader: "Reader", header: list[str], columns: CsvColumns, rows: GameRows
) -> Iterator[GameFinished | BadRow]:
    """Yield a game or a bad row for every row that is not empty."""
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader, None)
            if fields is None:
                return
            if not is_empty(fields):
                yield read_game(name_fields(header, fields), columns, rows)
        except (csv.Error, RowRefused, EventRefused) as refused:
            # A quote that is never closed takes the lines after it along; they are not lost without a word.
            through = f" (lines {line} to {reader.line_num})" if reader.line_num > line else ""
            yield BadRow(line, f"{refused}{through}")


def is_empty(fields: list[str]) -> bool:
    """Return whether the row is an empty line."""
    return len(fields) < 2 and not "".join(fields).strip()


def name_fields(header: list[str], fields: list[str]) -> dict[str, str]:
    """Return the fields by column, without the blanks around them."""
    if len(fields) != len(header):
        raise RowRefused(f"has {len(fields)} fields, the header has {len(header)}")
    return {name: value.strip(" \t") for name, value in zip(header, fields, strict=True)}


def read_game(row: dict[str, str], columns: CsvColumns, rows: GameRows) -> GameFinished:
    """Return the game in the row, or raise RowRefused or EventRefused."""
    first, second = row[columns.first], row[columns.second]
    time = read_time(row[columns.time], columns.time_format)
    # Counted before its outcome is looked at: a row that is mended later must not rename those below it.
    pairing = (
        rows.pairing(first, second, time)
        if columns.game is None
        else Pairing(first, second, time, row[columns.game])
    )
    return rows.finished(pairing, read_outcome(row, columns))


def read_outcome(row: dict[str, str], columns: CsvColumns) -> Outcome:
    """Return how the game in the row ended."""
    home = read_home(row, columns)
    if columns.result is not None:
        return Outcome(read_result(row, columns.result, columns), home=home)
    assert columns.first_score is not None
    assert columns.second_score is not None
    first, second = read_score(row, columns.first_score), read_score(row, columns.second_score)
    ranks = DRAWN if first == second else FIRST_WON if first > second else SECOND_WON
    return Outcome(ranks, (first, second), home)


def read_result(row: dict[str, str], column: str, columns: CsvColumns) -> Ranks:
    """Return the ranks for a text such as 1-0, draw, white, or the winner's name."""
    text = row[column]
    word = text.casefold().replace(" ", "").replace("–", "-")
    readings = {
        *winners_by_name(text, row[columns.first], row[columns.second]),
        *winners_by_word(WINNERS.get(word), columns),
        *([RESULTS[word]] if word in RESULTS else []),
    }
    if len(readings) == 1:
        return readings.pop()
    if word in {"*", ""}:
        raise RowRefused(f"{column} is {shorten(text)}: the game has no result")
    problem = "could mean either player" if readings else "is no known result"
    raise RowRefused(f"{column} is {shorten(text)}, which {problem}")


def winners_by_name(text: str, first: str, second: str) -> Iterator[Ranks]:
    """Yield who won where the result is a player's name."""
    if text and text == first:
        yield FIRST_WON
    if text and text == second:
        yield SECOND_WON


def winners_by_word(word: str | None, columns: CsvColumns) -> Iterator[Ranks]:
    """Yield who won where the result is a word that stands in the name of a player's column."""
    if word is None:
        return
    if word in columns.first.casefold():
        yield FIRST_WON
    if word in columns.second.casefold():
        yield SECOND_WON


def read_score(row: dict[str, str], column: str) -> float:
    """Return the number of points in the column."""
    text = row[column]
    if not _score.match(text):
        raise RowRefused(f"{column} is {shorten(text)}, not a number of points")
    return float(text)


def read_home(row: dict[str, str], columns: CsvColumns) -> tuple[bool, bool] | None:
    """Return who of the two is at home, or None where the file does not say."""
    if columns.neutral is None:
        return (True, False) if columns.first_at_home else None
    text = row[columns.neutral]
    neutral = TRUTH.get(text.casefold())
    if neutral is None:
        raise RowRefused(f"{columns.neutral} is {shorten(text)}, neither true nor false")
    return not neutral, False


def read_time(text: str, time_format: str | None) -> datetime:
    """Return the time in UTC; a day alone is its first instant, a time without zone is UTC."""
    try:
        if time_format is None:
            return parse_time(read_iso(text))
        time = datetime.strptime(text, time_format)  # noqa: DTZ007 - the zone is added below
        return parse_time(time if time.tzinfo else time.replace(tzinfo=UTC))
    except ValueError as error:
        raise RowRefused(f"time is {shorten(text)}: {error}") from None


def read_iso(text: str) -> datetime:
    """Return the time of an ISO 8601 text."""
    parts = _iso.match(text)
    if parts is None:
        raise ValueError("not like 2026-11-30 or 2026-11-30 12:00:00")
    zone = parts["zone"] or "Z"
    offset = "+00:00" if zone in {"UTC", "Z", "z"} else zone
    return datetime.fromisoformat(f"{parts['day']}T{parts['clock'] or '00:00'}{offset}")


def check_format(time_format: str) -> None:
    """Raise ValueError where a time written in the format cannot be read back to the day."""
    probe = datetime(2003, 11, 30, tzinfo=UTC)
    try:
        day = datetime.strptime(probe.strftime(time_format), time_format).date()  # noqa: DTZ007
    except ValueError as error:
        raise ValueError(f"the time format {time_format!r} is not usable: {error}") from None
    if day != probe.date():
        raise ValueError(f"the time format {time_format!r} does not hold year, month and day")
