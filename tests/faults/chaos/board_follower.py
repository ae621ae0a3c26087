"""A live leaderboard that lives through it all: it follows the changes, and starts over when it has to."""

import threading
from typing import Self, cast

import redis
from redis import Redis

from faults.fleet import POOL
from petard_producer import Follower, Position, RatingChanged, SnapshotNeeded
from petard_schema import Keys


class BoardFollower:
    """Holds a board of its own, kept up to date by a thread."""

    def __init__(self, url: str, keys: Keys) -> None:
        """Follow the pool from its first entry on."""
        self._url = url
        self._keys = keys
        self._follower = Follower.from_url(url, pool=POOL, prefix=keys.prefix)
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)
        self.board: dict[str, float] = {}
        self.position: Position | None = None
        self.entries = 0
        self.snapshots = 0
        self.failure: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._follower.stop()
        self._thread.join()
        self._follower.close()

    def _run(self) -> None:
        try:
            while not self._follow():
                self.snapshots += 1
                self._start_over()
        # The edge of the thread: whatever it is, a follower must not die of it, and the report says so.
        except Exception as error:  # noqa: BLE001
            self.failure = error

    def _follow(self) -> bool:
        """Follow until stopped; False when a snapshot is needed."""
        try:
            for change in self._follower.follow(after=self.position):
                self._take(change)
        except SnapshotNeeded:
            return False
        return True

    def _take(self, change: RatingChanged) -> None:
        for one in change.data.changes:
            # An abandon without a penalty puts nobody on the board.
            if one.player in self.board or one.after.games or one.explanation.penalty:
                self.board[one.player] = one.after.rating
        self.position = Position.of(change)
        self.entries += 1

    def _start_over(self) -> None:
        """Take the board as it is, and the position it was taken at, both at one moment."""
        while True:
            try:
                self.board, self.position = read_snapshot(self._url, self._keys)
            except redis.RedisError:
                threading.Event().wait(0.1)
            else:
                return


def read_snapshot(url: str, keys: Keys) -> tuple[dict[str, float], Position | None]:
    """Return the board and the newest position of its stream, of one moment."""
    with Redis.from_url(url, socket_timeout=5) as client, client.pipeline(transaction=True) as both:
        both.zrange(keys.leaderboard(POOL), 0, -1, withscores=True)
        both.xrevrange(keys.changes(POOL), count=1)
        rows, newest = both.execute()
    board = {player.decode(): score for player, score in cast("list[tuple[bytes, float]]", rows)}
    return board, Position.parse(newest[0][0].decode()) if newest else None
