"""Every fuzzer runs and finds nothing in a few seconds, and finds a mistake that is made for it."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris is not installed: it has wheels for few platforms",
)

HERE = Path(__file__).parent
RUNS = 2_000
FUZZERS = ("fuzz_parse.py", "fuzz_element.py")

WITH_A_MISTAKE = """
import runpy, sys
import atheris

with atheris.instrument_imports(include=["petard_schema"]):
    import petard_schema.ijson as ijson
{mistake}
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
MISTAKES = {
    "NUL gets in": "ijson.check_storable = lambda value: None",
    "depth is not asked": "ijson.check_depth = lambda raw: None",
    "names may come twice": "ijson._object.__code__ = (lambda pairs: dict(pairs)).__code__",
}


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a fuzzer in a folder of its own, for what it finds."""
    return subprocess.run(
        [sys.executable, *command, f"-runs={RUNS}", "-seed=1"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=110,
        check=False,
    )


@pytest.mark.parametrize("fuzzer", FUZZERS)
def test_fuzzer_finds_nothing_in_a_few_seconds(fuzzer: str, tmp_path: Path) -> None:
    result = run(tmp_path, str(HERE / fuzzer))

    assert result.returncode == 0, result.stdout + result.stderr
    assert f"Done {RUNS} runs" in result.stderr
    assert list(tmp_path.glob("crash-*")) == []


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_fuzzer_of_the_parser_finds_a_mistake(mistake: str, tmp_path: Path) -> None:
    program = WITH_A_MISTAKE.format(mistake=mistake)

    result = run(tmp_path, "-c", program, str(HERE / "fuzz_parse.py"))

    assert result.returncode != 0
    assert "AssertionError" in result.stdout + result.stderr
    assert len(list(tmp_path.glob("crash-*"))) == 1
