"""Rule 1 of the pipeline: the order of a pool's list is the order of its ledger."""

import threading
from collections.abc import Callable
from typing import Protocol

import psycopg
import pytest
from redis import Redis

from integration.arena import (
    apply_all,
    apply_own_share,
    broken_chains,
    counted,
    fold_of_ledger,
    games,
    ids_of,
    push,
    records,
)
from petard_schema import Keys
from petard_worker.postgres.connect import Connection
from petard_worker.settings import Settings

pytestmark = pytest.mark.usefixtures("pool")


class Commands(Protocol):
    def start(self, *arguments: str) -> object: ...


def test_seq_has_no_gaps_and_follows_the_list(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, games(100), limit=9)

    entries = owner.execute("SELECT seq, event_id FROM petard.ledger ORDER BY seq").fetchall()
    assert entries == list(enumerate(ids_of(games(100)), 1))
    assert owner.execute("SELECT seq FROM petard.pool").fetchone() == (100,)


def test_a_refused_batch_leaves_no_gap(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    owner.execute("ALTER TABLE petard.rating ADD CONSTRAINT nobody CHECK (player <> 'player-19') NOT VALID")
    push(client, keys, games(20))
    with pytest.raises(psycopg.errors.CheckViolation):
        apply_all(connection, client, keys)
    owner.execute("ALTER TABLE petard.rating DROP CONSTRAINT nobody")

    apply_all(connection, client, keys)

    assert [seq for (seq,) in owner.execute("SELECT seq FROM petard.ledger ORDER BY seq")] == [*range(1, 21)]


def test_two_workers_on_one_hot_pool_keep_the_order_of_10000_events(
    petard: Commands,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    wait_until: Callable[..., None],
) -> None:
    events = games(10_000, players=500)
    for start in range(0, len(events), 1000):
        push(client, keys, events[start : start + 1000])

    for _ in range(2):
        petard.start("worker")
    at_the_end = "SELECT seq FROM petard.pool"
    wait_until(lambda: owner.execute(at_the_end).fetchone() == (10_000,), "all events to be applied", 40)

    assert counted(owner) == ids_of(events)
    assert broken_chains(owner) == []
    assert records(owner) == fold_of_ledger(owner)


def test_drains_that_fight_over_a_pool_keep_the_order(
    settings: Settings, database_url: str, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """Without a bell to keep them apart: what zombies and lost bells amount to."""
    events = games(1000)
    push(client, keys, events[:-1])
    urls = database_url, settings.redis_url.get_secret_value(), settings.key_prefix
    drains = [threading.Thread(target=apply_own_share, args=(*urls, events[-1:])) for _ in range(4)]

    for drain in drains:
        drain.start()
    for drain in drains:
        drain.join(60)

    assert counted(owner) == ids_of(events)
    assert broken_chains(owner) == []
    assert records(owner) == fold_of_ledger(owner)
    assert client.llen(keys.events("p")) == 0
