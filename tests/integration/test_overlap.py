"""The server writes while the worker folds and parses ahead: nothing of that may be seen from outside."""

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any
from unittest.mock import Mock, patch

import psycopg
import pytest
from redis import ConnectionError, Redis  # noqa: A004 - what redis-py raises

from integration.arena import broken_chains, counted, finished, fold_of_ledger, games, ids_of, push, records
from petard_schema import Keys
from petard_worker import apply as apply_module
from petard_worker import intake as intake_module
from petard_worker.apply import FIRST_PART, MANY, PART, apply_batch, finish_batch, growing_parts
from petard_worker.batch import read_arrival
from petard_worker.breaker import Breaker
from petard_worker.intake import Intake
from petard_worker.known import Known
from petard_worker.postgres.connect import Connection, connect_worker

SIZE = 2 * PART + 1
BY_CHECK = "ALTER TABLE petard.change ADD CONSTRAINT no_poison CHECK (player <> 'poison')"


@pytest.fixture
def intake(client: Redis, keys: Keys, pool: str) -> Intake:
    return Intake(client, keys, pool)


@pytest.fixture
def parsed() -> Iterator[Mock]:
    """Every call that parses an event."""
    with patch.object(intake_module, "read_arrival", Mock(side_effect=read_arrival)) as parsed:
        yield parsed


@pytest.mark.parametrize("place", [0, PART, SIZE - 1])
def test_a_refusal_in_any_part_is_raised_as_what_it_is_and_undoes_the_batch(
    connection: Connection, owner: psycopg.Connection, client: Redis, keys: Keys, intake: Intake, place: int
) -> None:
    owner.execute(BY_CHECK)
    events = games(SIZE)
    events[place] = finished(place + 1, "poison", "bob")
    push(client, keys, events)
    breaker = Mock(wraps=Breaker())

    with pytest.raises(psycopg.errors.CheckViolation, match="no_poison"):
        apply_batch(connection, intake, breaker, SIZE)

    assert counted(owner) == []
    assert intake.waiting() == SIZE
    breaker.record.assert_not_called()


def test_after_a_refusal_the_same_connection_goes_on(
    connection: Connection, owner: psycopg.Connection, client: Redis, keys: Keys, intake: Intake
) -> None:
    owner.execute(BY_CHECK)
    push(client, keys, [*games(SIZE), finished(SIZE + 1, "poison", "bob")])

    with pytest.raises(psycopg.errors.CheckViolation):
        apply_batch(connection, intake, Breaker(), SIZE + 1)
    applied = apply_batch(connection, intake, Breaker(), SIZE)

    assert applied.entries == SIZE
    assert records(owner) == fold_of_ledger(owner)


def test_a_session_ended_in_the_middle_of_a_batch_leaves_it_to_the_next(
    connection: Connection, owner: psycopg.Connection, client: Redis, keys: Keys, intake: Intake
) -> None:
    push(client, keys, games(SIZE))
    pid = connection.info.backend_pid

    def end_session(*arguments: Any) -> None:
        owner.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        finish_batch(*arguments)  # all but this is on its way by then

    with patch.object(apply_module, "finish_batch", end_session), pytest.raises(psycopg.OperationalError):
        apply_batch(connection, intake, Breaker(), SIZE)

    assert counted(owner) == []
    assert intake.waiting() == SIZE


def test_a_session_ended_while_a_batch_commits_leaves_it_all_in_the_list_to_count_once(
    database_url: str, owner: psycopg.Connection, client: Redis, keys: Keys, intake: Intake
) -> None:
    """Nobody knows whether it was committed."""
    events = games(SIZE + 1)
    push(client, keys, events)
    with connect_worker(database_url, "test") as connection:
        pid = connection.info.backend_pid

        def end_session(*arguments: Any) -> object:
            owner.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
            return read_arrival(*arguments)

        intake.has_work(SIZE)
        with patch.object(intake_module, "read_arrival", end_session), suppress(psycopg.OperationalError):
            apply_batch(connection, intake, Breaker(), SIZE)

    with connect_worker(database_url, "test") as connection:
        while apply_batch(connection, intake, Breaker(), SIZE).events:
            pass

    assert counted(owner) == ids_of(events)
    assert records(owner) == fold_of_ledger(owner)


def test_a_redis_that_does_not_answer_ahead_costs_the_batch_nothing(
    connection: Connection, owner: psycopg.Connection, client: Redis, keys: Keys, intake: Intake
) -> None:
    events = games(MANY + 1)
    push(client, keys, events)
    breaker, told = Mock(wraps=Breaker()), Mock()

    with patch.object(Intake, "ask", side_effect=lambda *_: nullcontext(Mock(side_effect=ConnectionError))):
        applied = apply_batch(connection, intake, breaker, MANY, on_commit=told)

    assert applied.entries == MANY
    breaker.record.assert_called_once()
    told.assert_called_once_with(applied)
    assert client.lrange(keys.events("p"), 0, -1) == events[MANY:]


