"""What the tests of the pipeline play with: events made by hand, a pool, and looks at what was written."""

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event

import psycopg
from redis import Redis

from petard_schema import Keys, parse_event
from petard_schema.times import format_time
from petard_worker.apply import apply_batch
from petard_worker.breaker import Breaker
from petard_worker.fold import PlayerRecord, fold_event, new_record, players_of
from petard_worker.intake import Intake
from petard_worker.jobs import Drain, Workshop, new_drain_id
from petard_worker.pool_settings import PoolSettings, as_given
from petard_worker.postgres import pools
from petard_worker.postgres.connect import Connection, connect_worker
from petard_worker.postgres.session import Session
from petard_worker.ratings.parameters import ParameterValue
from petard_worker.ratings.pool_rules import PoolRules, pool_rules
from petard_worker.redis_client import connect_redis

START = datetime(2026, 1, 1, tzinfo=UTC)
POOL = "p"


def event(kind: str, event_id: str, data: Mapping[str, object], **envelope: object) -> bytes:
    """Return an event as a game server would push it."""
    document = {
        "specversion": "1.0",
        "id": event_id,
        "source": "/test",
        "type": f"petard.game.{kind}.v1",
        "time": format_time(START),
        "data": data,
        **envelope,
    }
    return json.dumps(document).encode()


def finished(number: int, winner: str = "alice", loser: str = "bob", **data: object) -> bytes:
    """Return the report of game `number`, which ended `number` minutes after the start of time."""
    sides = [{"players": [winner], "rank": 1}, {"players": [loser], "rank": 2}]
    facts = {"pool": POOL, "game": f"g-{number}", "sides": sides, **data}
    return event("finished", f"e-{number}", facts, time=format_time(START + timedelta(minutes=number)))


def abandoned(number: int, leaver: str = "alice", other: str = "bob", **data: object) -> bytes:
    """Return the report that `leaver` left game `number`."""
    sides = [{"players": [leaver]}, {"players": [other]}]
    facts = {"pool": POOL, "game": f"g-{number}", "sides": sides, "abandoned_by": [leaver], **data}
    return event("abandoned", f"e-{number}", facts, time=format_time(START + timedelta(minutes=number)))


def games(count: int, players: int = 20, first: int = 1) -> list[bytes]:
    """Return the reports of many games in which everybody meets everybody."""
    return [
        finished(number, f"player-{number % players}", f"player-{(number * 7 + 3) % players}")
        if number % players != (number * 7 + 3) % players
        else finished(number, f"player-{number % players}", f"player-{(number + 1) % players}")
        for number in range(first, first + count)
    ]


def make_pool(
    connection: Connection,
    name: str = POOL,
    *,
    system: str = "glicko",
    parameters: Mapping[str, ParameterValue] | None = None,
    **settings: object,
) -> None:
    """Create a pool with the default rules, or with other ones."""
    rules = pool_rules(system, parameters or {})
    shown = replace(PoolSettings(), **settings)  # type: ignore[arg-type]
    assert pools.create_pool(connection, name, system, rules.parameters(), as_given(shown))


def push(client: Redis, keys: Keys, events: Iterable[bytes], pool: str = POOL) -> None:
    """Push events as a producer does."""
    client.rpush(keys.events(pool), *events)


def open_workshop(database_url: str, client: Redis, keys: Keys, **options: object) -> Workshop:
    """Return what a worker process has at hand."""
    session = Session(lambda: connect_worker(database_url, "test drain"))
    return Workshop(client, keys, session, Event(), **options)  # type: ignore[arg-type]


def run_drain(workshop: Workshop, pool: str = POOL) -> None:
    """Run one drain from beginning to end."""
    Drain(workshop, pool, new_drain_id()).run()


@contextmanager
def running(drain: Drain) -> Iterator[threading.Thread]:
    """Run a drain in a thread and wait for its end, which comes at the latest with the stop."""
    thread = threading.Thread(target=drain.run)
    thread.start()
    try:
        yield thread
    finally:
        drain.workshop.stop.set()
        thread.join(20)
        drain.workshop.session.close()
        assert not thread.is_alive()


