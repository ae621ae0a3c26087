"""How many events a second: the floor, Petard in three situations, and one job per event in three queues."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from benchmarks.floor import BATCH, write_by_sql
from benchmarks.games import POOL, POOLS, season
from benchmarks.lines import RATE, Line, Measured, at_least
from benchmarks.per_event.queues import rate_by_jobs
from benchmarks.pipeline import rate_of_backlog, rate_while_pushing
from benchmarks.plan import Plan
from benchmarks.servers import Place, Servers

LINES = (
    Line("floor", f"Postgres alone, the same rows by plain SQL, {BATCH} events at a time", RATE),
    Line("petard", "Petard, a backlog", RATE),
    Line("petard_pushed", "Petard, while events are pushed", RATE),
    Line("petard_two", "Petard, two pools and two workers", RATE),
    Line("rq", "one RQ job per event", RATE),
    Line("dramatiq", "one dramatiq message per event", RATE),
    Line("procrastinate", "one procrastinate job per event", RATE),
)
RATIOS = (
    (Line("petard_of_floor", "Petard / Postgres alone", "", at_least(0.6)), "petard", "floor"),
    (Line("petard_two_over_one", "two workers / one", "", at_least(1.3)), "petard_two", "petard"),
    (Line("petard_over_rq", "Petard / one RQ job per event", "", at_least(50)), "petard", "rq"),
    (Line("petard_over_dramatiq", "Petard / one dramatiq message per event", ""), "petard", "dramatiq"),
    (
        Line("petard_over_procrastinate", "Petard / one procrastinate job per event", ""),
        "petard",
        "procrastinate",
    ),
)


def lines(_plan: Plan) -> Sequence[Line]:
    return (*LINES, *(line for line, _, _ in RATIOS))


def measure(servers: Servers, plan: Plan) -> Measured:
    """Measure every way once, each in databases of its own, and compare them."""
    found = {}
    for key, rate in ways(plan).items():
        with servers.place() as place:
            found[key] = rate(place)
        yield key, found[key]
    yield from ratios(found)


def ratios(found: Mapping[str, float]) -> Measured:
    """Compare rates that were measured one after the other."""
    for line, over, under in RATIOS:
        yield line.key, found[over] / found[under]


def ways(plan: Plan) -> dict[str, Callable[[Place], float]]:
    """Return what is measured, by key; neighbours are compared, so that they see the same machine."""
    games = season(plan.events, plan.players)
    some = games[: plan.jobs]
    halves = {pool: season(plan.events // len(POOLS), plan.players, pool) for pool in POOLS}
    return {
        "petard_two": partial(rate_of_backlog, seasons=halves),
        "petard": partial(rate_of_backlog, seasons={POOL: games}),
        "floor": partial(write_by_sql, events=games),
        "petard_pushed": partial(rate_while_pushing, events=games),
        "rq": lambda place: rate_by_jobs("rq_jobs", place, some),
        "dramatiq": lambda place: rate_by_jobs("dramatiq_actors", place, some),
        "procrastinate": lambda place: rate_by_jobs("procrastinate_tasks", place, some),
    }
