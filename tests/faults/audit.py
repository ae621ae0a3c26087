"""Was anything lost, counted twice, or put out of order? Everything there is, against what was pushed.

Ratings are worked out once more, by a plain fold over the bodies in the ledger, and must agree in every bit.
One pass in ledger order, so that a million events need no more memory than the pushed ones.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, TypeVar, cast

import psycopg
import redis

from petard_schema import Keys, parse_event
from petard_worker.fold import PlayerChange, PlayerRecord, fold_event, new_record, players_of
from petard_worker.ratings.pool_rules import PoolRules
from petard_worker.simulate import Expected

Pushed = Sequence[tuple[bytes, Expected]]
"""What one source pushed, in order, with what must become of it; repeats may be left out."""
Row = TypeVar("Row", bound=tuple[object, ...])
Json = dict[str, object]

CHUNK = 5_000


class LedgerRow(NamedTuple):
    seq: int
    source: str
    event_id: str
    type: str
    game: str
    outcome: str
    reason: str | None
    body: str


class ChangeRow(NamedTuple):
    seq: int
    player: str
    player_seq: int
    rating_before: float
    rd_before: float
    volatility_before: float | None
    bomb_before: int
    games_before: int
    rating_after: float
    rd_after: float
    volatility_after: float | None
    bomb_after: int
    games_after: int
    expected: float | None
    actual: float | None
    rd_aged: float | None
    penalty: bool
    late: bool


class StreamRow(NamedTuple):
    id: str
    event: Json


@dataclass(frozen=True)
class Evidence:
    """What the servers hold of one pool, and the board of one who followed its changes.

    `changes` are in the order of seq; what is None is not looked at.
    """

    seq: int
    epoch: int
    ledger: Iterable[LedgerRow]
    changes: Iterable[ChangeRow]
    ratings: Mapping[str, PlayerRecord]
    letters: Sequence[tuple[bytes, str]]
    stream: Iterable[StreamRow] | None
    board: Mapping[str, float] | None
    stream_from: int = 1
    """The first entry the stream has to hold; `stream` begins there, in the pool's epoch."""
    followed: Mapping[str, float] | None = None


def assert_nothing_lost_nothing_twice(evidence: Evidence, rules: PoolRules, pushed: Iterable[Pushed]) -> int:
    """Check everything against everything and return how many ledger entries there were."""
    pushed = list(pushed)
    audit = Audit(rules, evidence, pushed)
    for row in evidence.ledger:
        audit.take(row)
    audit.finish()
    check_letters(evidence.letters, pushed)
    check_board(evidence.board, evidence.ratings, "on the board")
    check_board(evidence.followed, evidence.ratings, "on the board of the follower")
    return audit.seq


