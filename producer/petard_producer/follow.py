"""Follow the rating changes of a pool."""

import logging
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Self, cast

from pydantic import ValidationError
from redis import Redis
from redis.backoff import ExponentialWithJitterBackoff

from petard_producer.connect import BLOCK_S, LOST_CONNECTION, connect_to_follow, worth_retrying
from petard_producer.position import Position, check_successor
from petard_producer.snapshot import Snapshot
from petard_schema import Keys, RatingChanged
from petard_schema.names import check_pool

log = logging.getLogger(__name__)

BATCH = 500
FIELD = b"event"

RawEntry = tuple[bytes, dict[bytes, bytes]]
"""ID and fields, as they stand in the stream."""


class EntryUnreadable(Exception):  # noqa: N818 - found, not made, by who raises it
    """An entry of the stream is no rating-changed event of its place: somebody else wrote to the stream.

    For example:

        try:
            for change in follower.follow(after=last):
                show(change)
        except EntryUnreadable as broken:
            page_somebody(f"{broken.stream} holds rubbish at {broken.entry}: {broken.detail}")
    """

    def __init__(self, stream: str, entry: str, detail: str) -> None:
        super().__init__(stream, entry, detail)
        self.stream = stream
        self.entry = entry
        self.detail = detail

    def __str__(self) -> str:
        return f"entry {self.entry} of {self.stream} is unreadable: {self.detail}"


