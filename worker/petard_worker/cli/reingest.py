"""`petard reingest`: offer again what was applied lately, after a failover of Postgres that lost commits."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated

import typer
from redis import Redis

from petard_schema import Keys
from petard_schema.times import format_time
from petard_worker.cli.confirm import confirm
from petard_worker.cli.durations import duration
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption, follow, print_json, print_table, talk
from petard_worker.cli.reads import read_time
from petard_worker.cli.servers import no_pool, reading, redis_client
from petard_worker.postgres.pools import list_pools
from petard_worker.recent import copied_pools, redis_now
from petard_worker.reingest import Offer, Span, find_offer
from petard_worker.reingest import reingest as push_again
from petard_worker.settings import load_settings

WhenOption = Annotated[
    str,
    typer.Option(
        "--since", metavar="TIME|DURATION", help="Applied since then: RFC 3339, or 90s, 15m, 2h, 1d."
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME|DURATION", help="And not later than this; all by default."),
]


def reingest(
    since: WhenOption,
    pools: Annotated[list[str] | None, typer.Argument(metavar="[POOL]...")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every pool.")] = False,
    until: UntilOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be offered, push nothing.")
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Exit 0 though copies do not reach back to --since.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: JsonOption = False,
) -> None:
    """Offer applied events once more: what a failover of Postgres has lost counts then, the rest is dropped.

    Events that were applied lately are kept as copies in Redis; 'petard status' shows how far back. Times go
    by Redis' clock: rather start some minutes too early, since nothing can count twice. Copies that do not
    reach back to --since are offered as well, but that is a failure (exit 1): what is older may be missing.
    """
    if bool(pools) == every:
        raise CommandFailed("say which: POOL… or --all", USAGE)
    settings = load_settings()
    keys = Keys(settings.key_prefix)
    known = existing_pools()
    if strange := [name for name in pools or () if name not in known]:
        raise no_pool(strange[0])
    with redis_client(settings) as client:
        span = read_span(since, until, redis_now(client))
        if every:
            tell_of_strangers(copied_pools(client, keys) - known.keys())
        offers = [find_offer(client, keys, name, span) for name in dict.fromkeys(pools or known)]
        pushed = {} if dry_run else push_offers(client, keys, offers, yes=yes)
    show(offers, pushed, json=json)
    if not dry_run and (late := [offer.pool for offer in offers if pushed[offer.pool] < offer.events]):
        raise CommandFailed(f"copies of {', '.join(late)} grew too old while this ran: they were not offered")
    short = [offer for offer in offers if not offer.complete]
    for offer in short:
        talk(f"{offer.pool}: {shortage(offer)}")
    if short and not anyway:
        raise CommandFailed(
            f"copies of {len(short)} of {len(offers)} pools do not reach back to --since: have producers send"
            " again what they pushed before that, or say --anyway when there was nothing"
        )


def existing_pools() -> dict[str, None]:
    """Return the names of the pools in Postgres, in order."""
    with reading() as connection:
        return {pool.name: None for pool in list_pools(connection)}


def tell_of_strangers(pools: set[str]) -> None:
    """Say whose copies are left alone: a pool that Postgres has lost has to be created first."""
    if pools:
        some = ", ".join(sorted(pools)[:5])
        talk(f"left alone: copies of {len(pools)} pools that do not exist ({some}); see 'petard pool create'")


def push_offers(client: Redis, keys: Keys, offers: list[Offer], *, yes: bool) -> dict[str, int]:
    """Push everything that is offered, after asking, and return how much of every pool."""
    total = sum(offer.events for offer in offers)
    if total:
        confirm(f"offer {total} events again", yes=yes)
    pushed = {
        offer.pool: follow(f"offered to {offer.pool}", push_again(client, keys, offer), offer.events)
        for offer in offers
    }
    talk(f"offered {sum(pushed.values())} events: the ledger drops those it has")
    return pushed


def read_span(since: str, until: str | None, now: int) -> Span:
    """Return the span that the options name."""
    span = Span(
        read_moment("--since", since, now), None if until is None else read_moment("--until", until, now)
    )
    if span.since > (now if span.until is None else span.until):
        raise CommandFailed(f"--since {since!r} is later than --until {until or 'now'!r}", USAGE)
    return span


def read_moment(option: str, text: str, now: int) -> int:
    """Return the time that an option names, in ms: a time of day, or so long before `now`."""
    with suppress(ValueError, OverflowError):
        return max(0, now - int(duration(text).total_seconds()) * 1_000)
    if not text[:1].isdigit() or "T" not in text.upper():
        raise CommandFailed(
            f"{option} {text!r} is neither a time such as 2026-11-30T12:00:00Z nor a duration such as 15m",
            USAGE,
        )
    return int(read_time(option, text).timestamp() * 1_000)


def shortage(offer: Offer) -> str:
    """Return what is missing, in a sentence."""
    wanted = format_time(as_time(offer.span.since))
    if offer.window is None:
        return f"there are no copies, and nothing says that there was nothing to copy since {wanted}"
    reach = format_time(as_time(offer.window.complete_from))
    return f"copies reach back to {reach} only, not to {wanted}: what was applied before is not among them"


def show(offers: list[Offer], pushed: dict[str, int], *, json: bool) -> None:
    """Print what there was of every pool, and how much of it was pushed."""
    facts = [
        {
            "pool": offer.pool,
            "events": offer.events,
            "offered": pushed.get(offer.pool, 0),
            "reaches_back_to": None if offer.window is None else as_time(offer.window.complete_from),
            "complete": offer.complete,
        }
        for offer in offers
    ]
    if json:
        print_json(facts)
        return
    columns = ("pool", "events", "offered", "reaches_back_to", "complete")
    print_table([column.replace("_", " ") for column in columns], [list(fact.values()) for fact in facts])


def as_time(ms: int) -> datetime:
    """Return a time of Redis' clock."""
    return datetime.fromtimestamp(ms / 1_000, UTC)
