"""Connections to Postgres: one per process, made after any fork, named, with bounded waits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import LiteralString

import psycopg
from psycopg import sql

WORKER_ROLE = "petard_worker"
READER_ROLE = "petard_reader"
OWNER_ROLE = "petard_owner"

CONNECT_TIMEOUT_SECONDS = 3

# The pool lock is held for one batch (well under a second). A worker that is frozen inside a transaction must
# lose it soon, and so must one whose machine is gone; one that waits for a lock must come back and look at
# its stop flag.
WORKER_LIMITS: LiteralString = (
    "-c statement_timeout=60s -c lock_timeout=2s -c idle_in_transaction_session_timeout=5s"
    " -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3"
    " -c synchronous_commit=on -c TimeZone=UTC"
)
# A worker looks rows up by their keys and nothing else. With a plan that was made while the table was small
# Postgres would go on to read the whole table for one row.
BY_KEY: LiteralString = " -c enable_seqscan=off"
# A publisher asks something every three seconds at the latest, also one that stands by. Silent for longer it
# is frozen and must lose its lock: by the first limit while it waits, by the second in the middle of an
# answer, which its machine takes no more of.
PUBLISHER_LIMITS: LiteralString = WORKER_LIMITS + " -c idle_session_timeout=5s -c tcp_user_timeout=5s"
READER_LIMITS: LiteralString = "-c statement_timeout=60s -c default_transaction_read_only=on -c TimeZone=UTC"

Connection = psycopg.Connection[tuple[object, ...]]


class RoleMissingError(Exception):
    """The login may not act as the role it needs; the message says which GRANT is missing."""


def connect_worker(url: str, name: str) -> Connection:
    """Return a connection that may do what a worker may, and no more."""
    return connect(url, name, WORKER_ROLE, WORKER_LIMITS + BY_KEY)


def connect_publisher(url: str, name: str) -> Connection:
    """Return a connection with a worker's rights that is lost, with its lock, when its process freezes."""
    return connect(url, name, WORKER_ROLE, PUBLISHER_LIMITS + BY_KEY)


def connect_reader(url: str, name: str) -> Connection:
    """Return a connection that can read and nothing else."""
    return connect(url, name, READER_ROLE, READER_LIMITS)


def connect(url: str, name: str, role: str, limits: str) -> Connection:
    """Return an autocommit connection acting as the role; raise psycopg.OperationalError when unreachable.

    Autocommit, so that every transaction in the code is one that can be seen.
    """
    connection = psycopg.connect(
        url,
        autocommit=True,
        application_name=f"petard {name}",
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        options=limits,
        keepalives_idle=5,
        keepalives_interval=2,
        keepalives_count=3,
        tcp_user_timeout=10_000,  # keepalives say nothing while sent data waits to be acknowledged
    )
    try:
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue) as error:
        connection.close()
        reason = str(error).splitlines()[0]
        raise RoleMissingError(
            f"the database login cannot act as {role} ({reason}): run 'petard migrate',"
            f" or GRANT {role} TO the login of PETARD_DATABASE_URL"
        ) from None
    return connection


@contextmanager
def pipelined_transaction(
    connection: Connection, meanwhile: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Run one transaction in one pipeline: nothing waits for an answer until one is asked for.

    On leaving every answer is waited for, and that of COMMIT last; `meanwhile` is called when COMMIT is on
    its way: what it raises is raised, and does not tell whether the transaction was committed. psycopg's own
    transaction would wait in between for BEGIN, and before COMMIT. It cannot stand inside another one.
    """
    if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        raise psycopg.ProgrammingError("there is a transaction already")
    try:
        with connection.pipeline():
            connection.execute("BEGIN")
            yield
            commit = connection.execute("COMMIT")
            meanwhile()
    except BaseException:
        with suppress(psycopg.Error):  # a lost connection rolls back by itself
            connection.rollback()
        raise
    if commit.statusmessage != "COMMIT":
        raise psycopg.OperationalError(f"the transaction ended with {commit.statusmessage}, not COMMIT")
