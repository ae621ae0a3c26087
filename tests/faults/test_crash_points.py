"""Every step of drain, dispatcher and publisher at which a process can die or an answer can be lost.

Each is followed by what happens then in production: leases and bells run out, the next process goes on.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from threading import Event
from typing import Any

import psycopg
import pytest
from psycopg import sql
from redis import Redis
from redis.exceptions import RedisError

from faults.audit import Pushed, assert_nothing_lost_nothing_twice, gathered
from faults.crash_points import Died, Fate, fateful_postgres, fateful_redis, fates_at_steps_of, told
from faults.fleet import POOL, RULES, SETTINGS
from faults.seasons import raws, season
from petard_schema import Keys
from petard_worker.dispatch import Dispatcher
from petard_worker.jobs import Drain, Workshop, new_drain_id
from petard_worker.pool_settings import as_given
from petard_worker.postgres import pools
from petard_worker.postgres.connect import connect_publisher, connect_worker
from petard_worker.postgres.session import Session
from petard_worker.publish import Publisher
from petard_worker.redis_client import connect_redis
from petard_worker.rq_worker import open_queue
from petard_worker.run_publisher import publish_rest
from petard_worker.run_worker import run_worker
from petard_worker.settings import Settings

# A dead process closes nothing: cursors and sockets that Python finds open are what these tests are about.
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

BATCH = 4
EVENTS = season(6, seed=6, players=4, repeat_share=0.3, hostile_share=0.2)
FIRST, REST = EVENTS[:3], EVENTS[3:]


class Scene:
    """One pool on empty servers, and the processes that come after a death, over connections that last."""

    def __init__(self, settings: Settings, owner: psycopg.Connection[Any]) -> None:
        self.settings = settings
        self.owner = owner
        self.url = settings.database_url.get_secret_value()
        self.redis_url = settings.redis_url.get_secret_value()
        self.keys = Keys(settings.key_prefix)
        self.redis = connect_redis(self.redis_url)
        self.session = Session(lambda: connect_worker(self.url, "test recovery"))

    def close(self) -> None:
        self.session.close()
        self.redis.close()

    def clear(self) -> None:
        """Begin anew."""
        self.redis.flushdb()
        with self.owner.transaction():
            for table in ("pool_version", "pool", "ledger", "change", "rating", "dead_letter"):
                self.owner.execute(sql.SQL("DELETE FROM petard.{}").format(sql.Identifier(table)))
        pools.create_pool(self.owner, POOL, "glicko", RULES.parameters(), as_given(SETTINGS))

    def push(self, events: Pushed) -> None:
        self.redis.rpush(self.keys.events(POOL), *raws(events))

    def let_leases_run_out(self) -> None:
        """Do what time does: the dispatcher's lease and every bell end."""
        for key in (self.keys.dispatcher(), self.keys.bell(POOL)):
            self.redis.delete(key)

    def drain(self) -> None:
        """Be another worker."""
        self.run_drain(self.redis, self.session)

    def run_drain(self, client: Redis, session: Session) -> None:
        workshop = Workshop(client, self.keys, session, Event(), batch_size=BATCH)
        Drain(workshop, POOL, new_drain_id()).run()

    def publish(self) -> None:
        """Be another publisher."""
        publisher = Publisher(self.session.open(), self.redis, self.keys)
        while publisher.publish_once():
            pass

    def recover(self) -> None:
        """Let others go on, as they do after a few seconds."""
        self.let_leases_run_out()
        self.drain()
        self.publish()

    def audit(self, events: Pushed) -> None:
        """Check everything there is against what was pushed."""
        with gathered(self.url, self.redis, self.keys, POOL) as evidence:
            assert_nothing_lost_nothing_twice(evidence, RULES, [events])

    def live_as_drain(self, client: Redis) -> None:
        """Be the worker that may die."""
        session = Session(lambda: connect_worker(self.url, "test drain"))
        try:
            self.run_drain(client, session)
        finally:
            session.close()

    def live_as_publisher(self, client: Redis) -> None:
        """Be the publisher that may die, and that begins anew when it loses a connection."""
        for _ in range(3):
            with suppress(psycopg.Error, RedisError):
                publish_rest(lambda: connect_publisher(self.url, "publisher"), client, self.keys)
                return

    def live_as_dispatcher(self, client: Redis) -> None:
        """Be the dispatcher that may die: take the lead, ring once, resign."""
        dispatcher = Dispatcher(client, self.keys, open_queue(client, {}, self.keys.prefix), "test")
        if dispatcher.lead():
            dispatcher.dispatch_once()
        dispatcher.resign()


@pytest.fixture
def scene(settings: Settings, owner: psycopg.Connection[Any]) -> Iterator[Scene]:
    scene = Scene(settings, owner)
    yield scene
    scene.close()


def try_every_step(
    scene: Scene,
    prepare: Callable[[], None],
    work: Callable[[Redis], None],
    recover: Callable[[], None],
) -> int:
    """Do the work once undisturbed, then once for every step and everything that can happen there.

    After each, recover and check everything. Returns how often it was done.
    """
    undisturbed = Fate()
    tried = 0
    for fate in chain([undisturbed], fates_at_steps_of(undisturbed)):
        prepare()
        live(scene, fate, work)
        with told(fate):
            recover()
            scene.audit(EVENTS)
        tried += 1
    return tried


def live(scene: Scene, fate: Fate, work: Callable[[Redis], None]) -> None:
    client = fateful_redis(scene.redis_url, fate)
    with fateful_postgres(fate), suppress(Died):
        work(client)
    client.connection_pool.disconnect()


def test_drain_may_end_at_every_step(scene: Scene) -> None:
    def prepare() -> None:
        scene.clear()
        scene.push(EVENTS)

    assert try_every_step(scene, prepare, scene.live_as_drain, scene.recover) > 100


def test_publisher_may_end_at_every_step(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("petard_worker.publish.CHUNK", 3)

    def prepare() -> None:
        scene.clear()
        scene.push(FIRST)
        scene.drain()
        scene.publish()
        scene.push(REST)
        scene.drain()

    assert try_every_step(scene, prepare, scene.live_as_publisher, scene.publish) > 30


def test_dispatcher_may_end_at_every_step(scene: Scene) -> None:
    def prepare() -> None:
        scene.clear()
        scene.push(EVENTS)

    def recover() -> None:
        scene.let_leases_run_out()
        run_worker(scene.settings, Event(), burst=True)
        scene.publish()

    assert try_every_step(scene, prepare, scene.live_as_dispatcher, recover) > 30
