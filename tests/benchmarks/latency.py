"""How long a game takes from its push to a follower of the change stream."""

import time
from collections.abc import Iterable, Sequence
from threading import Thread
from typing import NamedTuple

from pipeline import POOL, make_pool, producing, wait_for_worker
from roles import Place, start, wait_until

from petard_producer import Follower, Producer
from petard_schema import Keys
from petard_worker.redis_client import connect_redis

WARM_UP = 100


class Latency(NamedTuple):
    """Milliseconds from before the push until the follower has the change in hand."""

    events: int
    events_per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


class Sightings:
    """A follower in a thread of its own that notes when it saw each seq."""

    def __init__(self, place: Place) -> None:
        self.seen: list[float] = []
        self._follower = Follower.from_url(place.redis_url, pool=POOL)
        self._thread = Thread(target=self._follow)

    def __enter__(self) -> "Sightings":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._follower.stop()
        self._thread.join()
        self._follower.close()

    def _follow(self) -> None:
        for _ in self._follower.follow():
            self.seen.append(time.perf_counter())


def measure_latency(place: Place, events: Sequence[bytes], rate: float) -> Latency:
    """Push events one by one at a steady rate; the first ones warm everything up and do not count."""
    make_pool(place.database_url)
    with (
        start(place, "worker") as worker,
        start(place, "publisher") as publisher,
        Sightings(place) as sightings,
        producing(place) as producer,
    ):
        wait_for_worker(place, worker)
        wait_for_publisher(place)
        pushed = push_steadily(producer, events, rate)
        wait_until(lambda: len(sightings.seen) == len(events), "all changes", worker, publisher, seconds=60)
    # One producer and one pool: seq 1, 2, 3 are the events in the order they were pushed.
    waits = [seen - push for push, seen in zip(pushed, sightings.seen, strict=True)]
    return summarise(waits[WARM_UP:], rate)


def push_steadily(producer: Producer, events: Iterable[bytes], rate: float) -> list[float]:
    """Push each event when its time has come and return when that was."""
    pushed = []
    started = time.perf_counter()
    for number, event in enumerate(events):
        time.sleep(max(0.0, started + number / rate - time.perf_counter()))
        pushed.append(time.perf_counter())
        producer.push_json(event)
    return pushed


def wait_for_publisher(place: Place) -> None:
    """Wait until the publisher listens."""
    channel = Keys().committed()
    with connect_redis(place.redis_url) as client:
        wait_until(
            lambda: dict(client.pubsub_numsub(channel)).get(channel.encode()), "the publisher to listen"
        )


def summarise(waits: Sequence[float], rate: float) -> Latency:
    """Return the percentiles of some waits, in milliseconds."""
    ordered = sorted(wait * 1000 for wait in waits)

    def percentile(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return Latency(len(ordered), rate, percentile(0.50), percentile(0.95), percentile(0.99), ordered[-1])
