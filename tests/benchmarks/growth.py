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
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import structlog
from psycopg import sql as sql_text

from benchmarks.big_ledger import new_ledger, recorded, settle, spare
from benchmarks.busy_season import NEW_ID, two_years
from benchmarks.growth_report import Disk, Drained, Grown, Report, Verified, as_facts, lines_of
from benchmarks.reads import BIG_TABLES, READS, WHOLE_POOL, draw, find_plans, looking, measure
from benchmarks.roles import environment, start, wait_until
from benchmarks.servers import Servers, open_servers, with_path
from petard_schema import Keys
from petard_worker.chunks import chunks
from petard_worker.cli.errors import plain_errors
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

Owner = psycopg.Connection[tuple[Any, ...]]


def main() -> None:
    """Grow a pool, measure it and print the report."""
    options = read_options()
    configure_logging("info")
    calm_garbage_collector()
    with plain_errors(), open_servers(options.batch_size) as servers, ExitStack() as databases:
        pools = grow(servers, databases, options)
        for number in range(options.rounds):
            # There and back: what grows faster or slower in the course of time favours no size.
            for pool in pools if number % 2 == 0 else reversed(pools):
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
    place = databases.enter_context(servers.place())
    url = place.database_url
    with recorded(season, options.ids) as tape:
        with connect_worker(url, "benchmark") as connection:
            ledger = new_ledger(connection, POOL)
        for size in options.sizes:
            with connect_worker(url, "benchmark") as connection:
                ledger.grow(connection, tape, size)
            settle(url)
            own = url if size == largest else databases.enter_context(copied(servers, url))
            pools.append(Grown(size, place._replace(database_url=own), tape.peek(ahead)))
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
    command = [sys.executable, "-m", "petard_worker", "verify", POOL, "--no-redis", "--json"]
    started = time.perf_counter()
    done = subprocess.run(command, env=environment(pool.place), stdout=subprocess.PIPE, check=False)
    took = time.perf_counter() - started
    (report,) = json.loads(done.stdout)["pools"]
    return Verified(report["entries"], report["entries_per_s"], took, report["differences"])


if __name__ == "__main__":
    main()
