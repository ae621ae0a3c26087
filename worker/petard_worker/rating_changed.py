"""The message: what a ledger entry tells those who follow."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from pydantic_core import to_json

from petard_schema.envelope import read_traceparent
from petard_schema.names import OWN_SOURCE
from petard_schema.times import format_time
from petard_worker.postgres.outbox import OutboxChange, OutboxEntry

EVENT_TYPE = "petard.rating.changed.v1"

told_time = lru_cache(maxsize=64)(format_time)
"""Entries of one batch were received at the same time, and come one after the other."""


def render(pool: str, epoch: int, entries: list[OutboxEntry], changes: list[OutboxChange]) -> Iterator[bytes]:
    """Yield the rating-changed event of every entry, as JSON."""
    by_seq = {seq: list(group) for seq, group in groupby(changes, key=itemgetter(0))}
    for entry in entries:
        # Not json.dumps: it is five times as slow, mostly at writing floats.
        yield to_json(rating_changed(pool, epoch, entry, by_seq.get(entry.seq, [])))


def told(event: bytes | str) -> object:
    """Return the data of a message that may be anything, None where there is none.

    Plain JSON, which reads alike in every version: whether a name may hold a character is not asked again.
    """
    try:
        document = json.loads(event)
    except (ValueError, RecursionError):
        return None
    return document.get("data") if isinstance(document, dict) else None


def rating_changed(
    pool: str, epoch: int, entry: OutboxEntry, changes: list[OutboxChange]
) -> dict[str, object]:
    """Return the message as plain objects: RatingChanged of the schema, which a test holds it to."""
    cause: dict[str, object] = {"id": entry.event_id, "source": entry.source, "type": entry.type}
    if entry.game is not None:
        cause["game"] = entry.game
    data: dict[str, object] = {
        "pool": pool,
        "epoch": epoch,
        "seq": entry.seq,
        "cause": cause,
        "outcome": entry.outcome,
    }
    if entry.reason is not None:
        data["reason"] = entry.reason
    data["changes"] = [as_change(change) for change in changes]
    message: dict[str, object] = {
        "specversion": "1.0",
        "id": f"{pool}/{epoch}-{entry.seq}",
        "source": OWN_SOURCE,
        "type": EVENT_TYPE,
        "subject": pool,
        "time": told_time(entry.received),
        "data": data,
    }
    if traceparent := read_traceparent(entry.traceparent):
        message["traceparent"] = traceparent
    return message


def as_change(change: OutboxChange) -> dict[str, object]:
    """Return one player's change as plain objects."""
    # In the order of OutboxChange: a tuple is taken apart faster than its members are asked for by name.
    (
        _seq,
        player,
        player_seq,
        rating_before,
        rd_before,
        volatility_before,
        bomb_before,
        games_before,
        rating_after,
        rd_after,
        volatility_after,
        bomb_after,
        games_after,
        expected,
        actual,
        rd_aged,
        penalty,
        late,
    ) = change
    return {
        "player": player,
        "player_seq": player_seq,
        "before": standing(rating_before, rd_before, volatility_before, bomb_before, games_before),
        "after": standing(rating_after, rd_after, volatility_after, bomb_after, games_after),
        "explanation": explanation(expected, actual, rd_aged, penalty=penalty, late=late),
    }


def standing(rating: float, rd: float, volatility: float | None, bomb: int, games: int) -> dict[str, object]:
    """Return where a player stands; not every system has a volatility."""
    if volatility is None:
        return {"rating": rating, "rd": rd, "bomb": bomb, "games": games}
    return {"rating": rating, "rd": rd, "volatility": volatility, "bomb": bomb, "games": games}


def explanation(
    expected: float | None, actual: float | None, rd_aged: float | None, *, penalty: bool, late: bool
) -> dict[str, object]:
    """Return why a rating moved."""
    facts: dict[str, object] = {
        "expected": expected,
        "actual": actual,
        "rd_aged": rd_aged,
        "penalty": penalty,
        "late": late,
    }
    return without_nones(facts) if expected is None or actual is None or rd_aged is None else facts


def without_nones(facts: Mapping[str, object]) -> dict[str, object]:
    """Return the facts that there are: the schema knows members that are missing, and none that are null."""
    return {name: value for name, value in facts.items() if value is not None}
