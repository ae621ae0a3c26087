"""Game servers with a log of their own: they send again what has no answer, and offer again what was lost."""

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate
from random import Random
from typing import Self

import psycopg
import redis
from psycopg.rows import TupleRow
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from faults.audit import Pushed, source_of
from faults.fleet import POOL
from petard_schema import Keys

SECONDS_TO_ANSWER = 1.0
SECONDS_TO_TRY_AGAIN = 0.05
MOST_WAITING = 5_000
MOST_AT_ONCE = 100


class GameServer:
    """Pushes the events of one source from a thread, in order, overtaking nobody, until all are pushed."""

    def __init__(self, url: str, keys: Keys, events: Pushed, *, per_second: float) -> None:
        """Push so many events a second, and none while many wait."""
        self._redis = Redis.from_url(
            url,
            socket_timeout=SECONDS_TO_ANSWER,
            socket_connect_timeout=SECONDS_TO_ANSWER,
            retry=Retry(NoBackoff(), 0),
        )
        self._key = keys.events(POOL)
        self._events = events
        self._source = source_of(events)
        self._rated = list(accumulate(expected == "rated" for _, expected in events))
        self._sizes = Random(len(events))
        self._turn = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self._source, daemon=True)
        self.per_second = per_second
        self.count = 0
        self.most = len(events)
        self.sent_again = 0
        """Events that were pushed once more than the season has them."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._redis.close()

    @property
    def pushed(self) -> Pushed:
        """What is known to have been pushed."""
        return self._events[: self.count]

    @property
    def finished(self) -> bool:
        return self.count >= self.most

    def finish_early(self) -> None:
        """Push no more than has been pushed."""
        with self._turn:
            self.most = self.count

    @contextmanager
    def held(self) -> Iterator[None]:
        """Push nothing meanwhile; a push that is on its way is waited for."""
        with self._turn:
            yield

    def offer_again(self, connection: psycopg.Connection[TupleRow]) -> None:
        """Go back to the first event that is not known to have counted; only while held."""
        sql = "SELECT count(*) FROM petard.ledger WHERE pool = %s AND source = %s"
        row = connection.execute(sql, (POOL, self._source)).fetchone()
        assert row is not None
        after = bisect_left(self._rated, row[0]) + 1 if row[0] else 0
        self.sent_again += max(0, self.count - after)
        self.count = min(self.count, after)

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            with self._turn:
                size = min(self._sizes.randint(1, MOST_AT_ONCE), self.most - self.count)
                pushed = size > 0 and self._push(size)
            pause = size / self.per_second if pushed else SECONDS_TO_TRY_AGAIN
            self._stop.wait(max(0.0, pause - (time.monotonic() - began)))

    def _push(self, size: int) -> bool:
        """Push once, and return whether that was answered: perhaps it arrived all the same."""
        sent = False
        with suppress(redis.RedisError):
            if self._redis.llen(self._key) >= MOST_WAITING:
                return False
            chunk = [raw for raw, _ in self._events[self.count : self.count + size]]
            sent = True
            self._redis.rpush(self._key, *chunk)
            self.count += size
            return True
        self.sent_again += size if sent else 0
        return False
