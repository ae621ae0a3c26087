"""Game servers as they should be: they send again what they have no answer for, and overtake nobody."""

import random
import threading
from typing import Self

import redis
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from faults.audit import Pushed
from faults.fleet import POOL
from faults.seasons import rated
from petard_schema import Keys

SECONDS_TO_ANSWER = 1.0
SECONDS_TO_TRY_AGAIN = 0.05


class Producer:
    """Pushes the events of one source from a thread, in order, until it is stopped or has pushed all."""

    def __init__(
        self, url: str, keys: Keys, events: Pushed, *, per_second: float, backlog: int = 5_000
    ) -> None:
        """Push so many events a second, and none while so many wait."""
        self._redis = Redis.from_url(
            url,
            socket_timeout=SECONDS_TO_ANSWER,
            socket_connect_timeout=SECONDS_TO_ANSWER,
            retry=Retry(NoBackoff(), 0),
        )
        self._key = keys.events(POOL)
        self._events = events
        self._per_second = per_second
        self._backlog = backlog
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._sizes = random.Random(len(events))
        self.count = 0
        self.sent_again = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pushed(self) -> Pushed:
        """What is known to have been pushed."""
        return self._events[: self.count]

    @property
    def rated(self) -> int:
        """How many entries that makes."""
        return rated(self.pushed)

    @property
    def finished(self) -> bool:
        return self.count == len(self._events)

    def stop(self) -> None:
        """Push no more, and return when the last push was answered."""
        self._stop.set()
        self._thread.join()
        self._redis.close()

    def _run(self) -> None:
        while not self.finished and not self._stop.is_set():
            size = self._sizes.randint(1, 100)
            chunk = [raw for raw, _ in self._events[self.count : self.count + size]]
            self._push_until_answered(chunk)
            self.count += len(chunk)
            self._stop.wait(len(chunk) / self._per_second)

    def _push_until_answered(self, chunk: list[bytes]) -> None:
        while True:
            try:
                if self._redis.llen(self._key) < self._backlog:
                    self._redis.rpush(self._key, *chunk)
                    return
                self._stop.wait(SECONDS_TO_TRY_AGAIN)
                if self._stop.is_set():
                    # As good as pushed by somebody who does not care for the backlog.
                    self._backlog = 1 << 60
            except redis.RedisError:
                # Perhaps it arrived, perhaps not: nobody can know, so it is sent again.
                self.sent_again += 1
                threading.Event().wait(SECONDS_TO_TRY_AGAIN)
