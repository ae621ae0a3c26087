"""Faults of Postgres: it stops, ends sessions, is locked, only reads, refuses to commit, forgets commits."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from faults.chaos.reingest import count_again, redis_time
from faults.chaos.stage import Stage
from faults.fleet import POOL, sessions_waiting_for_a_lock
from petard_worker.embedded.postgres_server import NAME

SERIALIZATION_ERRORS = 3
SECONDS_TO_MEET = 5.0
"""How long a fault that needs a worker in the middle of a transaction waits for one."""


def stop_postgres(stage: Stage) -> None:
    """`pg_ctl stop -m immediate`, and a start that recovers from the log."""
    stage.fleet.postgres.stop_immediately()
    stage.fleet.postgres.start()


def end_sessions(stage: Stage) -> None:
    """`pg_terminate_backend` for all of ours."""
    stage.fleet.end_sessions()


def hold_a_lock(stage: Stage) -> None:
    """An operator's transaction that was left open, on the pool's row or on all ratings."""
    locked = stage.draw.choice((stage.fleet.pool_locked, stage.fleet.ratings_locked))
    with locked():
        stage.let_pass(stage.draw.uniform(stage.patience.lock / 2, stage.patience.lock))


def answer_read_only(stage: Stage) -> None:
    """The address leads to a standby: it answers every question and refuses every write."""
    stage.postgres.read_only()
    try:
        stage.let_pass(stage.draw.uniform(0.5, 2.0))
    finally:
        stage.postgres.read_write()


def raise_serialization_errors(stage: Stage) -> None:
    """A stricter isolation by default, and somebody else who writes what a transaction has begun to read."""
    level = stage.draw.choice(("repeatable read", "serializable"))
    with stage.fleet.owner() as connection:
        connection.execute(f"ALTER DATABASE {NAME} SET default_transaction_isolation = '{level}'")
    try:
        stage.fleet.end_sessions()
        for _ in range(SERIALIZATION_ERRORS):
            write_while_somebody_waits(stage)
    finally:
        with stage.fleet.owner() as connection:
            connection.execute(f"ALTER DATABASE {NAME} RESET default_transaction_isolation")
        stage.fleet.end_sessions()


def write_while_somebody_waits(stage: Stage) -> None:
    """Change the pool's row in a transaction that commits once a worker waits to lock it."""
    with stage.fleet.owner() as connection, stage.fleet.owner() as watcher, connection.transaction():
        connection.execute("UPDATE petard.pool SET name = name WHERE name = %s", (POOL,))
        wait_for_a_worker(stage, watcher)


def cause_a_deadlock(stage: Stage) -> None:
    """A session that takes ratings first and the pool's row then, where a worker goes the other way."""
    with stage.fleet.owner() as connection, stage.fleet.owner() as watcher:
        # Whoever looks first is the victim: the worker, after Postgres' usual second.
        connection.execute("SET deadlock_timeout = '3s'")
        try:
            with connection.transaction():
                connection.execute("SELECT FROM petard.rating WHERE pool = %s FOR UPDATE", (POOL,))
                wait_for_a_worker(stage, watcher)
                connection.execute("SELECT FROM petard.pool WHERE name = %s FOR UPDATE", (POOL,))
        except psycopg.errors.DeadlockDetected:
            return  # the worker has won


def wait_for_a_worker(stage: Stage, watcher: psycopg.Connection[tuple[object, ...]]) -> None:
    """Wait until a worker waits for a lock; go on without when none does, as when all of them are frozen."""
    until = time.monotonic() + SECONDS_TO_MEET
    stage.wait_for(
        lambda: sessions_waiting_for_a_lock(watcher) or time.monotonic() > until,
        "a worker",
        SECONDS_TO_MEET + 30,
    )


def promote_a_stale_standby(stage: Stage) -> None:
    """The primary dies; a standby that lacks the last commits takes its place, under the same address.

    Nothing waits at that moment: what is offered again then takes its old place in the order.
    """
    pair = stage.postgres
    with nothing_waits(stage):
        pair.wait_until_replicated()
        since = redis_time(stage)
        pair.stall_replication()
    stage.let_pass(stage.draw.uniform(0.3, 1.5))
    with nothing_waits(stage):
        pair.fail_over()
        stage.fleet.postgres = pair.primary
        count_again(stage, since)
        stage.over()
    pair.rebuild_standby()


@contextmanager
def nothing_waits(stage: Stage) -> Iterator[None]:
    """Hold the game servers when everything they pushed has been applied."""
    with stage.game_servers_held():
        stage.wait_for(lambda: stage.fleet.waiting() == 0, "an empty list", 240)
        yield
