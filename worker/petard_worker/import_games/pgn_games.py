"""Chess games in Portable Game Notation: who played, when, and how it ended. The moves are not read.

The tags of a game say when it began, not when it ended; that is taken for its time, as all PGN programs sort
by it. Where a file gives no UTC time, its local one is taken as if it were.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from petard_schema import EventRefused, GameAbandoned, GameFinished
from petard_schema.ijson import shorten
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

RESULTS: dict[str, Ranks] = {"1-0": FIRST_WON, "0-1": SECOND_WON, "1/2-1/2": DRAWN}

NAMING = ("Event", "Site", "Round", "GameId", "Link")
TIMING = ("UTCDate", "UTCTime", "Date", "Time")
WANTED = frozenset(("White", "Black", "Result", "Termination", *NAMING, *TIMING))

_tag = re.compile(r'\s*\[\s*(\w+)\s+"((?:[^"\\]|\\.)*)"\s*\]')
_careless_tag = re.compile(r'\s*\[\s*(\w+)\s+"(.*)"\s*\]\s*$')
"""One tag on a line of its own, with quotes in its value that nobody escaped."""
_broken_tag = re.compile(r"\[\s*\w+[\s\]]")
_escaped = re.compile(r"\\([\"\\])")
_comment = re.compile("[{;]")
_date = re.compile(r"(\d{4})[.\-/](\d\d?)[.\-/](\d\d?)\Z", re.ASCII)
_clock = re.compile(r"(\d\d?):(\d\d)(?::(\d\d)(?:\.\d+)?)?\Z", re.ASCII)
_own_address = re.compile(r"https?://(www\.)?(lichess\.org/(\w{8}|\w{12})|chess\.com/[\w/]+/\d+)\Z", re.ASCII)
"""Addresses that belong to one game. Most sites are not: they name a town or a tournament."""


@dataclass(slots=True)
class Tags:
    """The tags of one game, as far as they are wanted, and the line of the first."""

    line: int
    values: dict[str, str] = field(default_factory=dict)
    contradicted: str | None = None

    def add(self, name: str, value: str) -> None:
        """Take a tag."""
        if name in WANTED and self.values.setdefault(name, value) != value:
            self.contradicted = name

    def known(self, name: str) -> str | None:
        """Return the value of a tag, or None where the file has it unknown."""
        value = self.values.get(name, "").strip(" ")
        return None if value.strip("?.:") in {"", "-"} else value


def read_pgn(lines: Iterable[str], pool: str, source: str) -> Iterator[GameFinished | GameAbandoned | BadRow]:
    """Return the games and bad rows in the order of the file, which is read as they are asked for.

    Raises ValueError at once where no event could carry the pool or source.
    """
    return read_games(lines, GameRows(pool, source))


def read_games(lines: Iterable[str], rows: GameRows) -> Iterator[GameFinished | GameAbandoned | BadRow]:
    """Yield a game or a bad row for every set of tags."""
    for found in read_tags(lines):
        if isinstance(found, BadRow):
            yield found
            continue
        try:
            yield read_game(found, rows)
        except (RowRefused, EventRefused) as refused:
            yield BadRow(found.line, str(refused))


def read_tags(lines: Iterable[str]) -> Iterator[Tags | BadRow]:
    """Yield the tags of one game after the other.

    A game's tags end where its moves begin, or at the next Event where a file has no moves.
    """
    tags: Tags | None = None
    comments = Comments()
    nothing_yet = True
    for number, line in enumerate(without_bom(lines), 1):
        if comments.open_since and line.startswith("[Event "):
            yield BadRow(number, f"not read: it is inside the comment that line {comments.open_since} opens")
        if not comments.open_since and line.startswith("%"):
            continue
        pairs, rest = ([], line) if comments.open_since else take_tags(line)
        for name, value in pairs:
            nothing_yet = False
            if tags is not None and name == "Event" and name in tags.values:
                yield tags
                tags = None
            tags = tags or Tags(number)
            tags.add(name, value)
        moves = comments.strip(rest, number)
        if not moves or _broken_tag.match(moves):
            continue
        if tags is not None:
            yield tags
            tags = None
        elif nothing_yet:
            yield BadRow(number, "no tags stand before it: moves without players, or no PGN at all")
        nothing_yet = False
    if tags is not None:
        yield tags


def take_tags(line: str) -> tuple[list[tuple[str, str]], str]:
    """Return the tags at the beginning of the line, and what follows them."""
    pairs = []
    position = 0
    while tag := _tag.match(line, position):
        pairs.append((tag[1], unescape(tag[2])))
        position = tag.end()
    rest = line[position:]
    if careless := _careless_tag.match(rest):
        return [*pairs, (careless[1], unescape(careless[2]))], ""
    if rest.strip()[:1] not in {"", "{", ";"} and (careless := _careless_tag.match(line)):
        return [(careless[1], unescape(careless[2]))], ""
    return pairs, rest


def unescape(value: str) -> str:
    """Return the value of a tag without the backslashes before quotes and backslashes."""
    return _escaped.sub(r"\1", value)


@dataclass(slots=True)
class Comments:
    """Where comments begin and end; one in braces may go on for many lines."""

    open_since: int = 0
    """The line on which the comment that is open began, or 0."""

    def strip(self, line: str, number: int) -> str:
        """Return what stands outside of comments."""
        outside = []
        position = 0
        while True:
            if self.open_since:
                end = line.find("}", position)
                if end < 0:
                    break
                self.open_since = 0
                position = end + 1
            comment = _comment.search(line, position)
            outside.append(line[position : comment.start() if comment else None])
            if comment is None or comment[0] == ";":
                break
            self.open_since = number
            position = comment.end()
        return "".join(outside).strip()


def read_game(tags: Tags, rows: GameRows) -> GameFinished | GameAbandoned:
    """Return the game that the tags tell of, or raise RowRefused or EventRefused."""
    if tags.contradicted:
        raise RowRefused(f"the tag {tags.contradicted} stands twice with different values")
    pairing = read_pairing(tags, rows)
    ranks = read_result(tags)
    outcome = Outcome(ranks)
    if ranks != DRAWN and was_abandoned(tags):
        return rows.abandoned(pairing, outcome, pairing.second if ranks == FIRST_WON else pairing.first)
    return rows.finished(pairing, outcome)


def read_pairing(tags: Tags, rows: GameRows) -> Pairing:
    """Return who met and when."""
    white, black = read_player(tags, "White"), read_player(tags, "Black")
    time = read_time(tags)
    name = read_name(tags)
    if name is not None:
        return Pairing(white, black, time, name)
    return rows.pairing(
        white, black, time, *(tags.values.get(mark, "") for mark in ("Event", "Site", "Round"))
    )


def read_player(tags: Tags, tag: str) -> str:
    """Return the player's name."""
    name = tags.known(tag)
    if name is None:
        raise RowRefused(f"no player: {said(tags, tag)}")
    return name


