"""Where everybody stands on the leaderboard, and the place in the change stream that belongs to it."""

from collections.abc import Mapping
from dataclasses import dataclass

from petard_producer.position import Position


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The leaderboard of a pool and the newest entry of its stream, read in one step.

    For example:

        snapshot = follower.snapshot()
        show_board(snapshot.scores)
        for change in follower.follow(after=snapshot.position):
            show(change)

    The publisher moves both in one step, so every entry up to `position` is in the scores. They may be ahead
    of it, by what was rated since: the entries that follow then set some scores back for a moment, and end
    with the same board, since each says where its players stood after it.
    """

    position: Position | None
    """The newest entry of the stream; None where it holds none."""
    scores: Mapping[str, float]
    """Ranking scores of all players on the board, highest first.

    The rating, or rating - 2 RD where the pool is ranked so. Bombs and deviations are not on it, nor are
    those whom the pool leaves out: players without a rated event, provisional or inactive ones if it is set
    so.
    """
