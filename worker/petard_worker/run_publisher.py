"""The publisher role: waits to be the active one, then publishes until it is stopped."""

import time
from collections.abc import Callable
from threading import Event

import psycopg
import redis
import structlog
from redis import Redis
from redis.client import PubSub

from petard_schema import Keys
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.outbox import try_publisher_lock
from petard_worker.postgres.session import Session
from petard_worker.publish import Publisher

log = structlog.get_logger()

STOP_SECONDS = 0.25
"""A stop is seen so soon while nothing happens."""
STANDBY_SECONDS = 0.5
WAIT_SECONDS = 0.2


def run_publisher(connect: Callable[[], Connection], client: Redis, keys: Keys, stop: Event) -> None:
    """Publish until the stop; servers that are away are waited for."""
    session = Session(connect)
    while not stop.is_set():
        try:
            publish_while_active(session.open(), client, keys, stop)
        except (psycopg.Error, redis.RedisError) as error:
            # A new session and no cursor after any failure: Redis may be empty, the lock may be another's.
            log.warning("publishing_interrupted", error=str(error).strip())
            session.close()
            stop.wait(WAIT_SECONDS)
    session.close()


def publish_while_active(connection: Connection, client: Redis, keys: Keys, stop: Event) -> None:
    """Wait for the fleet's publisher lock, then publish until the stop."""
    standing_by = False
    while not try_publisher_lock(connection):
        if not standing_by:
            log.info("publisher_standing_by")
        standing_by = True
        if stop.wait(STANDBY_SECONDS):
            return
    log.info("publisher_active")
    publisher = Publisher(connection, client, keys)
    with client.pubsub() as pokes:  # type: ignore[no-untyped-call]
        pokes.subscribe(keys.committed())
        poked: set[str] = set()
        while not stop.is_set():
            started = time.monotonic()
            if (
                count := publisher.publish_once()
                if publisher.is_look_due()
                else publisher.publish_poked(poked)
            ):
                took_ms = round((time.monotonic() - started) * 1000, 1)
                log.info("entries_published", entries=count, took_ms=took_ms)
            poked = wait_for_pokes(pokes, publisher) | publisher.behind


def wait_for_pokes(pokes: PubSub, publisher: Publisher) -> set[str]:
    """Return the pools that drains have poked about, as soon as one does; wait for none if there is work."""
    poked: set[str] = set()
    message = pokes.get_message(timeout=0 if publisher.behind or publisher.is_look_due() else STOP_SECONDS)
    while message is not None:
        if message["type"] == "subscribe":
            # Also after Redis was lost: pokes were, too, and perhaps more.
            publisher.suspect_redis()
        else:
            poked.add(message["data"].decode(errors="replace"))
        message = pokes.get_message(timeout=0)
    return poked


def publish_rest(connect: Callable[[], Connection], client: Redis, keys: Keys) -> int:
    """Publish what is there and return how many entries that was.

    Raises PublisherActiveError when another publisher is at work: it will have published them.
    """
    session = Session(connect)
    try:
        connection = session.open()
        if not try_publisher_lock(connection):
            raise PublisherActiveError("another publisher is active and publishes everything already")
        publisher = Publisher(connection, client, keys)
        total = 0
        while count := publisher.publish_once():
            total += count
        return total
    finally:
        session.close()


class PublisherActiveError(Exception):
    """Another publisher of the fleet holds the lock."""
