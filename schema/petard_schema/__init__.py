"""What Petard's parts say to each other: events in, events out, Redis keys."""

from petard_schema.envelope import MAX_EVENT_BYTES, Envelope
from petard_schema.game_events import (
    ABANDONED,
    FINISHED,
    AbandonedGame,
    FinishedGame,
    GameAbandoned,
    GameEvent,
    GameFinished,
    Side,
    UnrankedSide,
)
from petard_schema.keys import Keys
from petard_schema.parse import (
    Identity,
    parse_element,
    parse_event,
    read_counted,
    read_element,
    read_event,
    read_identity,
)
from petard_schema.period_events import PERIOD_CLOSED, ClosedPeriod, PeriodClosed
from petard_schema.rating_events import Cause, Change, Explanation, LedgerEntry, RatingChanged, Standing
from petard_schema.reasons import DeadReason, EventRefused, IgnoredReason
from petard_schema.signing import BadSigningKeyError, event_json, sign_event
from petard_schema.usual_event import AnyAbandoned, AnyFinished, AnyGameEvent, AnySide

__all__ = [
    "ABANDONED",
    "FINISHED",
    "MAX_EVENT_BYTES",
    "PERIOD_CLOSED",
    "AbandonedGame",
    "AnyAbandoned",
    "AnyFinished",
    "AnyGameEvent",
    "AnySide",
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
    "read_element",
    "read_event",
    "read_identity",
    "sign_event",
]
