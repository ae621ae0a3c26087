"""What Petard is compared with: one job per event, one transaction each, by whichever queue brings them.

Each queue is a module that puts the events on its standard input into its queue and then works them off, in
one process, which is what is measured. All of them do the work of rate_game.py.
"""

import subprocess
import sys
from collections.abc import Sequence

import psycopg

from benchmarks.per_event.rate_game import TABLES
from benchmarks.roles import RoleFailedError, command, environment
from benchmarks.servers import Place

PATIENCE_SECONDS = 1800


def rate_by_jobs(queue: str, place: Place, events: Sequence[bytes]) -> float:
    """Return how many events a second the worker of that queue rates; queueing them does not count."""
    with psycopg.connect(place.database_url) as connection:
        connection.execute(TABLES)
    ended = subprocess.run(
        command(f"benchmarks.per_event.{queue}"),
        input=b"\n".join(events),
        env=environment(place),
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    with psycopg.connect(place.database_url) as connection:
        done, seconds = count_done(connection)
    if ended.returncode or done != len(events):
        said = ended.stderr.decode(errors="replace")[-2000:]
        raise RoleFailedError(f"{queue}: {done} of {len(events)} jobs did their work:\n{said}")
    return (done - 1) / seconds


def count_done(connection: psycopg.Connection) -> tuple[int, float]:
    """Return how many events were rated, and the seconds between the first and the last of them."""
    sql = "SELECT count(*), extract(epoch FROM max(received) - min(received)) FROM game_event"
    row = connection.execute(sql).fetchone()
    assert row is not None
    return int(row[0]), float(row[1] or 0)


def events_to_queue() -> list[str]:
    """Return the events on standard input."""
    return sys.stdin.buffer.read().decode().split("\n")
