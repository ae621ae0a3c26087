"""deploy/postgres/roles.sql on a server that knows none of us: each login can do its work, and no more."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import psycopg
import pytest
from redis import Redis

from integration.arena import POOL, counted, finished, ids_of, push
from petard_schema import Keys
from petard_worker.embedded import PostgresServer, embedded_postgres
from petard_worker.postgres.migrate import migrate

FILE = Path(__file__).parents[2] / "deploy" / "postgres" / "roles.sql"
BAD_CONFIGURATION = 78


class Commands(Protocol):
    environment: dict[str, str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server on which the file was run, statement by statement as psql does it."""
    with embedded_postgres() as server:
        with psycopg.connect(url_of(server, "petard", "postgres"), autocommit=True) as superuser:
            superuser.execute("DROP DATABASE petard")
        text = re.sub(r"(?m)--.*$", "", FILE.read_text(encoding="utf-8"))
        parts = re.split(r"(?m)^\\connect (\w+)$", f"\\connect postgres\n{text}")[1:]
        for database, statements in zip(parts[::2], parts[1::2], strict=True):
            with psycopg.connect(url_of(server, "petard", database), autocommit=True) as superuser:
                for statement in statements.split(";"):
                    if statement.strip():
                        superuser.execute(statement)  # type: ignore[call-overload]
        migrate(url_of(server, "petard_migrate"))
        yield server


def url_of(server: PostgresServer, login: str, database: str = "petard") -> str:
    """Return the URL of a login; this server trusts whoever comes from this machine."""
    return f"postgresql://{login}@127.0.0.1:{server.port}/{database}"


@pytest.mark.timeout(300)
def test_the_service_works_with_these_logins(
    petard: Commands, server: PostgresServer, client: Redis, keys: Keys
) -> None:
    petard.environment["PETARD_DATABASE_URL"] = url_of(server, "petard_service")
    push(client, keys, [finished(1)])

    ended = [
        petard.run("pool", "create", POOL),
        petard.run("worker", "--burst"),
        petard.run("publisher", "--once"),
        petard.run("status"),
    ]
    petard.environment["PETARD_DATABASE_URL"] = url_of(server, "petard_view")
    looked = petard.run("player", POOL, "alice")
    written = petard.run("pool", "create", "q")

    assert [one.returncode for one in ended] == [0] * 4, [one.stderr for one in ended]
    assert looked.returncode == 0, looked.stderr
    assert written.returncode == BAD_CONFIGURATION
    assert "cannot act as petard_worker" in written.stderr
    with psycopg.connect(url_of(server, "petard")) as superuser:
        assert counted(superuser) == ids_of([finished(1)])


def test_logins_have_nothing_but_their_roles(server: PostgresServer) -> None:
    with psycopg.connect(url_of(server, "petard")) as superuser:
        rows = superuser.execute(
            """
            SELECT rolname, rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls,
                   ARRAY(SELECT roleid::regrole::text FROM pg_auth_members
                         WHERE member = pg_authid.oid ORDER BY 1),
                   has_database_privilege(rolname, 'petard', 'CREATE'), rolpassword IS NULL
            FROM pg_authid WHERE rolcanlogin AND rolname LIKE 'petard\\_%' ORDER BY 1
            """
        ).fetchall()

    assert rows == [
        ("petard_migrate", False, ["petard_owner", "petard_reader", "petard_worker"], True, True),
        ("petard_service", False, ["petard_reader", "petard_worker"], False, True),
        ("petard_view", False, ["petard_reader"], False, True),
    ]


@pytest.mark.parametrize("login", ["petard_service", "petard_view"])
@pytest.mark.parametrize(
    "statement",
    [
        "SET ROLE petard_owner",
        "CREATE TABLE mine ()",
        "CREATE TEMPORARY TABLE mine ()",
        "CREATE SCHEMA mine",
        "CREATE ROLE mine",
        "DELETE FROM petard.ledger",
        "UPDATE petard.change SET rating_after = 3000",
        "TRUNCATE petard.ledger",
        "DROP SCHEMA petard CASCADE",
        "ALTER ROLE petard_worker SUPERUSER",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "SELECT pg_read_file('PG_VERSION')",
    ],
)
def test_a_stolen_login_of_a_service_can_do_nothing_to_what_happened(
    server: PostgresServer, login: str, statement: str
) -> None:
    with psycopg.connect(url_of(server, login)) as thief, pytest.raises(psycopg.errors.InsufficientPrivilege):
        thief.execute(statement)  # type: ignore[call-overload]


def test_a_login_without_a_grant_cannot_connect(server: PostgresServer) -> None:
    with psycopg.connect(url_of(server, "petard"), autocommit=True) as superuser:
        superuser.execute("CREATE ROLE stranger LOGIN")

    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(url_of(server, "stranger"))
