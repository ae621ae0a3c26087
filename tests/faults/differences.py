"""How much was lost, counted twice or put out of order: what a check that stops at the first cannot say."""

from collections.abc import Iterable
from typing import NamedTuple

from faults.audit import LedgerRow, Pushed, to_be_rated


class Differences(NamedTuple):
    """In what the ledger is not what was pushed; strangers are entries that nobody pushed."""

    lost: int
    twice: int
    out_of_order: int
    strangers: int


def count_differences(ledger: Iterable[LedgerRow], pushed: Iterable[Pushed]) -> Differences:
    """Return in what the ledger differs from what each source pushed, in order."""
    places = {raw: place for events in pushed for place, raw in enumerate(to_be_rated(events))}
    newest: dict[str, int] = {}
    seen: set[bytes] = set()
    twice = out_of_order = strangers = 0
    for row in ledger:
        body = row.body.encode()
        place = places.get(body)
        if place is None:
            strangers += 1
            continue
        twice += body in seen
        seen.add(body)
        out_of_order += place < newest.get(row.source, 0)
        newest[row.source] = place
    return Differences(len(places) - len(seen), twice, out_of_order, strangers)
