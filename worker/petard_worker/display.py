"""The display range of a pool: ratings as players see them, 0-3000 shown as 0-10000, say."""

from petard_worker.pool_settings import pool_settings
from petard_worker.postgres.pools import Pool
from petard_worker.scale import AS_IT_IS, Scale


def displayed(pool: Pool, rating: float) -> float:
    """Return the rating as it is shown: mapped from the pool's limits to its display range, if it has one."""
    return scale_of(pool).shown(rating)


def undisplayed(pool: Pool, shown: float) -> float:
    """Return the rating that is shown as this one: `displayed` the other way round."""
    return scale_of(pool).rating(shown)


def displayed_width(pool: Pool, width: float) -> float:
    """Return a deviation, or a difference of ratings, as it is shown: it grows as the range does."""
    return width * scale_of(pool).factor


def scale_of(pool: Pool) -> Scale:
    """Return how the pool's ratings are mapped; as they are where it has no display range."""
    settings = pool_settings(pool.settings)
    low, high = settings.display_low, settings.display_high
    lowest, highest = pool.parameters.get("rating_min"), pool.parameters.get("rating_max")
    if low == high or not isinstance(lowest, float | int) or not isinstance(highest, float | int):
        return AS_IT_IS
    if lowest == highest:  # the only rating there is
        return AS_IT_IS
    return Scale(lowest, low, (high - low) / (highest - lowest))
