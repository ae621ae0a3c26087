"""How fast a command works, by the pokes it sends, one a chunk: its start-up does not count."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from redis.client import PubSub

from benchmarks.roles import Role, start
from benchmarks.servers import Place
from petard_worker.cli.errors import CommandFailed
from petard_worker.redis_client import connect_redis

PATIENCE_SECONDS = 600
LOOK_SECONDS = 0.2


def rate_by_pokes(moments: Sequence[float], total: int, chunk: int) -> float:
    """Return how many a second were sent, from the first chunk to the last."""
    if len(moments) < 2:
        raise ValueError("one chunk took everything: more events are needed to measure a rate")
    return (total - chunk) / (moments[-1] - moments[0])


@contextmanager
def poking(place: Place, channel: str, *arguments: str) -> Iterator[tuple[Role, Iterator[float]]]:
    """Run `petard …`; yield it with the moments of its pokes, each as it comes."""
    with connect_redis(place.redis_url) as client, client.pubsub(ignore_subscribe_messages=True) as heard:
        heard.subscribe(channel)
        heard.get_message(timeout=LOOK_SECONDS)
        with start(place, *arguments) as role:
            yield role, pokes(heard, role)


def pokes(heard: PubSub, role: Role) -> Iterator[float]:
    """Yield when each poke came."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if heard.get_message(timeout=LOOK_SECONDS) is not None:
            yield time.monotonic()
        else:
            role.check()
    raise CommandFailed(f"the command did not end within {PATIENCE_SECONDS} s:\n{role.log()[-2000:]}")


def chunks_of(total: int, chunk: int) -> int:
    """Return how many pokes that many make."""
    return math.ceil(total / chunk)
