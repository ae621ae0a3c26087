"""`petard verify`: the ledger applied once more, and everything compared with what comes of it."""

from typing import Annotated

import redis
import typer

from petard_schema import Keys
from petard_worker.cli.errors import FAILED, UNAVAILABLE, CommandFailed, first_line
from petard_worker.cli.output import JsonOption, print_json, print_table, progress, talk
from petard_worker.cli.servers import reading, redis_client, require_pool
from petard_worker.garbage import calm_garbage_collector
from petard_worker.settings import load_settings
from petard_worker.verify.audit import Audit, PoolReport


def verify(
    pools: Annotated[
        list[str] | None, typer.Argument(metavar="[POOL]...", help="Only these pools (default: all).")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="How many differences of each pool are shown.")
    ] = 20,
    no_redis: Annotated[bool, typer.Option("--no-redis", help="Leave streams and leaderboards out.")] = False,
    json: JsonOption = False,
) -> None:
    """Apply the ledger once more and compare everything with what comes of it, to the bit.

    Ledger, changes, ratings, counters, open periods and dead letters in Postgres, as of one moment; change
    streams and leaderboards in Redis. It may run while games are rated, and only reads. Exit code 1 when
    anything differs.
    """
    names = pools or []
    calm_garbage_collector()
    with reading() as connection, progress("verified") as bar:
        for name in names:
            require_pool(connection, name)
        audit = Audit(connection, limit, lambda _, done, total: bar.show(done, total))
        reports = audit.of_postgres(names) if no_redis else audit_everything(audit, names)
    if json:
        print_json({"differences": differences(reports), "pools": [as_facts(report) for report in reports]})
    else:
        print_reports(reports)
    if differences(reports):
        raise typer.Exit(FAILED)


def audit_everything(audit: Audit, names: list[str]) -> list[PoolReport]:
    """Audit with Redis, or fail saying how to do without."""
    settings = load_settings()
    try:
        with redis_client(settings) as client:
            return audit.of_everything(names, client, Keys(settings.key_prefix))
    except (redis.ConnectionError, redis.TimeoutError) as error:
        raise CommandFailed(
            f"cannot reach Redis (PETARD_REDIS_URL): {first_line(error)};"
            " --no-redis compares what is in Postgres alone",
            UNAVAILABLE,
        ) from None


def differences(reports: list[PoolReport]) -> int:
    """Return how many differences there are in all pools."""
    return sum(report.found.total for report in reports)


def as_facts(report: PoolReport) -> dict[str, object]:
    """Return a report as it is told to programs."""
    return {
        "pool": report.pool,
        "epoch": report.epoch,
        "seq": report.seq,
        **report.replayed._asdict(),
        "dead_letters": report.dead_letters,
        "took_s": report.took_s,
        "entries_per_s": per_second(report),
        "stream": None if report.stream is None else report.stream._asdict(),
        "board": None if report.board is None else report.board._asdict(),
        "differences": report.found.total,
        "counts": dict(report.found.counts),
        "first": [
            {
                "where": one.where,
                "what": one.what,
                "seq": one.seq,
                "player": one.player,
                "letter": one.letter,
                "stored": one.stored,
                "due": one.due,
            }
            for one in report.found.first
        ],
    }


def per_second(report: PoolReport) -> float:
    """Return how many entries a second were applied once more."""
    return report.replayed.entries / report.took_s if report.took_s else 0.0


def print_reports(reports: list[PoolReport]) -> None:
    """Print what differs, then what was compared."""
    for report in reports:
        for one in report.found.first:
            typer.echo(str(one))
        if report.found.total > len(report.found.first):
            counts = ", ".join(f"{kind} {count}" for kind, count in report.found.counts.most_common())
            typer.echo(f"{report.pool}: {report.found.total} differences in all: {counts}")
    columns = ("pool", "entries", "changes", "players", "dead letters", "stream", "lag", "board", "entries/s")
    print_table(
        (*columns, "differences"),
        (
            (
                report.pool,
                *report.replayed,
                report.dead_letters,
                None if report.stream is None else told(report.stream.oldest, report.stream.newest),
                None if report.stream is None else report.stream.lag,
                None if report.board is None else report.board.players,
                round(per_second(report)),
                report.found.total,
            )
            for report in reports
        ),
    )
    talk(f"{differences(reports)} differences" if differences(reports) else "everything agrees")


def told(oldest: str | None, newest: str | None) -> str | None:
    """Return which entries a stream holds, as far as they were compared."""
    return None if oldest is None else f"{oldest} … {newest or '-'}"
