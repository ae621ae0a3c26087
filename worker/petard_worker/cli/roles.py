"""The roles that run for long: worker and publisher; and the migrations they need."""

import signal
import threading
from functools import partial
from typing import Annotated

import typer

from petard_worker.cli.errors import CommandFailed
from petard_worker.cli.output import talk
from petard_worker.cli.servers import database_url, redis_client
from petard_worker.log_format import configure_logging
from petard_worker.settings import load_settings


def migrate() -> None:
    """Create or update the tables in the database of PETARD_DATABASE_URL, and load the functions into Redis.

    Without a Redis at hand, or a user who may load functions there, it says so and still succeeds: those who
    call the functions load what they miss if they may.
    """
    from petard_worker.load_functions import load_functions  # noqa: PLC0415
    from petard_worker.postgres.migrate import migrate as run_migrations  # noqa: PLC0415

    settings = load_settings()
    done = run_migrations(database_url(settings))
    for name in done:
        talk(f"applied {name}")
    if not done:
        talk("nothing to do: the database is up to date")
    with redis_client(settings) as client:
        talk(load_functions(client))


def worker(
    burst: Annotated[bool, typer.Option("--burst", help="Apply what is waiting, then exit.")] = False,
) -> None:
    """Apply events: runs drains from RQ's queue, and the dispatcher that queues them.

    Start as many as there are busy pools. SIGTERM finishes the current batch and exits 0.
    """
    from petard_worker.run_worker import DispatcherFailedError, EventsLeftError, run_worker  # noqa: PLC0415

    settings = load_settings()
    configure_logging(settings.log_level)
    try:
        run_worker(settings, stop_event(), burst=burst)
    except (EventsLeftError, DispatcherFailedError) as failed:
        raise CommandFailed(str(failed)) from None


def publisher(
    once: Annotated[bool, typer.Option("--once", help="Publish what is there, then exit.")] = False,
) -> None:
    """Publish the ledger to the change streams and the leaderboards.

    Start two: one is active, the other takes over when it dies.
    """
    from petard_schema import Keys  # noqa: PLC0415
    from petard_worker.postgres.connect import connect_publisher  # noqa: PLC0415
    from petard_worker.redis_client import connect_redis  # noqa: PLC0415
    from petard_worker.run_publisher import PublisherActiveError, publish_rest, run_publisher  # noqa: PLC0415
    from petard_worker.server_links import warn_about_links  # noqa: PLC0415

    settings = load_settings()
    configure_logging(settings.log_level)
    client = connect_redis(settings.redis_url.get_secret_value())
    client.ping()
    warn_about_links(settings)
    keys = Keys(settings.key_prefix)
    connect = partial(connect_publisher, database_url(settings), "publisher")
    if not once:
        run_publisher(connect, client, keys, stop_event())
        return
    try:
        count = publish_rest(connect, client, keys)
    except PublisherActiveError as active:
        raise CommandFailed(str(active)) from None
    talk(f"published {count} ledger entries")


def stop_event() -> threading.Event:
    """Return the flag that SIGTERM and SIGINT set: being stopped is not a failure."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop
