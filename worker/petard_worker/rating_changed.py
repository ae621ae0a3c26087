"""The message: what a ledger entry tells those who follow."""

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import attrgetter

from petard_schema.envelope import read_traceparent
from petard_schema.names import OWN_SOURCE
from petard_schema.times import format_time
from petard_worker.postgres.outbox import OutboxChange, OutboxEntry

EVENT_TYPE = "petard.rating.changed.v1"


def render(pool: str, epoch: int, entries: list[OutboxEntry], changes: list[OutboxChange]) -> Iterator[str]:
    """Yield the rating-changed event of every entry, as JSON."""
    by_seq = {seq: list(group) for seq, group in groupby(changes, key=attrgetter("seq"))}
    for entry in entries:
        yield json.dumps(
            rating_changed(pool, epoch, entry, by_seq.get(entry.seq, [])),
            ensure_ascii=False,
            separators=(",", ":"),
        )


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
    cause = {"id": entry.event_id, "source": entry.source, "type": entry.type, "game": entry.game}
    data = {
        "pool": pool,
        "epoch": epoch,
        "seq": entry.seq,
        "cause": without_nones(cause),
        "outcome": entry.outcome,
        "reason": entry.reason,
        "changes": [as_change(change) for change in changes],
    }
    message = {
        "specversion": "1.0",
        "id": f"{pool}/{epoch}-{entry.seq}",
        "source": OWN_SOURCE,
        "type": EVENT_TYPE,
        "subject": pool,
        "time": format_time(entry.received),
        "data": without_nones(data),
        "traceparent": read_traceparent(entry.traceparent),
    }
    return without_nones(message)


def as_change(change: OutboxChange) -> dict[str, object]:
    """Return one player's change as plain objects."""
    before = {
        "rating": change.rating_before,
        "rd": change.rd_before,
        "volatility": change.volatility_before,
        "bomb": change.bomb_before,
        "games": change.games_before,
    }
    after = {
        "rating": change.rating_after,
        "rd": change.rd_after,
        "volatility": change.volatility_after,
        "bomb": change.bomb_after,
        "games": change.games_after,
    }
    explanation = {
        "expected": change.expected,
        "actual": change.actual,
        "rd_aged": change.rd_aged,
        "penalty": change.penalty,
        "late": change.late,
    }
    return {
        "player": change.player,
        "player_seq": change.player_seq,
        "before": without_nones(before),
        "after": without_nones(after),
        "explanation": without_nones(explanation),
    }


def without_nones(facts: Mapping[str, object]) -> dict[str, object]:
    """Return the facts that there are: the schema knows members that are missing, and none that are null."""
    return {name: value for name, value in facts.items() if value is not None}
