"""One round trip that puts elements onto the lists of their pools."""

from collections.abc import Mapping, Sequence

from redis import Redis
from redis.exceptions import NoPermissionError, ResponseError

from petard_schema import Keys

CHUNK = 500
"""Events per round trip: at most 10 MB, as an event has at most 16 KiB, and 4 more if signed."""


class Lists:
    """The lists of a Redis, and the poke that tells of new elements."""

    def __init__(self, client: Redis, keys: Keys, *, poke: bool) -> None:
        self._client = client
        self._keys = keys
        self._poke = poke

    def append(self, elements_by_pool: Mapping[str, Sequence[bytes]]) -> Mapping[str, ResponseError]:
        """Append the elements in their order, and return the pools whose elements Redis refused, with why.

        When the connection is lost, redis.ConnectionError or TimeoutError is raised: some, all or none are
        on their lists.
        """
        with self._client.pipeline(transaction=False) as pipe:
            for pool, elements in elements_by_pool.items():
                pipe.rpush(self._keys.events(pool), *elements)
            if self._poke:
                for pool in elements_by_pool:
                    pipe.publish(self._keys.pushed(), pool)
            replies = pipe.execute(raise_on_error=False)
        pushes, pokes = replies[: len(elements_by_pool)], replies[len(elements_by_pool) :]
        for reply in pushes:
            # A server that still loads its data, or wants a password by now, says so in a reply.
            if isinstance(reply, Exception) and not isinstance(reply, ResponseError):
                raise reply
        if any(isinstance(reply, NoPermissionError) for reply in pokes):
            # The events are on their lists; a poke that is forbidden now would be forbidden every time.
            self._poke = False
        return {
            pool: reply
            for pool, reply in zip(elements_by_pool, pushes, strict=True)
            if isinstance(reply, ResponseError)
        }

    def disconnect(self) -> None:
        """End what is under way: a thread that waits for a reply sees a lost connection."""
        self._client.connection_pool.disconnect()
