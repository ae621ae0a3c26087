"""Dead letters back into the queue, where they are judged again like any event.

A run fixes its letters at the start and gives each of them one turn, in the order of their ids: one that
fails again comes back as open, and is not picked up a second time.

    write down how the next letters stand        take_turns
    push them, unless this run has pushed them   SEND: the push and the note of it are one step in Redis
    mark them as replayed                        end_turns: those that have not come back meanwhile

Killed anywhere, the run is there to be resumed, and does what is left. Should Redis forget what was pushed, a
letter is pushed again: the ledger drops the repeat of an event that has counted.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC
from itertools import groupby
from typing import NamedTuple, cast
from uuid import UUID, uuid4

from redis import Redis

from petard_schema import Keys
from petard_worker.pace import Pace
from petard_worker.postgres import replay_runs
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.letter_finds import LetterFilter, group_letters
from petard_worker.postgres.replay_runs import Done, DoneLetter, NewRun, NextLetter, ReplayRun
from petard_worker.server_function import ServerFunction

CHUNK = 100
"""Letters in memory at once: their bodies may be large."""
CHUNKS_A_SECOND = 10
USUAL_RATE = 100
HIGHEST_RATE = 10_000
REMEMBERED_SECONDS = 7 * 86_400

# Pushes letters whose ids are above the last one that this run has pushed, and notes the last one: what is
# sent again, by a retry or by whoever goes on after a kill, is pushed once.
SEND = """
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
local pushed = 0
for i = 2, #ARGV, 2 do
    local id = tonumber(ARGV[i])
    if id > last then
        redis.call('RPUSH', KEYS[1], ARGV[i + 1])
        last = id
        pushed = pushed + 1
    end
