"""TLS to both servers: verified when the URL says so, refused with one clear line when it cannot be."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import psycopg
import pytest
import redis

from integration.arena import finished, make_pool
from integration.tls_servers import EXPIRED, GOOD, OF_ANOTHER_HOST, Authority, TlsRedis
from petard_producer import Follower, Producer
from petard_producer.connect import connect_to_push
from petard_worker.embedded import PostgresServer, embedded_postgres, postgres_server
from petard_worker.embedded.binaries import (
    PostgresPrograms,
    postgres_folders,
    postgres_identities,
    version_of,
)
from petard_worker.postgres.connect import connect_worker
from petard_worker.postgres.migrate import migrate
from petard_worker.redis_client import connect_redis
from petard_worker.rq_worker import connect_for_rq

UNAVAILABLE = 69
POOL = "p"
REFUSED = {
    "authority unknown": (GOOD, False),
    "another host's certificate": (OF_ANOTHER_HOST, True),
    "expired certificate": (EXPIRED, True),
}
"""What is wrong: the certificate of the server, and whether the client trusts who signed it."""

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


class Commands(Protocol):
    environment: dict[str, str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]: ...

    def start(self, *arguments: str) -> subprocess.Popen[str]: ...

    def log_of(self, process: subprocess.Popen[str]) -> str: ...


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls") / "authority")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that signed nothing here."""
    return Authority(tmp_path_factory.mktemp("tls") / "stranger")


@pytest.fixture(scope="module")
def certificates(authority: Authority) -> dict[str, tuple[Path, Path]]:
    return authority.issue_all()


@pytest.fixture(scope="module")
def redis_servers(
    authority: Authority, certificates: dict[str, tuple[Path, Path]]
) -> Iterator[dict[str, TlsRedis]]:
    """A Redis with each certificate."""
    program = shutil.which("redis-server")
    if program is None or b"tls-cert-file" not in Path(program).read_bytes():
        pytest.skip("there is no redis-server here that knows TLS")
    servers = {name: TlsRedis(authority, certificate) for name, certificate in certificates.items()}
    yield servers
    for server in servers.values():
        server.close()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A Postgres with a pool, which knows TLS."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_server, "find_postgres", lambda made_by: postgres_with_tls())
        with embedded_postgres() as server:
            migrate(server.url)
            with connect_worker(server.url, "test") as connection:
                make_pool(connection)
            yield server


def postgres_with_tls() -> PostgresPrograms:
    """Return programs that were built with OpenSSL, or skip the test."""
    for identity in postgres_identities():
        for folder in postgres_folders():
            program = folder / "postgres"
            if b"SSL_CTX_new" in program.read_bytes() and version_of(program, identity) > (0, 0):
                return PostgresPrograms(folder, identity)
    pytest.skip("there is no Postgres here that knows TLS")


@contextmanager
def speaking_tls(server: PostgresServer, certificate: tuple[Path, Path]) -> Iterator[str]:
    """Give the server a certificate, and return its URL without a word about TLS."""
    for file, name in zip(certificate, ("server.crt", "server.key"), strict=True):
        place = server.cluster / name
        shutil.copyfile(file, place)
        place.chmod(0o600)
        owner = server.cluster.stat()
        shutil.chown(place, owner.st_uid, owner.st_gid)
    server.stop()
    with (server.cluster / "postgresql.auto.conf").open("a") as settings:
        settings.write("ssl = on\n")
    server.start()
    yield server.url


def trusting(authority: Authority) -> str:
    return f"ssl_ca_certs={authority.certificate}"


def verifying(authority: Authority) -> str:
    return f"sslmode=verify-full&sslrootcert={authority.certificate}"


def assert_one_clear_line(ended: subprocess.CompletedProcess[str], *words: str) -> None:
    assert ended.returncode == UNAVAILABLE, ended.stderr
    assert "Traceback" not in ended.stderr
    (line,) = [line for line in ended.stderr.splitlines() if not line.startswith("{")]
    for word in words:
        assert word in line


# --- Redis


@pytest.mark.parametrize("looks", ["at once", "when the session tickets are there"])
def test_every_client_gets_through_to_a_redis_it_can_verify(
    redis_servers: dict[str, TlsRedis], authority: Authority, monkeypatch: pytest.MonkeyPatch, looks: str
) -> None:
    url = f"{redis_servers[GOOD].url}?{trusting(authority)}"
    handshake = redis.SSLConnection.connect

    def connect(connection: redis.SSLConnection) -> None:
        handshake(connection)
        time.sleep(0 if looks == "at once" else 0.2)

    monkeypatch.setattr(redis.SSLConnection, "connect", connect)

    with connect_redis(url) as client, connect_for_rq(url) as for_rq:
        assert client.ping()
        assert for_rq.ping()
    with Producer.from_url(url, source="/test") as producer:
        assert producer.push_json(finished(1)).data.pool == POOL
    with Follower.from_url(url, pool=POOL) as follower:
        assert follower.newest() is None


