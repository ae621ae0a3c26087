"""Replay of dead letters: back into the queue, where they are judged again like any event.

Safe by the ledger: an event that counted meanwhile is a repeat and changes nothing. Send, then mark: killed
in between, the letter stays open and may be replayed again.
"""

from collections.abc import Iterable, Iterator

from redis import Redis

from petard_schema import Keys
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.dead_letters import KeptLetter, mark_letter


def replay(
    connection: Connection, redis: Redis, keys: Keys, letters: Iterable[KeptLetter], actor: str
) -> Iterator[KeptLetter]:
    """Push each letter's bytes to the list of its pool again and mark it; yield it when that is done.

    The letters are those that were handed in: one that fails again comes back as open, and is not picked up
    a second time.
    """
    for letter in letters:
        redis.rpush(keys.events(letter.pool), letter.body)
        redis.publish(keys.pushed(), letter.pool)
        mark_letter(connection, letter, "replayed", actor)
        yield letter
