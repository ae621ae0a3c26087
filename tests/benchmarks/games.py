"""The games that are played."""

from collections.abc import Sequence
from functools import cache

from petard_worker.simulate import Season, simulate

POOL = "benchmark"
POOLS = ("benchmark-1", "benchmark-2")


@cache
def season(games: int, players: int, pool: str = POOL) -> Sequence[bytes]:
    """Return the events of that many games, in order and without mischief."""
    quiet = Season(pool=pool, players=players, games=games, late_share=0, repeat_share=0, hostile_share=0)
    return list(simulate(quiet))
