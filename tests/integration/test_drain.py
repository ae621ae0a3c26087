"""The drain: slices, stops, stopped pools, and a Postgres or a Redis that is away."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from redis import Redis
from redis import exceptions as redis_errors
from rq.job import Job
from structlog.testing import capture_logs

from integration.arena import (
    counted,
    dead_letters,
    finished,
    fold_of_ledger,
    games,
    ids_of,
    make_pool,
    open_workshop,
    push,
    records,
    run_drain,
    running,
)
from integration.dying_redis import RedisServer
from petard_schema import Keys
from petard_worker import jobs
from petard_worker.apply import Applied
from petard_worker.batch_size import FIRST
from petard_worker.bell import WORKING_MS, Bell
from petard_worker.dispatch import Dispatcher
from petard_worker.embedded import PostgresServer, embedded_postgres
from petard_worker.jobs import DRAIN, Drain, Workshop
from petard_worker.postgres import pools
from petard_worker.postgres.connect import Connection, connect_worker
from petard_worker.postgres.migrate import migrate
from petard_worker.postgres.session import Session
from petard_worker.rq_worker import JsonQueue, enqueue_job, open_queue


@pytest.fixture
def queue(client: Redis) -> JsonQueue:
    return open_queue(client, {})


@pytest.fixture(scope="module")
def mortal_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A Postgres that may be killed, migrated and with a pool."""
    with embedded_postgres(tmp_path_factory.mktemp("postgres")) as server:
        migrate(server.url)
        yield server


@pytest.fixture
def mortal_pool(mortal_postgres: PostgresServer, keys: Keys) -> str:
    """A pool of this test's own on the mortal Postgres."""
    with connect_worker(mortal_postgres.url, "test") as connection:
        make_pool(connection, keys.prefix)
    return keys.prefix


def of_pool(pool: str, count: int, first: int = 1) -> list[bytes]:
    return [finished(number, f"x{number}", f"y{number}", pool=pool) for number in range(first, first + count)]


