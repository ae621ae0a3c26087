"""Migrations: once, in order, one at a time, and never over a database of another version."""

import hashlib
import threading
import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from petard_worker.embedded import PostgresServer, embedded_postgres
from petard_worker.postgres import migrate as migrations
from petard_worker.postgres.connect import connect_worker
from petard_worker.postgres.migrate import (
    Migration,
    SchemaMismatchError,
    check_schema,
    known_migrations,
    migrate,
)

ROLES = ("petard_owner", "petard_worker", "petard_reader")


@pytest.fixture
def empty_database(database_url: str) -> str:
    """A database that holds no schema of ours."""
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute("DROP SCHEMA petard CASCADE")
    return database_url


@pytest.fixture(scope="module")
def virgin_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server that has never heard of our roles."""
    with embedded_postgres(tmp_path_factory.mktemp("virgin")) as server:
        yield server


@pytest.fixture
def virgin(virgin_server: PostgresServer) -> Iterator[psycopg.Connection]:
    """A superuser's connection to that server, which forgets all about us afterwards."""
    with psycopg.connect(virgin_server.url, autocommit=True) as admin:
        yield admin
        names = [
            name for (name,) in admin.execute("SELECT datname FROM pg_database WHERE datname LIKE 'test_%'")
        ]
        for name in names:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
        admin.execute("DROP SCHEMA IF EXISTS petard CASCADE")
        for role in ("migrator", *ROLES):
            admin.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))


def names() -> list[str]:
    return [migration.name for migration in known_migrations()]


def applied(url: str) -> list[tuple[str, str]]:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT name, checksum FROM petard.migration ORDER BY name").fetchall()


def extra(text: str) -> Migration:
    return Migration("9000_extra", text, hashlib.sha256(text.encode()).hexdigest())


def test_an_empty_database_gets_all_migrations_in_order(empty_database: str) -> None:
    done = migrate(empty_database)

    assert done == names()
    assert applied(empty_database) == [(m.name, m.checksum) for m in known_migrations()]
    with connect_worker(empty_database, "test") as connection:
        check_schema(connection)


def test_the_second_time_there_is_nothing_to_do(empty_database: str) -> None:
    migrate(empty_database)
    before = applied(empty_database)

    assert migrate(empty_database) == []

    assert applied(empty_database) == before


