"""The display range of a pool: ratings as players see them, 0-3000 shown as 0-10000, say."""

from petard_worker.pool_settings import pool_settings
from petard_worker.postgres.pools import Pool


def displayed(pool: Pool, rating: float) -> float:
    """Return the rating as it is shown: mapped from the pool's limits to its display range, if it has one.

    A deviation is never mapped: it is a width and not a place.
    """
    settings = pool_settings(pool.settings)
    low, high = settings.display_low, settings.display_high
    lowest, highest = pool.parameters.get("rating_min"), pool.parameters.get("rating_max")
    if low == high or not isinstance(lowest, float | int) or not isinstance(highest, float | int):
        return rating
    return low + (rating - lowest) * (high - low) / (highest - lowest)