class Audit:
    """Goes through the ledger once, with the pushed events, the changes and the stream beside it."""

    def __init__(self, rules: PoolRules, evidence: Evidence, pushed: Sequence[Pushed]) -> None:
        self.rules = rules
        self.evidence = evidence
        self.due = {source_of(events): to_be_rated(events) for events in pushed if events}
        self.changes = groupby(evidence.changes, key=attrgetter("seq"))
        self.next_changes = next(self.changes, None)
        self.stream = None if evidence.stream is None else iter(evidence.stream)
        self.records: dict[str, PlayerRecord] = {}
        self.seq = 0

    def take(self, row: LedgerRow) -> None:
        """Check the next ledger entry."""
        self.seq += 1
        assert row.seq == self.seq, f"after entry {self.seq - 1} comes {row.seq}: a gap or a repeat"
        due = next(self.due[row.source], None)
        body = row.body.encode()
        assert body == due, f"entry {row.seq} of {row.source}: expected {due!r}, found {body!r}"
        event = parse_event(body)
        assert (row.event_id, row.type, row.game) == (event.id, event.type, event.data.game)
        current = {player: self.record(player) for player in players_of(event)}
        verdict = fold_event(self.rules, current, event)
        assert row.outcome == ("rated" if verdict.ignored is None else "ignored"), row
        assert row.reason == verdict.ignored, row
        changes = self.changes_of(row.seq)
        self.check_changes(row, verdict.changes, changes)
        self.check_stream(row, changes)

    def record(self, player: str) -> PlayerRecord:
        return self.records.get(player) or new_record(self.rules)

    def changes_of(self, seq: int) -> list[ChangeRow]:
        """Return the entry's rows of the change table."""
        if self.next_changes is None or self.next_changes[0] != seq:
            return []
        rows = list(self.next_changes[1])
        self.next_changes = next(self.changes, None)
        return rows

    def check_changes(self, row: LedgerRow, folded: Iterable[PlayerChange], found: list[ChangeRow]) -> None:
        """Check that the entry did what the fold says, and that every player goes on from where they were."""
        expected = sorted((as_row(row.seq, change) for change in folded), key=attrgetter("player"))
        assert sorted(found, key=attrgetter("player")) == expected, f"changes of entry {row.seq}"
        for change in folded:
            before = self.record(change.player)
            assert change.before == before, f"{change.player} at entry {row.seq}"
            assert change.after.player_seq == before.player_seq + 1, f"{change.player} at entry {row.seq}"
            self.records[change.player] = change.after

    def check_stream(self, row: LedgerRow, changes: list[ChangeRow]) -> None:
        """Check that the next stream entry tells of this ledger entry, and tells the truth."""
        if self.stream is None or row.seq < self.evidence.stream_from:
            return
        entry = next(self.stream, None)
        assert entry is not None, f"the stream ends before entry {row.seq}"
        expected_id = f"{self.evidence.epoch}-{row.seq}"
        assert entry.id == expected_id, f"the stream has {entry.id} where {expected_id} is due"
        data = cast("Json", entry.event["data"])
        cause = {"id": row.event_id, "source": row.source, "type": row.type, "game": row.game}
        due = {
            "pool": data["pool"],
            "epoch": self.evidence.epoch,
            "seq": row.seq,
            "cause": without_nones(cause),
            "outcome": row.outcome,
            "reason": row.reason,
            "changes": [as_told(change) for change in changes],
        }
        assert data == without_nones(due), f"stream entry {entry.id}"

    def finish(self) -> None:
        """Check that nothing is missing at the ends, and where everybody stands."""
        assert self.seq == self.evidence.seq, "the pool's counter is not at its last entry"
        for source, due in self.due.items():
            missing = next(due, None)
            assert missing is None, f"{source} pushed {missing!r}, which no entry has"
        assert self.next_changes is None, f"changes of entry {self.next_changes}, which is not there"
        if self.stream is not None:
            assert next(self.stream, None) is None, "the stream goes on after the last ledger entry"
        strangers = set(self.evidence.ratings) ^ set(self.records)
        assert not strangers, f"players with a rating and no entry, or the reverse: {strangers}"
        for player, record in self.records.items():
            found = self.evidence.ratings[player]
            assert bits(found) == bits(record), f"{player}: stored {found}, the fold says {record}"


def source_of(events: Pushed) -> str:
    rated = next(raw for raw, expected in events if expected == "rated")
    return parse_event(rated).source


def to_be_rated(events: Pushed) -> Iterator[bytes]:
    return (raw for raw, expected in events if expected == "rated")


def bits(record: PlayerRecord) -> list[object]:
    """Return the record so that only the very same bits are equal."""
    return [value.hex() if isinstance(value, float) else value for value in record]


def as_row(seq: int, change: PlayerChange) -> ChangeRow:
    before, after = change.before, change.after
    return ChangeRow(
        seq,
        change.player,
        after.player_seq,
        *(before.rating, before.rd, before.volatility, before.bomb, before.games),
        *(after.rating, after.rd, after.volatility, after.bomb, after.games),
        *(change.expected, change.actual, change.rd_aged, change.penalty, change.late),
    )


def as_told(change: ChangeRow) -> Json:
    names = ("rating", "rd", "volatility", "bomb", "games")
    return {
        "player": change.player,
        "player_seq": change.player_seq,
        "before": without_nones({name: getattr(change, f"{name}_before") for name in names}),
        "after": without_nones({name: getattr(change, f"{name}_after") for name in names}),
        "explanation": without_nones(
            {name: getattr(change, name) for name in ("expected", "actual", "rd_aged", "penalty", "late")}
        ),
    }


def without_nones(facts: Mapping[str, object]) -> Json:
    return {name: value for name, value in facts.items() if value is not None}


