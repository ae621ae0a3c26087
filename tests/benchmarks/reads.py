"""What the commands that look ask of Postgres: how long it takes, and how Postgres finds it."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from statistics import median
from typing import Any, LiteralString, NamedTuple, cast

import psycopg

from petard_worker.pool_percentile import rating_percentile
from petard_worker.pool_settings import pool_settings
from petard_worker.pool_stats import ask, find_stats
from petard_worker.postgres import boards, dead_letters, letter_finds, letter_history, outbox, pools
from petard_worker.postgres.boards import Listing, list_by
from petard_worker.postgres.connect import Connection, connect_reader
from petard_worker.postgres.fates import find_fates
from petard_worker.postgres.letter_finds import LetterFilter
from petard_worker.postgres.pools import Pool
from petard_worker.preview import find_preview
from petard_worker.standings import find_standing

BIG_TABLES = ("ledger", "change", "rating")


class Asked(NamedTuple):
    """What one call of each read is about."""

    pool: Pool
    player: str
    rival: str
    event_id: str
    letter: int | None
    time: datetime
    """Of some event of the pool."""
    seq: int
    now: datetime

    @property
    def listing(self) -> Listing:
        """Who is on the board."""
        return list_by(self.pool.name, pool_settings(self.pool.settings), self.now)


Read = Callable[[Connection, Asked], object]


def dead_list(connection: Connection, asked: Asked) -> object:
    """Read the first page of the dead letters that are open."""
    ids = letter_finds.find_ids(connection, LetterFilter(pool=asked.pool.name, state="open"), 100)
    return letter_finds.read_letters(connection, ids)


def dead_show(connection: Connection, asked: Asked) -> object:
    """Read a dead letter and everything that is known of its event."""
    if asked.letter is None:
        return None
    (letter,) = letter_finds.read_letters(connection, [asked.letter])
    letter_finds.read_texts(connection, [asked.letter])
    letter_history.read_attempts(connection, letter)
    letter_history.read_replays(connection, letter)
    return letter_history.read_since(connection, letter)


def status(connection: Connection, _: Asked) -> object:
    """Read what the status has of Postgres."""
    return dead_letters.count_letters(connection, "open"), pools.list_pools(connection)


def history_page(connection: Connection, asked: Asked) -> object:
    """Read a player's newest changes and the events behind them: no command has it yet, a console would."""
    sql = """
        SELECT change.player_seq, ledger.time, ledger.type, ledger.game, change.rating_before,
               change.rating_after, change.rd_after, change.bomb_after, change.penalty
        FROM petard.change AS change
        JOIN petard.ledger AS ledger ON ledger.pool = change.pool AND ledger.seq = change.seq
        WHERE change.pool = %(pool)s AND change.player = %(player)s
        ORDER BY change.player_seq DESC LIMIT 50
    """
    return connection.execute(sql, {"pool": asked.pool.name, "player": asked.player}, binary=True).fetchall()


def publish(connection: Connection, asked: Asked) -> object:
    """Read some entries and their changes as the publisher does."""
    entries = outbox.read_entries(connection, asked.pool.name, asked.seq, 500)
    return entries and outbox.read_changes(connection, asked.pool.name, asked.seq, entries[-1].seq)


def stats(connection: Connection, asked: Asked) -> object:
    """Read the statistics of a whole pool."""
    return find_stats(connection, asked.pool, ask(asked.pool, {}), None, asked.now)


READS: Mapping[str, Read] = {
    "player": lambda connection, asked: find_standing(connection, asked.pool, asked.player, asked.now),
    "player --at": lambda connection, asked: boards.find_past_standing(
        connection, asked.pool.name, asked.player, asked.time
    ),
    "history of a player": history_page,
    "leaderboard": lambda connection, asked: boards.board_top(connection, asked.listing, 20),
    "leaderboard --around": lambda connection, asked: boards.board_around(
        connection, asked.listing, asked.player
    ),
    "elo percentile --pool": lambda connection, asked: rating_percentile(
        connection, asked.pool, 1600.0, asked.now
    ),
    "preview": lambda connection, asked: find_preview(
        connection, asked.pool, asked.player, asked.rival, asked.now
    ),
    "event": lambda connection, asked: find_fates(connection, asked.event_id),
    "event that nobody knows": lambda connection, asked: find_fates(connection, asked.event_id[::-1]),
    "dead list": dead_list,
    "dead list --group": lambda connection, _: letter_finds.group_letters(
        connection, LetterFilter(state="open")
    ),
    "dead show": dead_show,
    "status": status,
    "publisher, 500 entries": publish,
}
WHOLE_POOL: Mapping[str, Read] = {"pool stats": stats}
"""Reads that look at everything a pool has: slower the more it has, and asked for now and then."""


class Timing(NamedTuple):
    """How long a read took."""

    calls: int
    median_ms: float
    max_ms: float


class Scan(NamedTuple):
    """How Postgres got at the rows of a table in one statement."""

    table: str
    how: str
    index: str | None
    rows: int
    """How many it had in hand, those that it threw away included."""
    kept: int

    @property
    def is_whole(self) -> bool:
        """Whether the table was read from its begin to its end."""
        return self.how == "Seq Scan"

    def __str__(self) -> str:
        return f"{self.how} {self.index or self.table}"


