"""How fast the ledger becomes a change stream and a leaderboard, and how fast a follower reads the stream."""

import time
from collections.abc import Sequence
from itertools import islice
from typing import cast

from benchmarks.games import POOL, season
from benchmarks.lines import RATE, Line, Measured, at_least
from benchmarks.pipeline import rate_of_backlog
from benchmarks.plan import Plan
from benchmarks.pokes import chunks_of, poking, rate_by_pokes
from benchmarks.servers import Place, Servers
from petard_producer import Follower
from petard_producer.connect import connect_to_follow
from petard_producer.follow import BATCH
from petard_schema import Keys
from petard_worker.pool_settings import PoolSettings
from petard_worker.publish import CHUNK

CHANGES = "changes/s"
LINES = (
    Line("drained", "drain, a backlog and no publisher", RATE),
    Line("published", "publisher, stream and leaderboard, everything applied", RATE),
    Line("published_over_drained", "publisher / drain", "", at_least(1)),
    Line("stream_floor", "Redis alone, the stream by XREAD", CHANGES),
    Line("followed", "Follower, from the beginning", CHANGES, at_least(50_000)),
)


def lines(_plan: Plan) -> Sequence[Line]:
    return LINES


def measure(servers: Servers, plan: Plan) -> Measured:
    """Drain a backlog, then publish it, then follow it."""
    with servers.place() as place:
        drained = rate_of_backlog(place, {POOL: season(plan.events, plan.players)})
        yield "drained", drained
        # What a stream does not hold is not published.
        published = rate_of_publisher(place, min(plan.events, PoolSettings().stream_length))
        yield "published", published
        yield "published_over_drained", published / drained
        yield "stream_floor", rate_of_reading(place)
        yield "followed", rate_of_follower(place)


def rate_of_publisher(place: Place, total: int) -> float:
    """Return how many entries a second a publisher appends, the board with them; start-up not counted."""
    with poking(place, Keys().changed(), "publisher", "--once") as (_, moments):
        return rate_by_pokes(list(islice(moments, chunks_of(total, CHUNK))), total, CHUNK)


def rate_of_reading(place: Place) -> float:
    """Return how many entries a second are read as a follower reads them, unparsed."""
    stream = Keys().changes(POOL)
    last, count = b"0-0", 0
    with connect_to_follow(place.redis_url) as client:
        started = time.perf_counter()
        while replies := client.xread({stream: last}, count=BATCH):
            ((_, entries),) = cast("list[tuple[bytes, list[tuple[bytes, object]]]]", replies)
            last, count = entries[-1][0], count + len(entries)
        return count / (time.perf_counter() - started)


def rate_of_follower(place: Place) -> float:
    """Return how many changes a second a follower yields, validated and in order."""
    with Follower.from_url(place.redis_url, pool=POOL) as follower:
        oldest, newest = follower.oldest(), follower.newest()
        assert oldest is not None
        assert newest is not None
        count = newest.seq - oldest.seq + 1
        after = oldest.before() if oldest.seq > 1 else None
        started = time.perf_counter()
        for _ in islice(follower.follow(after), count):
            pass
        return count / (time.perf_counter() - started)