class Follower:
    """Follows the change stream of one pool.

        with Follower.from_url("redis://127.0.0.1:6379/0", pool="chess-blitz") as follower:
            for change in follower.follow(after=Position.parse(remembered)):
                for one in change.data.changes:
                    print(one.player, one.before.rating, one.after.rating)
                remembered = str(Position.of(change))

    What it promises:

    1. It yields every entry after the position it was given, in order, each one once: 42, 43, 44, …
    2. It never skips. An entry that is not the successor of the last one is not yielded: GapFound is raised.
    3. A stream that was trimmed beyond our position, before we started or while we were away, is such a gap.
       `oldest()` is how far it goes back; `snapshot()` is how to start over.
    4. From the beginning (`after=None`) means from the first entry of the pool: a stream whose seq 1 has
       been trimmed away is a gap too.
    5. When the epoch rises it raises EpochChanged before it yields anything of the new epoch.
    6. A lost connection, or a Redis that restarts, is waited for as long as it takes; then it goes on where
       it was.
    7. A Redis that lost entries, or all of them, is waited for until the publisher has refilled it beyond
       our position: nothing is yielded a second time. A refill that starts too late is a gap.
    8. An entry that cannot be read, or does not belong where it stands, raises EntryUnreadable.
    9. `stop()` from any thread ends the iteration within two seconds while Redis answers, within about ten
       while it hangs. Entries that were read and not yielded are not lost: the position is yours.
    10. It remembers nothing and writes nothing. Store the position of the last change together with what you
        did about it, and nothing is done twice after a crash either.

    What it cannot see: entries that the ledger lost *and* replaced under the same epoch. The publisher raises
    the epoch so that this does not happen. A refused login or a missing right is raised, not waited for.
    """

    def __init__(self, client: Redis, *, pool: str, prefix: str = "petard") -> None:
        """Follow through a client from `connect_to_follow`; others time out or retry in the wrong place."""
        self._client = client
        self._pool = check_pool(pool)
        self._stream = Keys(prefix).changes(pool)
        self._board = Keys(prefix).leaderboard(pool)
        self._stopped = threading.Event()

    @classmethod
    def from_url(cls, url: str, *, pool: str, prefix: str = "petard") -> Self:
        """Follow a pool in the Redis at `url`, through a connection of its own."""
        return cls(connect_to_follow(url), pool=pool, prefix=prefix)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop, and close the connection."""
        self.stop()
        self._client.close()

    def stop(self) -> None:
        """End every iteration of this follower, from any thread and for good."""
        self._stopped.set()

    def newest(self) -> Position | None:
        """Return the position of the newest entry, None where there is none: to follow from now on.

        Raises redis.ConnectionError or redis.TimeoutError when Redis does not answer.
        """
        entries = cast("list[RawEntry]", self._client.xrevrange(self._stream, count=1))
        return self._position(entries[0][0]) if entries else None

    def oldest(self) -> Position | None:
        """Return the position of the first entry that the stream still has, None where there is none.

        That is the bound: who has seen the entry before it, or any later one, can go on without a snapshot.
        It moves on while entries are published; the pool's setting `stream_length` says how many are kept.
        """
        entries = cast("list[RawEntry]", self._client.xrange(self._stream, count=1))
        return self._position(entries[0][0]) if entries else None

    def snapshot(self) -> Snapshot:
        """Return the leaderboard, and the position to follow after.

        Needs the right to read the leaderboard. Raises redis.ConnectionError or redis.TimeoutError when Redis
        does not answer. A board of a million players holds Redis up for about half a second.
        """
        with self._client.pipeline(transaction=True) as both:
            both.xrevrange(self._stream, count=1)
            both.zrange(self._board, 0, -1, withscores=True)
            newest, scores = cast("tuple[list[RawEntry], list[tuple[bytes, float]]]", both.execute())
        return Snapshot(
            self._position(newest[0][0]) if newest else None,
            {player.decode(): score for player, score in reversed(scores)},
        )

    def follow(self, after: Position | None = None) -> Iterator[RatingChanged]:
        """Yield every change after a position, or from the first of the pool; wait for more until stopped.

        From now on: `follow(after=follower.newest())`.
        """
        last = after
        while not self._stopped.is_set():
            # Numbers and no positions: to make one takes longer than to see that the usual entry comes next.
            epoch, seq = (0, 0) if last is None else (last.epoch, last.seq)
            for entry_id, fields in self._wait_for_entries(last):
                if self._stopped.is_set():
                    return
                change = self._change(entry_id, fields)
                said = change.data
                if said.seq != seq + 1 or said.epoch != epoch:
                    check_successor(_place(epoch, seq), Position.of(change))
                epoch, seq = said.epoch, said.seq
                yield change
            last = _place(epoch, seq)

    def _wait_for_entries(self, last: Position | None) -> list[RawEntry]:
        """Return the entries after `last`, none when stopped or when none came; outlast a lost connection."""
        backoff = ExponentialWithJitterBackoff(base=0.05, cap=1.0)
        failures = 0
        while not self._stopped.is_set():
            try:
                entries = self._read(last)
            except LOST_CONNECTION as error:
                if not worth_retrying(error):
                    raise
                if failures == 0:
                    log.warning("redis_lost stream=%s after=%s error=%s", self._stream, last, error)
                failures += 1
                self._stopped.wait(backoff.compute(failures))
                continue
            if failures:
                log.info("redis_found stream=%s after=%s failures=%d", self._stream, last, failures)
            return entries
        return []

    def _read(self, last: Position | None) -> list[RawEntry]:
        # XREAD waits for an ID above ours, however often the stream vanishes and grows again below it.
        after = "0-0" if last is None else str(last)
        replies = self._client.xread({self._stream: after}, count=BATCH, block=int(BLOCK_S * 1000))
        return [
            entry for _, entries in cast("list[tuple[bytes, list[RawEntry]]]", replies) for entry in entries
        ]

    def _position(self, entry_id: bytes) -> Position:
        try:
            return Position.parse(entry_id.decode())
        except ValueError as error:
            raise EntryUnreadable(self._stream, entry_id.decode(), str(error)) from None

    def _change(self, entry_id: bytes, fields: dict[bytes, bytes]) -> RatingChanged:
        if FIELD not in fields:
            raise EntryUnreadable(self._stream, entry_id.decode(), "it has no field 'event'")
        try:
            change = RatingChanged.model_validate_json(fields[FIELD])
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            path = ".".join(str(part) for part in first["loc"])
            detail = f"{path or 'event'}: {first['msg']}"
            raise EntryUnreadable(self._stream, entry_id.decode(), detail) from None
        said = change.data
        if entry_id != b"%d-%d" % (said.epoch, said.seq) or said.pool != self._pool:
            position = self._position(entry_id)
            claim = f"it says that it is {Position.of(change)} of {said.pool}"
            raise EntryUnreadable(self._stream, str(position), claim)
        return change


def _place(epoch: int, seq: int) -> Position | None:
    """Return the position with these numbers; epoch 0 is before all entries."""
    return Position(epoch, seq) if epoch else None
