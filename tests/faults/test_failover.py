"""Another server takes over, perhaps without the last writes: what was lost comes back, and counts once.

Workers, publisher and producer reach the servers through proxies, as through the one address of a cluster.
"""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import psycopg
import pytest
import redis

from faults.audit import Pushed, assert_nothing_lost_nothing_twice, gathered, read_board
from faults.fleet import MAIN, POOL, RULES, Fleet, Role, wait_until
from faults.pairs import PostgresPair, RedisPair
from faults.producer import Producer
from faults.seasons import rated, raws
from petard_producer import EpochChanged, Follower, GapFound, Position
from petard_schema import DeadReason, parse_event
from petard_schema.times import format_time
from petard_worker.recent import find_window, read_copies, redis_now
from petard_worker.simulate import Expected, Season, simulate_with_labels

PROMOTIONS = int(os.environ.get("PETARD_PROMOTIONS", "2"))
EVENTS = int(os.environ.get("PETARD_PROMOTION_EVENTS", "1000"))
"""Acknowledged before each promotion."""
PER_SECOND = max(250, EVENTS / 10)
LEAST_LOST = 100
LETTERS_EVERY = 100
SECONDS = 300 + PROMOTIONS * (60 + EVENTS / 200)
PATIENCE = 120 + EVENTS / 200


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresPair]:
    with PostgresPair() as pair:
        yield pair


@pytest.fixture(scope="module")
def redis_pair() -> Iterator[RedisPair]:
    with RedisPair() as pair:
        yield pair


@pytest.fixture
def cluster(postgres: PostgresPair, redis_pair: RedisPair, tmp_path: Path) -> Iterator[Fleet]:
    """Two pairs with an empty pool, two workers and a publisher at work."""
    fleet = Fleet(postgres, redis_pair, tmp_path)  # type: ignore[arg-type]  # a pair is used like a server
    fleet.prepare()
    roles = [fleet.start_worker(), fleet.start_worker(), fleet.start_publisher()]
    try:
        wait_until(lambda: all(at_work(role) for role in roles), "the roles to be at work", 60)
        yield fleet
        assert [role.log[-2_000:] for role in roles if not role.alive] == []
    finally:
        fleet.end()
        print(fleet.logs())  # noqa: T201 - shown when the test failed


def at_work(role: Role) -> bool:
    return role.logged("worker_started") or role.logged("publisher_active")


class Leaderboard:
    """A board as a client keeps it: a snapshot, then every change, and a snapshot again when told to."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._follower = Follower.from_url(fleet.redis.url, pool=POOL, prefix=fleet.keys.prefix)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._over = threading.Event()
        self.ratings: dict[str, float] = {}
        self.position: Position | None = None
        self.epochs_seen: list[int] = []
        self.gaps = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._follower.close()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                for change in self._follower.follow(after=self.position):
                    self.ratings |= {one.player: one.after.rating for one in change.data.changes}
                    self.position = Position.of(change)
            except EpochChanged as changed:
                self.epochs_seen.append(changed.new.epoch)
                self._start_over()
            except GapFound:
                self.gaps += 1
                self._start_over()

    def _start_over(self) -> None:
        """Note where the stream is, then read everybody: what comes after may only be newer."""
        while not self._over.is_set():
            try:
                self.position = self._follower.newest()
                with psycopg.connect(self._fleet.postgres.url) as connection:
                    sql = "SELECT player, rating FROM petard.rating WHERE pool = %s"
                    self.ratings = dict(connection.execute(sql, (POOL,)).fetchall())
            except (redis.RedisError, psycopg.Error):
                self._over.wait(0.05)
            else:
                return


@contextmanager
def traffic(fleet: Fleet) -> Iterator[Producer]:
    """Push all the time; more than a test needs, however slow the machine is."""
    events = honest_season(30_000 + 3 * PROMOTIONS * EVENTS)
    with Producer(fleet.redis.url, fleet.keys, events, per_second=PER_SECOND) as producer:
        yield producer


def stopped(producer: Producer) -> Pushed:
    """End the traffic and return what was acknowledged."""
    assert not producer.finished, "the traffic had ended before"
    producer.stop()
    return producer.pushed


def start(fleet: Fleet, *arguments: str) -> subprocess.Popen[str]:
    """Start a command with the cluster's addresses."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PETARD_")},
        "PETARD_DATABASE_URL": fleet.postgres.url,
        "PETARD_REDIS_URL": fleet.redis.url,
        "PETARD_KEY_PREFIX": fleet.keys.prefix,
    }
    command = [sys.executable, "-c", MAIN, *arguments]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def petard(fleet: Fleet, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    with start(fleet, *arguments) as process:
        said, complaint = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, said, complaint)


