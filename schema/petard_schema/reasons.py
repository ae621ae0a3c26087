"""The closed lists of reasons: why an event was refused, and why an accepted one rated nobody."""

from enum import StrEnum


class DeadReason(StrEnum):
    """Why an event became a dead letter; after `bad_field` stands `:` and the path of the field."""

    TOO_LARGE = "too_large"
    NOT_JSON = "not_json"
    TOO_DEEP = "too_deep"
    NOT_AN_EVENT = "not_an_event"
    UNKNOWN_TYPE = "unknown_type"
    BAD_FIELD = "bad_field"
    TOO_MANY_PLAYERS = "too_many_players"
    ONE_SIDE = "one_side"
    SELF_MATCH = "self_match"
    PLAYER_ON_TWO_SIDES = "player_on_two_sides"
    PLAYER_TWICE = "player_twice"
    ABANDONER_NOT_IN_GAME = "abandoner_not_in_game"
    UNKNOWN_POOL = "unknown_pool"
    BAD_SIGNATURE = "bad_signature"
    WRONG_POOL = "wrong_pool"
    FROM_THE_FUTURE = "from_the_future"
    ID_REUSED = "id_reused"
    CONFLICTING_GAME = "conflicting_game"
    UNSUPPORTED_GAME = "unsupported_game"
    INTERNAL_ERROR = "internal_error"


class IgnoredReason(StrEnum):
    """Why an accepted event changed no rating and no bomb."""

    UNRATED = "unrated"
    SERVER_FAULT = "server_fault"
    DUPLICATE_GAME = "duplicate_game"


class EventRefused(ValueError):  # noqa: N818 - being refused is an outcome, not a failure
    """The event cannot be accepted: `reason` is from the closed list, `detail` is for people."""

    def __init__(self, reason: DeadReason, detail: str, path: str = "") -> None:
        super().__init__(reason, detail, path)
        self.reason = f"{reason}:{path}" if path else str(reason)
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"
