"""A drain that has seen only new events for a while asks the ledger for none, and errs in nothing for it."""

from collections.abc import Iterator
from unittest.mock import Mock, patch

import psycopg
import pytest
from redis import Redis

from integration.arena import (
    POOL,
    abandoned,
    broken_chains,
    event,
    finished,
    fold_of_ledger,
    games,
    outcomes,
    push,
    records,
)
from petard_schema import Keys
from petard_worker.apply import apply_batch
from petard_worker.breaker import Breaker
from petard_worker.intake import Intake
from petard_worker.known import NEW_BATCHES, Known
from petard_worker.postgres import ledger
from petard_worker.postgres.connect import Connection

SIZE = 5
USUAL = NEW_BATCHES * SIZE
BEFORE = games(USUAL)
"""What comes before; a drain that has applied it expects the next batch to be new."""
NEXT = USUAL + 1


@pytest.fixture
def intake(client: Redis, keys: Keys, pool: str) -> Intake:
    return Intake(client, keys, pool)


@pytest.fixture
def asked() -> Iterator[Mock]:
    """Every question for events the ledger may hold."""
    with patch.object(ledger, "ask_events", Mock(side_effect=ledger.ask_events)) as asked:
        yield asked


def drain(connection: Connection, intake: Intake, known: Known) -> list[tuple[int, int, int]]:
    """Apply everything and return what each batch came to: entries, dead letters, repeats."""
    came_to = []
    while (applied := apply_batch(connection, intake, Breaker(), SIZE, known)).events:
        came_to.append((applied.entries, applied.dead, applied.repeats))
    return came_to


def test_the_ledger_is_not_asked_for_new_events(
    connection: Connection, owner: psycopg.Connection, client: Redis, keys: Keys, intake: Intake, asked: Mock
) -> None:
    push(client, keys, games(2 * USUAL))

    drain(connection, intake, Known())

    assert asked.call_count == NEW_BATCHES
    assert records(owner) == fold_of_ledger(owner)
    assert broken_chains(owner) == []


def test_it_is_asked_again_for_a_while_after_a_repeat(
    connection: Connection, client: Redis, keys: Keys, intake: Intake, asked: Mock
) -> None:
    push(client, keys, [*BEFORE, BEFORE[0], *games(2 * USUAL - 1, first=NEXT)])

    came_to = drain(connection, intake, Known())

    assert came_to[NEW_BATCHES] == (SIZE - 1, 0, 1)
    assert asked.call_count == 2 * NEW_BATCHES + 1


def unrated(number: int) -> bytes:
    return finished(number, rated=False)


UNUSUAL = {
    "the same event": (BEFORE[3], (0, 0, 1), None),
    "its id with another body": (finished(4, "eve", "mallory"), (0, 1, 0), None),
    "its game by another event": (
        BEFORE[3].replace(b'"e-4"', b'"other"'),
        (1, 0, 0),
        ("other", "duplicate_game"),
    ),
    "its game with another outcome": (
        finished(4, "player-11", "player-4").replace(b'"e-4"', b'"other"'),
        (0, 1, 0),
        None,
    ),
    "its game, not rated": (unrated(4).replace(b'"e-4"', b'"other"'), (0, 1, 0), None),
    "its game, by the server's fault": (
        abandoned(4, fault="server").replace(b'"e-4"', b'"other"'),
        (0, 1, 0),
        None,
    ),
    "a new game, not rated": (unrated(NEXT), (1, 0, 0), (f"e-{NEXT}", "unrated")),
    "a new game left": (abandoned(NEXT), (1, 0, 0), (f"e-{NEXT}", "rated")),
    "no event": (b"{}", (0, 1, 0), None),
    "another pool's": (
        finished(NEXT).replace(f'"pool": "{POOL}"'.encode(), b'"pool": "other"'),
        (0, 1, 0),
        None,
    ),
    "nothing unusual": (event("finished", "x", {"pool": POOL, "game": "x", "sides": [
        {"players": ["a"], "rank": 1}, {"players": ["b"], "rank": 2}]}), (1, 0, 0), ("x", "rated")),
}  # fmt: skip


@pytest.mark.parametrize(("raw", "came_to", "entry"), UNUSUAL.values(), ids=UNUSUAL)
@pytest.mark.parametrize("trusting", [True, False], ids=["expected to be new", "asked for"])
def test_what_comes_is_the_same_as_if_it_had_been_asked_for(
    connection: Connection,
    owner: psycopg.Connection,
    client: Redis,
    keys: Keys,
    intake: Intake,
    raw: bytes,
    came_to: tuple[int, int, int],
    entry: tuple[str, str] | None,
    trusting: bool,
) -> None:
    known = Known()
    push(client, keys, BEFORE)
    drain(connection, intake, known)
    assert known.expects_new
    push(client, keys, [raw])

    assert drain(connection, intake, known if trusting else Known()) == [came_to]

    assert [*outcomes(owner)[USUAL:], None][0] == entry
    assert records(owner) == fold_of_ledger(owner)
    assert broken_chains(owner) == []


def test_a_repeat_that_comes_among_new_events_holds_none_of_them_up(
    connection: Connection, owner: psycopg.Connection, client: Redis, keys: Keys, intake: Intake
) -> None:
    new = games(SIZE - 1, first=NEXT)
    push(client, keys, [*BEFORE, *new[:2], BEFORE[7], *new[2:]])

    came_to = drain(connection, intake, Known())

    assert came_to[-1] == (SIZE - 1, 0, 1)
    assert len(outcomes(owner)) == USUAL + SIZE - 1
    assert records(owner) == fold_of_ledger(owner)


def test_nothing_is_expected_where_another_drain_has_written(
    connection: Connection, client: Redis, keys: Keys, intake: Intake, pool: str, asked: Mock
) -> None:
    known = Known()
    push(client, keys, [*BEFORE, *games(2 * SIZE, first=NEXT)])
    for _ in range(NEW_BATCHES):
        apply_batch(connection, intake, Breaker(), SIZE, known)
    apply_batch(connection, Intake(client, keys, pool), Breaker(), SIZE)
    asked.reset_mock()

    apply_batch(connection, intake, Breaker(), SIZE, known)

    assert asked.called