def test_the_first_parts_of_a_batch_are_smaller_and_no_event_is_lost_between_them() -> None:
    arrivals = [read_arrival(raw) for raw in games(1_000)]

    parts = list(growing_parts(arrivals))

    assert [arrival for part in parts for arrival in part] == arrivals
    sizes = [len(part) for part in parts]
    assert sizes[:-1] == sorted(sizes[:-1])
    assert (sizes[0], max(sizes)) == (FIRST_PART, PART)


def test_each_event_of_a_backlog_is_parsed_once(
    connection: Connection, client: Redis, keys: Keys, intake: Intake, parsed: Mock
) -> None:
    events = games(95)
    push(client, keys, events)

    while apply_batch(connection, intake, Breaker(), 10).events:
        pass

    assert [call.args[0] for call in parsed.call_args_list] == events


def test_what_another_drain_has_applied_meanwhile_is_not_applied_again(
    connection: Connection, owner: psycopg.Connection, client: Redis, keys: Keys, pool: str, intake: Intake
) -> None:
    events = games(4 * MANY)
    push(client, keys, events)
    apply_batch(connection, intake, Breaker(), MANY)  # and as many more are parsed ahead
    other = Intake(client, keys, pool)
    apply_batch(connection, other, Breaker(), MANY + 5)

    applied = apply_batch(connection, intake, Breaker(), MANY)

    assert (applied.entries, applied.repeats) == (MANY, 0)
    assert counted(owner) == ids_of(events[: 3 * MANY + 5])
    assert broken_chains(owner) == []


def test_letters_that_another_drain_has_buried_meanwhile_are_not_buried_again(
    connection: Connection,
    owner: psycopg.Connection,
    client: Redis,
    keys: Keys,
    pool: str,
    intake: Intake,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They move no seq, so that looks as if nobody had been here; but it was long ago."""
    junk = [b"{%d}" % number for number in range(MANY)]
    push(client, keys, [*games(MANY), *junk])
    known = Known()
    apply_batch(connection, intake, Breaker(), MANY, known)  # and the junk is parsed ahead
    apply_batch(connection, Intake(client, keys, pool), Breaker(), MANY)
    monkeypatch.setattr(intake_module, "FRESH_SECONDS", 0.0)

    applied = apply_batch(connection, intake, Breaker(), MANY, known)

    assert applied.dead == 0
    assert owner.execute("SELECT max(attempts) FROM petard.dead_letter").fetchone() == (1,)


def test_nothing_is_applied_when_another_drain_has_left_nothing(
    connection: Connection, owner: psycopg.Connection, client: Redis, keys: Keys, pool: str, intake: Intake
) -> None:
    push(client, keys, games(20))
    apply_batch(connection, intake, Breaker(), 10)
    apply_batch(connection, Intake(client, keys, pool), Breaker(), 10)

    applied = apply_batch(connection, intake, Breaker(), 10)

    assert applied.events == 0
    assert len(counted(owner)) == 20


def test_events_repeated_within_what_was_parsed_ahead_count_once(
    connection: Connection, owner: psycopg.Connection, client: Redis, keys: Keys, intake: Intake
) -> None:
    events = games(10)
    push(client, keys, [*events, *events, *events])

    while apply_batch(connection, intake, Breaker(), 4).events:
        pass

    assert counted(owner) == ids_of(events)
    assert records(owner) == fold_of_ledger(owner)


def test_players_known_from_the_batch_before_give_the_same_bits(
    intake: Intake, connection: Connection, client: Redis, keys: Keys, pool: str, owner: psycopg.Connection
) -> None:
    """One drain remembers, another writes in between, and the ledger folds to the table all the same."""
    push(client, keys, games(60))
    known, breaker = Known(), Breaker()

    apply_batch(connection, intake, breaker, 20, known)
    apply_batch(connection, Intake(client, keys, pool), breaker, 10)
    while apply_batch(connection, intake, breaker, 10, known).events:
        pass

    assert counted(owner) == ids_of(games(60))
    assert records(owner) == fold_of_ledger(owner)


def test_a_batch_that_failed_is_not_overtaken_by_what_was_read_ahead(
    intake: Intake, connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """The next events begin and end like the failed batch, and must wait for it all the same."""
    repeat, inner = games(1)[0], games(2, first=2)
    events = [repeat, inner[0], repeat, repeat, inner[1], repeat]
    push(client, keys, events)
    owner.execute("ALTER TABLE petard.ledger ADD CONSTRAINT not_yet CHECK (seq < 1)")
    with pytest.raises(psycopg.errors.CheckViolation):
        apply_batch(connection, intake, Breaker(), 3)
    owner.execute("ALTER TABLE petard.ledger DROP CONSTRAINT not_yet")

    while apply_batch(connection, intake, Breaker(), 3).events:
        pass

    assert counted(owner) == ids_of([repeat, *inner])