def together(*urls: str) -> list[list[str] | BaseException]:
    """Migrate at once and return what each one did."""
    results: list[list[str] | BaseException] = []
    start = threading.Barrier(len(urls))

    def run(url: str) -> None:
        start.wait(10)
        try:
            results.append(migrate(url))
        except psycopg.Error as error:
            results.append(error)

    threads = [threading.Thread(target=run, args=(url,)) for url in urls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


def test_two_at_once_do_it_once(empty_database: str) -> None:
    results = together(empty_database, empty_database)

    assert sorted(results, key=len) == [[], names()]  # type: ignore[arg-type]


def test_a_changed_migration_is_refused_by_all(empty_database: str) -> None:
    migrate(empty_database)
    with psycopg.connect(empty_database, autocommit=True) as admin:
        admin.execute(
            "UPDATE petard.migration SET checksum = 'other' WHERE name = %(name)s", {"name": names()[0]}
        )

    with pytest.raises(SchemaMismatchError, match="was changed after it was applied"):
        migrate(empty_database)
    with (
        connect_worker(empty_database, "test") as connection,
        pytest.raises(SchemaMismatchError, match=names()[0]),
    ):
        check_schema(connection)


def test_a_newer_database_is_refused_by_all(empty_database: str) -> None:
    migrate(empty_database)
    with psycopg.connect(empty_database, autocommit=True) as admin:
        admin.execute("INSERT INTO petard.migration (name, checksum) VALUES ('9999_tomorrow', 'x')")

    with pytest.raises(SchemaMismatchError, match="newer than this Petard: it has 9999_tomorrow"):
        migrate(empty_database)
    with (
        connect_worker(empty_database, "test") as connection,
        pytest.raises(SchemaMismatchError, match="newer"),
    ):
        check_schema(connection)


def test_an_older_database_is_refused_until_it_is_migrated(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(empty_database)
    later = [*known_migrations(), extra("CREATE TABLE petard.extra (pool text NOT NULL)")]
    monkeypatch.setattr(migrations, "known_migrations", lambda: later)

    with connect_worker(empty_database, "test") as connection:
        with pytest.raises(SchemaMismatchError, match="older than this Petard: 9000_extra"):
            check_schema(connection)
        assert migrate(empty_database) == ["9000_extra"]
        check_schema(connection)


def test_a_migration_that_fails_leaves_nothing_of_itself(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = extra("CREATE TABLE petard.extra (pool text NOT NULL); SELECT 1/0")
    known = [*known_migrations(), broken]
    monkeypatch.setattr(migrations, "known_migrations", lambda: known)

    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(empty_database)

    assert "9000_extra" not in [name for name, _ in applied(empty_database)]
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("SELECT to_regclass('petard.extra')").fetchone() == (None,)


def test_a_database_without_our_tables_is_refused(empty_database: str) -> None:
    with (
        psycopg.connect(empty_database, autocommit=True) as connection,
        pytest.raises(SchemaMismatchError, match="run 'petard migrate'"),
    ):
        check_schema(connection)


def test_everything_belongs_to_the_owner_role(empty_database: str) -> None:
    migrate(empty_database)

    with psycopg.connect(empty_database) as connection:
        owners = connection.execute("""
            SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace = 'petard'::regnamespace
        """).fetchall()
    assert owners == [("petard_owner",)]


def test_a_server_without_our_roles_gets_them(
    virgin: psycopg.Connection, virgin_server: PostgresServer
) -> None:
    assert migrate(virgin_server.url) == names()

    rows = virgin.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'petard\\_%' AND NOT rolcanlogin")
    assert sorted(name for (name,) in rows) == sorted(ROLES)


def test_two_databases_of_one_server_at_once_share_the_roles(
    virgin: psycopg.Connection, virgin_server: PostgresServer
) -> None:
    """The lock belongs to a database and the roles to the server."""
    urls = []
    for _ in range(4):
        name = f"test_{uuid.uuid4().hex[:8]}"
        virgin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        urls.append(f"{virgin_server.url.rpartition('/')[0]}/{name}")

    assert together(*urls) == [names()] * 4


@pytest.mark.parametrize(
    "roles_exist", [False, True], ids=["it makes the roles", "the roles were granted to it"]
)
def test_a_login_that_is_no_superuser_can_migrate_and_work(
    virgin: psycopg.Connection, virgin_server: PostgresServer, roles_exist: bool
) -> None:
    virgin.execute("CREATE ROLE migrator LOGIN")
    if roles_exist:
        for role in ROLES:
            virgin.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(role)))
            virgin.execute(sql.SQL("GRANT {} TO migrator").format(sql.Identifier(role)))
    else:
        virgin.execute("ALTER ROLE migrator CREATEROLE")
    name = f"test_{uuid.uuid4().hex[:8]}"
    virgin.execute(sql.SQL("CREATE DATABASE {} OWNER migrator").format(sql.Identifier(name)))
    url = f"postgresql://migrator@127.0.0.1:{virgin_server.port}/{name}"

    assert migrate(url) == names()
    with connect_worker(url, "test") as connection:
        check_schema(connection)


def test_a_login_that_may_not_make_roles_is_told_so(
    virgin: psycopg.Connection, virgin_server: PostgresServer
) -> None:
    virgin.execute("CREATE ROLE migrator LOGIN")

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="role"):
        migrate(f"postgresql://migrator@127.0.0.1:{virgin_server.port}/petard")


def test_a_game_under_our_own_source_is_not_migrated_silently(empty_database: str) -> None:
    migrate(empty_database)
    with psycopg.connect(empty_database, autocommit=True) as admin:
        # As it was before the source was reserved.
        admin.execute("ALTER TABLE petard.ledger DROP CONSTRAINT ledger_own_source_reports_no_game")
        admin.execute("DROP TABLE petard.open_period")
        admin.execute("DELETE FROM petard.migration WHERE name > '0001_pipeline'")
        admin.execute("""
            INSERT INTO petard.ledger
                (pool, seq, source, event_id, type, game, time, outcome, counts, late, version, body)
            VALUES ('p', 1, '/petard', 'p/period-closed/2', 't', 'g', now(), 'rated', true, false, 1, '{}')
        """)

    with pytest.raises(psycopg.errors.CheckViolation, match="ledger_own_source_reports_no_game"):
        migrate(empty_database)
