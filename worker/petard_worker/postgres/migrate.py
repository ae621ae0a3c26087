"""Migrations: numbered SQL files, one transaction each, under one lock, guarded by checksums."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from typing import LiteralString

import psycopg
from psycopg import sql as sql_text

from petard_worker.postgres.connect import (
    CONNECT_TIMEOUT_SECONDS,
    OWNER_ROLE,
    READER_ROLE,
    WORKER_ROLE,
    Connection,
)

MIGRATION_LOCK = 0x7065_7461_7264  # "petard"


class SchemaMismatchError(Exception):
    """The database is older or newer than this code, or was migrated by other files; says what to run."""


@dataclass(frozen=True)
class Migration:
    """One file: its name, its text, and a checksum of the text."""

    name: str
    text: str
    checksum: str


def known_migrations() -> list[Migration]:
    """Return the migrations of this code in the order of their numbers."""
    folder = resources.files("petard_worker.postgres") / "migrations"
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name
    )
    texts = [(file.name.removesuffix(".sql"), file.read_text(encoding="utf-8")) for file in files]
    return [Migration(name, text, hashlib.sha256(text.encode()).hexdigest()) for name, text in texts]


def migrate(url: str) -> list[str]:
    """Bring the database up to this code and return the names of the migrations that were run.

    The login must be allowed to create roles, or the three roles must exist and be granted to it.
    Raises SchemaMismatchError when the database is newer or a migration was changed after it was run.
    """
    with migration_session(url) as connection:
        prepare(connection)
        done = applied(connection)
        check_checksums(done)
        return [run(connection, migration) for migration in known_migrations() if migration.name not in done]


@contextmanager
def migration_session(url: str) -> Iterator[Connection]:
    """Open a session that holds the migration lock: two at once wait for each other."""
    with psycopg.connect(
        url,
        autocommit=True,
        application_name="petard migrate",
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        options="-c lock_timeout=30s",
    ) as connection:
        connection.execute("SELECT pg_advisory_lock(%(lock)s)", {"lock": MIGRATION_LOCK})
        yield connection


def prepare(connection: Connection) -> None:
    """Create what every migration stands on: the three roles, the schema, the list of migrations."""
    for role in (OWNER_ROLE, WORKER_ROLE, READER_ROLE):
        ensure_role(connection, role)
    with connection.transaction():
        if connection.execute("SELECT to_regnamespace('petard')").fetchone() == (None,):
            connection.execute("CREATE SCHEMA petard AUTHORIZATION petard_owner")
        connection.execute("SET LOCAL ROLE petard_owner")
        connection.execute("""
            CREATE TABLE IF NOT EXISTS petard.migration (
                name     text        NOT NULL CONSTRAINT migration_pkey PRIMARY KEY,
                checksum text        NOT NULL,
                applied  timestamptz NOT NULL DEFAULT now()
            )
        """)


def ensure_role(connection: Connection, role: str) -> None:
    """Create a role without login unless it exists, and let this login act as it.

    Roles belong to the whole server, so another database's migration may be creating the same one.
    """
    name = sql_text.Identifier(role)
    for statement, ignored in (
        ("CREATE ROLE {} NOLOGIN", (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation)),
        ("GRANT {} TO CURRENT_USER", (psycopg.errors.UniqueViolation, psycopg.errors.InternalError_)),
    ):
        if is_settled(connection, role, granted=statement.startswith("GRANT")):
            continue
        try:
            connection.execute(sql_text.SQL(statement).format(name))
        except ignored:
            continue


def is_settled(connection: Connection, role: str, *, granted: bool) -> bool:
    """Return whether the role exists, or, if asked so, whether this login may already act as it."""
    if granted:
        # Since Postgres 16 whoever creates a role is a member that may grant it but not act as it.
        sql: LiteralString = """
            SELECT pg_has_role(current_user, %(role)s, CASE
                WHEN current_setting('server_version_num')::integer < 160000 THEN 'MEMBER' ELSE 'SET' END)
        """
    else:
        sql = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %(role)s)"
    return connection.execute(sql, {"role": role}).fetchone() == (True,)


def applied(connection: Connection) -> dict[str, str]:
    """Return the checksum of every migration the database has, by name."""
    sql = "SELECT name, checksum FROM petard.migration"
    return {str(name): str(checksum) for name, checksum in connection.execute(sql)}


def run(connection: Connection, migration: Migration) -> str:
    """Run one migration in one transaction, as the owner of everything."""
    with connection.transaction():
        connection.execute("SET LOCAL ROLE petard_owner")
        connection.execute(migration.text)
        sql = "INSERT INTO petard.migration (name, checksum) VALUES (%(name)s, %(checksum)s)"
        connection.execute(sql, {"name": migration.name, "checksum": migration.checksum})
    return migration.name


def check_schema(connection: Connection) -> None:
    """Raise SchemaMismatchError unless the database is exactly what this code knows."""
    try:
        done = applied(connection)
    except (psycopg.errors.UndefinedTable, psycopg.errors.InsufficientPrivilege):
        raise SchemaMismatchError("the database holds no Petard tables: run 'petard migrate'") from None
    check_checksums(done)
    missing = [migration.name for migration in known_migrations() if migration.name not in done]
    if missing:
        raise SchemaMismatchError(
            f"the database is older than this Petard: {', '.join(missing)} not applied; run 'petard migrate'"
        )


def check_checksums(done: dict[str, str]) -> None:
    """Raise SchemaMismatchError when the database has migrations that this code lacks or knows otherwise."""
    known = {migration.name: migration.checksum for migration in known_migrations()}
    unknown = sorted(done.keys() - known.keys())
    if unknown:
        raise SchemaMismatchError(
            f"the database is newer than this Petard: it has {', '.join(unknown)};"
            " run 'pip install --upgrade petard' and start again"
        )
    changed = sorted(name for name, checksum in done.items() if known[name] != checksum)
    if changed:
        raise SchemaMismatchError(
            f"migration {', '.join(changed)} was changed after it was applied:"
            " install the Petard that applied it, then run 'petard migrate' again"
        )
