"""`petard chaos`: everything that can die dies, on servers of its own, and everything is compared then."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption

CHECKOUT = Path(__file__).resolve().parents[3]
HARNESS = "faults.chaos"
NEEDED = "pytest"
"""Of the dev extra."""


def chaos(
    seed: Annotated[
        int, typer.Option(help="The same seed draws the same faults and pushes the same events.")
    ] = 1,
    events: Annotated[int, typer.Option(min=1_000, max=100_000_000)] = 100_000,
    faults: Annotated[int, typer.Option(min=1, max=100_000, help="Every kind once, then by weight.")] = 40,
    minutes: Annotated[
        float, typer.Option(min=0.1, help="After so long nothing more is pushed and no fault begun.")
    ] = 10.0,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND", help="A kind of fault, or processes, redis, postgres, network, clock; repeatable."
        ),
    ] = None,
    json: JsonOption = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the report as JSON.", show_default=False)
    ] = None,
) -> None:
    """Kill, freeze, wipe, cut and fail over under load, then check that nothing was lost or counted twice.

    Starts servers of its own and touches no others; ends by itself and leaves nothing behind. It lives in the
    tests, so it needs a checkout and the dev extra. From 20 minutes on locks are held for minutes. Exit code
    1 says that a check failed: the seed and the command that repeats it are on stderr.
    """
    tests = find_harness()
    options = {"seed": seed, "events": events, "faults": faults, "minutes": minutes, "report": report}
    words = [
        word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))
    ]
    words += [word for kind in only or () for word in ("--only", kind)]
    words += ["--json"] if json else []
    paths = [str(tests), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    # In place of this process: signals and exit code need nobody who passes them on.
    os.execve(sys.executable, [sys.executable, "-m", HARNESS, *words], environment)  # noqa: S606 - no shell


def find_harness() -> Path:
    """Return the folder of the tests, or say why it cannot be used."""
    tests = CHECKOUT / "tests"
    if not (tests / "faults" / "chaos" / "__main__.py").is_file():
        raise CommandFailed(
            f"the chaos harness is part of the tests, and there are none in {CHECKOUT}: clone the repository"
            " and run it there after pip install -e '.[dev]'",
            USAGE,
        )
    if importlib.util.find_spec(NEEDED) is None:
        raise CommandFailed(
            f"the chaos harness needs the dev extra ({NEEDED} is missing): in {CHECKOUT}"
            " run pip install -e '.[dev]'",
            USAGE,
        )
    return tests
