"""Postgres under our supervision."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import psycopg
from psycopg import sql

from petard_worker.embedded.binaries import EmbeddedServersUnavailable, PostgresPrograms, find_postgres
from petard_worker.embedded.processes import command_line, kill_family
from petard_worker.embedded.server import HOST, Server, last_words, spawn

NAME = "petard"  # of the database and of its superuser


class PostgresServer(Server):
    """Postgres with one database, reached over TCP from this machine only."""

    name = "postgres"
    _programs: PostgresPrograms

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"postgresql://{NAME}@{HOST}:{self.port}/{NAME}"

    @property
    def cluster(self) -> Path:
        """Postgres' own data directory."""
        return self.folder / "cluster"

    def start(self) -> None:
        """Start the server, wait until it answers, and make sure that the database is there."""
        super().start()
        create_database_if_missing(self.port)

    def stop_immediately(self) -> None:
        """Stop as `pg_ctl stop -m immediate` does: no checkpoint, so the next start recovers."""
        self._end(signal.SIGQUIT)

    def _prepare(self) -> None:
        made_by = self.cluster / "PG_VERSION"
        self._programs = find_postgres(int(made_by.read_text()) if made_by.exists() else None)
        give_folder_to(self._programs.identity.uid, self.folder)
        if not self.cluster.exists():
            make_cluster(self._programs, self.cluster)
        forget_foreign_pid(self.cluster)

    def _launch(self) -> subprocess.Popen[bytes]:
        settings = {"listen_addresses": HOST, "port": str(self.port), "unix_socket_directories": ""}
        arguments = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        program = str(self._programs.folder / "postgres")
        return spawn([program, "-D", str(self.cluster), *arguments], self._programs.identity, self.folder)

    def _mark(self) -> str:
        return str(self.cluster)

    def _is_ready(self) -> bool:
        """Return whether our process says so, the way `pg_ctl` finds out."""
        try:
            lines = (self.cluster / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return lines[:1] == [str(self.pid)] and lines[7:8] == ["ready   "]


def make_cluster(programs: PostgresPrograms, cluster: Path) -> None:
    """Make a cluster that is either complete or not there, even after a kill."""
    unfinished = cluster.with_name("cluster.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    options = ["-A", "trust", "-E", "UTF8", "--no-locale", "-U", NAME, "-D", str(unfinished)]
    initdb = spawn([str(programs.folder / "initdb"), *options], programs.identity, cluster.parent)
    try:
        status = initdb.wait()
    finally:
        if initdb.returncode is None:  # Ctrl-C, which did not reach it
            kill_family(initdb.pid)
            initdb.wait()
    if status != 0:
        raise EmbeddedServersUnavailable(
            f"initdb made no cluster in {cluster.parent}; its last words:\n{last_words(cluster.parent)}\n"
            "Without it, set PETARD_DATABASE_URL to a server of yours"
        )
    unfinished.rename(cluster)


def give_folder_to(uid: int, folder: Path) -> None:
    """Make the user Postgres runs as the owner of its folder, which it insists on."""
    if folder.stat().st_uid == uid:
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, uid, -1, follow_symlinks=False)
    folder.parent.chmod(0o711)  # a way through, and nothing to see


def forget_foreign_pid(cluster: Path) -> None:
    """Remove a `postmaster.pid` whose number belongs to a stranger now.

    Postgres would take it for another server on this cluster and refuse, until the stranger ends. It happens
    in containers, where pids are few and come again. We hold the folder's lock, and a surviving backend is
    still noticed by its shared memory.
    """
    pid_file = cluster / "postmaster.pid"
    if not pid_file.exists():
        return
    command = command_line(int(pid_file.read_text().splitlines()[0]))
    if command and str(cluster) not in command:
        pid_file.unlink()


def create_database_if_missing(port: int) -> None:
    """Create the database at the first start, or at the next one when that was cut short."""
    with psycopg.connect(host=HOST, port=port, user=NAME, dbname="postgres", autocommit=True) as conn:
        found = conn.execute("SELECT 1 FROM pg_database WHERE datname = %(name)s", {"name": NAME}).fetchone()
        if found is None:
            conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(NAME)))