def seq_of(url: str, pool: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT seq FROM petard.pool WHERE name = %(pool)s", {"pool": pool}
        ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.usefixtures("pool")
def test_a_drain_applies_all_that_waits_and_lets_go_of_the_bell(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    workshop.batch_size = 7
    push(client, keys, games(50))

    run_drain(workshop)

    assert counted(owner) == ids_of(games(50))
    assert not client.exists(keys.events("p"), keys.bell("p"))


@pytest.mark.usefixtures("pool")
def test_a_drain_leaves_a_pool_that_another_answers_for(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    push(client, keys, games(5))
    client.set(keys.bell("p"), "another", px=5000)

    run_drain(workshop)

    assert counted(owner) == []
    assert client.get(keys.bell("p")) == b"another"


@pytest.mark.usefixtures("pool")
def test_an_event_that_comes_during_the_last_look_is_applied(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    drain = Drain(workshop, "p", "ours")
    release = drain.bell.release

    def push_then_release() -> None:
        push(client, keys, [finished(1)])
        object.__setattr__(drain.bell, "release", release)
        release()

    object.__setattr__(drain.bell, "release", push_then_release)

    drain.run()

    assert counted(owner) == ["e-1"]
    assert not client.exists(keys.bell("p"))


@pytest.mark.usefixtures("pool")
def test_each_batch_pokes_the_publisher(
    workshop: Workshop, client: Redis, keys: Keys, wait_until: Callable[..., None]
) -> None:
    with client.pubsub(ignore_subscribe_messages=True) as pokes:  # type: ignore[no-untyped-call]
        pokes.subscribe(keys.committed())
        pokes.get_message(timeout=1)
        push(client, keys, games(5))

        run_drain(workshop)

        message = pokes.get_message(timeout=5)
        assert message["data"] == b"p"


def test_a_drain_goes_to_the_back_soon_when_another_waits_for_its_worker(
    connection: Connection, workshop: Workshop, client: Redis, keys: Keys, queue: JsonQueue
) -> None:
    """A flooded pool and a quiet one on one worker."""
    for pool in ("hot", "quiet"):
        make_pool(connection, pool)
        push(client, keys, of_pool(pool, 500 if pool == "hot" else 1), pool)
    Dispatcher(client, keys, queue, "ours").dispatch_once()
    workshop.queue, workshop.batch_size, workshop.slice_seconds = queue, 1, 60
    order: list[str] = []
    left: list[int] = []

    while (job_id := client.lpop(queue.key)) is not None:
        pool, drain_id = Job.fetch(job_id.decode(), client, "json").args  # type: ignore[union-attr]
        Drain(workshop, pool, drain_id).run()
        order.append(pool)
        left.append(client.llen(keys.events("hot")))

    assert order == ["hot", "quiet", "hot"]
    assert 0 < left[0] == left[1] < 500
    assert left[2] == 0


def test_a_drain_that_looks_for_a_refused_event_keeps_its_turn(
    workshop: Workshop, pool: str, queue: JsonQueue
) -> None:
    workshop.queue = queue
    enqueue_job(queue, DRAIN, "other", "theirs", job_id="theirs")
    push(workshop.redis, workshop.keys, games(1))
    drain = Drain(workshop, pool, "ours")

    before = drain.is_slice_over(1.0)
    drain.applied = 1
    turns = [drain.is_slice_over(seconds) for seconds in (0.0, 1.0, 5.0)]
    drain.suspect = 8
    suspicious = [drain.is_slice_over(seconds) for seconds in (0.0, 1.0, 5.0)]

    assert (before, turns) == (False, [False, True, True])
    assert suspicious == [False, False, True]


def test_after_its_slice_a_drain_goes_to_the_back_and_keeps_the_bell(
    connection: Connection,
    workshop: Workshop,
    client: Redis,
    keys: Keys,
    queue: JsonQueue,
    owner: psycopg.Connection,
) -> None:
    """A hot pool and a quiet one on one worker: the quiet one has its turn."""
    make_pool(connection, "hot")
    make_pool(connection, "quiet")
    push(client, keys, of_pool("hot", 500), "hot")
    push(client, keys, of_pool("quiet", 3), "quiet")
    dispatcher = Dispatcher(client, keys, queue, "ours")
    dispatcher.dispatch_once()
    workshop.queue = queue
    order: list[str] = []

    while (job_id := client.lpop(queue.key)) is not None:
        pool, drain_id = Job.fetch(job_id.decode(), client, "json").args  # type: ignore[union-attr]
        order.append(pool)
        # The first slice of the hot pool is over before it is done, however slow or fast the machine is.
        first = len(order) == 1
        workshop.batch_size, workshop.slice_seconds = (1, 0.05) if first else (100, 60)
        Drain(workshop, pool, drain_id).run()
        if pool == "hot" and client.llen(keys.events("hot")):
            next_id = queue.get_job_ids()[-1]
            assert client.get(keys.bell("hot")) == next_id.encode()
            assert dispatcher.dispatch_once() == 0

    assert order == ["hot", "quiet", "hot"]
    assert counted(owner, "quiet") == ids_of(of_pool("quiet", 3))
    assert counted(owner, "hot") == ids_of(of_pool("hot", 500))


@pytest.mark.usefixtures("pool")
def test_a_stop_finishes_the_batch_and_leaves_the_rest_to_others(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """Rule 8 of the pipeline."""
    workshop.batch_size = 4
    push(client, keys, games(20))
    drain = Drain(workshop, "p", "ours")
    report = drain.report

    def stop_after_the_first_batch(applied: Applied, started: float) -> None:
        report(applied, started)
        workshop.stop.set()

    drain.report = stop_after_the_first_batch  # type: ignore[method-assign]

    drain.run()

    assert counted(owner) == ids_of(games(4))
    assert client.lrange(keys.events("p"), 0, -1) == games(16, first=5)
    assert not client.exists(keys.bell("p")), "another worker must not wait for the bell to expire"


@pytest.mark.usefixtures("pool")
def test_a_drain_lingers_for_the_next_event(
    workshop: Workshop, client: Redis, keys: Keys, queue: JsonQueue, owner: psycopg.Connection
) -> None:
    workshop.queue = queue
    push(client, keys, games(1))
    drain = Drain(workshop, "p", "ours")
    looks = 0
    has_work = drain.intake.has_work

    def push_at_the_third_look(limit: int) -> bool:
        nonlocal looks
        looks += 1
        if looks == 3:
            push(client, keys, games(1, first=2))
        return has_work(limit)

    drain.intake.has_work = push_at_the_third_look  # type: ignore[method-assign]

    drain.run()

    assert counted(owner) == ids_of(games(2))
    assert looks > 10


@pytest.mark.usefixtures("pool")
def test_a_drain_does_not_linger_while_another_pool_waits_for_the_worker(
    workshop: Workshop, client: Redis, keys: Keys, queue: JsonQueue
) -> None:
    workshop.queue = queue
    push(client, keys, games(1))
    push(client, keys, games(1), "other")
    Dispatcher(client, keys, queue, "ours").dispatch_once()
    client.delete(keys.bell("p"))
    drain = Drain(workshop, "p", "ours")
    workshop.session.open()

    assert drain.step()
    started = time.monotonic()
    lingered = drain.linger()

    assert not lingered
    assert time.monotonic() - started < 0.05


@pytest.mark.usefixtures("pool")
def test_a_stopped_pool_is_not_rung_in_a_loop(
    connection: Connection,
    workshop: Workshop,
    client: Redis,
    keys: Keys,
    queue: JsonQueue,
    owner: psycopg.Connection,
) -> None:
    pools.stop_pool(connection, "p", "because")
    push(client, keys, games(5))
    dispatcher = Dispatcher(client, keys, queue, "ours")

    with capture_logs() as logs:
        Drain(workshop, "p", "ours").run()

    assert [entry["event"] for entry in logs] == ["pool_stopped"]
    assert logs[0]["reason"] == "because"
    assert dispatcher.dispatch_once() == 0
    assert 1000 < client.pttl(keys.bell("p")) <= WORKING_MS
    assert counted(owner) == []


@pytest.mark.usefixtures("pool")
def test_a_resumed_pool_goes_on_where_it_stopped(
    connection: Connection, workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    pools.stop_pool(connection, "p", "because")
    push(client, keys, games(5))
    Drain(workshop, "p", "ours").run()
    pools.resume_pool(connection, "p")
    client.delete(keys.bell("p"))

    run_drain(workshop)

    assert counted(owner) == ids_of(games(5))


@pytest.mark.usefixtures("pool")
def test_a_busy_pool_is_waited_for(
    workshop: Workshop,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    database_url: str,
    wait_until: Callable[..., None],
) -> None:
    """Somebody else holds the pool's lock: the drain waits at the door and neither leaves nor fails."""
    push(client, keys, games(5))
    blocked = """
        SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    """
    with psycopg.connect(database_url, autocommit=True) as holder, running(Drain(workshop, "p", "ours")):
        with holder.transaction():
            holder.execute("SELECT FROM petard.pool FOR UPDATE")
            wait_until(lambda: owner.execute(blocked).fetchone() == (1,), "the drain to wait for the lock", 5)

        wait_until(lambda: counted(owner) == ids_of(games(5)), "the events to be applied", 5)


@pytest.mark.usefixtures("pool")
def test_a_deadlock_with_somebody_else_costs_a_moment_and_no_event(
    client: Redis, keys: Keys, owner: psycopg.Connection, database_url: str, wait_until: Callable[..., None]
) -> None:
    """An operator locks a rating and then the pool, the wrong way round; the drain has to give in."""
    # Shorter than the drain's lock_timeout, and as long as may be: the operator has to be there by then.
    owner.execute(f'ALTER DATABASE "{owner.info.dbname}" SET deadlock_timeout = 1900')
    workshop = open_workshop(database_url, client, keys)
    push(client, keys, games(5))
    run_drain(workshop)
    push(client, keys, games(5, first=6))
    blocked = """
        SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    """

    with capture_logs() as logs, psycopg.connect(database_url, autocommit=True) as operator:
        operator.execute("SET deadlock_timeout = '1min'")
        operator.execute("BEGIN")
        operator.execute("SELECT FROM petard.rating FOR UPDATE")
        with running(Drain(workshop, "p", "ours")):
            wait_until(lambda: owner.execute(blocked).fetchone() == (1,), "the drain to wait", 5)
            operator.execute("SELECT FROM petard.pool FOR UPDATE")
            operator.execute("COMMIT")
            wait_until(lambda: counted(owner) == ids_of(games(10)), "the events to be applied", 10)

    assert any("deadlock" in str(entry) for entry in logs)
    assert dead_letters(owner) == []
    assert records(owner) == fold_of_ledger(owner)


@pytest.mark.usefixtures("pool")
def test_a_drain_whose_session_is_ended_opens_another(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    run_drain(workshop)
    pid = workshop.session.open().info.backend_pid
    owner.execute("SELECT pg_terminate_backend(%(pid)s, 2000)", {"pid": pid})
    push(client, keys, games(5))

    with capture_logs() as logs:
        run_drain(workshop)

    assert counted(owner) == ids_of(games(5))
    assert [entry["event"] for entry in logs] == ["postgres_unavailable", "batch_applied"]


@pytest.mark.parametrize("fault", ["kill", "stop_immediately"])
def test_a_drain_waits_for_a_postgres_that_is_away(
    client: Redis,
    keys: Keys,
    mortal_postgres: PostgresServer,
    mortal_pool: str,
    wait_until: Callable[..., None],
    fault: str,
) -> None:
    """Rule 7 of the pipeline: with backoff, without failing, without losing its place."""
    workshop = open_workshop(mortal_postgres.url, client, keys)
    workshop.session.open()
    getattr(mortal_postgres, fault)()
    push(client, keys, of_pool(mortal_pool, 5), mortal_pool)

    with capture_logs() as logs, running(Drain(workshop, mortal_pool, "ours")) as thread:
        wait_until(
            lambda: sum(entry["event"] == "postgres_unavailable" for entry in logs) >= 4, "some attempts", 10
        )
        assert thread.is_alive()
        assert client.llen(keys.events(mortal_pool)) == 5
        mortal_postgres.start()
        wait_until(lambda: not client.exists(keys.events(mortal_pool)), "the events to be applied", 10)

    waits = [entry["failures"] for entry in logs if entry["event"] == "postgres_unavailable"]
    assert waits == [*range(1, len(waits) + 1)]
    assert len(waits) < 30, "it must not spin"
    assert seq_of(mortal_postgres.url, mortal_pool) == 5


def test_a_drain_that_waits_for_postgres_honours_the_stop(
    client: Redis,
    keys: Keys,
    mortal_postgres: PostgresServer,
    mortal_pool: str,
    wait_until: Callable[..., None],
) -> None:
    workshop = open_workshop(mortal_postgres.url, client, keys)
    push(client, keys, of_pool(mortal_pool, 5), mortal_pool)
    mortal_postgres.kill()
    try:
        with capture_logs() as logs, running(Drain(workshop, mortal_pool, "ours")) as thread:
            wait_until(
                lambda: sum(entry["event"] == "postgres_unavailable" for entry in logs) >= 5, "attempts", 10
            )
            started = time.monotonic()
            workshop.stop.set()
            thread.join(5)
            assert time.monotonic() - started < 0.5
    finally:
        mortal_postgres.start()
    assert client.llen(keys.events(mortal_pool)) == 5


def test_a_frozen_postgres_costs_time_and_nothing_else(
    client: Redis,
    keys: Keys,
    mortal_postgres: PostgresServer,
    mortal_pool: str,
    wait_until: Callable[..., None],
) -> None:
    workshop = open_workshop(mortal_postgres.url, client, keys)
    workshop.session.open()
    mortal_postgres.pause()
    push(client, keys, of_pool(mortal_pool, 5), mortal_pool)

    with running(Drain(workshop, mortal_pool, "ours")) as thread:
        wait_until(lambda: client.exists(keys.bell(mortal_pool)), "the drain to begin", 5)
        assert thread.is_alive()
        mortal_postgres.resume()
        wait_until(lambda: not client.exists(keys.events(mortal_pool)), "the events to be applied", 10)

    assert seq_of(mortal_postgres.url, mortal_pool) == 5


@pytest.mark.usefixtures("pool")
def test_a_database_of_another_version_is_left_alone_without_failing(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    owner.execute("INSERT INTO petard.migration (name, checksum) VALUES ('9999_tomorrow', 'x')")
    push(client, keys, games(5))

    with capture_logs() as logs:
        run_drain(workshop)

    assert [entry["event"] for entry in logs] == ["database_unusable"]
    assert client.llen(keys.events("p")) == 5
    assert client.pttl(keys.bell("p")) > 0


@pytest.mark.usefixtures("pool")
def test_a_drain_without_the_right_role_leaves_without_failing(
    client: Redis, keys: Keys, owner: psycopg.Connection, database_url: str
) -> None:
    owner.execute(
        "DO $$ BEGIN CREATE ROLE petard_test_stranger LOGIN; EXCEPTION WHEN duplicate_object THEN END $$"
    )
    host = database_url.rpartition("@")[2]
    workshop = open_workshop(f"postgresql://petard_test_stranger@{host}", client, keys)
    push(client, keys, games(5))

    with capture_logs() as logs:
        run_drain(workshop)

    owner.execute("DROP ROLE petard_test_stranger")
    assert [entry["event"] for entry in logs] == ["database_unusable"]
    assert client.llen(keys.events("p")) == 5


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_a_lost_redis_ends_the_drain_without_failing(
    database_url: str, keys: Keys, owner: psycopg.Connection, tmp_path: Path, how: str
) -> None:
    """In RQ's eyes the job has ended well; the events that were committed stay committed."""
    server = RedisServer(tmp_path)
    impatient = Redis.from_url(server.url, socket_timeout=0.3, retry=None)
    workshop = open_workshop(database_url, impatient, keys, batch_size=3)
    push(server.client, keys, games(9))
    drain = Drain(workshop, "p", "ours")
    report = drain.report

    def lose_redis(applied: Applied, started: float) -> None:
        report(applied, started)
        server.process.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)

    drain.report = lose_redis  # type: ignore[method-assign]
    try:
        with capture_logs() as logs:
            drain.run()
    finally:
        impatient.close()
        workshop.session.close()
        server.close()

    assert logs[-1]["event"] == "drain_interrupted"
    assert counted(owner) == ids_of(games(3))


@pytest.mark.usefixtures("pool")
def test_a_drain_whose_list_becomes_something_else_leaves_it(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    client.set(keys.events("p"), "not a list")

    with capture_logs() as logs:
        run_drain(workshop)

    assert [entry["event"] for entry in logs] == ["drain_interrupted"]
    assert "WRONGTYPE" in logs[0]["error"]
    assert counted(owner) == dead_letters(owner) == []


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"min-replicas-to-write": 1}, "NOREPLICAS"),
        ({"replicaof": "127.0.0.1 1"}, "read only"),
    ],
)
def test_a_redis_that_refuses_ends_the_drain_without_failing(
    database_url: str,
    keys: Keys,
    owner: psycopg.Connection,
    tmp_path: Path,
    settings: dict[str, object],
    refusal: str,
) -> None:
    server = RedisServer(tmp_path)
    workshop = open_workshop(database_url, server.client, keys)
    push(server.client, keys, games(3))
    for name, value in settings.items():
        if name == "replicaof":
            server.client.replicaof(*str(value).split())  # what a failover makes of a primary
        else:
            server.client.config_set(name, value)
    try:
        with capture_logs() as logs:
            run_drain(workshop)
    finally:
        workshop.session.close()
        server.close()

    assert [entry["event"] for entry in logs] == ["drain_interrupted"]
    assert refusal in logs[0]["error"]
    assert counted(owner) == []


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE petard.pool SET system = 'elo-of-tomorrow'",
        """UPDATE petard.pool SET parameters = parameters || '{"of_tomorrow": 1}'""",
    ],
)
def test_a_pool_that_this_version_does_not_understand_is_left_to_a_newer_one(
    workshop: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, change: LiteralString
) -> None:
    push(client, keys, games(5))
    owner.execute(change)

    with capture_logs() as logs:
        run_drain(workshop)

    assert [entry["event"] for entry in logs] == ["pool_not_understood"]
    assert "of" in logs[0]["reason"]
    assert "tomorrow" in logs[0]["reason"]
    assert client.llen(keys.events("p")) == 5
    assert client.pttl(keys.bell("p")) > 0
    assert owner.execute("SELECT stopped FROM petard.pool").fetchone() == (None,)
    assert dead_letters(owner) == []


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize(
    ("break_it", "mend_it", "reason"),
    [
        (
            "REVOKE INSERT ON petard.ledger FROM petard_worker",
            "GRANT INSERT ON petard.ledger TO petard_worker",
            "InsufficientPrivilege",
        ),
        (
            "ALTER TABLE petard.ledger RENAME body TO text",
            "ALTER TABLE petard.ledger RENAME text TO body",
            "UndefinedColumn",
        ),
    ],
)
def test_a_bad_deploy_is_said_and_looked_at_again_and_buries_nothing(
    workshop: Workshop,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    break_it: LiteralString,
    mend_it: LiteralString,
    reason: str,
) -> None:
    push(client, keys, games(5))
    owner.execute(break_it)

    with capture_logs() as logs:
        run_drain(workshop)

    assert [entry["event"] for entry in logs] == ["database_unusable"]
    assert reason in logs[0]["reason"]
    assert client.llen(keys.events("p")) == 5
    assert client.pttl(keys.bell("p")) > 0
    assert dead_letters(owner) == []
    owner.execute(mend_it)
    client.delete(keys.bell("p"))
    run_drain(workshop)
    assert counted(owner) == ids_of(games(5))


@pytest.mark.usefixtures("pool")
def test_a_drain_that_waits_keeps_its_bell(
    client: Redis, keys: Keys, mortal_postgres: PostgresServer, wait_until: Callable[..., None]
) -> None:
    """However long it waits: nobody is rung in its place."""
    workshop = open_workshop(mortal_postgres.url, client, keys)
    mortal_postgres.kill()
    try:
        with capture_logs() as logs, running(Drain(workshop, "p", "ours")):
            wait_until(lambda: len(logs) >= 6, "the longest wait", 15)
            client.pexpire(keys.bell("p"), 1500)

            wait_until(lambda: client.pttl(keys.bell("p")) > 1500, "the bell to be renewed", 1.2)

            assert client.get(keys.bell("p")) == b"ours"
    finally:
        mortal_postgres.start()


@pytest.mark.usefixtures("pool")
def test_a_busy_pool_is_called_busy(
    workshop: Workshop,
    client: Redis,
    keys: Keys,
    database_url: str,
    wait_until: Callable[..., None],
) -> None:
    push(client, keys, games(5))

    with psycopg.connect(database_url) as holder, capture_logs() as logs:
        holder.execute("SELECT FROM petard.pool FOR UPDATE")
        with running(Drain(workshop, "p", "ours")):
            wait_until(lambda: logs, "the drain to say something", 10)

    assert {entry["event"] for entry in logs} == {"pool_busy"}


@pytest.mark.usefixtures("pool")
def test_a_drain_that_lost_its_bell_to_another_leaves_it_the_rest(
    workshop: Workshop,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A zombie: it was frozen for longer than its bell lives, and another drain was rung."""
    monkeypatch.setattr(jobs, "HOLD_SECONDS", 0.0)  # frozen for much longer than that
    workshop.batch_size = 4
    push(client, keys, games(20))
    drain = Drain(workshop, "p", "ours")
    report = drain.report

    def freeze_and_wake_up(applied: Applied, started: float) -> None:
        report(applied, started)
        client.delete(keys.bell("p"))
        assert Bell.of(client, keys, "p", "another").hold()

    drain.report = freeze_and_wake_up  # type: ignore[method-assign]

    drain.run()

    assert counted(owner) == ids_of(games(4))
    assert client.get(keys.bell("p")) == b"another"


@pytest.mark.usefixtures("pool")
def test_a_drain_that_lost_its_bell_while_postgres_is_away_leaves_at_once(
    workshop: Workshop, client: Redis, keys: Keys
) -> None:
    def refuse() -> Connection:
        client.set(keys.bell("p"), "another", px=5000)
        raise psycopg.OperationalError("connection refused")

    push(client, keys, games(1))
    workshop.session = Session(refuse)

    with capture_logs() as logs:
        run_drain(workshop)

    assert [entry["event"] for entry in logs] == ["postgres_unavailable"]
    assert workshop.at_work.pool is None


@pytest.mark.usefixtures("pool")
def test_a_drain_passes_on_no_bell_of_another(
    workshop: Workshop, client: Redis, keys: Keys, queue: JsonQueue
) -> None:
    workshop.queue, workshop.slice_seconds, workshop.batch_size = queue, 0.0, 4
    push(client, keys, games(20))
    drain = Drain(workshop, "p", "ours")
    is_slice_over = drain.is_slice_over

    def lose_the_bell(seconds: float) -> bool:
        client.set(keys.bell("p"), "another", px=5000)
        return is_slice_over(seconds)

    drain.is_slice_over = lose_the_bell  # type: ignore[method-assign]

    drain.run()

    assert client.get(keys.bell("p")) == b"another"
    assert queue.count == 0


@pytest.mark.usefixtures("pool")
def test_what_had_counted_before_pokes_the_publisher_too(
    workshop: Workshop, client: Redis, keys: Keys
) -> None:
    """The drain that counted it may have died before it could."""
    push(client, keys, games(5))
    run_drain(workshop)
    push(client, keys, games(5))
    with client.pubsub(ignore_subscribe_messages=True) as pokes:  # type: ignore[no-untyped-call]
        pokes.subscribe(keys.committed())
        pokes.get_message(timeout=1)

        run_drain(workshop)

        message = pokes.get_message(timeout=5)
        assert message is not None
        assert message["data"] == b"p"


@pytest.mark.usefixtures("pool")
def test_a_poke_that_redis_refuses_keeps_nothing_on_the_list(
    workshop: Workshop, client: Redis, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        raise redis_errors.NoPermissionError("no channel for you")

    push(client, keys, games(5))
    monkeypatch.setattr(workshop.redis, "publish", refuse)

    with capture_logs() as logs:
        run_drain(workshop)

    assert not client.exists(keys.events("p"))
    assert [entry["event"] for entry in logs] == ["publisher_not_woken", "batch_applied"]


def test_a_batch_that_waits_long_is_followed_by_one_as_large(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a lock, a disk, a server far away: what a smaller batch would wait for as long."""

    def wait(*_arguments: object) -> Applied:
        time.sleep(0.3)
        return Applied(FIRST, FIRST)

    monkeypatch.setattr(jobs, "apply_batch", wait)
    workshop.session.open()
    drain = Drain(workshop, "p", "ours")

    for _ in range(3):
        drain.step()

    assert drain.batch_size() >= FIRST
