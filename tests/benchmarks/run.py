"""How fast is Petard? `python tests/benchmarks/run.py [--events N] [--json]`.

In one run and on the same servers, the same games go through

- one RQ job per event, one transaction each (per_event_jobs.py),
- Petard, by a real `petard worker` (pipeline.py),
- plain SQL that writes the very rows Petard writes (floor.py),

in rounds, since machines are never quiet: compare ratios, not absolutes.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import structlog
from costs import measure_folding, measure_forecast, measure_parsing, measure_rating, measure_waiting
from floor import write_by_sql
from latency import WARM_UP, measure_latency
from per_event_jobs import rate_by_jobs
from pipeline import POOL, drain_backlog, drain_while_pushing
from report import Costs, Report, Round
from roles import Place
from servers import Servers, open_servers

from petard_worker.log_format import configure_logging
from petard_worker.simulate import Season, simulate

log = structlog.get_logger()

WAITING_EVENTS = 10_000
ALONE = ("glicko", "glicko2", "elo", "weng_lin")
"""Rating systems whose maths is measured by itself."""


def main() -> None:
    """Run everything and print the report."""
    options = read_options()
    configure_logging("info")
    games = season(options.events, options.players)
    with open_servers() as servers:
        rounds = [run_round(servers, options, games) for _ in range(options.rounds)]
        costs = measure_costs(servers, options, games)
        report = Report(
            versions=servers.versions(),
            events=len(games),
            job_events=min(options.job_events, len(games)),
            players=options.players,
            batch_size=options.batch_size,
            rounds=rounds,
            costs=costs,
        )
    sys.stdout.write(report.to_json() if options.json else "\n".join(report.lines()))
    sys.stdout.write("\n")


def read_options() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description="Measure Petard against the alternatives.")
    parser.add_argument("--events", type=int, default=20_000, help="games for Petard and for Postgres alone")
    parser.add_argument("--job-events", type=int, default=2_000, help="games for one job per event")
    parser.add_argument("--players", type=int, default=2_000)
    parser.add_argument("--batch-size", type=int, default=500, help="events per transaction")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency-rate", type=float, default=200, help="events per second")
    parser.add_argument("--latency-seconds", type=float, default=10)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    if options.events < 3 * options.batch_size:
        parser.error("a rate needs three batches at least: raise --events or lower --batch-size")
    return options


def season(games: int, players: int) -> list[bytes]:
    """Return the events of that many games, in order and without mischief."""
    quiet = Season(pool=POOL, players=players, games=games, late_share=0, repeat_share=0, hostile_share=0)
    return list(simulate(quiet))


def run_round(servers: Servers, options: argparse.Namespace, games: Sequence[bytes]) -> Round:
    """Measure every way once, each in a database of its own."""
    with place(servers, options.batch_size) as where:
        jobs = rate_by_jobs(where, games[: options.job_events])
    with place(servers, options.batch_size) as where:
        drained = drain_backlog(where, games)
    with place(servers, options.batch_size) as where:
        floor = write_by_sql(where, games)
    with place(servers, options.batch_size) as where:
        while_pushing = drain_while_pushing(where, games)
    measured = Round(jobs, drained.events_per_second, while_pushing, floor, drained.worker_peak_mb)
    log.info(
        "round_measured",
        jobs=round(jobs),
        petard=round(drained.events_per_second),
        petard_while_pushing=round(while_pushing),
        floor=round(floor),
        over_jobs=round(measured.over_jobs, 1),
        of_floor=round(measured.of_floor, 2),
    )
    return measured


def measure_costs(servers: Servers, options: argparse.Namespace, games: Sequence[bytes]) -> Costs:
    """Measure what needs no rounds."""
    steady = list(islice(games, WARM_UP + int(options.latency_rate * options.latency_seconds)))
    with place(servers, options.batch_size) as where:
        waiting = measure_waiting(where, games[:WAITING_EVENTS])
    with place(servers, options.batch_size) as where:
        latency = measure_latency(where, steady, options.latency_rate)
    rating = {name: measure_rating(name) for name in ALONE}
    parsing, folding = measure_parsing(games), measure_folding(games)
    return Costs(latency, waiting, rating, parsing, folding, measure_forecast())


@contextmanager
def place(servers: Servers, batch_size: int) -> Iterator[Place]:
    """Yield new, empty databases."""
    with servers.fresh_database() as database_url:
        yield Place(database_url, servers.redis_url, batch_size)


if __name__ == "__main__":
    main()
