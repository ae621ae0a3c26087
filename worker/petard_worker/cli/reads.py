"""Commands that look: status, player, leaderboard, event, preview."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from petard_schema import Keys
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption, print_json, print_table
from petard_worker.cli.servers import reading, redis_client, require_pool
from petard_worker.display import displayed
from petard_worker.pool_settings import PoolSettings, pool_settings
from petard_worker.postgres import boards
from petard_worker.postgres.boards import BoardLine
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.fates import Fate, find_fates
from petard_worker.postgres.pools import Pool
from petard_worker.publish import as_change
from petard_worker.ratings.pool_rules import pool_rules
from petard_worker.settings import load_settings


def status(json: JsonOption = False) -> None:
    """Show backlog, head age, workers, outbox lag and dead letters of every pool."""
    from petard_worker.status import read_status  # noqa: PLC0415

    settings = load_settings()
    with reading() as connection, redis_client(settings) as client:
        found = read_status(connection, client, Keys(settings.key_prefix), datetime.now(UTC))
    if json:
        print_json({"pools": [pool._asdict() for pool in found.pools], "workers": found.workers})
        return
    columns = ("pool", "backlog", "head age s", "applied", "published", "lag", "dead letters", "stopped")
    print_table(
        columns,
        (
            (
                pool.pool,
                pool.backlog,
                pool.head_age_s,
                pool.seq,
                pool.published_seq,
                pool.seq - pool.published_seq,
                ", ".join(f"{reason} {count}" for reason, count in pool.dead_letters.items()) or "none",
                pool.stopped,
            )
            for pool in found.pools
        ),
    )
    print_table(("workers",), [(found.workers,)])


def player(
    pool: str,
    name: str,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="As of this time (RFC 3339).")] = None,
    json: JsonOption = False,
) -> None:
    """Show where a player stands, now or at some time."""
    time = None if at is None else read_at(at)
    with reading() as connection:
        known = require_pool(connection, pool)
        record = boards.find_record(connection, pool, name)
        if record is None:
            raise CommandFailed(f"the pool {pool!r} knows no player {name!r}")
        if time is not None:
            facts = past_facts(connection, known, name, time)
        else:
            place = boards.find_place(connection, pool, pool_settings(known.settings), name)
            facts = {
                "pool": pool,
                "player": name,
                **record._asdict(),
                "rank": place.rank if place else None,
                "percentile": place.percentile if place else None,
            }
    if json:
        print_json(facts)
    else:
        print_table(("", name), [*((key, shown(known, key, value)) for key, value in facts.items())])


def read_at(at: str) -> datetime:
    """Return the time that --at names."""
    from petard_schema.times import parse_time  # noqa: PLC0415

    try:
        return parse_time(at)
    except ValueError as error:
        raise CommandFailed(f"--at {at!r} {error}", USAGE) from None


def past_facts(connection: Connection, pool: Pool, name: str, time: datetime) -> dict[str, object]:
    """Return where the player stood at a time."""
    from petard_schema.times import format_time  # noqa: PLC0415

    standing = boards.find_past_standing(connection, pool.name, name, time)
    if standing is None:
        raise CommandFailed(f"{name!r} had played nothing in {pool.name!r} by {format_time(time)}")
    return {"pool": pool.name, "player": name, **standing._asdict()}


def leaderboard(
    pool: str,
    top: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many lines.")] = 20,
    around: Annotated[
        str | None, typer.Option(metavar="NAME", help="The lines around a player instead.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show the ranking of a pool; provisional players are marked with ?."""
    with reading() as connection:
        known = require_pool(connection, pool)
        settings = pool_settings(known.settings)
        if around is None:
            lines = boards.board_top(connection, pool, settings, top)
        else:
            lines = boards.board_around(connection, pool, settings, around)
            if not lines:
                raise CommandFailed(f"{around!r} is not on the board of {pool!r}")
    if json:
        print_json([line._asdict() for line in lines])
    else:
        print_board(known, settings, lines)


def print_board(pool: Pool, settings: PoolSettings, lines: list[BoardLine]) -> None:
    """Print lines of a board as people read them."""
    print_table(
        ("rank", "player", "rating", "rd", "", "bomb", "games"),
        (
            (
                line.rank,
                line.player,
                displayed(pool, line.rating),
                line.rd,
                "?" if line.rd > settings.provisional_rd else "",
                line.bomb,
                line.games,
            )
            for line in lines
        ),
    )


def event(id: str, json: JsonOption = False) -> None:  # noqa: A002 - the name people see
    """Show what became of an event: rated, ignored, dead, waiting or unknown.

    Other sources or pools may have used the same id; what became of those is shown too (JSON: `others`).
    """
    settings = load_settings()
    with reading() as connection:
        fates = find_fates(connection, id)
    if not fates:
        from petard_worker.waiting import find_waiting, unknown  # noqa: PLC0415

        with redis_client(settings) as client:
            fates = [find_waiting(client, Keys(settings.key_prefix), id) or unknown(id)]
    if json:
        first, *others = (as_facts(fate) for fate in fates)
        print_json({**first, "others": others} if others else first)
        return
    for fate in fates:
        print_fate(fate)


def as_facts(fate: Fate) -> dict[str, object]:
    """Return a fate as plain objects, its changes as they are published."""
    return {**fate._asdict(), "changes": [as_change(change) for change in fate.changes]}


def print_fate(fate: Fate) -> None:
    """Print what became of one event."""
    facts = {key: value for key, value in fate._asdict().items() if key not in {"id", "changes"}}
    print_table(("", fate.id), list(facts.items()))
    if fate.changes:
        columns = ("player", "rating_before", "rating_after", "rd_after", "bomb_after", "expected", "actual")
        print_table(columns, ([getattr(change, column) for column in columns] for change in fate.changes))


def preview(pool: str, first: str, second: str, json: JsonOption = False) -> None:
    """Show what a game between two players would do to both, for a win, a draw and a loss of the first."""
    from petard_worker.preview import preview as look_ahead  # noqa: PLC0415

    if first == second:
        raise CommandFailed(f"{first!r} cannot play against themselves", USAGE)
    with reading() as connection:
        known = require_pool(connection, pool)
        record = boards.find_record(connection, pool, first)
        other = boards.find_record(connection, pool, second)
    found = look_ahead(pool_rules(known.system, known.parameters), record, other, datetime.now(UTC))
    if json:
        outlooks = [outlook._asdict() for outlook in found.outlooks]
        names = {"pool": pool, "first": first, "second": second}
        print_json({**names, "expected": found.expected, "outlooks": outlooks})
        return
    print_table(("", ""), [(f"{first} is expected to score", f"{found.expected:.3f}")])
    columns = (f"{first}'s result", first, "change", second, "change")
    print_table(
        columns,
        (
            (
                outlook.result,
                displayed(known, outlook.first_rating),
                f"{outlook.first_change:+.1f}",
                displayed(known, outlook.second_rating),
                f"{outlook.second_change:+.1f}",
            )
            for outlook in found.outlooks
        ),
    )


def shown(pool: Pool, key: str, value: object) -> object:
    """Return a fact as people read it: ratings in the pool's display range."""
    return displayed(pool, value) if key in {"rating", "peak"} and isinstance(value, float) else value
