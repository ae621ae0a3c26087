"""A seeded run: what is drawn repeats with the seed, the timing does not."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from faults.audit import assert_nothing_lost_nothing_twice, gathered, read_ledger
from faults.chaos.board_follower import BoardFollower
from faults.chaos.game_server import GameServer
from faults.chaos.kinds import Kind, chosen, possible
from faults.chaos.recovery import Progress, Recovery
from faults.chaos.report import Report, Struck
from faults.chaos.stage import Patience, Stage, Theatre
from faults.differences import Differences, count_differences
from faults.fleet import POOL, RULES
from faults.seasons import season
from petard_worker.pool_settings import PoolSettings

SOURCES = 2
PLAYERS = 2_000
REPEAT_SHARE = 0.03
LONGEST_STREAM = 250_000
"""So many entries are compared in the stream; of a longer run the follower has seen the others."""
STALLED_SECONDS = 240
SECONDS_TO_RECOVER = 120
SECONDS_A_FAULT = 2.0
"""A guess for the first; later the game servers' pace follows the faults."""
FAULTS_IN_RESERVE = 4
SLOWEST = 10.0
"""Events a second."""
MINUTES_FOR_LONG_LOCKS = 20
LONG_LOCK_SECONDS = 150.0


@dataclass(frozen=True)
class Plan:
    """How much of what, from which seed."""

    seed: int = 1
    events: int = 100_000
    faults: int = 40
    minutes: float = 10.0
    """After so long no fault is begun and no event pushed any more."""
    only: Sequence[str] = ()

    @property
    def command(self) -> str:
        """What repeats the run."""
        only = "".join(f" --only {name}" for name in self.only)
        size = f"--events {self.events} --faults {self.faults} --minutes {self.minutes:g}"
        return f"petard chaos --seed {self.seed} {size}{only}"

    @property
    def patience(self) -> Patience:
        return Patience(lock=LONG_LOCK_SECONDS) if self.minutes >= MINUTES_FOR_LONG_LOCKS else Patience()

    @property
    def stream_length(self) -> int:
        return min(LONGEST_STREAM, 2 * self.events)


Tell = Callable[[str], None]


def draw_faults(kinds: Sequence[Kind], count: int, draw: Random) -> list[Kind]:
    """Return every kind once, then more by their weights, up to the number wanted."""
    first = draw.sample(list(kinds), min(count, len(kinds)))
    return first + draw.choices(kinds, [kind.weight for kind in kinds], k=count - len(first))


def run(plan: Plan, folder: Path, tell: Tell, program: str | None = None) -> Report:
    """Play the whole scenario on servers of its own and say what came of it.

    The roles run another program than they should when the harness has to show that it finds that.
    """
    began = time.monotonic()
    kinds, skipped = possible(chosen(plan.only))
    draw = Random(plan.seed)
    faults = draw_faults(kinds, plan.faults, draw)
    report = Report(plan.seed, plan.events, plan.faults, plan.command, skipped)
    tell("starting servers")
    with Theatre(folder, draw, PoolSettings(stream_length=plan.stream_length)) as stage:
        stage.patience = plan.patience
        stage.program = program or stage.program
        try:
            Run(plan, stage, report, tell).play(faults)
        except (AssertionError, RuntimeError) as failure:
            report.failure = str(failure) or repr(failure)
            tell(stage.fleet.logs())
    report.seconds = time.monotonic() - began
    return report


