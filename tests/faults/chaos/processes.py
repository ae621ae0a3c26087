"""Faults of our own processes: killed, or frozen past every lease and then back."""

import time

from faults.chaos.stage import Stage
from faults.fleet import Role


def kill_a_worker(stage: Stage) -> None:
    """SIGKILL in the middle of whatever it does."""
    kill_one(stage, "worker")


def kill_a_publisher(stage: Stage) -> None:
    """SIGKILL of the active one or of one that stands by."""
    kill_one(stage, "publisher")


def freeze_a_worker(stage: Stage) -> None:
    """SIGSTOP; it comes back as a zombie that others have long replaced."""
    freeze_one(stage, "worker")


def freeze_a_publisher(stage: Stage) -> None:
    """SIGSTOP of one that may hold the fleet's lock."""
    freeze_one(stage, "publisher")


def kill_one(stage: Stage, kind: str) -> None:
    stage.wait_for(lambda: stage.running(kind), f"a {kind} to kill", 30)
    victim = stage.draw.choice(stage.running(kind))
    stage.killed.add(victim)
    victim.kill()
    stage.frozen.pop(victim, None)


def freeze_one(stage: Stage, kind: str) -> None:
    """Freeze one that is awake; the supervisor thaws it while other faults go on."""

    def awake() -> list[Role]:
        return [role for role in stage.running(kind) if role not in stage.frozen]

    stage.wait_for(awake, f"a {kind} to freeze", 30)
    victim = stage.draw.choice(awake())
    victim.freeze()
    longest = stage.patience.freeze
    seconds = stage.draw.choice((longest, stage.draw.uniform(0.1, longest)))
    stage.frozen[victim] = time.monotonic() + seconds
