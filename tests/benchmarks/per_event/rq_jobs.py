"""`python -m benchmarks.per_event.rq_jobs`: one RQ job per event.

As somebody would who knows RQ: a job by name with JSON arguments, enqueued in bulk, results not kept; a
SimpleWorker, which does not fork and runs one job at a time. It promises less than Petard: a job that is
retried, or was recovered from a dead worker, goes to the back of the queue, so the games of a player can
change places, and a second worker takes the next game before the first has finished the last one.
"""

import os
from collections.abc import Sequence

from redis import Redis
from rq import Queue, SimpleWorker
from rq.serializers import JSONSerializer

from benchmarks.per_event.queues import events_to_queue

JOB = "benchmarks.per_event.rate_game.rate_game"
CHUNK = 500


def main() -> None:
    """Queue everything, then be the worker."""
    connection = Redis.from_url(os.environ["PETARD_REDIS_URL"])
    queue = Queue("per-event", connection=connection, serializer=JSONSerializer)
    enqueue(queue, events_to_queue())
    worker = SimpleWorker([queue], connection=connection, serializer=JSONSerializer)
    worker.work(burst=True, logging_level="WARNING")


def enqueue(queue: Queue, events: Sequence[str]) -> None:
    """Queue one job per event, some hundreds in a pipeline."""
    for start in range(0, len(events), CHUNK):
        queue.enqueue_many(
            [
                Queue.prepare_data(JOB, (event,), result_ttl=0, failure_ttl=86_400)
                for event in events[start : start + CHUNK]
            ]
        )


if __name__ == "__main__":
    main()