class Run:
    """One run on a stage."""

    def __init__(self, plan: Plan, stage: Stage, report: Report, tell: Tell) -> None:
        self.plan = plan
        self.stage = stage
        self.report = report
        self.tell = tell
        self.until = time.monotonic() + plan.minutes * 60
        self.seasons = [
            season(
                plan.events // SOURCES,
                seed=plan.seed * SOURCES + number,
                players=PLAYERS,
                repeat_share=REPEAT_SHARE,
            )
            for number in range(SOURCES)
        ]
        self.total = sum(map(len, self.seasons))

    def play(self, faults: Sequence[Kind]) -> None:
        """Strike while game servers push, let everything come to rest, and check."""
        stage, fleet = self.stage, self.stage.fleet
        pace = self.total / SOURCES / (SECONDS_A_FAULT * len(faults))
        stage.supervise()
        with ExitStack() as stack:
            stage.wait_for(self.everybody_works, "workers and publishers to start", STALLED_SECONDS)
            stage.follower = stack.enter_context(BoardFollower(stage.redis.url, fleet.keys))
            stage.game_servers = [
                stack.enter_context(GameServer(stage.redis.url, fleet.keys, events, per_second=pace))
                for events in self.seasons
            ]
            progress = stack.enter_context(Progress(stage))
            stage.wait_for(fleet.published, "the first entry", STALLED_SECONDS)
            self.strike_all(faults, progress)
            self.come_to_rest()
        self.check()

    def everybody_works(self) -> bool:
        roles = self.stage.fleet.roles
        return all("worker_started" in role.log or "publisher_" in role.log for role in roles)

    def strike_all(self, faults: Sequence[Kind], progress: Progress) -> None:
        """Do the faults one after the other; in half of the cases before the last one is recovered from."""
        began = time.monotonic()
        struck: list[tuple[Kind, float, float, bool]] = []
        seen: set[str] = set()
        for number, kind in enumerate(faults):
            if time.monotonic() > self.until:
                break
            self.tell(f"{number + 1} of {len(faults)}: {kind.name}, {self.pushed} events pushed")
            start = time.monotonic()
            self.stage.over_at = 0.0
            kind.fault(self.stage)
            over = self.stage.over_at or time.monotonic()
            alone = kind.name not in seen or self.stage.draw.random() < 0.5
            seen.add(kind.name)
            alone = alone and self.let_recover(progress, over)
            self.stage.let_pass(self.stage.draw.uniform(0.05, 0.5))
            struck.append((kind, start, over, alone))
            self.keep_pace(len(faults) - number - 1, (time.monotonic() - began) / (number + 1))
        self.report.under_load = not self.idle
        self.catch_up()
        self.report.struck = [
            Struck(kind.name, kind.holds, start - began, over - start, *self.recovery(progress, over, alone))
            for kind, start, over, alone in struck
        ]

    @property
    def idle(self) -> bool:
        return all(server.finished for server in self.stage.game_servers)

    @property
    def pushed(self) -> int:
        return sum(server.count for server in self.stage.game_servers)

    def recovery(self, progress: Progress, over: float, alone: bool) -> Recovery:
        return progress.after(over) if alone else Recovery(None, None)

    def let_recover(self, progress: Progress, over: float) -> bool:
        """Wait until a batch has been applied and an entry published since the fault was over.

        False when there is nothing to push any more, so that nothing could be seen to go on.
        """

        def recovered() -> bool:
            return self.idle or None not in progress.after(over)

        self.stage.wait_for(recovered, "work to go on", SECONDS_TO_RECOVER)
        return not self.idle

    def keep_pace(self, faults_left: int, seconds_each: float) -> None:
        """Let the events last as long as the faults, and some longer: the last ones may be the slow ones."""
        seconds = max(1.0, (faults_left + FAULTS_IN_RESERVE) * seconds_each)
        for server in self.stage.game_servers:
            server.per_second = max(SLOWEST, (server.most - server.count) / seconds)

    def catch_up(self) -> None:
        """Measure how long the stream takes to have what the ledger had after the last fault."""
        last = time.monotonic()
        due = self.stage.fleet.applied()
        self.stage.calm()
        self.stage.wait_for(
            lambda: self.stage.fleet.published() >= due, "the stream to catch up", STALLED_SECONDS
        )
        self.report.caught_up_seconds = time.monotonic() - last

    def come_to_rest(self) -> None:
        """Let all be pushed, applied, published and followed."""
        stage, fleet, follower = self.stage, self.stage.fleet, self.stage.follower
        assert follower is not None
        if time.monotonic() > self.until:
            self.report.cut_short = True
            for server in stage.game_servers:
                server.finish_early()
        for server in stage.game_servers:
            server.per_second = 20_000.0
        rest = STALLED_SECONDS + self.total / 1_000
        stage.wait_for(lambda: self.idle, "all to be pushed", rest)
        self.tell("faults are over; the rest is applied and published")
        stage.wait_for(lambda: fleet.waiting() == 0, "an empty list", rest)
        stage.wait_for(lambda: fleet.published() >= fleet.applied(), "the stream", rest)
        stage.wait_for(
            lambda: follower.failure or (follower.position and follower.position.seq >= fleet.applied()),
            "the follower",
            rest,
        )

    def check(self) -> None:
        """Compare everything with everything."""
        stage, fleet, report, follower = self.stage, self.stage.fleet, self.report, self.stage.follower
        assert follower is not None
        self.tell("comparing")
        pushed = [server.pushed for server in stage.game_servers]
        report.pushed = sum(map(len, pushed))
        report.sent_twice = sum(server.sent_again for server in stage.game_servers) + sum(
            expected == "repeat" for events in pushed for _, expected in events
        )
        report.snapshots = follower.snapshots
        report.followed = follower.entries
        with fleet.owner() as connection, connection.transaction():
            report.differences = count_differences(read_ledger(connection, POOL), pushed)
        assert report.differences == Differences(0, 0, 0, 0), (
            f"the ledger is not what was pushed: {report.differences}"
        )
        assert follower.failure is None, f"the follower died of {follower.failure!r}"
        with (
            fleet.client as client,
            gathered(
                fleet.postgres.url, client, fleet.keys, POOL, stream_length=self.plan.stream_length
            ) as found,
        ):
            evidence = replace(found, followed=follower.board)
            report.entries = assert_nothing_lost_nothing_twice(evidence, RULES, pushed)
        report.bit_equal = True
        unexpected = stage.unexpected_ends()
        assert not unexpected, f"processes ended as none should: {unexpected}"
        report.failed_jobs = fleet.failures_of_jobs()
