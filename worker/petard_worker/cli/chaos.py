"""`petard chaos`: everything that can die dies, on servers of its own, and everything is compared then."""

from pathlib import Path
from typing import Annotated

import typer

from petard_worker.cli.harness import Harness, run_harness
from petard_worker.cli.output import JsonOption

HARNESS = Harness("the chaos harness", "faults.chaos", ("pytest",))


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
    options = {"seed": seed, "events": events, "faults": faults, "minutes": minutes, "only": only}
    run_harness(HARNESS, options | {"json": json, "report": report})
