"""`python -m benchmarks.per_event.procrastinate_tasks`: one procrastinate task per event, queued in Postgres.

As somebody would who knows procrastinate: deferred in bulk, statistics up to date, jobs that succeeded are
deleted, four at a time in threads, retried at once. It promises less than Petard: four games at a time in
no order; a lock named for the pool would keep the order, with one game at a time. And events wait in the
database itself: who reports a game needs a login there, and nothing takes events while Postgres is away.
"""

import os
from collections.abc import Sequence

import procrastinate
import psycopg
from procrastinate.tasks import Task

from benchmarks.per_event.queues import events_to_queue
from benchmarks.per_event.rate_game import rate_game

CONCURRENCY = 4
RETRIES = 3
CHUNK = 500


def main() -> None:
    """Queue everything, then be the worker until nothing is left."""
    url = os.environ["PETARD_DATABASE_URL"]
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))
    task = app.task(rate_game, name="rate_game", retry=RETRIES)
    with app.open():
        app.schema_manager.apply_schema()
        defer(task, events_to_queue())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    app.run_worker(wait=False, listen_notify=False, concurrency=CONCURRENCY, delete_jobs="successful")


def defer(task: Task, events: Sequence[str]) -> None:
    """Queue one job per event, some hundreds in a statement."""
    for start in range(0, len(events), CHUNK):
        task.batch_defer(*({"text": event} for event in events[start : start + CHUNK]))


if __name__ == "__main__":
    main()
