"""Rule 6 of the pipeline: what Postgres refuses to store costs one event, and never those around it."""

import threading
from collections.abc import Callable

import psycopg
import pytest
from redis import Redis
from structlog.testing import capture_logs

from integration.arena import (
    broken_chains,
    counted,
    dead_letters,
    finished,
    fold_of_ledger,
    ids_of,
    open_workshop,
    push,
    records,
    run_drain,
)
from petard_schema import Keys
from petard_worker.apply import apply_batch, apply_or_bury_head
from petard_worker.breaker import IN_A_ROW, Breaker
from petard_worker.fold import players_of
from petard_worker.intake import Intake
from petard_worker.jobs import Drain, Workshop
from petard_worker.postgres.connect import Connection, connect_worker

pytestmark = pytest.mark.usefixtures("pool")

BY_CHECK = "ALTER TABLE petard.rating ADD CONSTRAINT no_poison CHECK (player NOT LIKE 'poison%')"
BY_TRIGGER = """
    CREATE FUNCTION petard.refuse_poison() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.player LIKE 'poison%' THEN RAISE EXCEPTION 'no % here', NEW.player; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER refuse_poison BEFORE INSERT OR UPDATE ON petard.change
        FOR EACH ROW EXECUTE FUNCTION petard.refuse_poison();
"""
BY_DIVISION = """
    CREATE FUNCTION petard.divide_poison() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.body::text LIKE '%poison%' THEN RAISE division_by_zero; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER divide_poison BEFORE INSERT ON petard.ledger
        FOR EACH ROW EXECUTE FUNCTION petard.divide_poison();
"""


def events_with_poison(count: int, *poisoned: int) -> list[bytes]:
    """Return games of a few players; those at the given places have a player whom Postgres refuses."""
    return [
        finished(n, f"poison-{n}" if n in poisoned else f"player-{n % 7}", f"player-{7 + n % 5}")
        for n in range(count)
    ]


def assert_only_these_were_buried(owner: psycopg.Connection, events: list[bytes], *poisoned: int) -> None:
    good = [raw for number, raw in enumerate(events) if number not in poisoned]
    assert dead_letters(owner) == [(events[number], "internal_error") for number in poisoned]
    assert counted(owner) == ids_of(good)
    assert records(owner) == fold_of_ledger(owner)
    assert broken_chains(owner) == []


@pytest.mark.parametrize("poisoned", [(0,), (36,), (72,), (10, 11), (0, 72), (3, 40, 41, 42)], ids=str)
def test_only_the_poisoned_events_are_buried(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, poisoned: tuple[int, ...]
) -> None:
    owner.execute(BY_CHECK)
    events = events_with_poison(73, *poisoned)
    push(client, keys, events)

    run_drain(workshop)

    assert_only_these_were_buried(owner, events, *poisoned)
    assert not client.exists(keys.events("p"))


@pytest.mark.parametrize("batch_size", [1, 2, 3, 500])
def test_whatever_the_size_of_batches(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, batch_size: int
) -> None:
    owner.execute(BY_CHECK)
    workshop.batch_size = batch_size
    events = events_with_poison(20, 4, 5, 19)
    push(client, keys, events)

    run_drain(workshop)

    assert_only_these_were_buried(owner, events, 4, 5, 19)


@pytest.mark.parametrize("refusal", [BY_TRIGGER, BY_DIVISION], ids=["raised by a trigger", "a data error"])
def test_whatever_the_kind_of_refusal(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, refusal: str
) -> None:
    owner.execute(refusal)  # type: ignore[arg-type]
    events = events_with_poison(40, 17)
    push(client, keys, events)

    run_drain(workshop)

    assert_only_these_were_buried(owner, events, 17)