def reingest(fleet: Fleet, since: str) -> int:
    """Offer everything since then again and return how many events that were."""
    ended = petard(fleet, "reingest", POOL, "--since", since, "--yes", "--json")
    assert ended.returncode == 0, ended.stderr
    (told,) = json.loads(ended.stdout)
    assert told["complete"]
    assert told["offered"] == told["events"]
    return int(told["offered"])


def honest_season(games: int, *, seed: int = 1) -> Pushed:
    """Return events whose fate is the same in any order, repeats and some that are no events among them."""
    plan = Season(pool=POOL, seed=seed, players=200, games=games, hostile_share=0, source=f"/servers/{seed}")
    told: list[tuple[bytes, Expected]] = list(simulate_with_labels(plan))
    for number in range(len(told) // LETTERS_EVERY):
        told.insert(number * (LETTERS_EVERY + 1), (b"no event %d" % number, DeadReason.NOT_JSON))
    return told


def redis_time(fleet: Fleet) -> str:
    with fleet.client as client:
        return format_time(datetime.fromtimestamp(redis_now(client) / 1_000, UTC))


def published_since(fleet: Fleet, last: bytes) -> set[str]:
    """Return the ids of the events that followers were told of after that entry."""
    with fleet.client as client:
        entries = client.xrange(fleet.keys.changes(POOL), f"({last.decode()}")
    return {json.loads(fields[b"event"])["data"]["cause"]["id"] for _, fields in entries}


def newest_entry(fleet: Fleet) -> bytes:
    with fleet.client as client:
        return client.xrevrange(fleet.keys.changes(POOL), count=1)[0][0]


def rung(fleet: Fleet) -> bool:
    """Return whether a drain answers for the pool."""
    with fleet.client as client:
        return bool(client.exists(fleet.keys.bell(POOL)))


def missing(fleet: Fleet, ids: set[str]) -> set[str]:
    """Return which of these events are neither waiting nor counted: nobody will ever count them."""
    with fleet.client as client:
        waiting = client.lrange(fleet.keys.events(POOL), 0, -1)
    # Asked second: what leaves the list meanwhile is in the ledger.
    sql = "SELECT event_id FROM petard.ledger WHERE pool = %s AND event_id = ANY(%s)"
    with fleet.owner() as connection:
        counted = {row[0] for row in connection.execute(sql, (POOL, list(ids)))}
    return ids - counted - {parse_event(raw).id for raw in waiting if raw.startswith(b"{")}


def in_ledger_order(fleet: Fleet, pushed: Pushed) -> Pushed:
    """Return what was pushed in the order it counted in, when every event counted exactly once."""
    with fleet.client as client, gathered(fleet.postgres.url, client, fleet.keys, POOL) as evidence:
        counted = [row.body.encode() for row in evidence.ledger]
    due = Counter(raw for raw, expected in pushed if expected == "rated")
    found = Counter(counted)
    assert not due - found, f"{sum((due - found).values())} events are lost"
    assert not found - due, f"{sum((found - due).values())} events counted twice"
    return [
        *((raw, "rated") for raw in counted),
        *((raw, expected) for raw, expected in pushed if expected != "rated"),
    ]


def audit_last_epoch(fleet: Fleet, pushed: Pushed) -> None:
    """Check everything; of the stream what came under the last epoch, which has to hold the whole ledger."""
    with fleet.client as client, gathered(fleet.postgres.url, client, fleet.keys, POOL) as evidence:
        assert evidence.stream is not None
        last = (row for row in evidence.stream if row.id.startswith(f"{evidence.epoch}-"))
        assert_nothing_lost_nothing_twice(replace(evidence, stream=last), RULES, [pushed])


def board_of(fleet: Fleet) -> dict[str, float]:
    with fleet.client as client:
        return read_board(client, fleet.keys, POOL)


def epoch_of(fleet: Fleet) -> int:
    with fleet.owner() as connection:
        (epoch,) = connection.execute(
            "SELECT epoch FROM petard.pool WHERE name = %s", (POOL,)
        ).fetchone() or (0,)
    return int(epoch)


def lose_commits(fleet: Fleet, postgres: PostgresPair, producer: Producer) -> set[str]:
    """Promote a standby that lacks what followers were told of already; return the events it lacks."""
    postgres.stall_replication()
    last = newest_entry(fleet)
    due = fleet.applied() + LEAST_LOST  # what was committed before the stall may be published after it
    wait_until(lambda: fleet.published() > due, "changes that the standby will not know", PATIENCE)
    told = published_since(fleet, last)
    assert not producer.finished

    postgres.fail_over()

    return missing(fleet, told)


@pytest.mark.timeout(SECONDS)
def test_what_an_asynchronous_standby_lacks_comes_back_and_counts_once(
    cluster: Fleet, postgres: PostgresPair
) -> None:
    lost = offered = 0

    with traffic(cluster) as producer, Leaderboard(cluster) as board:
        for _ in range(PROMOTIONS):
            due = producer.count + EVENTS
            wait_until(lambda due=due: producer.count >= due, "traffic", PATIENCE)
            since = redis_time(cluster)
            postgres.wait_until_replicated()
            gone = lose_commits(cluster, postgres, producer)
            assert gone, "nothing was lost: nothing is shown"
            lost += len(gone)

            offered += reingest(cluster, since)

            wait_until(lambda ids=gone: not missing(cluster, ids), "what was lost to be back", PATIENCE)
            postgres.rebuild_standby()
        events = stopped(producer)
        cluster.wait_until_applied(rated(events), PATIENCE)
        cluster.wait_until_published(rated(events), PATIENCE)
        wait_until(lambda: board.ratings == board_of(cluster), "the client's board to be the board", PATIENCE)

    audit_last_epoch(cluster, in_ledger_order(cluster, events))
    assert cluster.failed_jobs() == 0
    assert board.epochs_seen
    assert board.gaps == 0
    assert epoch_of(cluster) == board.epochs_seen[-1] == 1 + PROMOTIONS
    print(PROMOTIONS, "promotions,", rated(events), "counted,", lost, "lost and back,", offered, "offered")  # noqa: T201


def copied_events(client: "redis.Redis", fleet: Fleet) -> set[bytes]:
    window = find_window(client, fleet.keys, POOL)
    assert window is not None
    return {raw for copy in read_copies(client, fleet.keys, POOL, window) for raw in copy.events}


@pytest.mark.timeout(SECONDS)
def test_a_reingest_that_was_killed_is_done_again(
    cluster: Fleet, postgres: PostgresPair, redis_pair: RedisPair
) -> None:
    with traffic(cluster) as producer:
        wait_until(lambda: cluster.published() > EVENTS, "traffic", PATIENCE)
        since = redis_time(cluster)
        postgres.wait_until_replicated()
        assert lose_commits(cluster, postgres, producer)
        arguments = ("reingest", POOL, "--since", since, "--yes")
        with redis_pair.asked(redis_pair.primary) as client, cluster.pool_locked():
            copied = copied_events(client, cluster)
            before = len(copied.intersection(client.lrange(cluster.keys.events(POOL), 0, -1)))
            redis_pair.proxy.delay(0.1)  # so that there is a middle to be killed in
            with start(cluster, *arguments) as again:
                wait_until(
                    lambda: (
                        len(copied.intersection(client.lrange(cluster.keys.events(POOL), 0, -1)))
                        > before + 50
                    ),
                    "the first chunk",
                    PATIENCE,
                )
                assert again.poll() is None
                again.kill()
        redis_pair.proxy.go_on()
        for _ in range(2):
            reingest(cluster, since)
        events = stopped(producer)
    cluster.wait_until_applied(rated(events), PATIENCE)
    cluster.wait_until_published(rated(events), PATIENCE)

    audit_last_epoch(cluster, in_ledger_order(cluster, events))


@pytest.mark.timeout(SECONDS)
def test_a_synchronous_standby_lacks_nothing(cluster: Fleet, postgres: PostgresPair) -> None:
    postgres.replicate_synchronously(wanted=True)

    with traffic(cluster) as producer, Leaderboard(cluster) as board:
        wait_until(lambda: cluster.published() > EVENTS / 2, "traffic", PATIENCE)
        postgres.fail_over()
        due = cluster.published() + EVENTS / 2
        wait_until(lambda: cluster.published() > due, "traffic", PATIENCE)
        events = stopped(producer)
        cluster.wait_until_applied(rated(events), PATIENCE)
        cluster.wait_until_published(rated(events), PATIENCE)
        wait_until(lambda: board.ratings == board_of(cluster), "the client's board to be the board", PATIENCE)

    cluster.audit(events)
    assert (epoch_of(cluster), board.epochs_seen, board.gaps) == (1, [], 0)


@pytest.mark.timeout(SECONDS)
def test_a_redis_replica_that_lacks_writes_is_refilled_and_producers_that_send_again_make_it_whole(
    cluster: Fleet, redis_pair: RedisPair
) -> None:
    """What Redis has acknowledged and lost before it was applied is lost: the limit of a queue in Redis."""
    events = honest_season(4 * EVENTS)
    quarter = len(events) // 4
    known, waiting, applied, acknowledged = (
        events[start : start + quarter] for start in range(0, 4 * quarter, quarter)
    )
    cluster.push(raws(known))
    cluster.wait_until_applied(rated(known), PATIENCE)
    with Leaderboard(cluster) as board:
        with cluster.pool_locked():
            cluster.push(raws(waiting))
            redis_pair.wait_until_replicated()
            redis_pair.stall_replication()
        # The replica believes that these wait, and has never heard of the next ones.
        cluster.push(raws(applied))
        so_far = rated(known) + rated(waiting) + rated(applied)
        cluster.wait_until_applied(so_far, PATIENCE)
        cluster.wait_until_published(so_far, PATIENCE)
        # A drain that lingers would look at the next ones before the failover and apply them: not lost.
        wait_until(lambda: not rung(cluster), "the drains to end", PATIENCE)
        with cluster.pool_locked():
            cluster.push(raws(acknowledged))
            redis_pair.fail_over()

        cluster.wait_until_applied(so_far, PATIENCE)
        cluster.wait_until_published(so_far, PATIENCE)
        cluster.audit([*known, *waiting, *applied])  # without the acknowledged ones
        cluster.push(raws(acknowledged))

        cluster.wait_until_applied(so_far + rated(acknowledged), PATIENCE)
        cluster.wait_until_published(so_far + rated(acknowledged), PATIENCE)
        wait_until(lambda: board.ratings == board_of(cluster), "the client's board to be the board", PATIENCE)
    cluster.audit([*known, *waiting, *applied, *acknowledged])
    assert (epoch_of(cluster), board.epochs_seen, board.gaps) == (1, [], 0)
    redis_pair.rebuild_standby()


@pytest.mark.timeout(SECONDS)
def test_a_standby_that_only_reads_is_waited_out(cluster: Fleet, postgres: PostgresPair) -> None:
    with traffic(cluster) as producer, Leaderboard(cluster) as board:
        for _ in range(2):
            before = cluster.published()
            wait_until(lambda before=before: cluster.published() > before, "traffic", PATIENCE)
            refused = sum(role.log.count("read-only transaction") for role in cluster.roles)
            postgres.read_only()
            wait_until(
                lambda refused=refused: (
                    sum(role.log.count("read-only transaction") for role in cluster.roles) >= refused + 3
                ),
                "drains that are refused",
                PATIENCE,
            )
            told = petard(cluster, "pool", "create", "another")
            postgres.read_write()
            assert told.returncode == 69, told.stderr
            assert "read-only" in told.stderr
            assert "Traceback" not in told.stderr
        events = stopped(producer)
        cluster.wait_until_applied(rated(events), PATIENCE)
        cluster.wait_until_published(rated(events), PATIENCE)
        wait_until(lambda: board.ratings == board_of(cluster), "the client's board to be the board", PATIENCE)

    cluster.audit(events)
    assert cluster.failed_jobs() == 0
    assert (epoch_of(cluster), board.epochs_seen, board.gaps) == (1, [], 0)
