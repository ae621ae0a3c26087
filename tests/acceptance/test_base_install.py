"""The base install: a wheel beside PyPI's `schema`, with msgspec, pydantic and redis, pushes and follows."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PUSH_AND_FOLLOW = """
import json, os, sys
import schema, petard_schema
from petard_producer import Follower, Producer, duel

url, prefix = os.environ["PETARD_REDIS_URL"], os.environ["PETARD_KEY_PREFIX"]
with Producer.from_url(url, source="/base", prefix=prefix) as producer:
    event = producer.finished(pool="p", game="g-1", sides=duel(winner="alice", loser="bob"))
with Follower.from_url(url, pool="p", prefix=prefix) as follower:
    change = next(follower.follow())
assert schema.Schema({"id": str}).validate({"id": event.id})
print(json.dumps({
    "cause is ours": change.data.cause.id == event.id,
    "ratings": {one.player: one.after.rating for one in change.data.changes},
    "schema": schema.__file__,
    "petard_schema": petard_schema.__file__,
    "loaded": sorted({name.partition(".")[0] for name in sys.modules}),
}))
"""
NOT_NEEDED = ("hiredis", "psycopg", "pydantic_settings", "rich", "rq", "structlog", "typer")


@dataclass(frozen=True)
class Installation:
    """An environment with nothing but the base install and `schema`."""

    folder: Path

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run one of its programs, away from this checkout."""
        return subprocess.run(
            [self.folder / "bin" / command[0], *command[1:]],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("base")
    install = install_with_uv if shutil.which("uv") else install_with_pip
    install(folder)
    yield Installation(folder / "venv")
    shutil.rmtree(folder)


def install_with_uv(folder: Path) -> None:
    succeed("uv", "build", "-q", "--wheel", "--out-dir", str(folder), str(ROOT))
    succeed("uv", "venv", "-q", "--python", sys.executable, str(folder / "venv"))
    python = str(folder / "venv" / "bin" / "python")
    succeed("uv", "pip", "install", "-q", "--python", python, str(wheel(folder)), "schema")


def install_with_pip(folder: Path) -> None:
    succeed(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    succeed(sys.executable, "-m", "venv", str(folder / "venv"))
    pip = str(folder / "venv" / "bin" / "pip")
    succeed(pip, "install", "-q", "--disable-pip-version-check", str(wheel(folder)), "schema")


def wheel(folder: Path) -> Path:
    (found,) = folder.glob("petard-*.whl")
    return found


def succeed(*command: str) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_base_install_pushes_and_follows_beside_another_schema(installation, petard, pool, wait_until):
    petard.start("worker")
    petard.start("publisher")
    servers = {name: petard.environment[name] for name in ("PETARD_REDIS_URL", "PETARD_KEY_PREFIX")}

    ended = installation.run("python", "-c", PUSH_AND_FOLLOW, **servers)

    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["cause is ours"]
    assert found["ratings"]["alice"] > 1500 > found["ratings"]["bob"]
    assert Path(found["schema"]).name == "schema.py" or Path(found["schema"]).parent.name == "schema"
    assert Path(found["petard_schema"]).parent.name == "petard_schema"
    assert str(ROOT) not in found["schema"] + found["petard_schema"]
    assert not set(NOT_NEEDED) & set(found["loaded"])


@pytest.mark.parametrize("module", NOT_NEEDED)
def test_base_install_brings_nothing_of_the_worker(installation, module):
    ended = installation.run("python", "-c", f"import {module}")

    assert ended.stderr.splitlines()[-1] == f"ModuleNotFoundError: No module named '{module}'"


@pytest.mark.parametrize("arguments", [(), ("demo",), ("--help",)], ids=str)
def test_command_of_the_base_install_says_what_to_install(installation, arguments):
    ended = installation.run("petard", *arguments)

    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr == (
        "petard: the commands need the worker's packages: pip install 'petard[worker]',"
        " or 'petard[worker,embedded]' for demo and up\n"
    )


def test_wheel_holds_the_three_packages_with_their_types_and_nothing_else(installation):
    (site,) = (installation.folder / "lib").glob("python*/site-packages")

    ours = {path.name for path in site.glob("petard*")}

    assert {name for name in ours if not name.endswith(".dist-info")} == {
        "petard_schema",
        "petard_producer",
        "petard_worker",
    }
    assert all(
        (site / name / "py.typed").is_file() for name in ("petard_schema", "petard_producer", "petard_worker")
    )
    assert (site / "petard_worker" / "postgres" / "migrations" / "0001_pipeline.sql").is_file()
