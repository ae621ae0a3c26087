"""Which connections are warned about at the start: those that somebody on the way could read or forge."""

import pytest

from petard_worker.server_links import database_link, redis_link


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGSSLMODE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("postgresql://127.0.0.1/petard", None),
        ("postgresql://localhost:5433/petard", None),
        ("postgresql://[::1]/petard", None),
        ("postgresql:///petard", None),
        ("postgresql:///petard?host=/var/run/postgresql", None),
        ("postgresql://db.example/petard?sslmode=verify-full", None),
        ("postgresql://db.example/petard", "sslmode=prefer"),
        ("postgresql://10.0.0.5/petard?sslmode=disable", "sslmode=disable"),
        ("postgresql://db.example/petard?sslmode=require", "sslmode=require"),
        ("postgresql://db.example/petard?sslmode=verify-ca", "sslmode=verify-ca"),
        ("postgresql://localhost,db.example/petard", "sslmode=prefer"),
    ],
)
def test_a_database_elsewhere_is_warned_about_unless_it_is_verified(url: str, found: str | None) -> None:
    link = database_link(url)

    assert (link.found if link else None) == found


def test_the_environment_of_libpq_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db.example")
    monkeypatch.setenv("PGSSLMODE", "require")

    link = database_link("postgresql:///petard")

    assert link is not None
    assert (link.hosts, link.found) == ("db.example", "sslmode=require")


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("redis://127.0.0.1:6379/0", None),
        ("redis://localhost/0", None),
        ("redis://user:secret@[::1]:6379/0", None),
        ("unix:///run/redis.sock", None),
        ("rediss://redis.example/0", None),
        ("rediss://redis.example/0?ssl_ca_certs=/etc/ca.pem", None),
        ("rediss://redis.example/0?ssl_cert_reqs=required&ssl_check_hostname=true", None),
        ("redis://redis.example/0", "redis://"),
        ("rediss://redis.example/0?ssl_cert_reqs=none", "ssl_cert_reqs=none"),
        ("rediss://127.0.0.1/0?ssl_cert_reqs=none", "ssl_cert_reqs=none"),
        ("rediss://redis.example/0?ssl_check_hostname=false", "ssl_check_hostname=false"),
    ],
)
def test_a_redis_elsewhere_is_warned_about_unless_it_is_verified(url: str, found: str | None) -> None:
    link = redis_link(url)

    assert (link.found if link else None) == found


def test_no_password_is_in_what_is_warned_about() -> None:
    links = [
        redis_link("redis://user:hush@redis.example/0"),
        database_link("postgresql://user:hush@db.example/petard"),
    ]

    assert all(links)
    assert "hush" not in repr(links)
