"""How a pool is shown and published, and whom it hears.

Nothing here touches a rating, so a change needs no new version.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from petard_worker.ratings.parameters import ParameterValue, build, choice, integer, number, switch


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """Settings of a pool; ratings and deviations in rating points."""

    ranked_by: str = choice(
        "rating", ("rating", "conservative"), "rank by rating, or by rating - 2 RD (conservative)"
    )
    provisional_rd: float = number(110, 0, 1_000, "a player with a larger deviation is provisional")
    hide_provisional: bool = switch(False, "whether provisional players are left out of the board")
    hide_inactive_days: float = number(
        0, 0, 100_000, "players without a rated event for so many days are left out of the board; 0: nobody"
    )
    display_low: float = number(0, -1e6, 1e6, "what the pool's lowest rating is shown as")
    display_high: float = number(0, -1e6, 1e6, "what the highest rating is shown as; both 0: as it is")
    stream_length: int = integer(
        100_000, 100, 10_000_000, "about how many ledger entries stay in the change stream"
    )
    require_signature: bool = switch(False, "whether events that are not signed become dead letters")


def pool_settings(given: Mapping[str, ParameterValue]) -> PoolSettings:
    """Return the settings with defaults for what is not given, or raise BadParameterError."""
    return build(PoolSettings, given, what="setting")


def as_given(settings: PoolSettings) -> dict[str, ParameterValue]:
    """Return the settings as they are stored."""
    return asdict(settings)


def signed_only(given: Mapping[str, ParameterValue]) -> bool:
    """Return whether a pool with these settings takes signed events only.

    The one setting that applying events asks for: others, of a later version, say, must not stop a pool.
    """
    return given.get("require_signature", False) is not False