def test_poison_deep_in_a_large_backlog(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """In batches that are written in more than one part, in the first, in the last, and across batches."""
    owner.execute(BY_CHECK)
    poisoned = (249, 250, 499, 500, 1150)
    events = events_with_poison(1200, *poisoned)
    push(client, keys, events)

    run_drain(workshop)

    assert_only_these_were_buried(owner, events, *poisoned)


def test_a_batch_of_nothing_but_poison_is_buried_up_to_the_breaker(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    owner.execute(BY_CHECK)
    events = events_with_poison(IN_A_ROW - 1, *range(IN_A_ROW - 1))
    push(client, keys, [*events, finished(99)])
    workshop.slice_seconds = 60  # looking for all that poison takes a while

    run_drain(workshop)

    assert dead_letters(owner) == [(raw, "internal_error") for raw in events]
    assert counted(owner) == ["e-99"]


def test_the_letter_says_what_postgres_said(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    owner.execute(BY_CHECK)
    push(client, keys, events_with_poison(1, 0))

    with capture_logs() as logs:
        run_drain(workshop)

    row = owner.execute("SELECT detail, event_id, source, game FROM petard.dead_letter").fetchone()
    assert row is not None
    assert row[0].startswith("CheckViolation: ")
    assert "no_poison" in row[0]
    assert row[1:] == ("e-0", "/test", "g-0")
    assert [entry["event"] for entry in logs] == ["event_refused_by_postgres", "batch_applied"]


def test_an_event_that_makes_our_own_code_fail_costs_itself_alone(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from petard_worker import batch  # noqa: PLC0415

    real = batch.fold_event

    def fails_on_poison(rules, records, event, period):  # type: ignore[no-untyped-def]
        if any(player.startswith("poison") for player in players_of(event)):
            raise ZeroDivisionError("a bug")
        return real(rules, records, event, period)

    monkeypatch.setattr(batch, "fold_event", fails_on_poison)
    events = events_with_poison(40, 0, 13, 39)
    push(client, keys, events)

    run_drain(workshop)

    assert_only_these_were_buried(owner, events, 0, 13, 39)


def test_an_event_that_makes_our_code_fail_outside_the_fold_costs_itself_alone_and_says_where(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from petard_worker.postgres import players  # noqa: PLC0415

    real = players.append_changes

    def fails_on_poison(connection, pool, entries):  # type: ignore[no-untyped-def]
        changes = (change for entry in entries for change in entry.verdict.changes)
        if any(change.player.startswith("poison") for change in changes):
            raise OverflowError("a bug")
        real(connection, pool, entries)

    monkeypatch.setattr(players, "append_changes", fails_on_poison)
    events = events_with_poison(40, 0, 13, 39)
    push(client, keys, events)

    run_drain(workshop)

    assert_only_these_were_buried(owner, events, 0, 13, 39)
    rows = owner.execute("SELECT detail, traceback FROM petard.dead_letter").fetchall()
    assert {detail for detail, _ in rows} == {"OverflowError: a bug"}
    assert all("append_entries" in traceback for _, traceback in rows)


def test_what_no_event_has_to_answer_for_buries_none(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from petard_worker import batch  # noqa: PLC0415

    def has_no_memory(*_arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(batch, "fold_event", has_no_memory)
    push(client, keys, events_with_poison(3))

    with pytest.raises(MemoryError):
        run_drain(workshop)

    assert dead_letters(owner) == []
    assert client.llen(keys.events("p")) == 3


def test_an_event_that_makes_our_parser_fail_costs_itself_alone_and_says_where(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from petard_schema import parse  # noqa: PLC0415

    real = parse.read_usual

    def fails_on_poison(raw: bytes) -> object:
        if b"poison" in raw:
            raise ZeroDivisionError("a bug")
        return real(raw)

    monkeypatch.setattr(parse, "read_usual", fails_on_poison)
    events = events_with_poison(40, 0, 13, 39)
    push(client, keys, events)

    run_drain(workshop)

    assert_only_these_were_buried(owner, events, 0, 13, 39)
    rows = owner.execute("SELECT DISTINCT traceback_hash, traceback FROM petard.dead_letter").fetchall()
    assert len(rows) == 1, "one bug is one group"
    assert "ZeroDivisionError: a bug" in rows[0][1]


def test_an_innocent_event_is_not_buried_in_the_place_of_one_another_drain_took(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """Refused alone by a zombie; before it can bury it another drain has, and the head is innocent."""
    owner.execute(BY_CHECK)
    poison, innocent = events_with_poison(2, 0)
    push(client, keys, [poison, innocent])
    with pytest.raises(psycopg.errors.CheckViolation):
        apply_batch(connection, Intake(client, keys, "p"), Breaker(), 1)
    apply_or_bury_head(connection, Intake(client, keys, "p"), Breaker())

    apply_or_bury_head(connection, Intake(client, keys, "p"), Breaker())

    assert dead_letters(owner) == [(poison, "internal_error")]
    assert counted(owner) == ["e-1"]


def test_two_drains_at_the_same_poison_bury_it_once(
    client: Redis, keys: Keys, owner: psycopg.Connection, database_url: str
) -> None:
    """One letter each. Its attempts are an upper bound: another may bury before one has trimmed."""
    owner.execute(BY_CHECK)
    events = events_with_poison(60, 7, 8, 33)
    push(client, keys, events)

    def fight() -> None:
        workshop = open_workshop(database_url, client, keys, batch_size=10)
        drain = Drain(workshop, "p", "x")
        while drain.step():
            pass
        workshop.session.close()

    drains = [threading.Thread(target=fight) for _ in range(3)]
    for drain in drains:
        drain.start()
    for drain in drains:
        drain.join(30)

    assert_only_these_were_buried(owner, events, 7, 8, 33)


def test_postgres_dying_while_poison_is_isolated_only_delays(
    client: Redis, keys: Keys, owner: psycopg.Connection, database_url: str, wait_until: Callable[..., None]
) -> None:
    owner.execute(BY_CHECK)
    events = events_with_poison(64, 20)
    push(client, keys, events)
    sessions: list[Connection] = []

    def connect() -> Connection:
        sessions.append(connect_worker(database_url, "test drain"))
        return sessions[-1]

    workshop = open_workshop(database_url, client, keys)
    workshop.session.connect = connect
    drain = Drain(workshop, "p", "ours")
    steps = 0
    while drain.step():
        steps += 1
        if (drain.suspect == 1 and len(sessions) < 4) or steps == 3:
            pid = sessions[-1].info.backend_pid
            owner.execute("SELECT pg_terminate_backend(%(pid)s, 2000)", {"pid": pid})
        assert steps < 60

    workshop.session.close()
    assert len(sessions) >= 3
    assert_only_these_were_buried(owner, events, 20)


def test_when_not_even_the_dead_letter_can_be_stored_the_event_stays(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """It blocks the pool, visibly, until an operator has put the table right."""
    owner.execute(BY_CHECK)
    owner.execute("ALTER TABLE petard.dead_letter ADD CONSTRAINT full_up CHECK (reason <> 'internal_error')")
    events = events_with_poison(3, 1)
    push(client, keys, events)

    with capture_logs() as logs:
        run_drain(workshop)

    assert client.lrange(keys.events("p"), 0, -1) == events[1:]
    assert [entry["event"] for entry in logs] == ["batch_applied", "database_unusable"]
    assert "full_up" in logs[1]["reason"]
    assert client.exists(keys.bell("p")), "it must not be rung in a loop"
    owner.execute("ALTER TABLE petard.dead_letter DROP CONSTRAINT full_up")
    client.delete(keys.bell("p"))
    run_drain(workshop)
    assert_only_these_were_buried(owner, events, 1)
