"""Single costs, without a server: a game's maths, one event's parsing and folding, a forecast."""

import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from benchmarks.games import POOL, season
from benchmarks.lines import RATE, Line, Measured, at_most
from benchmarks.plan import Plan
from benchmarks.servers import Servers
from petard_worker.batch import Batch, History, read_arrival
from petard_worker.garbage import calm_garbage_collector
from petard_worker.ratings.calculator import USUAL_RUNS, Entrant, Setting, simulate_round_robin
from petard_worker.ratings.pool_rules import pool_rules
from petard_worker.ratings.system import Game, GameSide, PlayerState, RatingSystem

SYSTEMS = ("glicko", "glicko2", "elo", "weng_lin")
"""Whose maths is measured by itself."""
GAMES = 50_000
PLAYERS = 1_000
ENTRANTS = 16

LINES = (
    Line("parsing", "parsing and validating alone", RATE),
    Line("folding", "folding alone, in one batch", RATE),
    *(Line(f"maths_{name}", f"{name}, the maths alone", "games/s") for name in SYSTEMS),
    Line("forecast_seconds", "forecast, 10,000 tournaments of 16", "s", at_most(10)),
)


def lines(_plan: Plan) -> Sequence[Line]:
    return LINES


def measure(_servers: Servers, plan: Plan) -> Measured:
    """Measure one after the other, with the garbage collector as calm as a worker's."""
    calm_garbage_collector()
    events = season(plan.events, plan.players)
    yield "parsing", measure_parsing(events)
    yield "folding", measure_folding(events)
    for name in SYSTEMS:
        yield f"maths_{name}", measure_rating(name)
    yield "forecast_seconds", measure_forecast()


def measure_rating(name: str) -> float:
    """Return how many games a second a system rates alone: pure Python, states carried from game to game.

    Games of two among a thousand players.
    """
    system = pool_rules(name, {}).system
    chance = random.Random(1)
    games = [
        (*chance.sample(range(PLAYERS), 2), *chance.choice([(1, 2), (2, 1), (1, 1)])) for _ in range(GAMES)
    ]
    return rate_all(system, games)


def rate_all(system: RatingSystem, games: Sequence[tuple[int, int, int, int]]) -> float:
    """Rate the games one after the other and return how many that were a second."""
    initial = system.initial()
    states: dict[int, PlayerState] = {}
    started = time.perf_counter()
    for first, second, rank, other_rank in games:
        a, b = states.get(first, initial), states.get(second, initial)
        one, two = system.rate(Game((GameSide((a,), rank), GameSide((b,), other_rank))))
        states[first] = PlayerState(one.rating, one.rd, one.volatility, days=0.5)
        states[second] = PlayerState(two.rating, two.rd, two.volatility, days=0.5)
    return len(games) / (time.perf_counter() - started)


def measure_parsing(events: Sequence[bytes]) -> float:
    """Return how many events are parsed and validated per second."""
    started = time.perf_counter()
    for event in events:
        read_arrival(event)
    return len(events) / (time.perf_counter() - started)


def measure_folding(events: Sequence[bytes]) -> float:
    """Return how many parsed events are judged and folded per second, in one batch, without a server."""
    arrivals = [read_arrival(event) for event in events]
    batch = Batch(POOL, pool_rules("glicko", {}), datetime.now(UTC), 0, None, History({}, {}, {}))
    started = time.perf_counter()
    batch.fold(arrivals)
    return len(events) / (time.perf_counter() - started)


def measure_forecast() -> float:
    """Return how many seconds a forecast takes: 10,000 tournaments in which 16 players play all others."""
    entrants = [Entrant(f"player {number}", 1500 + 25 * number) for number in range(ENTRANTS)]
    started = time.perf_counter()
    simulate_round_robin(entrants, Setting(USUAL_RUNS), random.Random(1).random, lambda _done: None)
    return time.perf_counter() - started
