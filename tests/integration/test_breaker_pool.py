"""Rule 10 of the pipeline: a bad deploy must not pour the queue into the dead letters."""

import psycopg
import pytest
from redis import Redis

from integration.arena import counted, dead_letters, finished, ids_of, make_pool, push, run_drain
from petard_schema import Keys
from petard_worker import batch
from petard_worker.breaker import IN_A_ROW, MOST_IN_WINDOW, WINDOW
from petard_worker.fold import players_of
from petard_worker.jobs import Workshop
from petard_worker.postgres import pools
from petard_worker.postgres.connect import Connection

pytestmark = pytest.mark.usefixtures("pool")

BY_CHECK = "ALTER TABLE petard.rating ADD CONSTRAINT no_poison CHECK (player NOT LIKE 'poison%')"


def good(count: int, first: int) -> list[bytes]:
    return [finished(number, "alice", "bob") for number in range(first, first + count)]


def bad(count: int, first: int) -> list[bytes]:
    return [finished(number, "poison", "bob") for number in range(first, first + count)]


@pytest.fixture
def workshop(workshop: Workshop) -> Workshop:
    """A workshop whose slice is long enough for looking for all that poison."""
    workshop.slice_seconds, workshop.batch_size = 60, 10
    return workshop


@pytest.fixture(params=["by our code", "by Postgres"])
def bad_deploy(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, owner: psycopg.Connection
) -> "Deploy":
    deploy = Deploy(request.param, monkeypatch, owner)
    deploy.break_()
    return deploy


class Deploy:
    """A version that fails on every game of the player `poison`."""

    def __init__(self, how: str, monkeypatch: pytest.MonkeyPatch, owner: psycopg.Connection) -> None:
        self.how, self.monkeypatch, self.owner = how, monkeypatch, owner
        self.real = batch.fold_event

    def break_(self) -> None:
        def fails(rules, records, event, period):  # type: ignore[no-untyped-def]
            if "poison" in players_of(event):
                raise ZeroDivisionError("a bug")
            return self.real(rules, records, event, period)

        if self.how == "by our code":
            self.monkeypatch.setattr(batch, "fold_event", fails)
        else:
            self.owner.execute(BY_CHECK)

    def roll_back(self) -> None:
        if self.how == "by our code":
            self.monkeypatch.setattr(batch, "fold_event", self.real)
        else:
            self.owner.execute("ALTER TABLE petard.rating DROP CONSTRAINT no_poison")


def stopped(owner: psycopg.Connection) -> str | None:
    row = owner.execute("SELECT stopped FROM petard.pool").fetchone()
    assert row is not None
    reason: str | None = row[0]
    return reason


def drain_again(workshop: Workshop, client: Redis, keys: Keys) -> None:
    client.delete(keys.bell("p"))
    run_drain(workshop)


def test_fifty_failures_in_a_row_stop_the_pool(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, bad_deploy: Deploy
) -> None:
    push(client, keys, [*good(5, 0), *bad(200, 100)])

    run_drain(workshop)

    assert stopped(owner) == f"{IN_A_ROW} events in a row failed by exceptions of our own"
    assert len(dead_letters(owner)) < IN_A_ROW
    assert client.llen(keys.events("p")) + len(dead_letters(owner)) + len(counted(owner)) == 205


def test_more_than_half_of_the_last_hundred_stop_the_pool(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, bad_deploy: Deploy
) -> None:
    mixed = [raw for n in range(200) for raw in (*bad(2, 1000 + 2 * n), *good(1, n))]
    push(client, keys, mixed)

    run_drain(workshop)

    reason = stopped(owner)
    assert reason is not None
    assert reason.startswith(f"{MOST_IN_WINDOW + 1} of the last ")
    assert len(dead_letters(owner)) <= MOST_IN_WINDOW


def test_half_of_them_do_not(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, bad_deploy: Deploy
) -> None:
    mixed = [raw for n in range(WINDOW) for raw in (*bad(1, 1000 + n), *good(1, n))]
    push(client, keys, mixed)

    run_drain(workshop)

    assert stopped(owner) is None
    assert len(dead_letters(owner)) == WINDOW
    assert counted(owner) == ids_of(good(WINDOW, 0))


def test_forty_nine_in_a_row_do_not(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, bad_deploy: Deploy
) -> None:
    push(client, keys, [*bad(IN_A_ROW - 1, 1000), *good(3, 0)])

    run_drain(workshop)

    assert stopped(owner) is None
    assert counted(owner) == ids_of(good(3, 0))


def test_refusals_for_their_content_never_stop_a_pool(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    push(client, keys, [b"junk %d" % number for number in range(300)])
    push(client, keys, good(1, 0))

    run_drain(workshop)

    assert stopped(owner) is None
    assert len(dead_letters(owner)) == 300
    assert counted(owner) == ["e-0"]


def test_failures_in_small_batches_add_up(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, bad_deploy: Deploy
) -> None:
    workshop.batch_size = 7
    push(client, keys, bad(200, 0))

    run_drain(workshop)

    assert stopped(owner) is not None
    assert len(dead_letters(owner)) < IN_A_ROW


def test_nothing_more_is_buried_while_the_pool_is_stopped(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, bad_deploy: Deploy
) -> None:
    push(client, keys, bad(200, 0))
    run_drain(workshop)
    before = dead_letters(owner)

    for _ in range(3):
        drain_again(workshop, client, keys)

    assert dead_letters(owner) == before
    assert client.llen(keys.events("p")) == 200 - len(before)


def test_a_resumed_pool_goes_on_after_the_roll_back(
    connection: Connection,
    workshop: Workshop,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    bad_deploy: Deploy,
) -> None:
    push(client, keys, [*bad(120, 0), *good(5, 200)])
    run_drain(workshop)
    buried = len(dead_letters(owner))

    bad_deploy.roll_back()
    pools.resume_pool(connection, "p")
    drain_again(workshop, client, keys)

    assert stopped(owner) is None
    assert counted(owner) == ids_of([*bad(120, 0)[buried:], *good(5, 200)])
    assert len(dead_letters(owner)) == buried


def test_a_pool_that_is_resumed_in_spite_of_it_gets_a_bit_further_each_time(
    connection: Connection, workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """An operator who wants the poison buried can have that, fifty at a time."""
    owner.execute(BY_CHECK)
    push(client, keys, [*bad(120, 0), *good(5, 200)])
    run_drain(workshop)

    times = 0
    while stopped(owner) is not None:
        pools.resume_pool(connection, "p")
        drain_again(workshop, client, keys)
        times += 1
        assert times < 10

    assert times == 2
    assert len(dead_letters(owner)) == 120
    assert counted(owner) == ids_of(good(5, 200))


def test_another_pool_is_not_stopped(
    connection: Connection,
    workshop: Workshop,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    bad_deploy: Deploy,
) -> None:
    make_pool(connection, "q")
    push(client, keys, bad(200, 0))
    push(client, keys, [finished(1, pool="q")], "q")

    run_drain(workshop)
    run_drain(workshop, "q")

    rows = owner.execute("SELECT name, stopped IS NULL FROM petard.pool ORDER BY name").fetchall()
    assert rows == [("p", False), ("q", True)]
    assert counted(owner, "q") == ["e-1"]
