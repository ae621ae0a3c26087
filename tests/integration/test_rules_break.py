"""Each rule of the pipeline broken on purpose: the failure must show, or our tests could not see it.

Nearly every test plays one scenario twice, with the rule and without it.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psycopg
import pytest
from redis import Redis
from rq.job import Job
from structlog.testing import capture_logs

from integration.arena import (
    apply_all,
    broken_chains,
    counted,
    dead_letters,
    finished,
    fold_of_ledger,
    games,
    ids_of,
    open_workshop,
    push,
    records,
    run_drain,
)
from petard_schema import Keys
from petard_worker import jobs
from petard_worker.apply import apply_batch, take
from petard_worker.batch import Batch, History, read_arrival
from petard_worker.breaker import Breaker
from petard_worker.dispatch import Dispatcher
from petard_worker.intake import Intake
from petard_worker.jobs import Drain, Workshop
from petard_worker.known import Known
from petard_worker.postgres import dead_letters as letters_table
from petard_worker.postgres import pools
from petard_worker.postgres.connect import Connection, connect_worker
from petard_worker.rq_worker import open_queue

pytestmark = pytest.mark.usefixtures("pool")


class BlindTrim(Intake):
    """Trims as many as were read, whatever stands there now."""

    def trim(self, batch: Sequence[bytes]) -> bool:
        return bool(self.redis.ltrim(self.keys.events(self.pool), len(batch), -1))


class EndsTrim(Intake):
    """Compares the first and the last element only."""

    def trim(self, batch: Sequence[bytes]) -> bool:
        head = self.peek(len(batch))
        if (head[:1], head[-1:]) != ([batch[0]], [batch[-1]]):
            return False
        return bool(self.redis.ltrim(self.keys.events(self.pool), len(batch), -1))


class EarlyTrim(Intake):
    """Takes the events off the list as it reads them."""

    def peek(self, limit: int, skip: int = 0) -> list[bytes]:
        events = super().peek(limit, skip)
        self.redis.ltrim(self.keys.events(self.pool), len(events), -1)
        return events

    def trim(self, batch: Sequence[bytes]) -> bool:
        return True


def unlocked(connection: Connection, name: str) -> pools.LockedPool | None:
    """Read the pool's row without taking its lock."""
    pool = pools.get_pool(connection, name)
    now = connection.execute("SELECT clock_timestamp()").fetchone()
    assert now is not None
    return None if pool is None else pools.LockedPool(pool, now[0])  # type: ignore[arg-type]


@pytest.mark.parametrize("broken", [False, True])
def test_rule_1_without_the_lock_two_drains_rate_from_the_same_standing(
    connection: Connection,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    wait_until: Callable[..., None],
    broken: bool,
) -> None:
    """Two drains, one event each, and the second begins before the first has committed.

    The ledger's key notices, but only by refusing an innocent event.
    """
    if broken:
        monkeypatch.setattr(pools, "lock_pool", unlocked)
    errors: list[Exception] = []

    class Apart(Intake):
        """The second drain's list."""

        def peek(self, limit: int, skip: int = 0) -> list[bytes]:
            return [finished(2)][skip : skip + limit]

    def second() -> None:
        with connect_worker(database_url, "second") as other:
            try:
                apply_batch(other, Apart(client, keys, "p"), Breaker(), 1)
            except psycopg.errors.UniqueViolation as error:
                errors.append(error)

    waiting = """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'petard second' AND wait_event_type = 'Lock'
    """
    thread = threading.Thread(target=second)
    push(client, keys, [finished(1)])
    with connection.transaction():
        take(
            connection,
            "p",
            pools.lock_pool(connection, "p"),
            [read_arrival(finished(1))],
            Breaker(),
            Known(),
        )
        thread.start()
        wait_until(lambda: owner.execute(waiting).fetchone() == (1,), "the second drain to wait", 5)
    thread.join(10)

    assert bool(errors) == broken
    assert counted(owner) == (["e-1"] if broken else ["e-1", "e-2"])


@pytest.mark.parametrize("broken", [False, True])
def test_rule_2_without_key_and_history_events_count_twice(
    connection: Connection,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    broken: bool,
) -> None:
    if broken:
        forget_history(monkeypatch, owner)

    for _ in range(2):
        apply_all(connection, client, keys, games(10))

    doubled = len(counted(owner)) - len(set(counted(owner)))
    assert doubled == (10 if broken else 0)


def forget_history(monkeypatch: pytest.MonkeyPatch, owner: psycopg.Connection) -> None:
    """Let the fold know nothing of what has counted, and take the keys away that would notice."""
    owner.execute("ALTER TABLE petard.ledger DROP CONSTRAINT ledger_counts_an_event_once")
    owner.execute("DROP INDEX petard.ledger_counts_a_game_once")
    fold = Batch.fold

    def ignorant(self: Batch, arrivals: Sequence[object]) -> None:
        self.history = History({}, {}, self.history.records)
        fold(self, arrivals)  # type: ignore[arg-type]

    monkeypatch.setattr(Batch, "fold", ignorant)


