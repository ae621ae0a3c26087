"""Break one safety rule after the other in a copy of the source, and run the tests that must notice.

    python tests/broken_on_purpose/run.py            every rule; or only those with these words in their names
    python tests/broken_on_purpose/run.py breaker epoch

Exit 0 when every broken rule was noticed, 1 when one was not.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from broken_on_purpose.rules import RULES, Rule

TOP = Path(__file__).parents[2]
PARTS = (
    "schema",
    "producer",
    "worker",
    "tests",
    "deploy",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
)
FAILED_TESTS = 1
"""Pytest's exit code for failed tests, and not for a source that cannot even be loaded."""
SECONDS = 300


def main(words: Sequence[str]) -> int:
    """Break the rules that are meant and return how many nobody noticed, as an exit code."""
    chosen = [rule for rule in RULES if not words or any(word in rule.name for word in words)]
    if not chosen:
        names = "\n  ".join(rule.name for rule in RULES)
        say(f"no rule has {' or '.join(words)} in its name; there are:\n  {names}")
        return 2
    unnoticed = [rule for rule in chosen if not is_noticed(rule)]
    say(f"{len(chosen) - len(unnoticed)} of {len(chosen)} broken rules were noticed")
    return 1 if unnoticed else 0


def is_noticed(rule: Rule) -> bool:
    """Break the rule in a copy and return whether a test failed that passes on the whole source."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="petard-broken-") as folder:
        copy = copy_source(Path(folder))
        if rule.tests not in _sound:
            _sound[rule.tests] = run_tests(copy, rule).returncode == 0
        break_rule(copy, rule)
        ended = run_tests(copy, rule)
    by = next((line for line in ended.stdout.splitlines() if line.startswith("FAILED")), "")
    noticed = _sound[rule.tests] and ended.returncode == FAILED_TESTS and bool(by)
    if not _sound[rule.tests]:
        by = "its tests fail without it being broken, too"
    seconds = time.monotonic() - began
    say(f"{'noticed' if noticed else 'NOT NOTICED':12} {seconds:5.0f} s  {rule.name}\n    {by[:150]}")
    if not noticed:
        say(ended.stdout[-3_000:])
    return noticed


_sound: dict[tuple[str, ...], bool] = {}
"""Whether tests pass on the whole source."""


def copy_source(folder: Path) -> Path:
    """Return a copy of everything that the tests need."""
    for part in PARTS:
        place = TOP / part
        if place.is_dir():
            shutil.copytree(place, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(place, folder / part)
    return folder


def break_rule(copy: Path, rule: Rule) -> None:
    """Put something else in the place of the piece that the rule rests on."""
    path = copy / rule.file
    path.write_text(broken(path.read_text(encoding="utf-8"), rule), encoding="utf-8")


def broken(text: str, rule: Rule) -> str:
    """Return the text without the rule; raises ValueError unless its piece is there once."""
    if text.count(rule.piece) != 1:
        raise ValueError(f"{rule.file} has {text.count(rule.piece)} of the piece of {rule.name!r}")
    return text.replace(rule.piece, rule.instead)


def run_tests(copy: Path, rule: Rule) -> subprocess.CompletedProcess[str]:
    """Run the rule's tests on the copy, up to the first that fails."""
    folders = [str(copy / folder) for folder in ("schema", "producer", "worker")]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *rule.tests]
    try:
        return subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -1, f"took longer than {SECONDS} s", "")


def say(text: str) -> None:
    """Print at once: the next rule takes a while."""
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
