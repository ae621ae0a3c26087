"""Dead letters back into the queue, where they are judged again like any event, or discarded.

A replay is safe by the ledger: an event that counted meanwhile is a repeat and changes nothing. Send, then
mark: killed in between, letters stay open and may be replayed again.

Which letters are meant is decided by their ids before the first one is sent (`dead_letters.find_ids`): one
that fails again comes back as open, and is not picked up a second time.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from redis import Redis

from petard_schema import Keys
from petard_worker.chunks import chunks
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.dead_letters import discard_letters, mark_replayed, read_open
from petard_worker.push import push_lines

CHUNK = 100
"""Letters in memory at once: their bodies may be large."""


def replay(connection: Connection, redis: Redis, keys: Keys, ids: Iterable[int], actor: str) -> Iterator[int]:
    """Push those letters that are open to the lists of their pools, in the order of `ids`, chunk by chunk.

    Yields how many were pushed and marked by each chunk.
    """
    for chunk in chunks(ids, CHUNK):
        letters = read_open(connection, chunk)
        for pool, same_pool in groupby(letters, key=lambda letter: letter.pool):
            push_lines(redis, keys, pool, [letter.body for letter in same_pool])
        mark_replayed(connection, letters, actor)
        yield len(letters)


def discard(connection: Connection, ids: Iterable[int], actor: str) -> Iterator[int]:
    """Mark those letters that are open as done with, chunk by chunk; yields how many of each chunk."""
    for chunk in chunks(ids, CHUNK):
        yield discard_letters(connection, chunk, actor)
