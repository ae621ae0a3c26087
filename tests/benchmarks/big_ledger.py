"""A pool with a long past, made fast and true: `python -m benchmarks.big_ledger POOL --events N`.

Run it with tests/ on the path (from that folder, say) and with PETARD_DATABASE_URL naming a migrated
database. It makes the pool POOL there, plays a season of N ledger entries in it (busy_season.py) and leaves
what the drain would have left: `petard verify POOL --no-redis` finds nothing, and a worker goes on with it.
Only `received` is one moment for all of them. `--players` says how many there are, `--ids uuid` names events
and games at random and not in ascending order.

It is made by the product's own functions, in one process, since a pool is folded in one order: events are
parsed, judged and folded in batches, and ledger and changes are written by the statements of the drain. Left
out is what the drain does for its safety: there is no list, nothing is looked up that the season cannot
hold, and where the players stand is written once, at the end. All of it is one transaction.
"""

import argparse
import multiprocessing
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess

import psycopg
import structlog

from benchmarks.busy_season import NEW_ID, Ids, busy_season, two_years
from petard_worker.apply import append_entries
from petard_worker.batch import Batch, Entry, EventKey, History, read_arrival
from petard_worker.chunks import chunks
from petard_worker.cli.errors import CommandFailed, plain_errors
from petard_worker.fold import PlayerRecord
from petard_worker.garbage import calm_garbage_collector
from petard_worker.log_format import configure_logging
from petard_worker.pool_settings import PoolSettings, as_given
from petard_worker.postgres import dead_letters, players, pools
from petard_worker.postgres.connect import Connection, connect_worker
from petard_worker.postgres.ledger import game_of
from petard_worker.postgres.pools import Pool
from petard_worker.ratings.pool_rules import PoolRules, pool_rules
from petard_worker.simulate import Season

log = structlog.get_logger()

SYSTEM = "glicko"
CHUNK = 2_000
TELL_EVERY_SECONDS = 5


class PoolExistsError(Exception):
    """There is such a pool already; a past is only made for a new one."""


class RecorderLostError(CommandFailed):
    """The process that makes the season ended before the season did, so there is no more to apply."""


class Tape:
    """The lines of a season, some at a time."""

    def __init__(self, lines: Iterable[Sequence[bytes]]) -> None:
        self._lines = iter(lines)
        self._ahead: deque[bytes] = deque()

    def take(self, count: int) -> list[bytes]:
        """Return the next lines, fewer at the end of the season."""
        self._wind(count)
        return [self._ahead.popleft() for _ in range(min(count, len(self._ahead)))]

    def peek(self, count: int) -> list[bytes]:
        """Return the next lines, and leave them where they are."""
        self._wind(count)
        return list(islice(self._ahead, count))

    def _wind(self, count: int) -> None:
        while len(self._ahead) < count and (lines := next(self._lines, ())):
            self._ahead.extend(lines)


