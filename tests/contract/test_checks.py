"""Lint, types and import contracts are tests like any other: one command runs everything."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
        ("mypy",),
        ("lint-imports", "--no-cache"),
        ("deptry", "."),
        ("squawk", "--config", ".squawk.toml", "worker/petard_worker/postgres/migrations/*.sql"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
@pytest.mark.timeout(300)
def test_check_finds_nothing(command: tuple[str, ...]) -> None:
    program, *arguments = command
    expanded = [
        str(path)
        for argument in arguments
        for path in (sorted(ROOT.glob(argument)) if "*" in argument else [argument])
    ]

    result = subprocess.run(
        [str(BIN / program), *expanded], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert result.returncode == 0, result.stdout + result.stderr
