"""Commands that look: status, player, leaderboard, event, preview."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

import typer

from petard_schema import Keys
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption, print_json, print_table
from petard_worker.cli.servers import reading, redis_client, require_pool
from petard_worker.display import displayed, displayed_width
from petard_worker.pool_settings import PoolSettings, pool_settings
from petard_worker.postgres import boards
from petard_worker.postgres.boards import BoardLine, PastStanding
from petard_worker.postgres.fates import Fate
from petard_worker.postgres.pools import Pool, list_pools
from petard_worker.rating_changed import as_change
from petard_worker.settings import load_settings
from petard_worker.standings import Standing, find_standing


def status(json: JsonOption = False) -> None:
    """Show backlog, head age, workers, outbox lag and dead letters of every pool.

    The head's event age (JSON: `head_age_s`) is how many seconds ago the first waiting event happened by its
    own time, not how long it has waited: an import of old games is old from the start. The copies are those
    of applied events, for `petard reingest` after a failover of Postgres (JSON: `recent_age_s`,
    `recent_bytes`). A pool that is stopped says why: put that right, then `petard pool resume`.
    """
    from petard_worker.status import read_status  # noqa: PLC0415

    settings = load_settings()
    with reading() as connection, redis_client(settings) as client:
        found = read_status(connection, client, Keys(settings.key_prefix), datetime.now(UTC))
    if json:
        print_json({"pools": [pool._asdict() for pool in found.pools], "workers": found.workers})
        return
    columns = (
        "pool",
        "backlog",
        "head's event age (s)",
        "applied",
        "published",
        "lag",
        "dead letters",
        "copies reach back (s)",
        "copies (bytes)",
        "stopped",
        "since",
    )
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
                pool.recent_age_s,
                pool.recent_bytes,
                pool.stopped,
                pool.stopped_at,
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
    """Show where a player stands, now or at some time.

    With --at: as it was just before the first event with a later time was applied. So no later game is in it;
    a game that came late, when later ones had been applied already, is missing.
    """
    time = None if at is None else read_time("--at", at)
    with reading() as connection:
        known = require_pool(connection, pool)
        if time is None:
            facts = present_facts(pool, name, find_standing(connection, known, name, datetime.now(UTC)))
        else:
            facts = past_facts(pool, name, time, boards.find_past_standing(connection, pool, name, time))
    if json:
        print_json(facts)
    else:
        print_table(("", name), [*((key, shown(known, key, value)) for key, value in facts.items())])


def read_time(option: str, text: str) -> datetime:
    """Return the time that an option names."""
    from petard_schema.times import parse_time  # noqa: PLC0415

    try:
        return parse_time(text)
    except ValueError as error:
        raise CommandFailed(f"{option} {text!r} {error}", USAGE) from None


def present_facts(pool: str, name: str, standing: Standing | None) -> dict[str, object]:
    """Return a standing as it is shown, or fail when there is none."""
    if standing is None:
        raise CommandFailed(f"the pool {pool!r} knows no player {name!r}")
    rank, percentile = standing.place or (None, None)
    record = standing.record._asdict()
    del record["period"]  # how the service works out a rating, not where somebody stands
    return {
        "pool": pool,
        "player": name,
        **record,
        "rank": rank,
        "percentile": percentile,
    }


def past_facts(pool: str, name: str, time: datetime, standing: PastStanding | None) -> dict[str, object]:
    """Return a standing of the past as it is shown, or fail when there is none."""
    from petard_schema.times import format_time  # noqa: PLC0415

    if standing is None:
        raise CommandFailed(f"{name!r} had played nothing in {pool!r} by {format_time(time)}")
    return {"pool": pool, "player": name, **standing._asdict()}


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
        listing = boards.list_by(pool, settings, datetime.now(UTC))
        if around is None:
            lines = boards.board_top(connection, listing, top)
        else:
            lines = boards.board_around(connection, listing, around)
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
                displayed_deviation(pool, line.rd),
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
    from petard_worker.waiting import trace  # noqa: PLC0415

    settings = load_settings()
    with reading() as connection, redis_client(settings) as client:
        fates = trace(connection, client, Keys(settings.key_prefix), id)
        known = {pool.name: pool for pool in list_pools(connection)}
    if json:
        first, *others = (as_facts(fate) for fate in fates)
        print_json({**first, "others": others} if others else first)
        return
    for fate in fates:
        print_fate(fate, known)


def as_facts(fate: Fate) -> dict[str, object]:
    """Return a fate as plain objects, its changes as they are published."""
    return {**fate._asdict(), "changes": [as_change(change) for change in fate.changes]}


def print_fate(fate: Fate, pools: Mapping[str, Pool]) -> None:
    """Print what became of one event."""
    facts = {key: value for key, value in fate._asdict().items() if key not in {"id", "changes"}}
    print_table(("", fate.id), list(facts.items()))
    if fate.pool is not None and fate.changes:
        pool = pools[fate.pool]
        columns = (
            *("player", "rating_before", "rating_after", "rd_after", "bomb_after", "expected", "actual"),
            "late",
        )
        print_table(
            columns,
            ([shown(pool, name, getattr(change, name)) for name in columns] for change in fate.changes),
        )


def preview(pool: str, first: str, second: str, json: JsonOption = False) -> None:
    """Show what a game between two players would do to both, for a win, a draw and a loss of the first.

    A game that ended now on neutral ground, of usual importance and without a margin.
    """
    from petard_worker.preview import find_preview  # noqa: PLC0415

    if first == second:
        raise CommandFailed(f"{first!r} cannot play against themselves", USAGE)
    with reading() as connection:
        known = require_pool(connection, pool)
        found = find_preview(connection, known, first, second, datetime.now(UTC))
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
                f"{displayed_width(known, outlook.first_change):+.1f}",
                displayed(known, outlook.second_rating),
                f"{displayed_width(known, outlook.second_change):+.1f}",
            )
            for outlook in found.outlooks
        ),
    )


def shown(pool: Pool, key: str, value: object) -> object:
    """Return a fact as people read it: ratings and deviations in the pool's display range."""
    if not isinstance(value, float):
        return value
    if key in {"rating", "peak", "rating_before", "rating_after"}:
        return displayed(pool, value)
    if key in {"rd", "rd_after"}:
        return displayed_deviation(pool, value)
    return f"{value:.3f}" if key in {"expected", "actual"} else value


def displayed_deviation(pool: Pool, rd: float) -> float | None:
    """Return a deviation as it is shown; None in systems that know none."""
    return displayed_width(pool, rd) if rd else None
