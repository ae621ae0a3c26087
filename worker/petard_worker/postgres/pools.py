"""The pool table: what a pool is, and the row lock that serialises it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import LiteralString, NamedTuple, cast

from psycopg.types.json import Jsonb

from petard_worker.postgres.connect import Connection
from petard_worker.ratings.parameters import ParameterValue


@dataclass(frozen=True, slots=True)
class Pool:
    """One row of the pool table."""

    name: str
    system: str
    parameters: Mapping[str, ParameterValue]
    version: int
    seq: int
    epoch: int
    newest: datetime | None
    settings: Mapping[str, ParameterValue]
    stopped: str | None
    """Why nothing is applied, if the pool is stopped."""
    stopped_at: datetime | None
    stops: int
    """How often it has been stopped."""


class LockedPool(NamedTuple):
    """A pool whose row is locked by this transaction, and what time it is in Postgres."""

    pool: Pool
    now: datetime


class PublishedPool(NamedTuple):
    """What the publisher wants to know of a pool."""

    name: str
    epoch: int
    seq: int
    settings: Mapping[str, ParameterValue]


def lock_pool(connection: Connection, name: str) -> LockedPool | None:
    """Lock the pool until the transaction ends, or return None when there is no such pool.

    Whoever holds this lock is the only one who writes to the pool's ledger, ratings and changes.
    """
    sql = """
        SELECT name, system, parameters, version, seq, epoch, newest, settings, stopped,
               stopped_at, stops, clock_timestamp()
        FROM petard.pool WHERE name = %(name)s FOR NO KEY UPDATE
    """
    row = connection.execute(sql, {"name": name}).fetchone()
    return None if row is None else LockedPool(as_pool(row[:-1]), cast("datetime", row[-1]))


def get_pool(connection: Connection, name: str) -> Pool | None:
    """Return the pool as it is now, or None."""
    sql = """
        SELECT name, system, parameters, version, seq, epoch, newest, settings, stopped, stopped_at, stops
        FROM petard.pool WHERE name = %(name)s
    """
    row = connection.execute(sql, {"name": name}).fetchone()
    return None if row is None else as_pool(row)


def list_pools(connection: Connection) -> list[Pool]:
    """Return all pools by name."""
    sql = """
        SELECT name, system, parameters, version, seq, epoch, newest, settings, stopped, stopped_at, stops
        FROM petard.pool ORDER BY name
    """
    return [as_pool(row) for row in connection.execute(sql)]


def list_published(connection: Connection) -> list[PublishedPool]:
    """Return how far each pool has come."""
    sql = "SELECT name, epoch, seq, settings::text FROM petard.pool ORDER BY name"
    # Most pools have the same few settings: as text they are read once, and not every second for each pool.
    rows = cast("Iterable[tuple[str, int, int, str]]", connection.execute(sql, binary=True))
    return [PublishedPool(name, epoch, seq, as_settings(text)) for name, epoch, seq, text in rows]


@lru_cache(maxsize=1_000)
def as_settings(text: str) -> Mapping[str, ParameterValue]:
    """Return the settings in a JSON text; nobody changes them, since others get the same ones."""
    return cast("Mapping[str, ParameterValue]", json.loads(text))


def create_pool(
    connection: Connection,
    name: str,
    system: str,
    parameters: Mapping[str, ParameterValue],
    settings: Mapping[str, ParameterValue],
) -> bool:
    """Create the pool with version 1 of its parameters; return False when it exists already."""
    sql = """
        WITH created AS (
            INSERT INTO petard.pool (name, system, parameters, settings)
            VALUES (%(name)s, %(system)s, %(parameters)s, %(settings)s)
            ON CONFLICT DO NOTHING
            RETURNING name, version, system, parameters
        )
        SELECT name, version, system, parameters FROM created
    """
    values = {
        "name": name,
        "system": system,
        "parameters": Jsonb(parameters),
        "settings": Jsonb(settings),
    }
    with connection.transaction():
        if connection.execute(sql, values).fetchone() is None:
            return False
        record_version(connection, name)
        return True


def record_version(connection: Connection, name: str) -> None:
    """Write down the parameters that are in force from the next ledger entry on."""
    sql = """
        INSERT INTO petard.pool_version (pool, version, system, parameters, since_seq)
        SELECT name, version, system, parameters, seq + 1 FROM petard.pool WHERE name = %(name)s
    """
    connection.execute(sql, {"name": name})


def set_parameters(connection: Connection, name: str, parameters: Mapping[str, ParameterValue]) -> int:
    """Put new parameters in force from the next ledger entry on and return their version."""
    sql = """
        UPDATE petard.pool SET parameters = %(parameters)s, version = version + 1
        WHERE name = %(name)s RETURNING version
    """
    with connection.transaction():
        row = connection.execute(sql, {"name": name, "parameters": Jsonb(parameters)}).fetchone()
        record_version(connection, name)
    return cast("int", row[0]) if row else 0


def set_settings(connection: Connection, name: str, settings: Mapping[str, ParameterValue]) -> None:
    """Replace the pool's settings: how it is shown and published, never how it rates."""
    sql = "UPDATE petard.pool SET settings = %(settings)s WHERE name = %(name)s"
    connection.execute(sql, {"name": name, "settings": Jsonb(settings)})


def advance_pool(connection: Connection, name: str, seq: int, newest: datetime | None) -> None:
    """Move the pool on to its newest ledger entry; only under the pool's lock."""
    sql = "UPDATE petard.pool SET seq = %(seq)s, newest = %(newest)s WHERE name = %(name)s"
    connection.execute(sql, {"name": name, "seq": seq, "newest": newest})


def stop_pool(connection: Connection, name: str, reason: str) -> None:
    """Apply nothing more to the pool until somebody resumes it; one that is stopped keeps its reason."""
    sql = """
        UPDATE petard.pool SET stopped = %(reason)s, stopped_at = now(), stops = stops + 1
        WHERE name = %(name)s AND stopped IS NULL
    """
    connection.execute(sql, {"name": name, "reason": reason})


def resume_pool(connection: Connection, name: str) -> None:
    """Let a stopped pool go on."""
    sql = "UPDATE petard.pool SET stopped = NULL, stopped_at = NULL WHERE name = %(name)s"
    connection.execute(sql, {"name": name})


def raise_epoch(connection: Connection, name: str, seen: int) -> int:
    """Start a new epoch, later than any epoch Redis has seen, and return it."""
    sql: LiteralString = """
        UPDATE petard.pool SET epoch = greatest(epoch, %(seen)s) + 1 WHERE name = %(name)s RETURNING epoch
    """
    row = connection.execute(sql, {"name": name, "seen": seen}).fetchone()
    return cast("int", row[0]) if row else seen + 1


def as_pool(row: tuple[object, ...]) -> Pool:
    """Return the pool in a row of its columns."""
    return Pool(*row)  # type: ignore[arg-type]  # the columns are selected in the order of the fields
