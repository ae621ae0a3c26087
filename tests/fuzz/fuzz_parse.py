"""Looks for bytes on which the parser and its oracle disagree, led by what the parser's code has not run yet.

    python tests/fuzz/fuzz_parse.py -max_total_time=60          # any option of libFuzzer
    python tests/fuzz/fuzz_parse.py crash-0123abcd              # one text again

It begins with the example files and with a text of every hostile class. What it finds is written to a file
`crash-…` in the current folder: make a test of it.
"""

import contextlib
import json
import random
import sys
import tempfile
from pathlib import Path

import atheris

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
with atheris.instrument_imports(include=["petard_schema"]):
    from petard_schema import MAX_EVENT_BYTES

import mutants  # noqa: E402 - these use the parser, which must have been imported as above
from example_files import accepted, refused  # noqa: E402
from hostile.payloads import NAMES, payload  # noqa: E402
from parse_oracle import outcome  # noqa: E402

SEED = 1


def check(raw: bytes) -> None:
    """Fail where anything does not hold that must hold for any bytes."""
    outcome(raw)


def mutate(raw: bytes, most: int, seed: int) -> bytes:
    """Return another text: where it is JSON one with other values, else one with other bytes."""
    choose = random.Random(seed)
    if choose.random() < 0.5:
        with contextlib.suppress(ValueError, RecursionError):
            return mutants.other_values(choose, json.loads(raw))[:most]
    if choose.random() < 0.3:
        return mutants.other_bytes(choose, raw)[:most]
    mutated: bytes = atheris.Mutate(raw, most)
    return mutated


def write_corpus(folder: Path) -> None:
    """Write the texts to begin with."""
    texts = [path.read_bytes() for path in [*accepted(), *refused()]]
    texts += [payload(SEED, kind, 0).raw for kind in NAMES]
    for number, text in enumerate(texts):
        (folder / f"{number:04}").write_bytes(text[: MAX_EVENT_BYTES + 1])


def main() -> None:
    files = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder))
        corpus = [] if files else [folder, f"-max_len={MAX_EVENT_BYTES + 64}"]
        atheris.Setup([*sys.argv, *corpus], check, custom_mutator=mutate)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
