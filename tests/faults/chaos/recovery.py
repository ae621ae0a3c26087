"""How long does it take until work goes on? The ledger and the stream, looked at many times a second."""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Self

import psycopg
import redis

from faults.chaos.stage import Stage
from faults.fleet import POOL
from petard_worker.change_stream import NOTHING, StreamId, last_stream_id

LOOK_SECONDS = 0.02


class Moments:
    """When something grew; it may also be set back."""

    def __init__(self) -> None:
        self.latest: int | StreamId | None = None
        self._times: list[float] = []

    def look(self, value: int | StreamId) -> None:
        if self.latest is not None and value > self.latest:  # type: ignore[operator] - of one kind each
            self._times.append(time.monotonic())
        self.latest = value

    def next_after(self, moment: float) -> float | None:
        """Return how long after a moment it grew next, None if it did not."""
        index = bisect_right(self._times, moment)
        return self._times[index] - moment if index < len(self._times) else None


class Recovery(NamedTuple):
    """How many seconds after a fault the next batch was applied, and the next entry published."""

    applied: float | None
    published: float | None


class Progress:
    """Watches both ends from a thread, past the network that the faults are done to."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._watch, args=(look,), name="progress", daemon=True)
            for look in (self._watch_ledger, self._watch_stream)
        ]
        self.ledger, self.stream = Moments(), Moments()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def after(self, moment: float) -> Recovery:
        return Recovery(self.ledger.next_after(moment), self.stream.next_after(moment))

    def _watch(self, look: Callable[[], None]) -> None:
        while not self._stop.is_set():
            with suppress(psycopg.Error, redis.RedisError):
                look()
            self._stop.wait(LOOK_SECONDS)

    def _watch_ledger(self) -> None:
        with psycopg.connect(
            self._stage.fleet.postgres.url, autocommit=True, connect_timeout=2
        ) as connection:
            while not self._stop.wait(LOOK_SECONDS):
                row = connection.execute("SELECT seq FROM petard.pool WHERE name = %s", (POOL,)).fetchone()
                self.ledger.look(0 if row is None else int(row[0]))

    def _watch_stream(self) -> None:
        keys = self._stage.fleet.keys
        with self._stage.fleet.client as client:
            while not self._stop.wait(LOOK_SECONDS):
                self.stream.look(last_stream_id(client, keys, POOL) or NOTHING)
