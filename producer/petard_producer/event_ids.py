"""Ids for events: ULIDs, which sort by the time they were made.

48 bits of milliseconds and 80 random bits, written as 26 characters of Crockford's base 32. Within one
millisecond, and while a clock is set back, the last id is counted up: the ids of one process always rise.
"""

import os
import secrets
import threading
import time

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
RANDOM_BITS = 80
ID_LENGTH = 26


def new_event_id() -> str:
    """Return a new id, greater than every one this process made before."""
    global _last  # noqa: PLW0603 - one sequence per process is the promise
    with _lock:
        _last = successor(_last, time.time_ns() // 1_000_000, secrets.randbits(RANDOM_BITS))
        return crockford(_last)


def successor(last: int, now_ms: int, random_bits: int) -> int:
    """Return the number of the next id: counted up in the same millisecond, drawn afresh in a later one."""
    if now_ms <= last >> RANDOM_BITS:
        return last + 1
    return now_ms << RANDOM_BITS | random_bits


def crockford(number: int) -> str:
    """Return a number below 2^128 as 26 characters that sort as the numbers do."""
    return "".join(CROCKFORD[number >> shift & 31] for shift in range(5 * (ID_LENGTH - 1), -1, -5))


def _begin_again() -> None:
    global _lock, _last  # noqa: PLW0603 - see new_event_id
    _lock = threading.Lock()
    _last = 0


_lock = threading.Lock()
_last = 0
if hasattr(os, "register_at_fork"):
    # A forked child would count up the same number as its parent, under a lock that may be held for ever.
    os.register_at_fork(after_in_child=_begin_again)
