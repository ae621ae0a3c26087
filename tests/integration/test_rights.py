"""Who may do what in Postgres: exactly this and no more."""

from itertools import product

import psycopg
import pytest

from petard_worker.postgres.connect import Connection, connect_reader, connect_worker

PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")

EXPECTED = {
    ("petard_worker", "pool"): {"SELECT", "INSERT", "UPDATE"},
    ("petard_worker", "pool_version"): {"SELECT", "INSERT"},
    ("petard_worker", "ledger"): {"SELECT", "INSERT"},
    ("petard_worker", "rating"): {"SELECT", "INSERT", "UPDATE"},
    ("petard_worker", "change"): {"SELECT", "INSERT"},
    ("petard_worker", "dead_letter"): {"SELECT", "INSERT", "UPDATE"},
    ("petard_worker", "dead_letter_attempt"): {"SELECT", "INSERT", "UPDATE"},
    ("petard_worker", "replay_run"): {"SELECT", "INSERT", "UPDATE"},
    ("petard_worker", "replay_letter"): {"SELECT", "INSERT", "UPDATE"},
    ("petard_worker", "open_period"): {"SELECT", "INSERT", "UPDATE"},
    ("petard_worker", "migration"): {"SELECT"},
    ("petard_reader", "pool"): {"SELECT"},
    ("petard_reader", "pool_version"): {"SELECT"},
    ("petard_reader", "ledger"): {"SELECT"},
    ("petard_reader", "rating"): {"SELECT"},
    ("petard_reader", "change"): {"SELECT"},
    ("petard_reader", "dead_letter"): {"SELECT"},
    ("petard_reader", "dead_letter_attempt"): {"SELECT"},
    ("petard_reader", "replay_run"): {"SELECT"},
    ("petard_reader", "replay_letter"): {"SELECT"},
    ("petard_reader", "open_period"): {"SELECT"},
    ("petard_reader", "migration"): {"SELECT"},
}
TABLES = sorted({table for _, table in EXPECTED})


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


@pytest.mark.parametrize("role", ["petard_worker", "petard_reader", "public"])
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

    assert found == {key: rights for key, rights in EXPECTED.items() if key[0] == role}


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
               pg_has_role(%(role)s, 'petard_owner', 'MEMBER'),
               rolsuper OR rolcreaterole OR rolcreatedb OR rolcanlogin OR rolreplication OR rolbypassrls
        FROM pg_roles WHERE rolname = %(role)s
        """,
        {"role": role},
    ).fetchone()

    assert row == (False, False, False)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE petard.ledger SET outcome = 'ignored', reason = 'x'",
        "DELETE FROM petard.ledger",
        "TRUNCATE petard.ledger",
        "UPDATE petard.change SET rating_after = 3000",
        "DELETE FROM petard.change",
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
