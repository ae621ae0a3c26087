"""What the tests of dead letters play with: a pool's letters, and a run through all that are open."""

from collections.abc import Iterable

import psycopg
from redis import Redis

from petard_schema import DeadReason, EventRefused, Keys
from petard_worker.pace import Pace
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.dead_letters import bury, dead_letter
from petard_worker.postgres.letter_finds import LetterFilter
from petard_worker.replay import Progress, Run, replay, start_replay

REFUSED = EventRefused(DeadReason.NOT_JSON, "no JSON")
EVERY = LetterFilter()
FAST = 10_000
AT_ONCE = Pace(1e9)


def bury_all(connection: Connection, bodies: Iterable[bytes], pool: str = "p") -> None:
    """Make dead letters of these."""
    bury(connection, pool, [dead_letter(body, REFUSED) for body in bodies])


def start(connection: Connection, wanted: LetterFilter = EVERY) -> Run:
    """Begin a run of what is wanted."""
    return start_replay(connection, wanted, "all", "ann", FAST)


def run_all(connection: Connection, redis: Redis, keys: Keys, wanted: LetterFilter = EVERY) -> list[Progress]:
    """Replay everything that is wanted from beginning to end."""
    return list(replay(connection, redis, keys, start(connection, wanted), AT_ONCE))


def states(owner: psycopg.Connection) -> list[tuple[str, int]]:
    """Return state and attempts of every letter, oldest first."""
    return owner.execute("SELECT state, attempts FROM petard.dead_letter ORDER BY id").fetchall()


def turns(owner: psycopg.Connection) -> list[str]:
    """Return what became of every letter of every run."""
    rows = owner.execute("SELECT state FROM petard.replay_letter ORDER BY run, letter")
    return [state for (state,) in rows]
