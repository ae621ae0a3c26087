"""Does the leaderboard show what the rating table says? While both move.

The publisher moves the board and the stream in one step, to scores that are no older than the stream's last
entry. So a player may be shown with any score the table has had since that entry, and with no other. Who
differs is looked at again for a few seconds: a board that is being rebuilt, after other settings or a wipe,
is not damage.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, cast

from redis import Redis

from petard_schema import Keys
from petard_worker.board import REFRESH_SECONDS
from petard_worker.change_stream import last_stream_id
from petard_worker.chunks import chunks
from petard_worker.pool_settings import pool_settings
from petard_worker.postgres.audit import Score, find_scores_since
from petard_worker.postgres.boards import Listing, list_by, read_board, read_scores
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.pools import Pool, get_pool
from petard_worker.verify.differences import MISSING, Differences, Where

CHUNK = 1_000
LOOKS = 15
SECONDS_BETWEEN_LOOKS = 0.2
BOARD_MISSING = "not there: the publisher will rebuild it"
STILL_THERE = timedelta(seconds=2 * REFRESH_SECONDS)
"""A player who becomes inactive leaves the board with its next refresh."""


class BoardReport(NamedTuple):
    """What of the board was compared."""

    players: int
    """How many the table lists."""
    looked_again: int
    """How many differed at first."""


@dataclass(frozen=True)
class BoardAudit:
    """The board of one pool beside the table."""

    connection: Connection
    redis: Redis
    keys: Keys
    pool: str
    found: Differences

    def check(self) -> BoardReport:
        """Compare everybody the table lists, and everybody on the board."""
        listed, suspects = 0, set[str]()
        listing = self.listing()
        if listing is None:
            return BoardReport(0, 0)
        with self.connection.transaction():
            for due in read_board(self.connection, listing, CHUNK):
                listed += len(due)
                shown = self.shown(list(due))
                suspects.update(player for player in due if shown[player] != due[player])
        if listed and not self.redis.exists(self.key) and not self.comes_back():
            self.found.add(Where.BOARD, "board", BOARD_MISSING, f"{listed} players")
            return BoardReport(listed, 0)
        for members in chunks(self.members(), CHUNK):
            names = {name: member for member in members if (name := as_name(member)) is not None}
            for stranger in set(members) - set(names.values()):
                name = stranger.decode(errors="backslashreplace")
                self.found.add(
                    Where.BOARD, "score", self.redis.zscore(self.key, stranger), MISSING, player=name
                )
            suspects.update(names.keys() - read_scores(self.connection, listing, names).keys())
        for players in chunks(sorted(suspects), CHUNK):
            self.look_again(players)
        return BoardReport(listed, len(suspects))

    def look_again(self, players: Sequence[str]) -> None:
        """Take note of those who go on to differ."""
        for look in range(LOOKS):
            if look:
                time.sleep(SECONDS_BETWEEN_LOOKS)
            wrong = self.wrong_now(players)
            players = [player for player, _, _ in wrong]
            if not players:
                return
        for player, shown, due in wrong:
            self.found.add(
                Where.BOARD,
                "score",
                MISSING if shown is None else shown,
                MISSING if due is None else due,
                player=player,
            )

    def wrong_now(self, players: Sequence[str]) -> list[tuple[str, float | None, float | None]]:
        """Return who is shown with a score that is neither of now nor of any time since the last entry."""
        pool, listing = self.find_pool(), self.listing()
        if pool is None or listing is None:
            return []
        # In this order: whatever happens in between, the table has all that the board can show.
        last = last_stream_id(self.redis, self.keys, self.pool)
        shown = self.shown(players)
        due = read_scores(self.connection, listing, players)
        leaving = self.leaving(listing, players)
        seq = last.seq if last.epoch == pool.epoch else pool.seq
        possible = find_scores_since(self.connection, listing, players, seq)
        return [
            (player, shown[player], due.get(player))
            for player in players
            if shown[player] != due.get(player)
            and Score(player, shown[player]) not in possible
            and shown[player] != leaving.get(player, MISSING)
        ]

    def leaving(self, listing: Listing, players: Sequence[str]) -> dict[str, float]:
        """Return the scores of those who are inactive for so short a time that they may still be shown."""
        if listing.oldest is None:
            return {}
        return read_scores(self.connection, listing._replace(oldest=listing.oldest - STILL_THERE), players)

    def comes_back(self) -> bool:
        """Return whether a board that is not there is there a few seconds later."""
        for _ in range(LOOKS):
            time.sleep(SECONDS_BETWEEN_LOOKS)
            if self.redis.exists(self.key):
                return True
        return False

    def shown(self, players: Sequence[str]) -> dict[str, float | None]:
        """Return the scores these players have on the board."""
        return dict(zip(players, self.redis.zmscore(self.key, list(players)), strict=True))

    def members(self) -> Iterator[bytes]:
        """Yield everybody on the board, some of them more often than once."""
        pairs = cast("Iterator[tuple[bytes, float]]", self.redis.zscan_iter(self.key, count=CHUNK))
        return (member for member, _ in pairs)

    def listing(self) -> Listing | None:
        """Return who is listed now, by the pool's settings of now."""
        pool = self.find_pool()
        return None if pool is None else list_by(self.pool, pool_settings(pool.settings), datetime.now(UTC))

    def find_pool(self) -> Pool | None:
        """Return the pool as it is now."""
        return get_pool(self.connection, self.pool)

    @property
    def key(self) -> str:
        """Name the board."""
        return self.keys.leaderboard(self.pool)


def as_name(member: bytes) -> str | None:
    """Return the name, or None when it is none that Postgres could hold."""
    try:
        name = member.decode()
    except UnicodeDecodeError:
        return None
    return None if "\x00" in name else name
