"""Faults one after the other on a working fleet: what is drawn repeats with the seed, the timing does not.

Dead processes are started again by a supervisor, as they are in production.
"""

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from faults.fleet import Fleet, Role, wait_until

EVENTS = int(os.environ.get("PETARD_CHAOS_EVENTS", "100000"))
FAULTS = int(os.environ.get("PETARD_CHAOS_FAULTS", "36"))
SEED = int(os.environ.get("PETARD_CHAOS_SEED", "1"))

LONGEST_FREEZE_SECONDS = 6.5
"""Longer than Postgres lets a session idle in its transaction."""
STALLED_SECONDS = 30
ENDED_UNABLE = (0, 69)
"""Exit codes of a role that could not go on and said so; the supervisor starts it again."""


@dataclass
class Chaos:
    """A fleet, and what is being done to it."""

    fleet: Fleet
    draw: random.Random
    workers: int = 2
    publishers: int = 2
    counts: dict[str, int] = field(default_factory=dict)
    frozen: dict[Role, float] = field(default_factory=dict)
    killed: set[Role] = field(default_factory=set)

    def supervise(self) -> None:
        """Start again what has ended, and thaw what was frozen long enough."""
        now = time.monotonic()
        for role in [role for role, until in self.frozen.items() if until < now]:
            del self.frozen[role]
            if role.alive:
                role.thaw()
        for _ in range(self.workers - len(self.running("worker"))):
            self.fleet.start_worker()
        for _ in range(self.publishers - len(self.running("publisher"))):
            self.fleet.start_publisher()

    def strike(self, faults: dict[Callable[["Chaos"], None], int]) -> None:
        """Do one of the faults, drawn by their weights."""
        (fault,) = self.draw.choices(list(faults), list(faults.values()))
        self.counts[fault.__name__] = self.counts.get(fault.__name__, 0) + 1
        fault(self)

    def let_work(self, done: Callable[[], int], target: int) -> None:
        """Supervise until so much is done; in half of the cases only for a moment."""
        moment = time.monotonic() + self.draw.uniform(0.05, 0.5)
        if self.draw.random() < 0.5:
            self.wait_for(lambda: time.monotonic() > moment, STALLED_SECONDS)
        else:
            self.wait_for(lambda: done() >= target, STALLED_SECONDS)

    def wait_for(self, condition: Callable[[], object], seconds: float) -> None:
        """Supervise until the condition holds."""

        def holds() -> object:
            self.supervise()
            return condition()

        wait_until(holds, "progress", seconds)

    def calm(self) -> None:
        """Thaw everything and have everybody running."""
        for role in self.frozen:
            if role.alive:
                role.thaw()
        self.frozen.clear()
        self.supervise()

    def unexpected_ends(self) -> list[str]:
        """Return what the roles wrote that ended by themselves in a way none should."""
        return [
            role.log[-2_000:]
            for role in self.fleet.roles
            if role not in self.killed and not role.alive and role.exit_code() not in ENDED_UNABLE
        ]

    def running(self, kind: str) -> list[Role]:
        return [role for role in self.fleet.roles if role.alive and role.kind == kind]


def kill_a_worker(chaos: Chaos) -> None:
    kill_one(chaos, "worker")


def kill_a_publisher(chaos: Chaos) -> None:
    kill_one(chaos, "publisher")


def kill_one(chaos: Chaos, kind: str) -> None:
    if running := chaos.running(kind):
        victim = chaos.draw.choice(running)
        chaos.killed.add(victim)
        victim.kill()


def freeze_a_worker(chaos: Chaos) -> None:
    freeze_one(chaos, "worker", LONGEST_FREEZE_SECONDS)


def freeze_a_publisher(chaos: Chaos) -> None:
    freeze_one(chaos, "publisher", LONGEST_FREEZE_SECONDS / 4)


def freeze_one(chaos: Chaos, kind: str, longest: float) -> None:
    awake = [role for role in chaos.running(kind) if role not in chaos.frozen]
    if awake:
        victim = chaos.draw.choice(awake)
        victim.freeze()
        chaos.frozen[victim] = time.monotonic() + chaos.draw.uniform(0.1, longest)


def kill_redis(chaos: Chaos) -> None:
    chaos.fleet.redis.kill()
    chaos.fleet.start_redis()


def wipe_redis(chaos: Chaos) -> None:
    with chaos.fleet.client as client:
        client.flushall()


def stop_postgres(chaos: Chaos) -> None:
    chaos.fleet.postgres.stop_immediately()
    chaos.fleet.postgres.start()


def end_sessions(chaos: Chaos) -> None:
    chaos.fleet.end_sessions()


def end_publisher_sessions(chaos: Chaos) -> None:
    chaos.fleet.end_sessions("petard publisher")
