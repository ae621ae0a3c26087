"""Every kind of fault there is, by the name that `--only` and the report use."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from faults.chaos import clock, network_faults, postgres_faults, processes, redis_faults
from faults.chaos.stage import Stage


class Holds(StrEnum):
    """Why nothing is lost in a fault."""

    BY_ITSELF = "by itself"
    OFFERED = "game servers offer again"
    REINGESTED = "petard reingest"


@dataclass(frozen=True)
class Kind:
    """One kind of fault."""

    fault: Callable[[Stage], None]
    weight: int
    """How often it is drawn, beside the others."""
    holds: Holds = Holds.BY_ITSELF

    @property
    def name(self) -> str:
        return self.fault.__name__

    @property
    def family(self) -> str:
        """The name of its file, without what all have in common."""
        return self.fault.__module__.rpartition(".")[2].removesuffix("_faults")


KINDS = (
    Kind(processes.kill_a_worker, 6),
    Kind(processes.freeze_a_worker, 4),
    Kind(processes.kill_a_publisher, 5),
    Kind(processes.freeze_a_publisher, 3),
    Kind(redis_faults.kill_redis, 5),
    Kind(redis_faults.wipe_redis, 3, Holds.OFFERED),
    Kind(redis_faults.restore_an_older_aof, 2, Holds.OFFERED),
    Kind(redis_faults.fail_redis_over, 2, Holds.OFFERED),
    Kind(redis_faults.fill_redis, 2),
    Kind(postgres_faults.stop_postgres, 4),
    Kind(postgres_faults.end_sessions, 5),
    Kind(postgres_faults.hold_a_lock, 1),
    Kind(postgres_faults.answer_read_only, 2),
    Kind(postgres_faults.raise_serialization_errors, 2),
    Kind(postgres_faults.cause_a_deadlock, 2),
    Kind(postgres_faults.promote_a_stale_standby, 1, Holds.REINGESTED),
    Kind(network_faults.delay_the_network, 2),
    Kind(network_faults.hang_the_network, 2),
    Kind(network_faults.cut_the_network, 4),
    Kind(network_faults.swallow_replies, 4),
    Kind(clock.step_clock_forward, 1),
    Kind(clock.step_clock_back, 1),
)


class UnknownKindError(Exception):
    """There is no such kind; the message lists those there are."""


def chosen(only: Iterable[str]) -> Sequence[Kind]:
    """Return the kinds and families that are named, all of them when none is; or raise UnknownKindError."""
    names = set(only)
    families = {kind.family for kind in KINDS}
    unknown = names - families - {kind.name for kind in KINDS}
    if unknown:
        listed = ", ".join([*sorted(families), *(kind.name for kind in KINDS)])
        raise UnknownKindError(f"no kind of fault is called {min(unknown)!r}: choose of {listed}")
    return [kind for kind in KINDS if not names or names & {kind.name, kind.family}]


def possible(kinds: Iterable[Kind]) -> tuple[list[Kind], dict[str, str]]:
    """Return the kinds that this machine can do, and the reasons why not of the others."""
    kinds = list(kinds)
    if clock.find_library() is not None:
        return kinds, {}
    skipped = {kind.name: clock.MISSING for kind in kinds if kind.family == "clock"}
    return [kind for kind in kinds if kind.name not in skipped], skipped
