"""Who could read along between us and the servers, or answer in their place.

What a URL says is done; a server on another machine that nobody can be sure of is said at the start.
"""

import ipaddress
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import structlog
from psycopg.conninfo import conninfo_to_dict
from redis.connection import parse_url

from petard_worker.settings import PREFIX, Settings

log = structlog.get_logger()

VERIFIED = "verify-full"


class UnverifiedLink(NamedTuple):
    """A connection of which nobody can say who is at its other end."""

    setting: str
    hosts: str
    found: str
    wanted: str


def warn_about_links(settings: Settings) -> None:
    """Log every connection that is not verified."""
    for link in unverified_links(settings):
        log.warning("connection_not_verified", **link._asdict())


def unverified_links(settings: Settings) -> Iterator[UnverifiedLink]:
    """Yield the connections that somebody on the way could read or forge."""
    if link := database_link(settings.database_url.get_secret_value()):
        yield link
    if link := redis_link(settings.redis_url.get_secret_value()):
        yield link


def database_link(url: str) -> UnverifiedLink | None:
    """Return the connection to Postgres unless it is verified, or stays on this machine."""
    parts = conninfo_to_dict(url)
    hosts = str(parts.get("host") or parts.get("hostaddr") or os.environ.get("PGHOST", ""))
    # libpq's default takes TLS where it is offered, and whoever is in between offers none.
    mode = str(parts.get("sslmode") or os.environ.get("PGSSLMODE", "prefer"))
    if mode == VERIFIED or stays_here(hosts.split(",")):
        return None
    return UnverifiedLink(f"{PREFIX}DATABASE_URL", hosts, f"sslmode={mode}", f"sslmode={VERIFIED}")


def redis_link(url: str) -> UnverifiedLink | None:
    """Return the connection to Redis unless it is verified, or a plain one that stays on this machine."""
    parts = parse_url(url)  # type: ignore[no-untyped-call]
    host = str(parts.get("host", ""))
    if not url.startswith("rediss:"):
        found = None if stays_here([host]) else "redis://"
    elif parts.get("ssl_cert_reqs") == "none":
        found = "ssl_cert_reqs=none"
    else:
        found = None if parts.get("ssl_check_hostname", True) else "ssl_check_hostname=false"
    wanted = "rediss:// and neither of ssl_cert_reqs, ssl_check_hostname"
    return UnverifiedLink(f"{PREFIX}REDIS_URL", host, found, wanted) if found else None


def stays_here(hosts: Iterable[str]) -> bool:
    """Return whether all of these are sockets or addresses of this machine."""
    return all(is_here(host) for host in hosts)


def is_here(host: str) -> bool:
    """Return whether this is a socket, or an address or the name of this machine for itself."""
    if host in {"", "localhost"} or host.startswith(("/", "@")):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
