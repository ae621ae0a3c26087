"""How does Petard do with millions of events behind it? `python -m benchmarks.growth [--json]`.

Run it with tests/ on the path, from that folder, say. One season is folded into one pool (big_ledger.py); at
each of the `--sizes` its database is copied, so that a ledger of every size is there at the same time, on the
same server. Then

- a backlog is drained into each of them in turn by a real `petard worker`, `--rounds` times: how fast, and
  how much of a write-ahead log it makes; the machine is never quiet, so compare the ratios within a round,
- what the commands ask is asked `--calls` times (reads.py): how long it takes, and whether a table is read
  from its begin to its end,
- the bytes on disk are counted,
- `petard verify` goes through the ledger of size `--verify`.

The servers are those of PETARD_DATABASE_URL and PETARD_REDIS_URL, else ones of its own (servers.py). The
databases are dropped at the end. Five million events take about ten GB while it lasts.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, fields
from statistics import median
from typing import Any, NamedTuple

import psycopg
import structlog
from psycopg import sql as sql_text

from benchmarks.big_ledger import new_ledger, recorded, settle, spare
from benchmarks.busy_season import NEW_ID, two_years
from benchmarks.reads import BIG_TABLES, READS, WHOLE_POOL, Plans, Timing, draw, find_plans, looking, measure
from benchmarks.roles import PROGRAM, Place, start, wait_until
from benchmarks.servers import Servers, open_servers, with_path
from petard_schema import Keys
from petard_worker.chunks import chunks
from petard_worker.garbage import calm_garbage_collector
from petard_worker.log_format import configure_logging
from petard_worker.postgres.connect import connect_worker
from petard_worker.push import push_lines
from petard_worker.redis_client import connect_redis

log = structlog.get_logger()

POOL = "growth"
PUSHED_AT_A_TIME = 5_000
WARM_UP = 5_000
"""Events applied before a measurement counts: another database was at work before."""
FEWEST_OF_SMALLEST = 0.8
MOST_MS = 20
FEWEST_VERIFIED = 15_000

Owner = psycopg.Connection[tuple[Any, ...]]


class Drained(NamedTuple):
    """How a backlog was applied."""

    events_per_second: float
    wal_bytes_per_event: float


@dataclass(frozen=True)
class Disk:
    """Bytes on disk for each ledger entry."""

    ledger: float
    ledger_indexes: float
    change: float
    change_indexes: float
    rating: float
    total: float


@dataclass
class Grown:
    """A pool of one size and what was measured in it."""

    entries: int
    place: Place
    backlog: Sequence[bytes]
    drained: list[Drained] = field(default_factory=list)
    reads: dict[str, Timing] = field(default_factory=dict)
    plans: dict[str, Plans] = field(default_factory=dict)
    disk: Disk | None = None


class Verified(NamedTuple):
    """What `petard verify` said, and how long the whole command took."""

    entries: int
    entries_per_second: float
    took_s: float
    differences: int


@dataclass(frozen=True)
class Report:
    """Everything that was measured; the pools by their size."""

    versions: Mapping[str, str]
    players: int
    ids: str
    backlog: int
    batch_size: int
    pools: Sequence[Grown]
    verified: Verified


def main() -> None:
    """Grow a pool, measure it and print the report."""
    options = read_options()
    configure_logging("info")
    calm_garbage_collector()
    with open_servers() as servers, ExitStack() as databases:
        pools = grow(servers, databases, options)
        for number in range(options.rounds):
            for pool in pools:
                pool.drained.append(drain(pool, number, options.backlog))
        for pool in pools:
            settle(pool.place.database_url)
            look(pool, options.calls, options.whole_calls)
            pool.disk = count_bytes(pool.place.database_url)
        verified = verify(next(pool for pool in pools if pool.entries == options.verify))
        report = Report(
            servers.versions(),
            options.players,
            options.ids,
            options.backlog,
            options.batch_size,
            pools,
            verified,
        )
    sys.stdout.write(json.dumps(as_facts(report), indent=2) if options.json else "\n".join(lines_of(report)))
    sys.stdout.write("\n")


def read_options() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description="Measure Petard with a long past behind it.")
    parser.add_argument("--sizes", default="100000,1000000,5000000", help="ledger entries, ascending")
    parser.add_argument("--players", type=int, default=50_000)
    parser.add_argument("--ids", choices=NEW_ID, default="ulid", help="how events and games are named")
    parser.add_argument("--backlog", type=int, default=50_000, help="events that are drained at a time")
    parser.add_argument("--rounds", type=int, default=3, help="drains into every size")
    parser.add_argument("--batch-size", type=int, default=500, help="events per transaction")
    parser.add_argument("--calls", type=int, default=50, help="of every read")
    parser.add_argument("--whole-calls", type=int, default=3, help="of reads that look at a whole pool")
    parser.add_argument("--verify", type=int, help="size of the pool that is verified (default: the middle)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    try:
        options.sizes = sorted(int(size) for size in options.sizes.split(","))
    except ValueError:
        parser.error("--sizes are numbers with commas between them")
    if options.backlog < 3 * options.batch_size:
        parser.error("a rate needs three batches at least: raise --backlog or lower --batch-size")
    options.verify = options.verify or options.sizes[len(options.sizes) // 2]
    if options.verify not in options.sizes:
        parser.error("--verify names one of the --sizes")
    return options


def grow(servers: Servers, databases: ExitStack, options: argparse.Namespace) -> list[Grown]:
    """Return a pool of every size, each in a database of its own with the events that come next."""
    largest = options.sizes[-1]
    ahead = (WARM_UP + options.backlog) * options.rounds
    season = two_years(POOL, options.players, spare(largest + ahead))
    pools = []
    url = databases.enter_context(servers.fresh_database())
    with recorded(season, options.ids) as tape:
        with connect_worker(url, "benchmark") as connection:
            ledger = new_ledger(connection, POOL)
        for size in options.sizes:
            with connect_worker(url, "benchmark") as connection:
                ledger.grow(connection, tape, size)
            settle(url)
            own = url if size == largest else databases.enter_context(copied(servers, url))
            place = Place(own, servers.redis_url, options.batch_size)
            pools.append(Grown(size, place, tape.peek(ahead)))
    return pools


@contextmanager
def copied(servers: Servers, url: str) -> Iterator[str]:
    """Yield a copy of a database to which nobody is connected; drop it at the end."""
    template = url.rpartition("/")[2]
    name = f"{template}_{time.monotonic_ns() % 1_000_000_000}"
    names = {"name": sql_text.Identifier(name), "template": sql_text.Identifier(template)}
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        admin.execute(sql_text.SQL("CREATE DATABASE {name} TEMPLATE {template}").format(**names))
    try:
        yield with_path(servers.database_url, name)
    finally:
        with psycopg.connect(servers.database_url, autocommit=True) as admin:
            admin.execute(sql_text.SQL("DROP DATABASE {name} WITH (FORCE)").format(**names))


def drain(pool: Grown, number: int, backlog: int) -> Drained:
    """Push the events that come next in the pool, then let a worker apply them."""
    count = WARM_UP + backlog
    lines = pool.backlog[number * count : (number + 1) * count]
    place, keys = pool.place, Keys()
    with (
        connect_redis(place.redis_url) as client,
        psycopg.connect(place.database_url, autocommit=True) as owner,
    ):
        for part in chunks(lines, PUSHED_AT_A_TIME):
            push_lines(client, keys, POOL, part)
        begun = seq_of(owner)
        # After a checkpoint pages go into the log as a whole: every drain begins with one.
        owner.execute("CHECKPOINT")
        log_begun = log_position(owner)
        with start(place, "worker") as worker:
            wait_until(
                lambda: not client.llen(keys.events(POOL)), "the backlog to be applied", worker, seconds=1200
            )
        written, applied = log_position(owner) - log_begun, seq_of(owner) - begun
        drained = Drained(rate_after(owner, begun + WARM_UP), written / applied)
        client.flushdb()
    log.info(
        "backlog_drained",
        pool_entries=pool.entries,
        events_per_s=round(drained.events_per_second),
        wal_bytes_per_event=round(drained.wal_bytes_per_event),
    )
    return drained


def seq_of(connection: Owner) -> int:
    """Return how many entries the ledger has."""
    row = connection.execute("SELECT seq FROM petard.pool WHERE name = %(pool)s", {"pool": POOL}).fetchone()
    assert row is not None
    return int(row[0])


def log_position(connection: Owner) -> int:
    """Return how many bytes of a write-ahead log the server has written, whoever made it write them."""
    row = connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()
    assert row is not None
    return int(row[0])


def rate_after(connection: Owner, seq: int) -> float:
    """Return events per second after that entry, from the begin of a batch to that of the last one."""
    sql = """
        WITH drained AS (SELECT received FROM petard.ledger WHERE pool = %(pool)s AND seq > %(seq)s),
        ends AS (SELECT min(received) AS first, max(received) AS last FROM drained)
        SELECT count(*), extract(epoch FROM ends.last - ends.first)
        FROM drained, ends WHERE received < ends.last GROUP BY ends.last, ends.first
    """
    row = connection.execute(sql, {"pool": POOL, "seq": seq}).fetchone()
    if row is None:
        raise ValueError("one batch took everything: more events are needed to measure a rate")
    return int(row[0]) / float(row[1])


def look(pool: Grown, calls: int, whole_calls: int) -> None:
    """Measure every read, and look at how Postgres answers it."""
    url = pool.place.database_url
    about = draw(url, POOL, max(calls, whole_calls))
    with looking(url) as connection:
        for name, read in {**READS, **WHOLE_POOL}.items():
            asked = about[: whole_calls if name in WHOLE_POOL else calls]
            pool.reads[name] = measure(connection, read, asked)
            pool.plans[name] = find_plans(connection, read, asked[0])
    log.info("reads_measured", pool_entries=pool.entries)


def count_bytes(url: str) -> Disk:
    """Return what a ledger entry takes on disk, all that belongs to it included."""
    sql = """
        SELECT relname, pg_table_size(oid), pg_indexes_size(oid)
        FROM pg_class WHERE relnamespace = 'petard'::regnamespace AND relname = ANY(%(tables)s)
    """
    with psycopg.connect(url) as owner:
        entries = seq_of(owner)
        rows = owner.execute(sql, {"tables": list(BIG_TABLES)}).fetchall()
    sizes = {name: (table / entries, indexes / entries) for name, table, indexes in rows}
    return Disk(*sizes["ledger"], *sizes["change"], sum(sizes["rating"]), sum(map(sum, sizes.values())))


def verify(pool: Grown) -> Verified:
    """Run `petard verify` on what is in Postgres."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PETARD_")},
        "PETARD_DATABASE_URL": pool.place.database_url,
    }
    command = [sys.executable, "-c", PROGRAM, "verify", POOL, "--no-redis", "--json"]
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
    took = time.perf_counter() - started
    (report,) = json.loads(done.stdout)["pools"]
    return Verified(report["entries"], report["entries_per_s"], took, report["differences"])