class Plans(NamedTuple):
    """How Postgres answers the statements of a read."""

    scans: Sequence[Scan]
    buffers: int
    """Pages of 8 KiB that were looked at."""


def measure(connection: Connection, read: Read, about: Sequence[Asked]) -> Timing:
    """Call a read for everything it is asked about."""
    took = []
    for asked in about:
        started = time.perf_counter()
        read(connection, asked)
        took.append((time.perf_counter() - started) * 1000)
    return Timing(len(took), median(took), max(took))


def find_plans(connection: Connection, read: Read, asked: Asked) -> Plans:
    """Call a read and return how Postgres found what its statements asked for."""
    watched = Watched(connection)
    read(cast("Connection", watched), asked)
    scans, buffers = [], 0
    for sql, values in watched.statements:
        rows = connection.execute(b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + sql.encode(), values)
        plan = cast("list[dict[str, Any]]", rows.fetchall()[0][0])[0]["Plan"]
        buffers += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        scans.extend(scans_of(plan))
    return Plans(scans, buffers)


class Watched:
    """A connection that remembers which rows it was asked for."""

    def __init__(self, connection: Connection) -> None:
        self.statements: list[tuple[str, Mapping[str, object] | None]] = []
        self.transaction = connection.transaction
        self._connection = connection

    def execute(
        self, sql: LiteralString, values: Mapping[str, object] | None = None, **options: Any
    ) -> "psycopg.Cursor[tuple[object, ...]]":
        """Execute, and remember what is no setting."""
        if not sql.startswith("SET "):
            self.statements.append((sql, values))
        return self._connection.execute(sql, values, **options)


def scans_of(node: Mapping[str, Any]) -> Iterator[Scan]:
    """Yield the scans of tables in a plan that was executed."""
    if "Relation Name" in node and node["Actual Loops"]:
        thrown_away = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        rows, kept = (
            round(number * node["Actual Loops"])
            for number in (node["Actual Rows"] + thrown_away, node["Actual Rows"])
        )
        yield Scan(node["Relation Name"], node["Node Type"], index_of(node), rows, kept)
    for child in node.get("Plans", ()):
        yield from scans_of(child)


def index_of(node: Mapping[str, Any]) -> str | None:
    """Return the index that a node uses, or the one below it."""
    below = next((index_of(child) for child in node.get("Plans", ())), None)
    return cast("str | None", node.get("Index Name", below))


@contextmanager
def looking(url: str) -> Iterator[Connection]:
    """Open a connection as commands do: a new one each time, so that nothing is prepared."""
    with connect_reader(url, "benchmark") as connection:
        connection.prepare_threshold = None
        yield connection


def draw(url: str, pool: str, count: int, seed: int = 1) -> list[Asked]:
    """Return so many different things to ask about: the busiest player, and players drawn by chance.

    Half of them are drawn from everybody and half from those who made a change: so by how active they are.
    """
    chance = random.Random(seed)
    with connect_reader(url, "benchmark") as connection:
        known = pools.get_pool(connection, pool)
        assert known is not None
        seqs = [chance.randint(1, known.seq) for _ in range(count)]
        everybody = names_of_all(connection, pool)
        letters = letter_finds.find_ids(connection, LetterFilter(pool=pool))
        active = [find_entry(connection, pool, seq) for seq in seqs]
    drawn = []
    for number, (seq, entry) in enumerate(zip(seqs, active, strict=True)):
        player = everybody[0] if number == 0 else chance.choice(everybody) if number % 2 else entry.player
        drawn.append(
            Asked(
                known,
                player,
                chance.choice([name for name in chance.sample(everybody, 2) if name != player]),
                entry.event_id,
                chance.choice(letters) if letters else None,
                entry.time,
                seq,
                datetime.now(UTC),
            )
        )
    return drawn


class DrawnEntry(NamedTuple):
    """An entry of the ledger, and somebody who was in it or in the next one that changed anybody."""

    player: str
    event_id: str
    time: datetime


def find_entry(connection: Connection, pool: str, seq: int) -> DrawnEntry:
    """Return what is needed of an entry, or of one near it."""
    sql = """
        SELECT change.player, ledger.event_id, ledger.time
        FROM (
            SELECT player, seq FROM petard.change
            WHERE pool = %(pool)s AND seq <= %(seq)s ORDER BY seq DESC LIMIT 1
        ) AS change
        JOIN petard.ledger AS ledger ON ledger.pool = %(pool)s AND ledger.seq = change.seq
    """
    row = connection.execute(sql, {"pool": pool, "seq": seq}, binary=True).fetchone()
    assert row is not None
    return DrawnEntry(*cast("tuple[str, str, datetime]", row))


def names_of_all(connection: Connection, pool: str) -> list[str]:
    """Return the players of a pool, the busiest first."""
    sql = "SELECT player FROM petard.rating WHERE pool = %(pool)s ORDER BY player_seq DESC, player"
    return [cast("str", row[0]) for row in connection.execute(sql, {"pool": pool})]
