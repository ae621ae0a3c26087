"""The audit: all that there is of one pool, then of the next."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from redis import Redis

from petard_schema import Keys
from petard_worker.change_stream import NOTHING
from petard_worker.postgres import audit as stored
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.pools import Pool, list_pools
from petard_worker.ratings.parameters import BadParameterError
from petard_worker.verify.board import BoardAudit, BoardReport
from petard_worker.verify.dead_letters import check_letters
from petard_worker.verify.differences import MISSING, Differences, Where
from petard_worker.verify.ledger import Replay
from petard_worker.verify.ratings import check_open_periods, check_ratings
from petard_worker.verify.stream import StreamAudit, StreamReport, find_last_ids

Progress = Callable[[str, int, int], None]
"""Is told a pool, how many of its entries are done, and how many there are."""


class Replayed(NamedTuple):
    """What of the ledger was compared."""

    entries: int = 0
    changes: int = 0
    players: int = 0


@dataclass
class PoolReport:
    """What was compared in a pool, up to ledger entry `seq`, and what differs."""

    pool: str
    epoch: int
    seq: int
    replayed: Replayed
    dead_letters: int
    took_s: float
    """How long it took to read and apply the ledger."""
    found: Differences
    stream: StreamReport | None = None
    board: BoardReport | None = None


@dataclass(frozen=True)
class Audit:
    """Compares pools; keeps `limit` differences of each, and counts all."""

    connection: Connection
    """May read and nothing else."""
    limit: int
    progress: Progress

    def of_postgres(self, names: Sequence[str]) -> list[PoolReport]:
        """Compare what is in Postgres; no names mean all pools."""
        with stored.one_snapshot(self.connection):
            return [self.report(pool) for pool in self.pools(names)]

    def of_everything(self, names: Sequence[str], client: Redis, keys: Keys) -> list[PoolReport]:
        """Compare what is in Postgres, and with it what Redis shows; no names mean all pools."""
        client.ping()  # rather than find out after a long look at Postgres, or never where there is no pool
        # Before the snapshot: what has been published by now, the snapshot has.
        last_ids = find_last_ids(client, keys, [pool.name for pool in self.pools(names)])
        reports = []
        with stored.one_snapshot(self.connection):
            for pool in self.pools(names):
                report = self.report(pool)
                last = last_ids.get(pool.name, NOTHING)
                stream = StreamAudit(self.connection, client, keys, pool, last, report.found)
                report.stream = stream.check()
                reports.append(report)
        # Behind the snapshot: a board shows what is now.
        for report in reports:
            report.board = BoardAudit(self.connection, client, keys, report.pool, report.found).check()
        return reports

    def pools(self, names: Sequence[str]) -> Iterator[Pool]:
        """Yield the pools of these names, or all."""
        return (pool for pool in list_pools(self.connection) if not names or pool.name in names)

    def report(self, pool: Pool) -> PoolReport:
        """Compare all of a pool that is in Postgres."""
        found = Differences(pool.name, self.limit)
        started = time.monotonic()
        replayed = self.replay(pool, found)
        took_s = time.monotonic() - started
        letters = check_letters(stored.read_letters(self.connection, pool.name), found)
        return PoolReport(pool.name, pool.epoch, pool.seq, replayed, letters, took_s, found)

    def replay(self, pool: Pool, found: Differences) -> Replayed:
        """Apply the pool's ledger once more, and compare where that leads."""
        versions = stored.read_versions(self.connection, pool.name)
        if not versions:
            found.add(Where.POOL, "versions", MISSING, f"version {pool.version}")
            return Replayed()
        newest = versions[-1]
        in_force = (newest.version, newest.system, newest.parameters)
        names = ("version", "system", "parameters")
        found.compare(Where.POOL, names, (pool.version, pool.system, pool.parameters), in_force)
        try:
            replay = Replay(pool, versions, stored.read_changes(self.connection, pool.name), found)
        except BadParameterError as error:
            found.add(Where.POOL, "rules", str(error), "rules that this release knows: nothing was replayed")
            return Replayed()
        entries = 0
        for rows in stored.read_ledger(self.connection, pool.name):
            replay.take(rows)
            entries += len(rows)
            self.progress(pool.name, entries, pool.seq)
        replay.finish()
        for repeat in stored.find_repeats(self.connection, pool.name, self.limit):
            counted = f"{repeat.of!r} {repeat.times} times, from entry {repeat.first} on"
            found.add(Where.LEDGER, f"{repeat.what} counts", counted, "once", repeat.last)
        players = check_ratings(replay, stored.read_ratings(self.connection, pool.name), found)
        check_open_periods(replay, stored.read_open_periods(self.connection, pool.name), found)
        return Replayed(entries, replay.stored.count, players)
