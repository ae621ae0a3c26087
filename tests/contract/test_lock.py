"""The locks of the image fit pyproject.toml: nothing missing, out of range or without a hash."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

TOP = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
LOCKS = ("requirements.lock", "build.lock")
SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
IMAGE = {"implementation_name": "cpython", "platform_machine": "x86_64", "sys_platform": "linux"}


@dataclass(frozen=True)
class Pin:
    """One locked version: what it is and the hashes that pip will accept for it."""

    requirement: Requirement
    hashes: tuple[str, ...]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> Version:
        (specifier,) = self.requirement.specifier
        return Version(specifier.version)

    def applies_to(self, python: str) -> bool:
        marker = self.requirement.marker
        environment = IMAGE | {"python_version": python, "python_full_version": f"{python}.0"}
        return marker is None or marker.evaluate(environment)


def pins(lock: str) -> list[Pin]:
    entries = (TOP / "deploy" / lock).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return [pin(entry) for entry in entries]


def pin(entry: str) -> Pin:
    requirement, *hashes = re.split(r"\s+--hash=", entry.strip())
    return Pin(Requirement(requirement), tuple(hashes))


def wanted() -> list[Requirement]:
    """Return what a container needs: the base install and the extra `worker`."""
    return [
        Requirement(text) for text in PROJECT["dependencies"] + PROJECT["optional-dependencies"]["worker"]
    ]


def supported_pythons() -> list[str]:
    return [
        f"3.{minor}" for minor in range(11, 15) if f"3.{minor}" in SpecifierSet(PROJECT["requires-python"])
    ]


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_every_dependency_is_pinned_inside_its_range(requirement: Requirement) -> None:
    name = canonicalize_name(requirement.name)

    found = [pin for pin in pins("requirements.lock") if pin.name == name]

    assert found
    assert all(pin.version in requirement.specifier for pin in found)


@pytest.mark.parametrize("python", supported_pythons())
def test_every_supported_python_gets_exactly_one_version_of_every_dependency(python: str) -> None:
    names = [pin.name for pin in pins("requirements.lock") if pin.applies_to(python)]

    assert len(names) == len(set(names))
    assert {canonicalize_name(requirement.name) for requirement in wanted()} <= set(names)


def test_the_binary_driver_has_the_version_of_the_driver() -> None:
    version = {pin.name: pin.version for pin in pins("requirements.lock")}

    assert version["psycopg-binary"] == version["psycopg"]


def test_the_build_backend_is_pinned_inside_its_range() -> None:
    version = {pin.name: pin.version for pin in pins("build.lock")}

    backends = [Requirement(text) for text in PYPROJECT["build-system"]["requires"]]

    assert backends
    assert all(version[canonicalize_name(backend.name)] in backend.specifier for backend in backends)


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_is_one_version_with_hashes(lock: str) -> None:
    locked = pins(lock)

    assert locked
    for pin in locked:
        assert [specifier.operator for specifier in pin.requirement.specifier] == ["=="]
        assert pin.requirement.url is None
        assert pin.hashes
        assert all(SHA256.fullmatch(digest) for digest in pin.hashes)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_no_address_and_no_option(lock: str) -> None:
    text = (TOP / "deploy" / lock).read_text(encoding="utf-8")

    assert "://" not in text
    assert set(re.findall(r"--[a-z-]+", text)) == {"--hash"}
    assert "#" not in text