def as_facts(report: Report) -> dict[str, object]:
    """Return everything that was measured, for programs."""
    return {
        "versions": report.versions,
        "players": report.players,
        "ids": report.ids,
        "backlog": report.backlog,
        "batch_size": report.batch_size,
        "pools": [
            {
                "entries": pool.entries,
                "drained": [drained._asdict() for drained in pool.drained],
                "of_smallest": of_smallest(report, pool),
                "reads": {name: timing._asdict() for name, timing in pool.reads.items()},
                "scans": {
                    name: [scan._asdict() for scan in plans.scans] for name, plans in pool.plans.items()
                },
                "buffers": {name: plans.buffers for name, plans in pool.plans.items()},
                "bytes_per_event": None if pool.disk is None else asdict(pool.disk),
            }
            for pool in report.pools
        ],
        "verified": report.verified._asdict(),
    }


def of_smallest(report: Report, pool: Grown) -> float:
    """Return how fast a pool is drained beside the smallest: the median of the rounds' ratios."""
    pairs = zip(pool.drained, report.pools[0].drained, strict=True)
    return median(own.events_per_second / other.events_per_second for own, other in pairs)


def lines_of(report: Report) -> Iterator[str]:
    """Yield everything that was measured, for people."""
    sizes = [f"{pool.entries:,}" for pool in report.pools]
    yield f"{report.players:,} players, ids as {report.ids}; {report.versions}"
    yield ""
    yield row(f"drain of {report.backlog:,} events", sizes)
    yield row(
        "events/s", [f"{median(one.events_per_second for one in p.drained):,.0f}" for p in report.pools]
    )
    yield row(
        "  slowest and fastest round",
        ["{:,.0f}-{:,.0f}".format(*ends([one.events_per_second for one in p.drained])) for p in report.pools],
    )
    yield row(
        f"of the smallest (reach {FEWEST_OF_SMALLEST})",
        [f"{of_smallest(report, pool):.2f}" for pool in report.pools],
    )
    yield row(
        "write-ahead log, bytes/event",
        [f"{median(one.wal_bytes_per_event for one in pool.drained):,.0f}" for pool in report.pools],
    )
    yield ""
    yield row("on disk, bytes/event", sizes)
    for part in fields(Disk):
        yield row(part.name, [f"{getattr(pool.disk, part.name):,.0f}" for pool in report.pools])
    yield ""
    yield row(f"reads, ms: median (max); reach {MOST_MS}", sizes)
    for name in report.pools[0].reads:
        yield row(name, [cell_of(pool.reads[name]) for pool in report.pools])
    yield ""
    yield f"found in {sizes[-1]} entries by"
    for name, plans in report.pools[-1].plans.items():
        found = dict.fromkeys(f"{scan}, {scan.rows:,} rows" for scan in plans.scans)
        yield f"  {name}: {'; '.join(found)}; {plans.buffers:,} pages"
    yield ""
    done = report.verified
    yield (
        f"petard verify: {done.entries:,} entries in {done.took_s:.0f} s,"
        f" {done.entries_per_second:,.0f}/s (reach {FEWEST_VERIFIED:,}), {done.differences} differences"
    )


def row(name: str, cells: Iterable[str]) -> str:
    """Return a line of a table."""
    return f"{name:<34}" + "".join(f"{cell:>20}" for cell in cells)


def cell_of(timing: Timing) -> str:
    """Return how long a read took."""
    return f"{timing.median_ms:,.1f} ({timing.max_ms:,.1f})"


def ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the lowest and the highest."""
    return min(values), max(values)


if __name__ == "__main__":
    main()
