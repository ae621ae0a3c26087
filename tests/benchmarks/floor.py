"""The floor: what Postgres alone needs to write the same rows.

The games are first played with Petard's own functions and the rows put aside in unlogged tables. Then the
tables are emptied, and only this is measured: the rows written back by plain SQL, one durable transaction per
batch of BATCH, into the same tables with the same constraints and indexes.
"""

import time
from collections.abc import Iterator, Sequence
from typing import LiteralString

import psycopg

from benchmarks.games import POOL
from benchmarks.pipeline import make_pools
from benchmarks.servers import Place
from petard_worker.apply import apply_arrivals
from petard_worker.batch import Arrival, read_arrival
from petard_worker.breaker import Breaker
from petard_worker.known import Known
from petard_worker.postgres import pools
from petard_worker.postgres.connect import WORKER_LIMITS, Connection, connect_worker

BATCH = 500
"""Events of a transaction."""
STAGING: LiteralString = """
    CREATE UNLOGGED TABLE public.rating (number integer, LIKE petard.rating);
    GRANT SELECT, INSERT ON public.rating TO petard_worker;
"""
PUT_ASIDE: LiteralString = """
    CREATE UNLOGGED TABLE public.ledger AS SELECT * FROM petard.ledger ORDER BY seq;
    CREATE UNLOGGED TABLE public.change AS SELECT * FROM petard.change ORDER BY seq;
    CREATE UNIQUE INDEX ON public.ledger (seq);
    CREATE INDEX ON public.change (seq);
    CREATE INDEX ON public.rating (number);
    TRUNCATE petard.ledger, petard.change, petard.rating;
    UPDATE petard.pool SET seq = 0, newest = NULL;
    ANALYZE public.ledger; ANALYZE public.change; ANALYZE public.rating;
"""


def write_by_sql(place: Place, events: Sequence[bytes]) -> float:
    """Return how many events a second Postgres alone can write the rows of."""
    make_pools(place.database_url, POOL)
    with psycopg.connect(place.database_url, autocommit=True, options=WORKER_LIMITS) as owner:
        owner.execute(STAGING)
        play(place, events)
        owner.execute(PUT_ASIDE)
        owner.execute("CHECKPOINT")
        started = time.perf_counter()
        for number, last in enumerate(batch_ends(len(events), BATCH)):
            write_batch(owner, number, last - BATCH, last)
        took = time.perf_counter() - started
        check_all_written(owner, len(events))
    return len(events) / took


def batch_ends(events: int, size: int) -> Iterator[int]:
    """Yield the seq at which each batch ends."""
    return iter(range(size, events + size, size))


def play(place: Place, events: Sequence[bytes]) -> None:
    """Apply the events as the drain does, and put the ratings aside as they are after every batch."""
    breaker = Breaker()
    with connect_worker(place.database_url, "benchmark") as connection:
        for number, start in enumerate(range(0, len(events), BATCH)):
            arrivals = [read_arrival(raw) for raw in events[start : start + BATCH]]
            with connection.transaction():
                apply_one_batch(connection, arrivals, breaker)
                put_ratings_aside(connection, number, start)


def apply_one_batch(connection: Connection, arrivals: Sequence[Arrival], breaker: Breaker) -> None:
    """Apply a batch of events to the pool."""
    locked = pools.lock_pool(connection, POOL)
    assert locked is not None
    apply_arrivals(connection, locked, arrivals, breaker, Known())


def put_ratings_aside(connection: Connection, number: int, after: int) -> None:
    """Keep the ratings of everybody who was changed after that ledger entry."""
    sql = """
        INSERT INTO public.rating SELECT %(number)s, rating.* FROM petard.rating AS rating
        WHERE rating.player IN (SELECT player FROM petard.change WHERE seq > %(after)s)
    """
    connection.execute(sql, {"number": number, "after": after})


def write_batch(connection: psycopg.Connection, number: int, after: int, last: int) -> None:
    """Write one batch's rows in one transaction, without waiting between the statements."""
    with connection.pipeline(), connection.transaction():
        connection.execute("SELECT seq FROM petard.pool WHERE name = %s FOR NO KEY UPDATE", (POOL,))
        write_entries(connection, after, last)
        write_changes(connection, after, last)
        write_ratings(connection, number)
        connection.execute("UPDATE petard.pool SET seq = %s, newest = now() WHERE name = %s", (last, POOL))


def write_entries(connection: psycopg.Connection, after: int, last: int) -> None:
    """Copy ledger entries back."""
    sql = "INSERT INTO petard.ledger SELECT * FROM public.ledger WHERE seq > %s AND seq <= %s"
    connection.execute(sql, (after, last))


def write_changes(connection: psycopg.Connection, after: int, last: int) -> None:
    """Copy changes back."""
    sql = "INSERT INTO petard.change SELECT * FROM public.change WHERE seq > %s AND seq <= %s"
    connection.execute(sql, (after, last))


def write_ratings(connection: psycopg.Connection, number: int) -> None:
    """Write the ratings as they are after a batch, over those before it."""
    sql = """
        INSERT INTO petard.rating AS rating
            (pool, player, rating, rd, volatility, bomb, bomb_cap, abandons, penalties, games, wins, draws,
             losses, peak, last_played, player_seq)
        SELECT pool, player, rating, rd, volatility, bomb, bomb_cap, abandons, penalties, games, wins, draws,
               losses, peak, last_played, player_seq
        FROM public.rating WHERE number = %s
        ON CONFLICT (pool, player) DO UPDATE SET
            rating = excluded.rating, rd = excluded.rd, volatility = excluded.volatility,
            bomb = excluded.bomb, bomb_cap = excluded.bomb_cap, abandons = excluded.abandons,
            penalties = excluded.penalties, games = excluded.games, wins = excluded.wins,
            draws = excluded.draws, losses = excluded.losses, peak = excluded.peak,
            last_played = excluded.last_played, player_seq = excluded.player_seq
    """
    connection.execute(sql, (number,))


def check_all_written(connection: psycopg.Connection, events: int) -> None:
    """Raise unless the tables hold again what was put aside."""
    sql = """
        SELECT (SELECT count(*) FROM petard.ledger),
               (SELECT count(*) FROM petard.change) - (SELECT count(*) FROM public.change)
    """
    written = connection.execute(sql).fetchone()
    if written != (events, 0):
        raise RuntimeError(f"the floor wrote {written}, expected {(events, 0)}")
