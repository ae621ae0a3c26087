"""Pools made and changed by people: everything is checked before anything is written."""

from collections.abc import Mapping
from dataclasses import fields
from typing import NamedTuple

from petard_schema.names import check_pool
from petard_worker.pool_settings import PoolSettings, as_given, pool_settings
from petard_worker.postgres import pools
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.pools import Pool
from petard_worker.ratings.parameters import BadParameterError, ParameterValue
from petard_worker.ratings.pool_rules import PoolRules, pool_rules

Values = Mapping[str, ParameterValue]


class PoolChange(NamedTuple):
    """What is to be changed; parameters and settings that are not given stay as they are."""

    parameters: Values
    settings: Values


class Changed(NamedTuple):
    """The parameters in force after a change: their version, and the next ledger entry."""

    version: int
    next_seq: int


def make_pool(connection: Connection, name: str, system: str, parameters: Values, settings: Values) -> bool:
    """Create a pool, with defaults for what is not given; False when it exists already.

    Raises BadParameterError for a name, system, parameter or setting that cannot be.
    """
    try:
        check_pool(name)
    except ValueError as error:
        raise BadParameterError(f"{name!r}: {error}") from None
    rules = pool_rules(system, parameters)
    shown = pool_settings({**usual_settings(rules), **settings})
    return pools.create_pool(connection, name, system, rules.parameters(), as_given(shown))


def usual_settings(rules: PoolRules) -> dict[str, ParameterValue]:
    """Return the settings that follow from how the pool rates: who is provisional where there are deviations.

    The default says it in points of Elo; other systems count in points of another size.
    """
    if rules.system.initial().rd == 0:
        return {}
    declared = next(each for each in fields(PoolSettings) if each.name == "provisional_rd")
    highest: float = declared.metadata["limits"].high
    return {"provisional_rd": min(PoolSettings().provisional_rd * rules.system.elo_point(), highest)}


def change_pool(connection: Connection, name: str, change: PoolChange) -> Changed | None:
    """Make all of the change or nothing; None when there is no such pool.

    Other parameters are a new version, in force from the next ledger entry on. Raises BadParameterError for a
    parameter or setting that cannot be, psycopg.errors.LockNotAvailable when a drain holds the pool for long.
    """
    with connection.transaction():
        locked = pools.lock_pool(connection, name)
        if locked is None:
            return None
        pool, version = locked.pool, locked.pool.version
        if change.parameters:
            rules = pool_rules(pool.system, {**pool.parameters, **change.parameters})
            version = pools.set_parameters(connection, name, rules.parameters())
        if change.settings:
            shown = pool_settings({**pool.settings, **change.settings})
            pools.set_settings(connection, name, as_given(shown))
        return Changed(version, pool.seq + 1)


def resume_pool(connection: Connection, name: str) -> Pool | None:
    """Let a stopped pool go on and return it as it was; None when there is no such pool.

    Raises psycopg.errors.LockNotAvailable when a drain holds the pool for long.
    """
    with connection.transaction():
        locked = pools.lock_pool(connection, name)
        if locked is None:
            return None
        pools.resume_pool(connection, name)
        return locked.pool