@contextmanager
def recorded(season: Season, ids: Ids) -> Iterator[Tape]:
    """Yield the lines of the season, made in a process of its own while others are folded.

    Reading on raises RecorderLostError when that process has ended early.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=record, args=(there, season, ids), daemon=True)
    process.start()
    there.close()
    try:
        yield Tape(played(here, process))
    finally:
        process.terminate()
        process.join()
        here.close()


def played(pipe: Pipe, recorder: BaseProcess) -> Iterator[list[bytes]]:
    """Yield the lines that the recorder sends, up to the end of the season."""
    try:
        yield from iter(pipe.recv, [])
    except (EOFError, OSError):  # between two messages, or within one
        recorder.join()
        raise RecorderLostError(
            f"the process that makes the season ended early (exit code {recorder.exitcode}), so nothing was"
            " kept: try again"
        ) from None


def record(pipe: Pipe, season: Season, ids: Ids) -> None:
    """Send the lines of the season, and at its end no line."""
    for lines in chunks(busy_season(season, ids), CHUNK):
        pipe.send(lines)
    pipe.send([])


@dataclass
class BigLedger:
    """A pool of which everything that was ever played is known here, so that nothing need be looked up."""

    pool: Pool
    seq: int = 0
    _newest: datetime | None = None
    _records: dict[str, PlayerRecord] = field(default_factory=dict)
    _unsaved: set[str] = field(default_factory=set)
    """Players whose record is not written yet."""
    _told: Sequence[Entry] = ()
    """The newest entries: a second report of a game comes straight after the first."""

    @property
    def rules(self) -> PoolRules:
        """How the pool rates."""
        return pool_rules(self.pool.system, self.pool.parameters)

    def grow(self, connection: Connection, tape: Tape, entries: int) -> None:
        """Apply lines until the ledger has so many entries, all in one transaction."""
        with connection.pipeline() as pipeline, connection.transaction():
            # The limits of a worker end sessions that do nothing for seconds, as one does on a busy machine.
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            connection.execute("SET LOCAL statement_timeout = 0")
            connection.execute("SET LOCAL synchronous_commit = off")
            with telling(self) as tell:
                while self.seq < entries:
                    lines = tape.take(min(CHUNK, entries - self.seq))
                    if not lines:
                        raise ValueError(f"the season ends at entry {self.seq}, not at {entries}")
                    self._append(connection, lines)
                    pipeline.sync()
                    tell()
            self._save(connection)

    def _append(self, connection: Connection, lines: Iterable[bytes]) -> None:
        """Append what a drain would make of these lines."""
        batch = Batch(
            self.pool.name,
            self.rules,
            datetime.now(UTC),
            self.seq,
            self._newest,
            history_of(self._told, self._records),
            version=self.pool.version,
        )
        batch.fold([read_arrival(line) for line in lines])
        append_entries(connection, self.pool, batch.entries)
        if batch.refusals:
            letters = [dead_letters.dead_letter(*refusal) for refusal in batch.refusals]
            dead_letters.bury(connection, self.pool.name, letters)
        self._records.update(batch.records)
        self._unsaved.update(batch.records)
        self._told = batch.entries
        self.seq, self._newest = batch.seq, batch.newest

    def _save(self, connection: Connection) -> None:
        """Write where everybody stands, and how far the pool has come."""
        for names in chunks(self._unsaved, CHUNK):
            records = {name: self._records[name] for name in names}
            players.save_records(connection, self.pool.name, records, self.rules.bombs.cap)
        pools.advance_pool(connection, self.pool.name, self.seq, self._newest)
        self._unsaved.clear()


def history_of(told: Sequence[Entry], records: Mapping[str, PlayerRecord]) -> History:
    """Return what Postgres would say of events and games that have just been told."""
    events = {EventKey(entry.event.id, entry.event.source): entry.body for entry in told}
    games = {game_of(entry): entry.body for entry in told if entry.verdict.ignored is None}
    return History(events, {game: body for game, body in games.items() if game is not None}, records)


def new_ledger(connection: Connection, name: str) -> BigLedger:
    """Create the pool and return its empty ledger, or raise PoolExistsError."""
    rules = pool_rules(SYSTEM, {})
    if not pools.create_pool(connection, name, SYSTEM, rules.parameters(), as_given(PoolSettings())):
        raise PoolExistsError(f"there is a pool {name!r} already: name another one")
    pool = pools.get_pool(connection, name)
    assert pool is not None
    return BigLedger(pool)


@contextmanager
def telling(ledger: BigLedger) -> Iterator[Callable[[], None]]:
    """Yield a function that says every few seconds how far the ledger has come; say it at the end, too."""
    begun, since = ledger.seq, time.perf_counter()
    last = since

    def say() -> None:
        took = time.perf_counter() - since
        log.info("ledger_grown", entries=ledger.seq, events_per_s=round((ledger.seq - begun) / took))

    def tell() -> None:
        nonlocal last
        if time.perf_counter() - last > TELL_EVERY_SECONDS:
            last = time.perf_counter()
            say()

    yield tell
    say()


def settle(url: str) -> None:
    """Do what autovacuum does in the course of time: mark what all can see, and count what there is."""
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("VACUUM ANALYZE petard.ledger, petard.change, petard.rating, petard.dead_letter")


def main() -> None:
    """Make the pool that the command line asks for."""
    parser = argparse.ArgumentParser(description="Make a pool with a long past, as the drain would leave it.")
    parser.add_argument("pool", help="the pool that is made")
    parser.add_argument("--events", type=int, default=1_000_000, help="entries of its ledger")
    parser.add_argument("--players", type=int, default=50_000)
    parser.add_argument("--ids", choices=NEW_ID, default="ulid", help="how events and games are named")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    url = os.environ.get("PETARD_DATABASE_URL")
    if url is None:
        parser.error("PETARD_DATABASE_URL names no database")
    configure_logging("info")
    calm_garbage_collector()
    season = two_years(options.pool, options.players, spare(options.events), options.seed)
    with plain_errors():
        with recorded(season, options.ids) as tape, connect_worker(url, "big ledger") as connection:
            try:
                with connection.transaction():
                    new_ledger(connection, options.pool).grow(connection, tape, options.events)
            except PoolExistsError as error:
                parser.error(str(error))
        settle(url)


def spare(entries: int) -> int:
    """Return of how many games a season is long enough for so many entries: those held back come last."""
    return entries + entries // 20 + 1_000


if __name__ == "__main__":
    main()