def test_an_answer_that_nobody_fetched_ends_a_connection(
    redis_servers: dict[str, TlsRedis], authority: Authority
) -> None:
    url = f"{redis_servers[GOOD].url}?{trusting(authority)}"
    with connect_to_push(url) as client:
        pool = client.connection_pool
        dirty = pool.get_connection()
        dirty.send_command("PING")
        time.sleep(0.2)
        seen = dirty.can_read()
        pool.release(dirty)

        assert seen
        assert client.ping() is True


@pytest.mark.parametrize("what", REFUSED)
def test_no_client_speaks_to_a_redis_it_cannot_verify(
    redis_servers: dict[str, TlsRedis], authority: Authority, stranger: Authority, what: str
) -> None:
    certificate, trusted = REFUSED[what]
    url = f"{redis_servers[certificate].url}?{trusting(authority if trusted else stranger)}"

    for connect in (connect_redis, connect_for_rq):
        with connect(url) as client, pytest.raises(redis.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
            client.ping()
    with (
        Producer.from_url(url, source="/test") as producer,
        pytest.raises(redis.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        producer.push_json(finished(1))
    with (
        Follower.from_url(url, pool=POOL) as follower,
        pytest.raises(redis.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        follower.newest()


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("role", ["worker", "publisher", "status"])
def test_a_command_says_that_it_cannot_verify_redis(
    petard: Commands,
    redis_servers: dict[str, TlsRedis],
    authority: Authority,
    stranger: Authority,
    what: str,
    role: str,
) -> None:
    certificate, trusted = REFUSED[what]
    url = f"{redis_servers[certificate].url}?{trusting(authority if trusted else stranger)}"
    petard.environment["PETARD_REDIS_URL"] = url

    ended = petard.run(role)

    assert_one_clear_line(ended, "cannot reach Redis (PETARD_REDIS_URL)", "certificate verify failed")


def test_verification_is_left_out_only_when_the_url_says_so_and_then_the_log_does_too(
    petard: Commands, redis_servers: dict[str, TlsRedis]
) -> None:
    url = f"{redis_servers[OF_ANOTHER_HOST].url}?ssl_cert_reqs=none&ssl_check_hostname=false"
    petard.environment["PETARD_REDIS_URL"] = url

    ended = petard.run("worker", "--burst")

    assert ended.returncode == 0, ended.stderr
    assert "connection_not_verified" in ended.stderr
    assert "ssl_cert_reqs=none" in ended.stderr


# --- Postgres


def test_a_postgres_that_can_be_verified_is_spoken_to_in_tls(
    postgres: PostgresServer, certificates: dict[str, tuple[Path, Path]], authority: Authority
) -> None:
    with (
        speaking_tls(postgres, certificates[GOOD]) as url,
        connect_worker(f"{url}?{verifying(authority)}", "test") as connection,
    ):
        assert connection.pgconn.ssl_in_use


@pytest.mark.parametrize("what", REFUSED)
def test_a_postgres_that_cannot_be_verified_is_not_spoken_to(
    petard: Commands,
    postgres: PostgresServer,
    certificates: dict[str, tuple[Path, Path]],
    authority: Authority,
    stranger: Authority,
    what: str,
) -> None:
    certificate, trusted = REFUSED[what]

    with speaking_tls(postgres, certificates[certificate]) as url:
        verified = f"{url}?{verifying(authority if trusted else stranger)}"
        with pytest.raises(psycopg.OperationalError, match="certificate"):
            connect_worker(verified, "test")
        petard.environment["PETARD_DATABASE_URL"] = verified
        ended = [petard.run(role) for role in ("worker", "status", "migrate")]

    for one in ended:
        assert_one_clear_line(one, "cannot reach Postgres (PETARD_DATABASE_URL)", "certificate")


@pytest.mark.timeout(240)
def test_the_service_runs_over_tls_to_both(
    petard: Commands,
    postgres: PostgresServer,
    redis_servers: dict[str, TlsRedis],
    certificates: dict[str, tuple[Path, Path]],
    authority: Authority,
    wait_until: Callable[..., None],
) -> None:
    redis_url = f"{redis_servers[GOOD].url}?{trusting(authority)}"
    with speaking_tls(postgres, certificates[GOOD]) as url, connect_redis(redis_url) as client:
        client.flushall()
        petard.environment["PETARD_DATABASE_URL"] = f"{url}?{verifying(authority)}"
        petard.environment["PETARD_REDIS_URL"] = redis_url
        prefix = petard.environment["PETARD_KEY_PREFIX"]
        worker, publisher = petard.start("worker"), petard.start("publisher")
        with Producer.from_url(redis_url, source="/test", prefix=prefix) as producer:
            producer.push_json(finished(1))

        with Follower.from_url(redis_url, pool=POOL, prefix=prefix) as follower:
            change = next(follower.follow())
        for role in (worker, publisher):
            role.terminate()
            assert role.wait(30) == 0

    assert change.data.seq == 1
    assert "connection_not_verified" not in petard.log_of(worker) + petard.log_of(publisher)