def check_letters(letters: Sequence[tuple[bytes, str]], pushed: Iterable[Pushed]) -> None:
    """Check that every event that had to be refused is one dead letter, with the right reason."""
    due = {
        (raw, str(expected))
        for events in pushed
        for raw, expected in events
        if expected not in {"rated", "repeat"}
    }
    found = Counter((raw, reason.partition(":")[0]) for raw, reason in letters)
    wrong = {letter for letter, count in found.items() if count > 1} | (found.keys() ^ due)
    assert not wrong, f"dead letters missing, too many or with another reason: {sorted(wrong)[:4]}"


def check_board(board: Mapping[str, float] | None, ratings: Mapping[str, PlayerRecord], where: str) -> None:
    """Check that a board has everybody who played, where the table has them."""
    if board is None:
        return
    due = {player: record.rating for player, record in ratings.items() if record.last_played is not None}
    wrong = dict(board.items() ^ due.items())
    assert not wrong, f"{len(wrong)} players are not {where} where they should be: {sorted(wrong)[:5]}"


@contextmanager
def gathered(
    database_url: str,
    client: "redis.Redis",
    keys: Keys,
    pool: str,
    *,
    stream_length: int | None = None,
    published: bool = True,
) -> Iterator[Evidence]:
    """Give what the servers hold, read while it is looked at and from one snapshot.

    `stream_length` is how many entries the stream has to hold; None: all of them.
    """
    with psycopg.connect(database_url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        row = connection.execute("SELECT seq, epoch FROM petard.pool WHERE name = %s", (pool,)).fetchone()
        assert row is not None
        seq, epoch = row
        stream_from = 1 if stream_length is None else max(1, seq - stream_length + 1)
        yield Evidence(
            seq,
            epoch,
            read_ledger(connection, pool),
            read_changes(connection, pool),
            read_ratings(connection, pool),
            read_letters(connection, pool),
            read_stream(client, keys, pool, f"{epoch}-{stream_from}") if published else None,
            read_board(client, keys, pool) if published else None,
            stream_from,
        )


def read_ledger(connection: psycopg.Connection, pool: str) -> Iterator[LedgerRow]:
    sql = """
        SELECT seq, source, event_id, type, game, outcome, reason, body::text
        FROM petard.ledger WHERE pool = %s ORDER BY seq
    """
    with connection.cursor("ledger") as cursor:
        cursor.itersize = CHUNK
        for row in cursor.execute(sql, (pool,)):
            yield LedgerRow(*row)


def read_changes(connection: psycopg.Connection, pool: str) -> Iterator[ChangeRow]:
    sql = """
        SELECT seq, player, player_seq,
               rating_before, rd_before, volatility_before, bomb_before, games_before,
               rating_after, rd_after, volatility_after, bomb_after, games_after,
               expected, actual, rd_aged, penalty, late
        FROM petard.change WHERE pool = %s ORDER BY seq, player
    """
    with connection.cursor("changes") as cursor:
        cursor.itersize = CHUNK
        for row in cursor.execute(sql, (pool,)):
            yield ChangeRow(*row)


def read_ratings(connection: psycopg.Connection, pool: str) -> dict[str, PlayerRecord]:
    sql = """
        SELECT player, rating, rd, volatility, bomb, abandons, penalties, games, wins, draws, losses,
               peak, last_played, player_seq
        FROM petard.rating WHERE pool = %s
    """
    return {row[0]: PlayerRecord(*row[1:]) for row in connection.execute(sql, (pool,), binary=True)}


def read_letters(connection: psycopg.Connection, pool: str) -> list[tuple[bytes, str]]:
    sql = "SELECT body, reason FROM petard.dead_letter WHERE pool = %s"
    return [(bytes(body), reason) for body, reason in connection.execute(sql, (pool,))]


def read_stream(client: "redis.Redis", keys: Keys, pool: str, start: str) -> Iterator[StreamRow]:
    """Yield the entries from an ID on: what came before in another epoch is not for those who follow now."""
    while True:
        chunk = cast(
            "list[tuple[bytes, dict[bytes, bytes]]]", client.xrange(keys.changes(pool), start, count=CHUNK)
        )
        for stream_id, fields in chunk:
            yield StreamRow(stream_id.decode(), json.loads(fields[b"event"]))
        if len(chunk) < CHUNK:
            return
        start = f"({chunk[-1][0].decode()}"


def read_board(client: "redis.Redis", keys: Keys, pool: str) -> dict[str, float]:
    rows = cast("list[tuple[bytes, float]]", client.zrange(keys.leaderboard(pool), 0, -1, withscores=True))
    return {player.decode(): score for player, score in rows}
