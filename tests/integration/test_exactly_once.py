"""Rules 2 and 3 of the pipeline: an event counts once, a game counts once, however often it is delivered."""

import json
import multiprocessing
import random
import threading
from collections.abc import Callable, Sequence

import psycopg
import pytest
import redis
from redis import Redis

from integration.arena import (
    abandoned,
    apply_all,
    apply_own_share,
    broken_chains,
    counted,
    dead_letters,
    finished,
    fold_of_ledger,
    games,
    ids_of,
    outcomes,
    push,
    records,
)
from petard_schema import Keys
from petard_worker.apply import MANY, apply_batch
from petard_worker.batch import Arrival
from petard_worker.breaker import Breaker
from petard_worker.intake import Intake
from petard_worker.postgres.connect import Connection
from petard_worker.settings import Settings

pytestmark = pytest.mark.usefixtures("pool")


def rewritten(raw: bytes, **envelope: object) -> bytes:
    """Return the event with other members in its envelope."""
    return json.dumps(json.loads(raw) | envelope).encode()


def test_second_delivery_changes_nothing(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, games(10))
    before = records(owner), outcomes(owner)

    apply_all(connection, client, keys, games(10))

    assert (records(owner), outcomes(owner)) == before
    assert dead_letters(owner) == []


def test_a_repeat_within_one_batch_changes_nothing(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, [finished(1), finished(2), finished(1), finished(1)])

    assert outcomes(owner) == [("e-1", "rated"), ("e-2", "rated")]
    assert records(owner)["alice"].games == 2


def test_the_same_event_in_other_words_is_the_same_event(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    spaced = json.dumps(json.loads(finished(1)), indent=2, sort_keys=True).encode()

    apply_all(connection, client, keys, [finished(1), spaced])
    apply_all(connection, client, keys, [spaced])

    assert outcomes(owner) == [("e-1", "rated")]
    assert dead_letters(owner) == []


@pytest.mark.parametrize("limit", [1, 500], ids=["one by one", "in one batch"])
def test_an_id_with_another_body_is_a_dead_letter(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection, limit: int
) -> None:
    other = finished(1, "bob", "alice")

    apply_all(connection, client, keys, [finished(1), other], limit)

    assert outcomes(owner) == [("e-1", "rated")]
    assert dead_letters(owner) == [(other, "id_reused")]


def test_two_sources_may_use_the_same_id(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    other = rewritten(finished(2), id="e-1", source="/elsewhere")

    apply_all(connection, client, keys, [finished(1), other])

    assert outcomes(owner) == [("e-1", "rated"), ("e-1", "rated")]


@pytest.mark.parametrize("limit", [1, 500], ids=["one by one", "in one batch"])
def test_a_game_reported_twice_with_the_same_outcome_counts_once(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection, limit: int
) -> None:
    again = rewritten(finished(1), id="e-2", time="2026-01-01T09:00:00Z")

    apply_all(connection, client, keys, [finished(1), again], limit)

    assert outcomes(owner) == [("e-1", "rated"), ("e-2", "duplicate_game")]
    assert records(owner)["alice"].games == 1


@pytest.mark.parametrize("limit", [1, 500], ids=["one by one", "in one batch"])
@pytest.mark.parametrize(
    "liar", [finished(1, "bob", "alice"), abandoned(1)], ids=["another winner", "abandoned"]
)
def test_a_game_reported_with_another_outcome_is_a_dead_letter(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection, liar: bytes, limit: int
) -> None:
    conflicting = rewritten(liar, id="e-2")

    apply_all(connection, client, keys, [finished(1), conflicting], limit)

    assert outcomes(owner) == [("e-1", "rated")]
    assert dead_letters(owner) == [(conflicting, "conflicting_game")]


def test_a_batch_that_committed_but_was_not_trimmed_counts_once(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """What a kill between COMMIT and trim leaves behind."""

    class Untrimmed(Intake):
        def trim(self, batch: Sequence[bytes]) -> bool:
            raise redis.ConnectionError("gone")

    push(client, keys, games(10))
    with pytest.raises(redis.ConnectionError):
        apply_batch(connection, Untrimmed(client, keys, "p"), Breaker(), 500)
    assert client.llen(keys.events("p")) == 10

    apply_all(connection, client, keys)

    assert client.llen(keys.events("p")) == 0
    assert counted(owner) == ids_of(games(10))
    assert records(owner) == fold_of_ledger(owner)


def test_a_batch_whose_transaction_died_is_still_waiting(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """What a kill before COMMIT leaves behind."""
    pid = connection.info.backend_pid

    class Killing(Intake):
        def read(self, limit: int, *, same: bool) -> list[Arrival]:
            owner.execute("SELECT pg_terminate_backend(%(pid)s)", {"pid": pid})
            return super().read(limit, same=same)

    push(client, keys, games(MANY))
    with pytest.raises(psycopg.OperationalError):
        apply_batch(connection, Killing(client, keys, "p"), Breaker(), 500)

    assert client.llen(keys.events("p")) == MANY
    assert counted(owner) == []


def test_three_deliveries_from_four_processes_at_once_count_once(
    settings: Settings, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    events = games(400)
    shares = [[raw for number, raw in enumerate(events) if (number + process) % 4] for process in range(4)]
    for process, share in enumerate(shares):
        random.Random(process).shuffle(share)
    spawn = multiprocessing.get_context("spawn")
    urls = settings.database_url.get_secret_value(), settings.redis_url.get_secret_value()
    processes = [
        spawn.Process(target=apply_own_share, args=(*urls, settings.key_prefix, share)) for share in shares
    ]

    for process in processes:
        process.start()
    for process in processes:
        process.join(60)

    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    assert client.llen(keys.events("p")) == 0
    assert sorted(counted(owner)) == sorted(ids_of(events))
    assert dead_letters(owner) == []
    assert records(owner) == fold_of_ledger(owner)
    assert broken_chains(owner) == []


def test_the_first_match_of_a_new_player_is_not_lost_under_concurrency(
    database_url: str,
    settings: Settings,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    wait_until: Callable[..., None],
) -> None:
    """Two drains at once, and no row of the newcomer to lock: the pool's row decides."""
    urls = database_url, settings.redis_url.get_secret_value(), settings.key_prefix
    blocked = """
        SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    """
    matches = [finished(number, "newcomer", f"rival-{number}") for number in (1, 2)]
    with owner.transaction():
        owner.execute("SELECT FROM petard.pool WHERE name = 'p' FOR UPDATE")
        drains = [threading.Thread(target=apply_own_share, args=(*urls, [match])) for match in matches]
        for drain in drains:
            drain.start()
        with psycopg.connect(database_url, autocommit=True) as other:
            wait_until(lambda: other.execute(blocked).fetchone() == (2,), "both drains to be at the door")
    for drain in drains:
        drain.join(10)

    assert records(owner)["newcomer"].games == 2
    assert records(owner) == fold_of_ledger(owner)
    assert sorted(counted(owner)) == ["e-1", "e-2"]


def test_a_lost_list_loses_no_event_that_counted(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """Redis is wiped between COMMIT and trim: the trim is refused and nothing else happens."""

    class Wiped(Intake):
        def trim(self, batch: Sequence[bytes]) -> bool:
            client.delete(keys.events("p"))
            client.rpush(keys.events("p"), finished(99))
            return super().trim(batch)

    push(client, keys, games(10))

    apply_batch(connection, Wiped(client, keys, "p"), Breaker(), 500)

    assert counted(owner) == ids_of(games(10))
    assert client.lrange(keys.events("p"), 0, -1) == [finished(99)]
