"""`petard bench`: how fast Petard is, beside what Postgres can do alone and what one would use instead."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from petard_worker.cli.harness import Harness, run_harness
from petard_worker.cli.output import JsonOption

HARNESS = Harness("the benchmark", "benchmarks", ("dramatiq", "procrastinate"))


class Part(StrEnum):
    """What can be measured by itself."""

    THROUGHPUT = "throughput"
    PUSH = "push"
    PUBLISH = "publish"
    LATENCY = "latency"
    FAIRNESS = "fairness"
    IDLE = "idle"
    MEMORY = "memory"
    CPU = "cpu"
    COSTS = "costs"


def bench(
    events: Annotated[
        int,
        typer.Option(min=3, max=100_000_000, help="For Petard and the floor; three batches at least."),
    ] = 100_000,
    job_events: Annotated[
        int, typer.Option(min=2, max=100_000_000, help="For one job per event, which takes longer.")
    ] = 2_000,
    players: Annotated[int, typer.Option(min=2, max=10_000_000)] = 2_000,
    batch_size: Annotated[
        int, typer.Option(min=1, max=5_000, help="Most events of a transaction of Petard's.")
    ] = 1_000,
    rounds: Annotated[int, typer.Option(min=1, max=1_000, help="Everything is measured once in each.")] = 3,
    latency_rates: Annotated[
        str, typer.Option(metavar="R,R,…", help="Events a second at which latency is measured.")
    ] = "1,50,200,1000",
    latency_seconds: Annotated[
        float, typer.Option(min=0.1, max=3_600, help="At each rate; but 20 events at least.")
    ] = 10.0,
    idle_seconds: Annotated[
        float, typer.Option(min=0.1, max=3_600, help="With one pool, and with a thousand.")
    ] = 10.0,
    fairness_seconds: Annotated[
        float, typer.Option(min=0.1, max=600, help="Alone, and beside a flood; but 20 events at least.")
    ] = 8.0,
    only: Annotated[list[Part] | None, typer.Option(help="Measure this part only; repeatable.")] = None,
    json: JsonOption = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep everything as JSON.", show_default=False)
    ] = None,
) -> None:
    """Measure Petard beside the alternatives, in one run on the same servers, and print one table.

    **throughput**: events a second of Petard (a backlog; while it is pushed; two pools and two workers), of
    plain SQL that writes the same rows (the floor), and of the same work as one RQ job, one dramatiq message
    or one procrastinate job per event; and their ratios. **push**: events a second of a Producer, of
    `petard push`, and rows of `petard import`, whose memory has to stay flat. **publish**: how fast the
    publisher catches up, beside the drain, and how fast a Follower reads. **latency**: from a push until a
    follower has the change. **fairness**: the same in a quiet pool, alone and beside a flooded one on one
    worker. **idle**: the CPU of a fleet that has nothing to do. **memory**: bytes in Redis per waiting event
    beyond its text, and whether the worker's memory stays flat. **cpu**: CPU seconds per 1,000 events, by
    process. **costs**: maths, parsing, folding and a forecast alone.

    The table has the median of all rounds, the least and the most, and says of each target whether the median
    reached it. Machines are never quiet: compare the ratios, which are taken within each round. It takes
    minutes; stderr tells each value as soon as it is known. The exit code is 0 whether targets are reached or
    not.

    With PETARD_DATABASE_URL and PETARD_REDIS_URL set it works on those servers, in databases of its own that
    it removes; the login must be allowed to create databases, and '-' stands for what only servers of its own
    tell. Else it starts embedded ones. It lives in the tests, so it needs a checkout and the dev extra.
    """
    options = {
        "events": events,
        "job_events": job_events,
        "players": players,
        "batch_size": batch_size,
        "rounds": rounds,
        "latency_rates": latency_rates,
        "latency_seconds": latency_seconds,
        "idle_seconds": idle_seconds,
        "fairness_seconds": fairness_seconds,
        "only": only,
        "json": json,
        "report": report,
    }
    run_harness(HARNESS, options)
