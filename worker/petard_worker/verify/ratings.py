"""Does the rating table say what the ledger comes to? For everybody, and so for open rating periods."""

from collections.abc import Iterable

from petard_worker.fold import PlayerRecord
from petard_worker.postgres.audit import PeriodRow, RatingRow
from petard_worker.postgres.open_periods import from_text, to_text
from petard_worker.postgres.players import NEW_RATING
from petard_worker.verify.differences import MISSING, Differences, Where, named
from petard_worker.verify.ledger import Replay

RECORD_NAMES = NEW_RATING.names[1:]
NAMES = (*RECORD_NAMES, "bomb_cap")


def check_ratings(replay: Replay, rows: Iterable[RatingRow], found: Differences) -> int:
    """Compare every row with where the player stands after the last entry; return how many there are."""
    seen = set()
    for row in rows:
        seen.add(row.player)
        stored = as_stored(row.record, row.bomb_cap)
        due = replay.records.get(row.player)
        if due is None:
            found.add(Where.RATING, "row", named(NAMES, stored), MISSING, player=row.player)
        else:
            due_row = as_stored(due, replay.due_cap(row.player))
            found.compare(Where.RATING, NAMES, stored, due_row, player=row.player)
    for player in replay.records.keys() - seen:
        due_row = as_stored(replay.records[player], replay.due_cap(player))
        found.add(Where.RATING, "row", MISSING, named(NAMES, due_row), player=player)
    return len(seen)


def check_open_periods(replay: Replay, rows: Iterable[PeriodRow], found: Differences) -> None:
    """Compare what is stored of open rating periods, rows that a later change has overtaken included."""
    seen = set()
    for row in rows:
        seen.add(row.player)
        due = replay.open_periods.get(row.player)
        if due is None:
            found.add(Where.OPEN_PERIOD, "row", row.period, MISSING, player=row.player)
            continue
        if row.player_seq != due[0]:
            found.add(Where.OPEN_PERIOD, "player_seq", row.player_seq, due[0], player=row.player)
        text = to_text(due[1])
        # Another release may have written the same with fewer fields.
        if row.period != text and to_text(from_text(row.period)) != text:
            found.add(Where.OPEN_PERIOD, "period", row.period, text, player=row.player)
    for player in replay.open_periods.keys() - seen:
        text = to_text(replay.open_periods[player][1])
        found.add(Where.OPEN_PERIOD, "row", MISSING, text, player=player)


def as_stored(record: PlayerRecord, bomb_cap: int) -> tuple[object, ...]:
    """Return a record as a row of the table: the open period stands in a table of its own."""
    return (*record[: len(RECORD_NAMES)], bomb_cap)
