"""Is every dead letter what it says it is? The bytes of its digest, the event it names, a reason there is."""

import hashlib
from collections.abc import Iterable

from petard_schema import DeadReason, read_identity
from petard_schema.parse import Identity
from petard_worker.postgres.audit import LetterRow
from petard_worker.postgres.dead_letters import MAX_BODY
from petard_worker.verify.differences import Differences, Where

REASONS = frozenset(DeadReason)


def check_letters(rows: Iterable[LetterRow], found: Differences) -> int:
    """Look at every letter by itself; return how many there are.

    Whether the event should have been refused is not judged: the rules may have changed since.
    """
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - the last number is how many there were
        for what, stored, due in wrong_in(row):
            found.add(Where.DEAD_LETTER, what, stored, due, letter=row.id)
    return count


def wrong_in(row: LetterRow) -> Iterable[tuple[str, object, object]]:
    """Yield what is not as it should be in a letter: the column, its value, the value that is due."""
    if row.reason.partition(":")[0] not in REASONS:
        yield "reason", row.reason, f"one of {', '.join(sorted(REASONS))}"
    if len(row.body) >= MAX_BODY:
        return  # only the start of it may be there: neither the digest nor the event can be told from it
    digest = hashlib.sha256(row.body).hexdigest()
    if row.digest.hex() != digest:
        yield "digest", row.digest.hex(), digest
    identity = identity_of(row)
    stored = (row.source, row.event_id, row.game)
    for what, one, due in zip(("source", "event_id", "game"), stored, identity, strict=True):
        if one != due:
            yield what, one, due


def identity_of(row: LetterRow) -> Identity:
    """Return what the letter's event says it is, after an edit what that says; what it does not say stays."""
    came = read_identity(row.body)
    if row.edited is None:
        return came
    edited = read_identity(row.edited)
    return Identity(*(new or old for new, old in zip(edited, came, strict=True)))
