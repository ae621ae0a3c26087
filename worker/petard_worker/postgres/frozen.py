"""Frozen workers hold the lock of a pool and answer nothing; no timeout of Postgres ends their sessions.

`idle_in_transaction_session_timeout` does not: in a pipeline a session that waits for its client counts as
active. `transaction_timeout` would, but only since Postgres 17.
"""

from typing import LiteralString

from petard_worker.postgres.connect import Connection

FROZEN_AFTER_SECONDS = 5
"""A worker at work says something every few milliseconds; silent for so long, it is frozen or gone."""


def end_frozen_holders(connection: Connection) -> int:
    """End the sessions of workers that are frozen while they hold the lock of a pool; return how many.

    Safe whoever is right: what the frozen one has not committed was not trimmed either.
    """
    # As the login and not as petard_worker, which may not end sessions of the login it shares with them.
    # Only sessions of ours that wait for their client: never one that works, never an operator's.
    sql: LiteralString = """
        SELECT count(pg_terminate_backend(activity.pid))
        FROM pg_locks AS held
        JOIN pg_stat_activity AS activity ON activity.pid = held.pid
        WHERE held.relation = 'petard.pool'::regclass AND held.mode = 'RowShareLock' AND held.granted
          AND activity.datname = current_database() AND activity.pid <> pg_backend_pid()
          AND activity.application_name LIKE 'petard worker-%%'
          AND activity.wait_event_type = 'Client'
          AND activity.state IN ('active', 'idle in transaction')
          AND activity.state_change < clock_timestamp() - make_interval(secs => %(seconds)s)
    """
    with connection.transaction():
        connection.execute("SET LOCAL ROLE NONE")
        row = connection.execute(sql, {"seconds": FROZEN_AFTER_SECONDS}).fetchone()
    return int(str(row[0])) if row else 0
