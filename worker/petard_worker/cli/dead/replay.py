"""`petard dead replay` and `runs`: letters back into the queue, at a rate, in runs that survive a kill."""

from typing import Annotated

import psycopg
import redis
import typer

from petard_schema import Keys
from petard_worker.cli.confirm import confirm
from petard_worker.cli.dead.choose import (
    AllOption,
    IdsArgument,
    NewerOption,
    OlderOption,
    PoolOption,
    ReasonOption,
    SinceOption,
    SourceOption,
    TracebackOption,
    UntilOption,
    YesOption,
    actor,
    chosen_filter,
    explicit,
    in_words,
    left_out,
    some_fit,
)
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption, print_json, print_table, progress, talk
from petard_worker.cli.servers import reading, redis_client, writing
from petard_worker.pace import Pace
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.letter_finds import LetterFilter, LetterGroup, group_letters
from petard_worker.postgres.replay_runs import ReplayRun, read_runs
from petard_worker.printable import printable
from petard_worker.replay import (
    HIGHEST_RATE,
    USUAL_RATE,
    NothingToReplayError,
    ReplayInterruptedError,
    ReplayRunningError,
    Run,
    give_up,
    resume_replay,
    start_replay,
)
from petard_worker.replay import replay as give_turns
from petard_worker.settings import load_settings

RUN_COLUMNS = ("run", "pool", "actor", "chosen", "rate", "letters", "sent", "waiting", "started", "finished")


def replay(
    ids: IdsArgument = None,
    pool: PoolOption = None,
    reason: ReasonOption = None,
    source: SourceOption = None,
    traceback_hash: TracebackOption = None,
    older: OlderOption = None,
    newer: NewerOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    all_open: AllOption = False,
    rate: Annotated[
        int | None,
        typer.Option(
            "--rate", min=1, max=HIGHEST_RATE, help=f"Letters a second at most (default: {USUAL_RATE})."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be replayed.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    abandon: Annotated[
        bool, typer.Option("--give-up", help="End an interrupted run; the rest of its letters stays open.")
    ] = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Push dead letters back into the queue; one that counted meanwhile changes nothing.

    The letters of a run are fixed at its start: one that fails again is open again, and not sent twice.
    Killed, the run can be resumed. A pool has one run at a time.
    """
    wanted = chosen_filter(
        ids=ids,
        pool=pool,
        reason=reason,
        source=source,
        traceback_hash=traceback_hash,
        older=older,
        newer=newer,
        since=since,
        until=until,
    )
    if json and not dry_run:
        raise CommandFailed("--json goes with --dry-run: else 'petard dead runs --json' tells", USAGE)
    if resume or abandon:
        if resume and abandon:
            raise CommandFailed("--resume or --give-up, not both", USAGE)
        if all_open or dry_run or wanted._replace(pool=None) != LetterFilter(state="open"):
            raise CommandFailed("an interrupted run has its letters: say --pool, or nothing", USAGE)
        end_interrupted(pool, rate, yes=yes, resume=resume)
        return
    explicit(wanted, all_open=all_open)
    if dry_run:
        say_what(wanted, rate or USUAL_RATE, json=json)
        return
    start(wanted, rate or USUAL_RATE, yes=yes)


def start(wanted: LetterFilter, rate: int, *, yes: bool) -> None:
    """Replay what is wanted."""
    settings = load_settings()
    with writing() as connection, redis_client(settings) as client:
        count = sum(group.letters for group in group_letters(connection, wanted))
        some_fit(count, left_out(connection, wanted.ids))
        confirm(f"replay {count} dead letters at {rate}/s, which takes {seconds(count, rate)}", yes=yes)
        client.ping()  # before a run is begun that could not send anything
        try:
            run = start_replay(connection, wanted, in_words(wanted), actor(), rate)
        except (NothingToReplayError, ReplayRunningError, ReplayInterruptedError) as error:
            raise CommandFailed(printable(str(error))) from None
        work(connection, client, Keys(settings.key_prefix), run, rate)


def end_interrupted(pool: str | None, rate: int | None, *, yes: bool, resume: bool) -> None:
    """Go on with the oldest interrupted run, or give it up."""
    settings = load_settings()
    keys = Keys(settings.key_prefix)
    with writing() as connection, redis_client(settings) as client:
        try:
            run = resume_replay(connection, pool)
        except ReplayRunningError as error:
            raise CommandFailed(printable(str(error))) from None
        if run is None:
            raise CommandFailed("no replay was interrupted")
        if resume:
            talk(
                f"going on with replay {run.run} by {run.actor}: {run.waiting} of {run.letters} letters left"
            )
            work(connection, client, keys, run, rate or run.rate)
            return
        confirm(f"give up replay {run.run} with {run.waiting} letters left", yes=yes)
        dropped = give_up(connection, client, keys, run)
        talk(f"gave up replay {run.run}: {dropped} letters had no turn")


def work(connection: Connection, client: redis.Redis, keys: Keys, run: Run, rate: int) -> None:
    """Give the letters of a run their turns, show how far it is, and say what came of it."""
    sent = closed = cut = 0
    try:
        with progress("replayed") as bar:
            for step in give_turns(connection, client, keys, run, Pace(rate)):
                sent, closed, cut = sent + step.sent, closed + step.closed, cut + step.cut
                bar.show(sent + closed + cut, run.waiting)
    except (KeyboardInterrupt, redis.RedisError, psycopg.Error):
        talk("'petard dead replay --resume' goes on with the rest")
        raise
    talk(f"replayed {sent}: 'petard dead list' shows those that come back")
    if closed:
        talk(f"{closed} were replayed or discarded by somebody else meanwhile")
    if cut:
        talk(f"{cut} were too large to be kept whole: 'petard dead edit' them first, or discard them")


def say_what(wanted: LetterFilter, rate: int, *, json: bool) -> None:
    """Print what a replay would send."""
    with reading() as connection:
        groups = group_letters(connection, wanted)
    if json:
        print_json([group._asdict() for group in groups])
    else:
        print_table(LetterGroup._fields, groups)
    count = sum(group.letters for group in groups)
    talk(
        f"would replay {count} dead letters at {rate}/s, which takes {seconds(count, rate)}; nothing was sent"
    )


def seconds(count: int, rate: int) -> str:
    """Return how long a run takes."""
    minutes, rest = divmod(max(1, round(count / rate)), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def runs(
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Only runs that are not finished.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000)] = 20,
    json: JsonOption = False,
) -> None:
    """List replays, the newest first: whose, of what, how far."""
    with reading() as connection:
        found = read_runs(connection, unfinished=unfinished, limit=limit)
    if json:
        print_json(
            [{**{name: getattr(run, name) for name in RUN_COLUMNS}, "state": state_of(run)} for run in found]
        )
    else:
        rows = ([*(getattr(run, name) for name in RUN_COLUMNS), state_of(run)] for run in found)
        print_table((*RUN_COLUMNS, "state"), rows)


def state_of(run: ReplayRun) -> str:
    """Return whether a run is finished, and if not whether somebody works on it."""
    if run.finished is not None:
        return "finished"
    return "running" if run.locked else "interrupted"
