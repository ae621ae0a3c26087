"""The worker role: RQ runs the drains in the main thread, the dispatcher looks for work in another."""

import time
import uuid
from collections.abc import Callable
from functools import partial
from threading import Event, Thread

import structlog
from redis import Redis
from redis.exceptions import RedisError

from petard_schema import Keys
from petard_worker.bell import QUEUED_MS
from petard_worker.dispatch import Dispatcher
from petard_worker.garbage import calm_garbage_collector
from petard_worker.jobs import Workshop, allowed_jobs, run_unqueued
from petard_worker.keyring import Keyring
from petard_worker.postgres.connect import Connection, connect_worker
from petard_worker.postgres.session import Session
from petard_worker.recent import RecentLimits, drop_copies
from petard_worker.redis_client import connect_redis
from petard_worker.rq_worker import PetardWorker, connect_for_rq, open_queue
from petard_worker.server_links import warn_about_links
from petard_worker.settings import Settings, file_in_use
from petard_worker.signing_keys import read_signing_keys

log = structlog.get_logger()

BURST_LOOK_SECONDS = 0.1
BURST_PATIENCE_SECONDS = QUEUED_MS / 1000 + 1


def connector(settings: Settings, name: str) -> Callable[[], Connection]:
    """Return a function that connects to Postgres as a worker."""
    return lambda: connect_worker(settings.database_url.get_secret_value(), name)


def open_keyring(settings: Settings) -> Keyring:
    """Return the signing keys of the settings, which follow their file if they have one."""
    return Keyring(read_signing_keys(settings.signing_keys.get_secret_value()), file_in_use("signing_keys"))


def run_worker(settings: Settings, stop: Event, *, burst: bool = False) -> None:
    """Work until the stop, or with `burst` until nothing waits.

    Raises redis.ConnectionError when Redis cannot be reached at the start, psycopg.OperationalError when
    Postgres cannot, SchemaMismatchError when the database is not the one this code knows,
    DispatcherFailedError, and with `burst` EventsLeftError.
    """
    name = f"worker-{uuid.uuid4().hex[:8]}"
    redis_url = settings.redis_url.get_secret_value()
    client = connect_redis(redis_url)
    client.ping()
    warn_about_persistence(client)
    warn_about_links(settings)
    workshop = Workshop(
        client,
        Keys(settings.key_prefix),
        Session(connector(settings, name)),
        stop,
        settings.batch_size,
        settings.slice_seconds,
        keyring=open_keyring(settings),
        recent=RecentLimits(settings.recent_seconds, settings.recent_megabytes),
    )
    workshop.session.open()
    prefix = settings.key_prefix
    queue = open_queue(connect_for_rq(redis_url), allowed_jobs(workshop), prefix)
    workshop.queue = open_queue(client, {}, prefix)
    own_client = connect_redis(redis_url)  # the dispatcher's thread shares none
    dispatcher = Dispatcher(
        own_client, workshop.keys, open_queue(own_client, {}, prefix), name, workshop.at_work
    )
    calm_garbage_collector()
    worker = PetardWorker(
        queue,
        stop,
        run_unqueued=partial(run_unqueued, dispatcher.unqueued, workshop),
        on_full=partial(make_room, dispatcher, client, workshop.keys),
    )
    if burst:
        run_burst(dispatcher, worker, stop)
    else:
        run_with_dispatcher(dispatcher, worker, stop)
    workshop.session.close()


def make_room(dispatcher: Dispatcher, client: Redis, keys: Keys) -> None:
    """Spare a full Redis: queue nothing for a while, and drop the copies of what was trimmed."""
    dispatcher.avoid_queue()
    try:
        if pools := drop_copies(client, keys):
            log.warning("recent_dropped", pools=pools, reason="Redis is full: copies go first")
    except RedisError as error:
        log.warning("recent_not_dropped", error=str(error))


class EventsLeftError(Exception):
    """Events wait that no drain takes: their pool is stopped, say."""


class DispatcherFailedError(Exception):
    """The dispatcher has died of a mistake of ours; the log has it. Start the worker again."""


def run_with_dispatcher(dispatcher: Dispatcher, worker: PetardWorker, stop: Event) -> None:
    """Work until the stop, the dispatcher in a thread; raise DispatcherFailedError when it died."""
    failed = Event()

    def dispatch() -> None:
        try:
            dispatcher.run(stop)
        # The edge of the thread: without a dispatcher the worker would be alive and do nothing.
        except Exception:
            log.exception("dispatcher_failed", worker=dispatcher.name)
            failed.set()
            stop.set()

    thread = Thread(target=dispatch, name="dispatcher", daemon=True)
    thread.start()
    log.info("worker_started", worker=dispatcher.name)
    try:
        worker.work()
    finally:
        stop.set()
        thread.join(timeout=5)
    if failed.is_set():
        raise DispatcherFailedError("the dispatcher failed: the log says how")
    log.info("worker_stopped", worker=dispatcher.name)


def run_burst(dispatcher: Dispatcher, worker: PetardWorker, stop: Event) -> None:
    """Drain what is there; raise EventsLeftError when nothing moves though every old bell has expired."""
    worker.work(burst=True)  # submissions that wait in RQ's queue become events first
    left, moved = 0, time.monotonic()
    dispatcher.discover_all()
    while waiting := dispatcher.waiting():
        if waiting != left:
            left, moved = waiting, time.monotonic()
        elif time.monotonic() - moved > BURST_PATIENCE_SECONDS:
            raise EventsLeftError(f"{waiting} events wait that cannot be applied: 'petard status' says where")
        dispatcher.ring()
        if not worker.work(burst=True) and stop.wait(BURST_LOOK_SECONDS):
            return
        dispatcher.discover_all()


def warn_about_persistence(client: Redis) -> None:
    """Say so when this Redis may forget or evict the events that were entrusted to it."""
    wanted = {"appendonly": "yes", "maxmemory-policy": "noeviction"}
    try:
        found = {name: client.config_get(name).get(name) for name in wanted}
    except Exception as error:  # noqa: BLE001 - CONFIG is often forbidden or renamed, and this is only advice
        log.info("redis_settings_unknown", error=str(error))
        return
    for name, value in wanted.items():
        if found[name] != value:
            log.warning("redis_may_lose_events", setting=name, found=found[name], wanted=value)
