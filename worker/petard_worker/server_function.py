"""What runs inside Redis: Lua functions, loaded once by who may, called by name.

A user who may call functions (FCALL) and load none can run what was loaded for it and nothing else, whereas
one who may EVAL can run any script. So every script here is a function; each stands in a library of its own,
named by the digest of its text: two releases side by side call each its own, and share what has not changed.
Functions are kept with the data: FLUSHALL leaves them, a Redis that starts empty has lost them. They are
loaded again with the first call, if the user may, else the call fails as in an outage.

Servers before Redis 7 know no functions; they get the text as a script (EVALSHA), as does a Redis that is too
full to load one.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha1
from typing import Literal

import redis
from redis import Redis
from redis.commands.core import Script
from redis.exceptions import NoPermissionError

# At `maxmemory` Redis refuses every function that says nothing about it. But what fills it are waiting
# events, which leave through drains that hold a bell: if those were refused too, it would stay full for ever.
ALLOW_OOM: Literal["allow-oom"] = "allow-oom"
"""For functions that write a few bytes at most, or make room."""
NO_WRITES: Literal["no-writes"] = "no-writes"
"""For functions that only read."""


class FunctionMissingError(redis.RedisError):
    """Redis lacks a function and this user may not load it: to be waited for, like an outage."""


@dataclass(frozen=True)
class ServerFunction:
    """A Lua text over KEYS and ARGV, by a name of its own."""

    name: str
    text: str
    flag: Literal["", "allow-oom", "no-writes"] = ""

    @cached_property
    def full_name(self) -> str:
        """What it is called in Redis, and its library with it; other texts have other names."""
        words = ("petard", self.name, self.flag.replace("-", "_"), sha1(self.text.encode()).hexdigest())  # noqa: S324 - a name, as Redis itself makes them
        return "_".join(filter(None, words))

    @property
    def library(self) -> str:
        """The source of its library."""
        flags = f"'{self.flag}'" if self.flag else ""
        return (
            f"#!lua name={self.full_name}\n"
            f"redis.register_function{{function_name='{self.full_name}', flags={{{flags}}},"
            f" callback=function(KEYS, ARGV)\n{self.text}\nend}}\n"
        )

    @property
    def script(self) -> str:
        """The text as a script that says how it may run, which Redis 7 understands."""
        return f"#!lua flags={self.flag}\n{self.text}" if self.flag else self.text

    def on(self, client: Redis) -> "FunctionOnServer":
        """Return what calls it over the client."""
        return FunctionOnServer(client, self)

    def load(self, client: Redis) -> bool:
        """Load it and return whether it was missing.

        Raises what redis-py raises: NoPermissionError when the user may not, OutOfMemoryError when Redis is
        full, another ResponseError when it is too old.
        """
        try:
            client.function_load(self.library)
        except redis.ResponseError as error:
            if "already exists" not in str(error):
                raise
            return False  # by another process, this moment
        return True


class FunctionOnServer:
    """Calls one function over one client."""

    def __init__(self, client: Redis, function: ServerFunction) -> None:
        """Ask nothing of the server yet: that is done with the first call."""
        self._client = client
        self._function = function
        self._plain: Script | None = None
        """What is called instead on a server without functions."""

    def __call__(self, keys: Sequence[str], args: Sequence[str | bytes | int]) -> object:
        """Run it; raises what redis-py raises, and FunctionMissingError."""
        if self._plain is not None:
            return self._plain(keys=keys, args=args)
        try:
            return self._fcall(keys, args)
        except redis.ResponseError as error:
            if "unknown command" in str(error):
                self._plain = self._client.register_script(self._function.text)
                return self._plain(keys=keys, args=args)
            if "Function not found" not in str(error):
                raise
        return self._load_and_call(keys, args)

    @contextmanager
    def asked(self, keys: Sequence[str], args: Sequence[str | bytes | int]) -> Iterator[Callable[[], object]]:
        """Send the call and yield what waits for its answer, within the block and at most once.

        Meanwhile the server works on it. A connection that is lost, or not to be had, is raised when the
        answer is waited for, and not tried again, which takes many times as long. A missing function is
        loaded.
        """
        connection: redis.Connection | None = None
        lost: redis.RedisError | None = None
        pending = False

        def answer() -> object:
            nonlocal pending
            if lost is not None:
                raise lost
            if connection is None:
                return self(keys, args)
            try:
                found = connection.read_response()
            except redis.ResponseError:
                pending = False
                return self(keys, args)
            pending = False
            return found

        pool = self._client.connection_pool
        try:
            if self._plain is None:
                try:
                    connection = pool.get_connection()
                    pending = True
                    connection.send_command(*self._command(keys, args))  # type: ignore[no-untyped-call]
                except redis.RedisError as error:
                    lost = error
            yield answer
        finally:
            if connection is not None:
                if pending:  # nobody may take its answer for another's
                    connection.disconnect()  # type: ignore[no-untyped-call]
                pool.release(connection)

    def _command(self, keys: Sequence[str], args: Sequence[str | bytes | int]) -> Sequence[str | bytes | int]:
        return ("FCALL", self._function.full_name, len(keys), *keys, *args)

    def _fcall(self, keys: Sequence[str], args: Sequence[str | bytes | int]) -> object:
        # Not `fcall`, whose arguments are typed as text.
        return self._client.execute_command(*self._command(keys, args))  # type: ignore[no-untyped-call]

    def _load_and_call(self, keys: Sequence[str], args: Sequence[str | bytes | int]) -> object:
        try:
            self._function.load(self._client)
        except redis.OutOfMemoryError:
            return self._run_on_full(keys, args)
        except NoPermissionError:
            raise missing(self._function) from None
        return self._fcall(keys, args)

    def _run_on_full(self, keys: Sequence[str], args: Sequence[str | bytes | int]) -> object:
        """Run it as a script: a full Redis loads no function, but keeps scripts elsewhere."""
        try:
            return self._client.register_script(self._function.script)(keys=keys, args=args)
        except NoPermissionError:
            raise missing(self._function, "Redis is full: raise maxmemory, then ") from None


def missing(function: ServerFunction, first: str = "") -> FunctionMissingError:
    """Return the error that names the function and the remedy."""
    return FunctionMissingError(
        f"Redis lacks the function {function.full_name} and this user may not load it: {first}"
        "run 'petard migrate' with a PETARD_REDIS_URL whose user may (FUNCTION LOAD)"
    )
