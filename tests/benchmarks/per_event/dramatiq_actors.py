"""`python -m benchmarks.per_event.dramatiq_actors`: one message to a dramatiq actor per event, through Redis.

As somebody would who knows dramatiq: its usual middleware, one process with its usual eight threads, so that
Postgres can write several commits at once, and retries that come soon. It promises less than Petard: eight
games at a time in no order, so the games of a player change places without anything having failed.
"""

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.per_event.queues import events_to_queue
from benchmarks.per_event.rate_game import rate_game

THREADS = 8
RETRIES, SOONEST_RETRY_MS = 3, 10


def main() -> None:
    """Queue everything, then be the worker until nothing is left."""
    broker = RedisBroker(url=os.environ["PETARD_REDIS_URL"])
    actor = dramatiq.actor(
        rate_game,
        actor_name="rate_game",
        broker=broker,
        max_retries=RETRIES,
        min_backoff=SOONEST_RETRY_MS,
    )
    for event in events_to_queue():
        actor.send(event)
    worker = dramatiq.Worker(broker, worker_threads=THREADS)
    worker.start()
    broker.join(actor.queue_name)
    worker.stop()


if __name__ == "__main__":
    main()
