"""Two servers behind one address, as high availability has them: one that works, one that follows it.

Replication goes through a proxy of its own, so that a test can say what the follower has not got when the
other one dies. Everything ends with the process that made it, as embedded servers do.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

import psycopg
import redis
from psycopg.rows import TupleRow
from redis.backoff import NoBackoff
from redis.retry import Retry

from faults.fleet import wait_until
from faults.tcp_proxy import HOST, TcpProxy
from petard_worker.embedded import PostgresServer, RedisServer, embedded_postgres, embedded_redis
from petard_worker.embedded.binaries import find_postgres
from petard_worker.embedded.folders import data_folder, locked
from petard_worker.embedded.postgres_server import NAME
from petard_worker.embedded.server import last_words, spawn

STANDBY = "standby"
"""The name by which `synchronous_standby_names` knows the follower."""
PATIENCE_SECONDS = 60


class Pair:
    """What both pairs have: proxies in front of the servers and between them, and an end."""

    proxy: TcpProxy
    replication: TcpProxy

    def __init__(self) -> None:
        """Make both servers when entered."""
        self._stack = ExitStack()

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def stall_replication(self) -> None:
        """Let the follower receive nothing more, though its connection stands."""
        self.replication.hang()

    def go_on_replicating(self) -> None:
        """Let the follower receive what it has missed."""
        self.replication.go_on()


class PostgresPair(Pair):
    """A primary and a streaming standby behind one address; who is which changes with every failover."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.primary = stack.enter_context(embedded_postgres())
            self.standby = stack.enter_context(unstarted_postgres())
            self.proxy = stack.enter_context(TcpProxy(self.primary.port))
            self.replication = stack.enter_context(TcpProxy(self.primary.port))
            self._start_standby()
            self._stack = stack.pop_all()
        return self

    @property
    def url(self) -> str:
        """The address for clients, whoever is behind it."""
        return f"postgresql://{NAME}@{HOST}:{self.proxy.port}/{NAME}"

    @contextmanager
    def asked(self, server: PostgresServer) -> Iterator[psycopg.Connection[TupleRow]]:
        """A session with one of the two, past the proxy."""
        with psycopg.connect(server.url, autocommit=True, application_name="test") as connection:
            yield connection

    def wait_until_replicated(self) -> None:
        """Wait until the standby shows all that the primary has written up to this call."""
        sql = """
            SELECT count(*) FROM pg_stat_replication
            WHERE application_name = %s AND state = 'streaming' AND replay_lsn >= %s::pg_lsn
        """
        with self.asked(self.primary) as connection:
            (written,) = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone() or (None,)
            wait_until(
                lambda: connection.execute(sql, (STANDBY, written)).fetchone() == (1,),
                "the standby to catch up",
                PATIENCE_SECONDS,
            )

    def replicate_synchronously(self, *, wanted: bool) -> None:
        """Have the primary answer a COMMIT only when the standby has it on disk, or at once again."""
        names = STANDBY if wanted else ""
        with self.asked(self.primary) as connection:
            connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
            connection.execute("SELECT pg_reload_conf()")
            sql = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
            wait_until(
                lambda: connection.execute(sql).fetchone() == (int(wanted),), "the standby's new state", 20
            )

    def fail_over(self) -> None:
        """Stop the primary at once, promote the standby, lead everybody to it.

        What was not replicated is lost. There is no standby then until `rebuild_standby`.
        """
        self.primary.stop_immediately()
        # While it hangs, what the dead primary had sent must not get through after all.
        self.replication.cut()
        with self.asked(self.standby) as connection:
            assert connection.execute("SELECT pg_promote(true, 60)").fetchone() == (True,)
            # Nobody follows the new primary yet: with a name here every COMMIT would wait.
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_reload_conf()")
        self.primary, self.standby = self.standby, self.primary
        self.proxy.point_to(self.primary.port)

    def rebuild_standby(self) -> None:
        """Make the standby anew from the primary, so that there can be another failover."""
        self.standby.stop()
        self.replication.point_to(self.primary.port)
        self.replication.go_on()
        self._start_standby()

    def read_only(self) -> None:
        """Lead everybody to the standby without promoting it: it reads, and refuses to write."""
        self.proxy.point_to(self.standby.port)

    def read_write(self) -> None:
        """Lead everybody to the primary again."""
        self.proxy.point_to(self.primary.port)

    def resume(self) -> None:
        """Forget what an earlier test has done to the network, and have a standby."""
        self.proxy.go_on()
        self.read_write()
        self.rebuild_standby()

    start = resume
    """For a `Fleet`, which knows no pairs."""

    def _start_standby(self) -> None:
        copy_cluster(self.primary, self.standby, self.replication.port)
        self.standby.start()
        self.wait_until_replicated()


@contextmanager
def unstarted_postgres() -> Iterator[PostgresServer]:
    """Give a server that has no data yet; it is stopped at the end."""
    with data_folder(None) as folder, locked(folder / "postgres"):
        server = PostgresServer(folder / "postgres")
        try:
            yield server
        finally:
            server.stop()


def copy_cluster(primary: PostgresServer, standby: PostgresServer, port: int) -> None:
    """Copy the primary's data to the standby, which is to follow it through `port`."""
    shutil.rmtree(standby.cluster, ignore_errors=True)
    programs = find_postgres(int((primary.cluster / "PG_VERSION").read_text()))
    program = pg_basebackup(programs.folder)
    options = ["-h", HOST, "-p", str(primary.port), "-U", NAME, "-D", str(standby.cluster)]
    backup = spawn([program, *options, "-X", "stream", "-c", "fast"], programs.identity, standby.folder)
    try:
        assert backup.wait(PATIENCE_SECONDS) == 0, last_words(standby.folder)
    except subprocess.TimeoutExpired:
        backup.kill()
        raise
    with (standby.cluster / "postgresql.auto.conf").open("a") as settings:
        settings.write(
            f"primary_conninfo = 'host={HOST} port={port} user={NAME} application_name={STANDBY}'\n"
            "wal_retrieve_retry_interval = '100ms'\n"
        )
    (standby.cluster / "standby.signal").touch()


def pg_basebackup(folder: Path) -> str:
    """Find the program that copies a running cluster."""
    program = folder / "pg_basebackup"
    assert program.exists(), f"{folder} has no pg_basebackup: install Postgres' client programs"
    return str(program)


class RedisPair(Pair):
    """A primary and its replica behind one address; who is which changes with every failover."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.primary = stack.enter_context(embedded_redis())
            self.standby = stack.enter_context(embedded_redis())
            self.proxy = stack.enter_context(TcpProxy(self.primary.port))
            self.replication = stack.enter_context(TcpProxy(self.primary.port))
            self._follow()
            self._stack = stack.pop_all()
        return self

    @property
    def url(self) -> str:
        """The address for clients, whoever is behind it."""
        return f"redis://{HOST}:{self.proxy.port}/0"

    @contextmanager
    def asked(self, server: RedisServer) -> Iterator["redis.Redis"]:
        """A client of one of the two, past the proxy."""
        with redis.Redis.from_url(server.url, retry=Retry(NoBackoff(), 0), socket_timeout=5) as client:
            yield client

    def wait_until_replicated(self) -> None:
        """Wait until the replica has all that the primary has written up to this call."""
        with self.asked(self.primary) as primary, self.asked(self.standby) as standby:
            written = primary.info("replication")["master_repl_offset"]

            def there() -> bool:
                told = standby.info("replication")
                return told["master_link_status"] == "up" and bool(told["slave_repl_offset"] >= written)

            wait_until(there, "the replica to catch up", PATIENCE_SECONDS)

    def fail_over(self) -> None:
        """Kill the primary, make the replica one, lead everybody to it.

        What was not replicated is lost. There is no replica then until `rebuild_standby`.
        """
        self.primary.kill()
        # While it hangs, what the dead primary had sent must not get through after all.
        self.replication.cut()
        with self.asked(self.standby) as client:
            client.replicaof("NO", "ONE")
        self.primary, self.standby = self.standby, self.primary
        self.proxy.point_to(self.primary.port)

    def rebuild_standby(self) -> None:
        """Have the other server follow the primary, so that there can be another failover."""
        self.replication.point_to(self.primary.port)
        self.replication.go_on()
        self._follow()

    def resume(self) -> None:
        """Forget what an earlier test has done to the network, and have a replica."""
        self.proxy.go_on()
        self.proxy.point_to(self.primary.port)
        self.rebuild_standby()

    def _follow(self) -> None:
        if not is_running(self.standby):
            self.standby.start()
        for server in (self.primary, self.standby):
            with self.asked(server) as client:
                # At once and not in 5 s; and a kill loses nothing that was answered where fsync is slow.
                client.config_set("repl-diskless-sync-delay", 0)
                client.config_set("appendfsync", "no")
        with self.asked(self.standby) as client:
            client.replicaof(HOST, str(self.replication.port))
        self.wait_until_replicated()


def is_running(server: RedisServer) -> bool:
    """Whether the server runs, as far as we have not killed it."""
    try:
        return server.pid > 0
    except RuntimeError:
        return False