end
if pushed > 0 then redis.call('SET', KEYS[2], string.format('%.0f', last), 'EX', ARGV[1]) end
return pushed
"""
SEND_FUNCTION = ServerFunction("send_letters", SEND)


class NothingToReplayError(Exception):
    """No open dead letter fits."""


class ReplayRunningError(Exception):
    """Somebody is replaying letters of a pool; the message says who, since when and how far."""


class ReplayInterruptedError(Exception):
    """A pool has a run that nobody works on; the message says whose it is and how to go on."""


class Run(NamedTuple):
    """A run whose pools are locked by this session."""

    run: int
    token: UUID
    actor: str
    rate: int
    pools: Sequence[str]
    letters: int
    """In all."""
    waiting: int
    """Still to be sent."""


class Progress(NamedTuple):
    """What a chunk came to."""

    sent: int
    closed: int
    """Somebody else was done with them before their turn."""
    cut: int
    """Only the start of them was kept, so they cannot be sent as they came."""

    @property
    def letters(self) -> int:
        """How many had their turn."""
        return self.sent + self.closed + self.cut


def start_replay(connection: Connection, wanted: LetterFilter, chosen: str, actor: str, rate: int) -> Run:
    """Fix the letters of a new run, those that are wanted and open, and lock their pools.

    Raises NothingToReplayError, ReplayRunningError or ReplayInterruptedError; nothing is locked then.
    """
    wanted = wanted._replace(state="open")
    pools = sorted({group.pool for group in group_letters(connection, wanted)})
    lock_pools(connection, pools)
    try:
        refuse_unfinished(connection, pools)
        with connection.transaction():
            run = replay_runs.next_run_number(connection)
            new = NewRun(run, uuid4(), actor, chosen, rate)
            letters = replay_runs.choose_letters(connection, run, pools, wanted)
            replay_runs.insert_run(connection, new)
    except BaseException:
        unlock_pools(connection, pools)
        raise
    if not letters:
        unlock_pools(connection, pools)
        raise NothingToReplayError("no open dead letter fits")
    return Run(run, new.token, actor, rate, pools, letters, letters)


def resume_replay(connection: Connection, pool: str | None = None) -> Run | None:
    """Return the oldest run that nobody finished, its pools locked; None when there is none.

    Raises ReplayRunningError when somebody is at work on it.
    """
    unfinished = replay_runs.read_runs(connection, unfinished=True, limit=10_000)
    fitting = [row.run for row in unfinished if pool in {None, row.pool}]
    if not fitting:
        return None
    # The one that can be resumed, if any can.
    free = [row.run for row in unfinished if row.run in fitting and not row.locked]
    oldest = min(free or fitting)
    rows = [row for row in unfinished if row.run == oldest]
    pools = sorted(row.pool for row in rows)
    lock_pools(connection, pools)
    first = rows[0]
    # Read again under the lock: somebody may have gone on with it meanwhile, or finished it.
    rows = [
        row for row in replay_runs.read_runs(connection, unfinished=True, limit=10_000) if row.run == oldest
    ]
    if not rows:
        unlock_pools(connection, pools)
        return resume_replay(connection, pool)
    letters, waiting = sum(row.letters for row in rows), sum(row.waiting for row in rows)
    return Run(oldest, first.token, first.actor, first.rate, pools, letters, waiting)


def replay(connection: Connection, redis: Redis, keys: Keys, run: Run, pace: Pace) -> Iterator[Progress]:
    """Give every letter of the run that still waits its turn, chunk by chunk, and finish the run."""
    after, left = 0, run.waiting
    while left > 0:
        size = max(1, min(CHUNK, left, int(pace.rate) // CHUNKS_A_SECOND))
        # First the wait, then the look: a letter that was discarded meanwhile is not sent.
        pace.wait(size)
        letters = replay_runs.take_turns(connection, run.run, after, size)
        if not letters:
            break
        turns = [DoneLetter(letter, turn_of(letter)) for letter in letters]
        due = [turn.letter for turn in turns if turn.done == "sent"]
        pace.give_back(size - len(due))
        if due:
            send(redis, keys, run, due)
        replay_runs.end_turns(connection, run.run, run.actor, turns)
        after, left = letters[-1].id, left - len(letters)
        done = [turn.done for turn in turns]
        yield Progress(done.count("sent"), done.count("closed"), done.count("cut"))
    finish(connection, redis, keys, run)


def turn_of(letter: NextLetter) -> Done:
    """Return what is to become of a letter in its turn."""
    if letter.state != "open":
        return "closed"
    return "cut" if letter.cut else "sent"


def send(redis: Redis, keys: Keys, run: Run, letters: Sequence[NextLetter]) -> None:
    """Push letters that the run has not pushed yet to the lists of their pools, and poke the dispatcher."""
    send_letters = SEND_FUNCTION.on(redis)
    for pool, same_pool in groupby(letters, key=lambda letter: letter.pool):
        arguments = [part for letter in same_pool for part in (letter.id, cast("bytes", letter.body))]
        lists = [keys.events(pool), keys.replay(str(run.token))]
        send_letters(keys=lists, args=[REMEMBERED_SECONDS, *arguments])
        redis.publish(keys.pushed(), pool)


def finish(connection: Connection, redis: Redis, keys: Keys, run: Run) -> None:
    """Let the pools of a run have another one, and let Redis forget this one."""
    replay_runs.finish_run(connection, run.run)
    unlock_pools(connection, run.pools)
    redis.delete(keys.replay(str(run.token)))


def give_up(connection: Connection, redis: Redis, keys: Keys, run: Run) -> int:
    """Finish a run without giving the rest of its letters a turn; return how many they were."""
    dropped = replay_runs.drop_waiting(connection, run.run)
    finish(connection, redis, keys, run)
    return dropped


def lock_pools(connection: Connection, pools: Sequence[str]) -> None:
    """Lock all of these pools for this session, or raise ReplayRunningError and lock none."""
    locked: list[str] = []
    for pool in pools:
        if not replay_runs.try_lock_pool(connection, pool):
            unlock_pools(connection, locked)
            raise running(connection, pool)
        locked.append(pool)


def unlock_pools(connection: Connection, pools: Sequence[str]) -> None:
    """Let others replay letters of these pools; a lost session holds no lock any more."""
    if connection.closed:
        return
    for pool in pools:
        replay_runs.unlock_pool(connection, pool)


def refuse_unfinished(connection: Connection, pools: Sequence[str]) -> None:
    """Raise ReplayInterruptedError if a run of one of these pools was never finished."""
    for row in replay_runs.read_runs(connection, unfinished=True, limit=10_000):
        if row.pool in pools:
            raise ReplayInterruptedError(
                f"{described(row)} was interrupted: 'petard dead replay --resume' goes on with it,"
                " 'petard dead replay --give-up' leaves the rest of its letters open"
            )


def running(connection: Connection, pool: str) -> ReplayRunningError:
    """Return the error that says who replays letters of the pool."""
    rows = [
        row for row in replay_runs.read_runs(connection, unfinished=True, limit=10_000) if row.pool == pool
    ]
    if not rows:
        return ReplayRunningError(f"somebody is just starting to replay letters of pool {pool!r}: try again")
    return ReplayRunningError(f"{described(rows[0])} is running: one at a time in a pool")


def described(row: ReplayRun) -> str:
    """Return which run it is, whose, and how far."""
    done = row.letters - row.waiting
    started = f"{row.started.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return (
        f"replay {row.run} of pool {row.pool!r}, by {row.actor} since {started},"
        f" {done} of {row.letters} letters done,"
    )
