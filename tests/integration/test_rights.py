"""Who may do what in Postgres: exactly this and no more."""

from itertools import product
from pathlib import Path

import psycopg
import pytest

from petard_worker.postgres.connect import Connection, connect_reader, connect_worker

PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")

ROLES = ("petard_worker", "petard_reader", "public")


def read_expected() -> dict[tuple[str, str], set[str]]:
    """Return the rights of every role in every table, sequence and function of the file beside this one."""
    text = Path(__file__).with_name("postgres_rights.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {(role, name): set(rights) for role, name, *rights in lines}


EXPECTED = read_expected()
TABLES = sorted({name for (_, name), rights in EXPECTED.items() if not rights & {"USAGE", "EXECUTE"}})


@pytest.fixture
def database_url(shared_database: str) -> str:
    return shared_database


def test_the_matrix_covers_every_table(owner: psycopg.Connection) -> None:
    rows = owner.execute(
        """
        SELECT relname FROM pg_class
        WHERE relnamespace = 'petard'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
        """
    )

    assert sorted(name for (name,) in rows) == TABLES


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_exactly_its_rights(owner: psycopg.Connection, role: str) -> None:
    sql = """
        SELECT has_table_privilege(%(role)s, 'petard.' || %(table)s, %(privilege)s)
            OR (%(privilege)s NOT IN ('DELETE', 'TRUNCATE', 'TRIGGER')
                AND has_any_column_privilege(%(role)s, 'petard.' || %(table)s, %(column_privilege)s))
    """
    found: dict[tuple[str, str], set[str]] = {}

    for table, privilege in product(TABLES, PRIVILEGES):
        for_columns = privilege if privilege not in {"DELETE", "TRUNCATE", "TRIGGER"} else "SELECT"
        values = {"role": role, "table": table, "privilege": privilege, "column_privilege": for_columns}
        if owner.execute(sql, values).fetchone() == (True,):
            found.setdefault((role, table), set()).add(privilege)

    assert found == {key: rights for key, rights in EXPECTED.items() if key[0] == role and key[1] in TABLES}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_uses_exactly_its_sequences_and_functions(owner: psycopg.Connection, role: str) -> None:
    """A function may run with its owner's rights, and PUBLIC may run every new one unless that is revoked."""
    rows = owner.execute(
        """
        SELECT relname, privilege
        FROM pg_class CROSS JOIN unnest(ARRAY['USAGE', 'SELECT', 'UPDATE']) AS privilege
        WHERE relnamespace = 'petard'::regnamespace AND relkind = 'S'
            AND has_sequence_privilege(%(role)s, pg_class.oid, privilege)
        UNION ALL
        SELECT proname || '()', 'EXECUTE' FROM pg_proc
        WHERE pronamespace = 'petard'::regnamespace
            AND has_function_privilege(%(role)s, pg_proc.oid, 'EXECUTE')
        """,
        {"role": role},
    )
    found: dict[tuple[str, str], set[str]] = {}

    for name, privilege in rows:
        found.setdefault((role, name), set()).add(privilege)

    expected = {key: rights for key, rights in EXPECTED.items() if key[0] == role and key[1] not in TABLES}
    assert found == expected


@pytest.mark.parametrize("role", ["petard_worker", "petard_reader"])
def test_a_table_of_a_later_migration_can_be_read_and_not_written(
    owner: psycopg.Connection, role: str
) -> None:
    with owner.transaction(force_rollback=True):
        owner.execute("SET LOCAL ROLE petard_owner")
        owner.execute("CREATE TABLE petard.later ()")

        sql = "SELECT has_table_privilege(%(role)s, 'petard.later', %(privilege)s)"
        granted = [
            privilege
            for privilege in PRIVILEGES
            if owner.execute(sql, {"role": role, "privilege": privilege}).fetchone() == (True,)
        ]

    assert granted == ["SELECT"]


@pytest.mark.parametrize("role", ["petard_worker", "petard_reader"])
def test_a_role_can_make_nothing_and_become_nobody(owner: psycopg.Connection, role: str) -> None:
    row = owner.execute(
        """
        SELECT has_schema_privilege(%(role)s, 'petard', 'CREATE'),
               has_database_privilege(%(role)s, current_database(), 'CREATE'),
               pg_has_role(%(role)s, 'petard_owner', 'MEMBER'),
               rolsuper OR rolcreaterole OR rolcreatedb OR rolcanlogin OR rolreplication OR rolbypassrls
        FROM pg_roles WHERE rolname = %(role)s
        """,
        {"role": role},
    ).fetchone()

    assert row == (False, False, False, False)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE petard.ledger SET outcome = 'ignored', reason = 'x'",
        "DELETE FROM petard.ledger",
        "TRUNCATE petard.ledger",
        "UPDATE petard.change SET rating_after = 3000",
        "DELETE FROM petard.change",
        "TRUNCATE petard.change",
        "UPDATE petard.pool_version SET parameters = '{}'",
        "DELETE FROM petard.rating",
        "DELETE FROM petard.dead_letter",
        "DELETE FROM petard.dead_letter_attempt",
        "DELETE FROM petard.replay_letter",
        "DELETE FROM petard.pool",
        "UPDATE petard.migration SET checksum = ''",
        "ALTER TABLE petard.ledger DISABLE TRIGGER ALL",
        "DROP TABLE petard.change",
        "CREATE TABLE petard.mine ()",
    ],
)
def test_a_worker_cannot_rewrite_history(connection: Connection, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)  # type: ignore[call-overload]


@pytest.mark.parametrize("table", TABLES)
def test_a_reader_reads_every_table_and_writes_none(database_url: str, table: str) -> None:
    with connect_reader(database_url, "test") as reader:
        reader.execute(f"SELECT * FROM petard.{table}")  # type: ignore[call-overload]
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            reader.execute(f"DELETE FROM petard.{table}")  # type: ignore[call-overload]
        reader.execute("SET default_transaction_read_only = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute(f"DELETE FROM petard.{table}")  # type: ignore[call-overload]


def test_a_reader_cannot_lock_a_pool(database_url: str) -> None:
    """Reading must never hold up the drains."""
    with connect_reader(database_url, "test") as reader:
        reader.execute("SET default_transaction_read_only = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("SELECT FROM petard.pool WHERE name = 'p' FOR UPDATE")


def test_only_a_worker_may_purge_and_the_function_looks_names_up_nowhere_else(
    owner: psycopg.Connection,
) -> None:
    rows = owner.execute("""
        SELECT proname, prosecdef, pg_get_userbyid(proowner), proconfig,
               ARRAY(
                   SELECT role FROM unnest(ARRAY['petard_worker', 'petard_reader', 'public']) AS role
                   WHERE has_function_privilege(role, pg_proc.oid, 'EXECUTE')
               )
        FROM pg_proc WHERE pronamespace = 'petard'::regnamespace
    """).fetchall()

    path = ["search_path=pg_catalog, pg_temp"]
    assert rows == [("purge_dead_letters", True, "petard_owner", path, ["petard_worker"])]


def test_connections_say_who_they_are(database_url: str) -> None:
    with connect_worker(database_url, "worker-7") as connection:
        row = connection.execute("SELECT current_user::text, current_setting('application_name')").fetchone()

    assert row == ("petard_worker", "petard worker-7")
