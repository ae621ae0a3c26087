"""Single costs: a waiting event's memory in Redis, one duel's maths, one event's parsing and folding."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from pipeline import POOL, producing
from roles import Place

from petard_schema import Keys
from petard_worker.batch import Batch, History, read_arrival
from petard_worker.ratings.glicko import Glicko
from petard_worker.ratings.pool_rules import pool_rules
from petard_worker.ratings.system import Game, GameSide, PlayerState
from petard_worker.redis_client import connect_redis

DUELS = 50_000


class Waiting(NamedTuple):
    """What an event costs while it waits."""

    text_bytes: float
    """Mean length of the events themselves."""
    overhead_by_memory_usage: float
    overhead_by_info: float


def measure_waiting(place: Place, events: Sequence[bytes]) -> Waiting:
    """Return the bytes Redis needs per waiting event beyond its own text."""
    text = sum(len(event) for event in events)
    with connect_redis(place.redis_url) as client, producing(place) as producer:
        client.ping()
        before = int(client.info("memory")["used_memory"])
        producer.push_many_json(events)
        after = int(client.info("memory")["used_memory"])
        usage = client.memory_usage(Keys().events(POOL), samples=0)
    count = len(events)
    return Waiting(text / count, (int(str(usage)) - text) / count, (after - before - text) / count)


def measure_duels() -> float:
    """Return how many Glicko duels are rated per second, maths alone."""
    system = Glicko()
    game = Game(
        (
            GameSide((PlayerState(1500, 200, None, 10, 1500, 1.5),), 1),
            GameSide((PlayerState(1400, 80, None, 10, 1500, 1.5),), 2),
        )
    )
    started = time.perf_counter()
    for _ in range(DUELS):
        system.rate(game)
    return DUELS / (time.perf_counter() - started)


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
