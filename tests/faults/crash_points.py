"""Connections that die at one chosen step: the process before it, the process after it, or only the answer.

A step is one exchange with a server: a command sent to Redis, a wait for Postgres. Nothing in the service
knows of this: the connections are handed in, or stand in for the libraries' own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar
from unittest import mock

import psycopg
import redis
from psycopg.abc import PQGen
from redis import Redis
from redis.connection import Connection as RedisConnection

from petard_worker.redis_client import connect_redis

T = TypeVar("T")


class How(StrEnum):
    """What happens at the step."""

    BEFORE = "dies before it"
    AFTER = "dies after it"
    UNANSWERED = "its answer is lost"


class Died(BaseException):
    """The process is dead from here on: no error that code may handle."""


@dataclass
class Fate:
    """At which step what happens; without a step nothing does, and the steps are only counted."""

    at: int | None = None
    how: How = How.BEFORE
    steps: int = 0
    dead: bool = False
    names: list[str] = field(default_factory=list)

    def begins(self, name: str) -> bool:
        """Count a step and return whether it is the one; a dead process takes none."""
        if self.dead:
            raise Died
        self.steps += 1
        self.names.append(name)
        if self.steps != self.at:
            return False
        if self.how is How.BEFORE:
            self.die()
        return True

    def die(self) -> None:
        """End the process; what its code still does on the way out reaches no server."""
        self.dead = True
        raise Died


class FatefulPostgres(psycopg.Connection[Any]):
    """A connection to Postgres whose every wait for the server is a step: all of psycopg's I/O is one."""

    fate: Fate

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        if not self.fate.begins("postgres"):
            return super().wait(gen, interval, timeout)
        try:
            result = super().wait(gen, interval, timeout)
        except psycopg.Error:
            if self.fate.how is How.AFTER:
                self.fate.die()
            raise
        if self.fate.how is How.AFTER:
            self.fate.die()
        del result
        self.pgconn.finish()
        raise psycopg.OperationalError("the connection is lost")


class FatefulRedis(RedisConnection):
    """A connection to Redis whose every request is a step."""

    fate: Fate
    _answer_is_lost = False

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        self._answer_is_lost = self.fate.begins(name_of(command))
        super().send_packed_command(command, check_health)

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        if self.fate.dead:
            raise Died
        answer = super().read_response(*args, **kwargs)
        if not self._answer_is_lost:
            return answer
        self._answer_is_lost = False
        if self.fate.how is How.AFTER:
            self.fate.die()
        self.disconnect()
        raise redis.ConnectionError("the connection is lost")


def name_of(command: Any) -> str:
    """Return the first word of a packed command, for people who read a failed test."""
    first = command if isinstance(command, bytes) else b"".join(command)
    words = first.split(b"\r\n")
    return words[2].decode() if len(words) > 2 else "?"


def fateful_redis(url: str, fate: Fate) -> Redis:
    """Return the client a process has, over connections with a fate."""
    client = connect_redis(url)
    client.connection_pool.connection_class = type("Fateful", (FatefulRedis,), {"fate": fate})
    return client


@contextmanager
def fateful_postgres(fate: Fate) -> Iterator[None]:
    """Let every connection to Postgres that is made meanwhile have the fate; they end with it."""
    kind = type("Fateful", (FatefulPostgres,), {"fate": fate})
    made: list[Any] = []
    real = psycopg.Connection.connect.__func__  # type: ignore[attr-defined]  # a classmethod's function

    def connect(*args: Any, **kwargs: Any) -> Any:
        fate.begins("connect")
        made.append(real(kind, *args, **kwargs))
        return made[-1]

    with mock.patch.object(psycopg, "connect", connect):
        yield
    for connection in made:
        connection.pgconn.finish()


def fates_at_steps_of(undisturbed: Fate) -> Iterator[Fate]:
    """Yield every step of a life that was lived to its end, with everything that can happen at it."""
    for at in range(1, undisturbed.steps + 1):
        for how in How:
            yield Fate(at, how)


@contextmanager
def told(fate: Fate) -> Iterator[None]:
    """Say in a failure at which step it came about."""
    try:
        yield
    except AssertionError as error:
        error.add_note(f"step {fate.at} of {fate.steps} {fate.how}; the steps: {' '.join(fate.names)}")
        raise
