"""Where a rating would stand on a pool's board; it need be nobody's."""

from datetime import datetime

from petard_worker.pool_settings import pool_settings
from petard_worker.postgres.boards import list_by
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.pool_stats import count_scores
from petard_worker.postgres.pools import Pool
from petard_worker.ratings.calculator import Percentile, percentile_of_counts


def rating_percentile(
    connection: Connection, pool: Pool, rating: float, now: datetime, rd: float = 0.0
) -> Percentile | None:
    """Return where a rating, in the pool's own points, would stand on the board now; None on an empty one.

    The board's rule: the share of listed players with a lower score, equal ones counted half. Where the pool
    ranks by rating - 2 RD, so is the rating taken; an RD of 0 is that of a rating known exactly.
    """
    listing = list_by(pool.name, pool_settings(pool.settings), now)
    score = rating - 2 * rd if listing.conservative else rating
    counts = count_scores(connection, listing, score)
    return percentile_of_counts(counts.lower, counts.equal, counts.players) if counts.players else None
