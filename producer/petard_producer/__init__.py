"""The client side of Petard: push games, follow rating changes. Needs msgspec, pydantic and redis only."""

from petard_producer.event_ids import new_event_id
from petard_producer.follow import EntryUnreadable, Follower
from petard_producer.position import EpochChanged, GapFound, Position, SnapshotNeeded
from petard_producer.push import Producer
from petard_producer.sides import draw, duel, finish_order, without_result
from petard_producer.snapshot import Snapshot
from petard_producer.spool_errors import SpoolBusy, SpoolError, SpoolFull, SpoolUnusable
from petard_producer.through_spool import Spooled
from petard_schema import (
    AbandonedGame,
    EventRefused,
    FinishedGame,
    GameAbandoned,
    GameFinished,
    RatingChanged,
    Side,
    UnrankedSide,
)

__all__ = [
    "AbandonedGame",
    "EntryUnreadable",
    "EpochChanged",
    "EventRefused",
    "FinishedGame",
    "Follower",
    "GameAbandoned",
    "GameFinished",
    "GapFound",
    "Position",
    "Producer",
    "RatingChanged",
    "Side",
    "Snapshot",
    "SnapshotNeeded",
    "SpoolBusy",
    "SpoolError",
    "SpoolFull",
    "SpoolUnusable",
    "Spooled",
    "UnrankedSide",
    "draw",
    "duel",
    "finish_order",
    "new_event_id",
    "without_result",
]