def read_result(tags: Tags) -> Ranks:
    """Return the ranks of White and Black."""
    result = tags.values.get("Result", "").strip()
    if result == "*":
        raise RowRefused("not finished: Result is '*'")
    if result not in RESULTS:
        raise RowRefused(f"no result: {said(tags, 'Result')}")
    return RESULTS[result]


def was_abandoned(tags: Tags) -> bool:
    """Return whether somebody left: who won it then did not."""
    termination = tags.values.get("Termination", "").casefold()
    return termination == "abandoned" or termination.endswith(" game abandoned")  # the latter by Chess.com


def read_name(tags: Tags) -> str | None:
    """Return the game's own name, if it has one: its address where it was played, or its id."""
    for tag in ("Site", "Link"):
        address = tags.known(tag)
        if address and _own_address.match(address):
            return address
    return tags.known("GameId")


def read_time(tags: Tags) -> datetime:
    """Return the time in UTC, or the local one taken for UTC; where no time is known, when the day began."""
    date_tag, clock_tag = ("UTCDate", "UTCTime") if tags.known("UTCDate") else ("Date", "Time")
    day, clock = _date.match(tags.known(date_tag) or ""), tags.known(clock_tag)
    if day is None:
        raise RowRefused(f"no day: {said(tags, date_tag)}")
    time = _clock.match(clock or "00:00")
    if time is None:
        raise RowRefused(f"no time: {said(tags, clock_tag)}")
    (year, month, date), (hour, minute, second) = day.groups(), time.groups("0")
    try:
        return datetime(int(year), int(month), int(date), int(hour), int(minute), int(second), tzinfo=UTC)
    except ValueError as error:
        raise RowRefused(f"no time: {said(tags, date_tag)}, {said(tags, clock_tag)}: {error}") from None


def said(tags: Tags, tag: str) -> str:
    """Return what the game says in a tag, for a message."""
    return f"{tag} is {shorten(tags.values[tag])}" if tag in tags.values else f"there is no tag {tag}"