def apply_all(
    connection: Connection, client: Redis, keys: Keys, events: Iterable[bytes] = (), limit: int = 500
) -> None:
    """Push the events and apply batches until the list is empty."""
    pushed = list(events)
    if pushed:
        push(client, keys, pushed)
    intake, breaker = Intake(client, keys, POOL), Breaker()
    while apply_batch(connection, intake, breaker, limit).events:
        pass


def apply_own_share(database_url: str, redis_url: str, prefix: str, share: Sequence[bytes]) -> None:
    """Push events and apply whatever waits until nothing does: what one of several processes does."""
    keys = Keys(prefix)
    with connect_redis(redis_url) as client, connect_worker(database_url, "test share") as connection:
        push(client, keys, share)
        apply_all(connection, client, keys, limit=50)


def outcomes(owner: psycopg.Connection, pool: str = POOL) -> list[tuple[str, str]]:
    """Return the ledger in its order: event id, and `rated` or why it was ignored."""
    sql = """
        SELECT event_id, coalesce(reason, outcome) FROM petard.ledger WHERE pool = %(pool)s ORDER BY seq
    """
    return owner.execute(sql, {"pool": pool}).fetchall()


def counted(owner: psycopg.Connection, pool: str = POOL) -> list[str]:
    """Return the ids of the ledger's events in its order."""
    return [event_id for event_id, _ in outcomes(owner, pool)]


def ids_of(events: Iterable[bytes]) -> list[str]:
    """Return the ids of events."""
    return [parse_event(raw).id for raw in events]


def dead_letters(owner: psycopg.Connection, pool: str = POOL) -> list[tuple[bytes, str]]:
    """Return body and reason of every dead letter of the pool, in the order in which they were first seen."""
    sql = "SELECT body, reason FROM petard.dead_letter WHERE pool = %(pool)s ORDER BY id"
    return owner.execute(sql, {"pool": pool}).fetchall()


def records(owner: psycopg.Connection, pool: str = POOL) -> dict[str, PlayerRecord]:
    """Return where everybody stands, bit by bit."""
    sql = """
        SELECT player, rating, rd, volatility, bomb, abandons, penalties, games, wins, draws, losses, peak,
               last_played, player_seq
        FROM petard.rating WHERE pool = %(pool)s
    """
    rows = owner.execute(sql, {"pool": pool}, binary=True)
    return {player: PlayerRecord(*row) for player, *row in rows}


def fold_of_ledger(owner: psycopg.Connection, pool: str = POOL) -> dict[str, PlayerRecord]:
    """Return where everybody should stand: the rated entries folded one by one, with no batch in sight."""
    rules = PoolRules()
    sql = """
        SELECT body::text FROM petard.ledger WHERE pool = %(pool)s AND outcome = 'rated' ORDER BY seq
    """
    standing: dict[str, PlayerRecord] = {}
    for (body,) in owner.execute(sql, {"pool": pool}):
        entry = parse_event(body.encode())
        current = {player: standing.get(player, new_record(rules)) for player in players_of(entry)}
        verdict = fold_event(rules, current, entry)
        standing |= {change.player: change.after for change in verdict.changes}
    return standing


def broken_chains(owner: psycopg.Connection, pool: str = POOL) -> list[tuple[str, int]]:
    """Return the changes that do not begin where the player's change before ended."""
    sql = """
        SELECT player, player_seq FROM (
            SELECT player, player_seq, seq, rating_before, rd_before, bomb_before, games_before,
                   lag(player_seq, 1, 0::bigint) OVER chain AS seq_left, lag(seq) OVER chain AS entry_left,
                   lag(rating_after, 1, 1500) OVER chain AS rating_left,
                   lag(rd_after, 1, 350) OVER chain AS rd_left,
                   lag(bomb_after, 1, 0) OVER chain AS bomb_left,
                   lag(games_after, 1, 0) OVER chain AS games_left
            FROM petard.change WHERE pool = %(pool)s
            WINDOW chain AS (PARTITION BY player ORDER BY player_seq)
        ) AS link
        WHERE player_seq <> seq_left + 1 OR seq <= entry_left OR rating_before <> rating_left
           OR rd_before <> rd_left OR bomb_before <> bomb_left OR games_before <> games_left
    """
    return owner.execute(sql, {"pool": pool}).fetchall()
