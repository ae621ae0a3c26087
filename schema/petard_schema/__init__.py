"""What Petard's parts say to each other: events in, events out, Redis keys."""

from petard_schema.envelope import MAX_EVENT_BYTES, Envelope
from petard_schema.game_events import (
    AbandonedGame,
    FinishedGame,
    GameAbandoned,
    GameEvent,
    GameFinished,
    Side,
    UnrankedSide,
)
from petard_schema.keys import Keys
from petard_schema.parse import Identity, parse_element, parse_event, read_counted, read_identity
from petard_schema.period_events import ClosedPeriod, PeriodClosed
from petard_schema.rating_events import Cause, Change, Explanation, LedgerEntry, RatingChanged, Standing
from petard_schema.reasons import DeadReason, EventRefused, IgnoredReason
from petard_schema.signing import BadSigningKeyError, event_json, sign_event

__all__ = [
    "MAX_EVENT_BYTES",
    "AbandonedGame",
    "BadSigningKeyError",
    "Cause",
    "Change",
    "ClosedPeriod",
    "DeadReason",
    "Envelope",
    "EventRefused",
    "Explanation",
    "FinishedGame",
    "GameAbandoned",
    "GameEvent",
    "GameFinished",
    "Identity",
    "IgnoredReason",
    "Keys",
    "LedgerEntry",
    "PeriodClosed",
    "RatingChanged",
    "Side",
    "Standing",
    "UnrankedSide",
    "event_json",
    "parse_element",
    "parse_event",
    "read_counted",
    "read_identity",
    "sign_event",
]
