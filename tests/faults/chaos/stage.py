"""Where the faults happen: a pool, two pairs of servers, workers and publishers, game servers and a follower.

Dead processes are started again by a supervisor, as they are in production.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from faults.chaos.board_follower import BoardFollower
from faults.chaos.game_server import GameServer
from faults.fleet import MAIN, SETTINGS, Fleet, Role, wait_until
from faults.pairs import PostgresPair, RedisPair
from petard_worker.pool_settings import PoolSettings

if TYPE_CHECKING:
    from faults.chaos.clock import Clock

ENDED_UNABLE = (0, 69)
"""Exit codes of a role that could not go on and said so; the supervisor starts it again."""
LOOK_SECONDS = 0.02


@dataclass
class Patience:
    """How long the slow faults last, in seconds."""

    freeze: float = 6.5
    """Longer than any lease, and than Postgres lets a session idle in its transaction."""
    lock: float = 4.0
    """Longer than a worker waits for a lock at a time."""
    hang: float = 6.0
    """Longer than a client waits for Redis."""


@dataclass
class Stage:
    """What a fault can do something to, and the draws that decide to what."""

    fleet: Fleet
    postgres: PostgresPair
    redis: RedisPair
    draw: random.Random
    clock: "Clock | None" = None
    program: str = MAIN
    """What the roles run."""
    patience: Patience = field(default_factory=Patience)
    workers: int = 2
    publishers: int = 2
    game_servers: list[GameServer] = field(default_factory=list)
    follower: BoardFollower | None = None
    frozen: dict[Role, float] = field(default_factory=dict)
    killed: set[Role] = field(default_factory=set)
    over_at: float = 0.0
    """When the last fault was over; what recovers is measured from there."""

    def supervise(self) -> None:
        """Start again what has ended, and thaw what was frozen long enough."""
        now = time.monotonic()
        for role in [role for role, until in self.frozen.items() if until < now]:
            del self.frozen[role]
            if role.alive:
                role.thaw()
        for _ in range(self.workers - len(self.running("worker"))):
            self.fleet.start_worker(program=self.program)
        for _ in range(self.publishers - len(self.running("publisher"))):
            self.fleet.start_publisher(program=self.program)

    def running(self, kind: str) -> list[Role]:
        return [role for role in self.fleet.roles if role.alive and role.kind == kind]

    def wait_for(self, condition: Callable[[], object], what: str, seconds: float) -> None:
        """Supervise until the condition holds, or fail saying what was waited for."""
        looked = 0.0

        def holds() -> object:
            nonlocal looked
            if time.monotonic() - looked < LOOK_SECONDS:
                return False
            looked = time.monotonic()
            self.supervise()
            return condition()

        wait_until(holds, what, seconds)

    def let_pass(self, seconds: float) -> None:
        """Supervise for so long."""
        until = time.monotonic() + seconds
        self.wait_for(lambda: time.monotonic() >= until, "the time to pass", seconds + 60)

    def over(self) -> None:
        """Say that the fault is over now, if what the fault still does is no part of it."""
        self.over_at = time.monotonic()

    def start_redis(self) -> None:
        """Start the current Redis again, with the clock of the stage."""
        with self.clock_shown():
            self.fleet.start_redis()

    @contextmanager
    def clock_shown(self) -> Iterator[None]:
        """Show the clock of the stage, if there is one, to what is started now."""
        if self.clock is None:
            yield
            return
        with self.clock.shown():
            yield

    @contextmanager
    def game_servers_offering_again(self) -> Iterator[None]:
        """Tell the game servers of a loss: they push again what is not known to have counted.

        A Redis that loses its data loses the events that waited in it: nobody else has them.
        """
        with self.game_servers_held():
            yield
            with self.fleet.owner() as connection:
                for server in self.game_servers:
                    server.offer_again(connection)

    @contextmanager
    def game_servers_held(self) -> Iterator[None]:
        """Have nothing new pushed for a while."""
        with ExitStack() as stack:
            for server in self.game_servers:
                stack.enter_context(server.held())
            yield

    def calm(self) -> None:
        """Thaw everything, put the network and the clock right, and have everybody running."""
        for role in self.frozen:
            if role.alive:
                role.thaw()
        self.frozen.clear()
        for pair in (self.postgres, self.redis):
            pair.proxy.go_on()
        self.supervise()

    def unexpected_ends(self) -> list[str]:
        """Return what the roles wrote that ended by themselves in a way none should."""
        return [
            role.log[-2_000:]
            for role in self.fleet.roles
            if role not in self.killed and not role.alive and role.exit_code() not in ENDED_UNABLE
        ]


class Theatre:
    """Makes a stage and takes it down again: nothing is left of it, however it ends."""

    def __init__(self, folder: Path, draw: random.Random, settings: PoolSettings = SETTINGS) -> None:
        """Keep logs and the clock in a folder."""
        self._folder = folder
        self._draw = draw
        self._settings = settings
        self._stack = ExitStack()

    def __enter__(self) -> Stage:
        from faults.chaos.clock import Clock, find_library  # noqa: PLC0415 - it holds faults of a stage too

        with ExitStack() as stack:
            library = find_library()
            clock = None if library is None else Clock(library, self._folder / "clock")
            if clock is not None:
                stack.callback(clock.clean)
            postgres = stack.enter_context(PostgresPair())
            with clock.shown() if clock else ExitStack():
                redis = stack.enter_context(RedisPair())
            fleet = Fleet(postgres.primary, redis.primary, self._folder)
            fleet.environment = {
                "PETARD_DATABASE_URL": postgres.url,
                "PETARD_REDIS_URL": redis.url,
                "PETARD_RECENT_SECONDS": str(7 * 24 * 3_600),  # the clock is stepped by hours
                **(clock.environment if clock else {}),
            }
            stack.callback(fleet.end)
            fleet.prepare(self._settings)
            self._stack = stack.pop_all()
        return Stage(fleet, postgres, redis, self._draw, clock, MAIN if clock is None else clock.program)

    def __exit__(self, *_: object) -> None:
        self._stack.close()