def test_rule_2_the_key_alone_refuses_what_the_fold_has_forgotten(
    connection: Connection,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two belts: a fold that is wrong about the past cannot count anything twice."""
    apply_all(connection, client, keys, games(10))
    fold = Batch.fold

    def ignorant(self: Batch, arrivals: Sequence[object]) -> None:
        self.history = History({}, {}, self.history.records)
        fold(self, arrivals)  # type: ignore[arg-type]

    monkeypatch.setattr(Batch, "fold", ignorant)

    with pytest.raises(psycopg.errors.UniqueViolation, match="ledger_counts_an_event_once"):
        apply_all(connection, client, keys, games(10))
    assert counted(owner) == ids_of(games(10))


@pytest.mark.parametrize("broken", [False, True])
def test_rule_3_without_key_and_history_a_game_counts_twice(
    connection: Connection,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    broken: bool,
) -> None:
    if broken:
        forget_history(monkeypatch, owner)

    apply_all(connection, client, keys, [finished(1)])
    apply_all(connection, client, keys, [finished(1).replace(b'"e-1"', b'"e-2"')])

    assert records(owner)["alice"].games == (2 if broken else 1)


@pytest.mark.parametrize(
    ("kind", "lost"),
    [(Intake, []), (BlindTrim, ["e-6", "e-7", "e-8", "e-9", "e-10"])],
    ids=["kept", "broken"],
)
def test_rule_4_a_blind_trim_loses_what_another_drain_left(
    connection: Connection,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    kind: type[Intake],
    lost: list[str],
) -> None:
    """A zombie commits, is frozen before its trim, and wakes up when another drain has trimmed."""

    class Zombie(kind):  # type: ignore[valid-type, misc]
        def trim(self, batch: Sequence[bytes]) -> bool:
            with connect_worker(str(owner.info.dsn), "another") as other:
                apply_batch(other, Intake(client, keys, "p"), Breaker(), 5)
            return bool(super().trim(batch))

    push(client, keys, games(10))

    apply_batch(connection, Zombie(client, keys, "p"), Breaker(), 5)
    apply_all(connection, client, keys)

    assert sorted(set(ids_of(games(10))) - set(counted(owner)), key=lambda name: int(name[2:])) == lost


@pytest.mark.parametrize(("kind", "lost"), [(Intake, 0), (EndsTrim, 1)], ids=["kept", "broken"])
def test_rule_4_comparing_only_the_ends_loses_what_stands_between_repeats(
    client: Redis, keys: Keys, kind: type[Intake], lost: int
) -> None:
    """`X A X` was committed, and now `X B X` stands there."""
    x, a, b = games(3)
    push(client, keys, [x, b, x])

    kind(client, keys, "p").trim([x, a, x])

    assert client.lrange(keys.events("p"), 0, -1).count(b) == 1 - lost  # type: ignore[union-attr]


@pytest.mark.parametrize(("kind", "lost"), [(Intake, 0), (EarlyTrim, 10)], ids=["kept", "broken"])
def test_rule_4_popping_before_the_commit_loses_the_batch_of_a_killed_drain(
    connection: Connection,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    database_url: str,
    kind: type[Intake],
    lost: int,
) -> None:
    push(client, keys, games(10))
    with connect_worker(database_url, "dying") as dying:
        owner.execute("SELECT pg_terminate_backend(%(pid)s, 2000)", {"pid": dying.info.backend_pid})
        with pytest.raises(psycopg.OperationalError):
            apply_batch(dying, kind(client, keys, "p"), Breaker(), 500)

    apply_all(connection, client, keys)

    assert 10 - len(counted(owner)) == lost


class LateRelease(Drain):
    """Looks first and lets go of the bell afterwards."""

    def run(self) -> None:
        while self.bell.hold():
            if self.step():
                continue
            if self.intake.waiting() == 0:
                self.bell.release()
                return


@pytest.mark.parametrize(("kind", "stranded"), [(Drain, 0), (LateRelease, 1)], ids=["kept", "broken"])
def test_rule_5_a_bell_released_after_the_last_look_loses_a_wake_up(
    workshop: Workshop, client: Redis, keys: Keys, kind: type[Drain], stranded: int
) -> None:
    """An event comes, and rings, right after the last look."""
    queue = open_queue(client, {})
    dispatcher = Dispatcher(client, keys, queue, "ours")
    dispatcher.pools.add("p")
    drain = kind(workshop, "p", "ours")
    waiting = drain.intake.waiting
    pushed: list[bytes] = []

    def push_after_the_look() -> int:
        found = waiting()
        if not found and not pushed:
            pushed.append(finished(1))
            push(client, keys, pushed)
            dispatcher.ring()
        return found

    object.__setattr__(drain.intake, "waiting", push_after_the_look)

    drain.run()
    for job_id in queue.get_job_ids():
        Drain(workshop, *Job.fetch(job_id, client, "json").args).run()

    assert pushed
    assert waiting() == stranded


def test_rule_5_without_renewal_a_queued_drain_is_rung_for_again(client: Redis, keys: Keys) -> None:
    queue = open_queue(client, {})
    push(client, keys, games(1))

    def rung_after_waiting(renewed: bool) -> int:
        client.delete(keys.bell("p"), queue.key)
        dispatcher = Dispatcher(client, keys, queue, "ours")
        dispatcher.dispatch_once()
        if renewed:
            client.pexpire(keys.bell("p"), 100)
            dispatcher.dispatch_once()
            assert client.pttl(keys.bell("p")) > 1000
        else:
            client.delete(keys.bell("p"))  # what the passing of time amounts to
        dispatcher.dispatch_once()
        return queue.count

    assert rung_after_waiting(renewed=True) == 1
    assert rung_after_waiting(renewed=False) == 2


@pytest.mark.parametrize("broken", [False, True])
def test_rule_6_without_isolation_one_event_blocks_all_behind_it(
    workshop: Workshop,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    broken: bool,
) -> None:
    owner.execute("ALTER TABLE petard.rating ADD CONSTRAINT no_poison CHECK (player <> 'poison')")
    if broken:
        monkeypatch.setattr(jobs, "is_of_one_event", lambda _error: False)
    workshop.slice_seconds = 1
    push(client, keys, [finished(1, "poison"), *games(5, first=2)])

    run_drain(workshop)

    assert len(counted(owner)) == (0 if broken else 5)


@pytest.mark.parametrize("broken", [False, True])
def test_rule_7_a_drain_that_lets_an_outage_escape_fails_as_a_job(
    client: Redis, keys: Keys, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    def escape(self: Drain, what: str, error: psycopg.Error) -> None:
        raise error

    if broken:
        monkeypatch.setattr(Drain, "wait", escape)
    workshop = open_workshop("postgresql://nobody@127.0.0.1:1/nowhere", client, keys, slice_seconds=0.3)
    push(client, keys, games(5))

    with maybe_raises(psycopg.OperationalError, broken):
        run_drain(workshop)

    assert client.llen(keys.events("p")) == 5


@contextmanager
def maybe_raises(kind: type[Exception], expected: bool) -> Iterator[None]:
    if not expected:
        yield
        return
    with pytest.raises(kind):
        yield


@pytest.mark.parametrize("broken", [False, True])
def test_rule_8_a_drain_deaf_to_the_stop_goes_on(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, broken: bool
) -> None:
    workshop.batch_size = 5
    push(client, keys, games(20))
    workshop.stop.set()
    if broken:
        workshop.stop = threading.Event()

    run_drain(workshop)

    assert len(counted(owner)) == (20 if broken else 0)


@pytest.mark.parametrize("broken", [False, True])
def test_rule_9_an_event_that_is_refused_without_a_letter_is_nowhere(
    connection: Connection,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    broken: bool,
) -> None:
    if broken:
        monkeypatch.setattr(letters_table, "bury", lambda *_: None)
    events = [finished(1), b"junk", finished(2), b"more junk"]

    apply_all(connection, client, keys, events)

    nowhere = len(events) - len(counted(owner)) - len(dead_letters(owner))
    assert nowhere == (2 if broken else 0)


@pytest.mark.parametrize("broken", [False, True])
def test_rule_10_without_the_breaker_a_bad_deploy_buries_the_queue(
    workshop: Workshop,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    broken: bool,
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bad deploy")

    monkeypatch.setattr("petard_worker.batch.fold_event", fail)
    if broken:
        monkeypatch.setattr(Breaker, "check", lambda *_: None)
    push(client, keys, games(200))

    with capture_logs():
        run_drain(workshop)

    assert len(dead_letters(owner)) == (200 if broken else 0)
    assert client.llen(keys.events("p")) == (0 if broken else 200)


def test_the_looks_of_these_tests_see_a_broken_chain_and_a_wrong_fold(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, games(50))
    assert broken_chains(owner) == []
    assert records(owner) == fold_of_ledger(owner)

    owner.execute("""
        UPDATE petard.change SET rating_before = rating_before + 1e-9
        WHERE player_seq = 2 AND player = 'player-1'
    """)
    owner.execute("UPDATE petard.rating SET rating = rating + 1e-9 WHERE player = 'player-2'")

    assert broken_chains(owner) == [("player-1", 2)]
    assert records(owner) != fold_of_ledger(owner)
