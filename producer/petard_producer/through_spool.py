"""Pushing through a spool: kept first, sent behind; and what happens at a fork and at the end."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from petard_producer.file_lock import FileLock
from petard_producer.rpush import Lists
from petard_producer.send_spool import SpoolSender
from petard_producer.spool import ElementsByPool, Spool
from petard_producer.spool_errors import NOT_KEPT, SpoolBusy, SpoolError, SpoolUnusable
from petard_producer.spool_file import check_place
from petard_producer.waker import Waker
from petard_producer.write_spool import SpoolWriter

Seen = TypeVar("Seen")

SPOOL_LIMIT = 256 << 20
LOOK_S = 0.01
END_WITHIN_S = 1.0
"""How long the end of each thread is waited for."""


@dataclass(frozen=True, slots=True)
class Spooled:
    """What a spool holds; `last_error` and `refused` are what the sender of *this* process met last."""

    events: int = 0
    bytes: int = 0
    oldest_age_s: float | None = None
    last_error: str | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    """Pools whose events Redis refuses, with what it says; they are kept and tried again."""


class ThroughSpool:
    """A spool with its writer and its sender, in this process and in those forked from it."""

    def __init__(self, path: Path, lists: Lists, *, prefix: str, limit: int, block_at_most: float) -> None:
        self._lists = lists
        self._block_at_most = block_at_most
        self._closed = False
        with _forking:
            check_place(path)
            with ExitStack() as opened:
                self._send_lock = FileLock(path, "sending")
                opened.callback(self._send_lock.close)
                self._waker = Waker(path)
                opened.callback(self._waker.close)
                self._spool = Spool(path, prefix=prefix, limit=limit)
                opened.pop_all()
            self._begin()
            _alive.add(self)
        self._start()

    def keep(self, elements_by_pool: ElementsByPool) -> None:
        """Return when the events are durable, within `block_at_most` seconds, or raise a SpoolError."""
        self._start()
        self._writer.keep(elements_by_pool, self._block_at_most)
        self._waker.wake()

    def flush(self, timeout: float) -> bool:
        """Wait until Redis has all that is kept by now, and say whether it has."""
        self._start()
        deadline = time.monotonic() + timeout
        last = self._patiently(self._spool.last_place, timeout)
        while self._patiently(lambda: self._spool.is_waiting(last), deadline - time.monotonic()):
            if time.monotonic() >= deadline:
                return False
            self._idle.wait(LOOK_S)
        return True

    def spooled(self) -> Spooled:
        """Return what is kept and why it is not sent."""
        held = self._patiently(self._spool.held, self._block_at_most)
        age = None if held.oldest_at is None else max(0.0, time.time() - held.oldest_at)
        refused = self._sender.refused
        last_error = self._sender.last_error or next(iter(refused.values()), None)
        return Spooled(held.events, held.bytes, age, last_error, refused)

    def _patiently(self, look: Callable[[], Seen], within: float) -> Seen:
        """Look into the file, which may be in use for as long as a push may take; not longer than told."""
        deadline = time.monotonic() + min(self._block_at_most, within)
        while True:
            try:
                return look()
            except SpoolBusy:
                if time.monotonic() >= deadline:
                    raise
                self._idle.wait(LOOK_S)

    def close(self, timeout: float) -> None:
        """Send what can be sent within the timeout, and leave the rest to whoever opens the spool next."""
        if self._closed:
            return
        if self._started:
            with suppress(SpoolError):  # what cannot be read now stays for whoever can
                self.flush(timeout)
        self._closed = True
        self._sender.ask_to_stop()
        written = self._writer.stop(END_WITHIN_S)
        if not self._sender.ended(END_WITHIN_S):
            self._lists.disconnect()
        if self._sender.ended(END_WITHIN_S) and written:
            with _forking:
                _alive.discard(self)
                self._spool.close()
                self._send_lock.close()
                self._waker.close()

    def _begin(self) -> None:
        self._guard = threading.Lock()
        self._idle = threading.Event()
        self._writer = SpoolWriter(self._spool)
        self._sender = SpoolSender(self._spool, self._lists, self._send_lock, self._waker)
        self._started = False

    def _start(self) -> None:
        """Start the threads: at once where the spool is opened, at the first use in a forked process."""
        if self._started and not self._closed:
            return
        with self._guard:
            if self._closed:
                raise SpoolUnusable(self._spool.path, f"was closed by this process. {NOT_KEPT}")
            if not self._started:
                self._writer.start()
                self._sender.start()
                self._started = True

    def before_fork(self) -> None:
        """Leave nothing open in the file that a child could inherit."""
        self._spool.before_fork()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._spool.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        """Begin again without threads: what the parent was asked to keep is the parent's business."""
        self._begin()  # first: whatever fails below, no lock of a thread that is not here is left
        self._spool.after_fork_in_child()
        self._send_lock.reopen()


_forking = threading.Lock()
_alive: set[ThroughSpool] = set()
_at_fork: list[ThroughSpool] = []


def _before_fork() -> None:
    _forking.acquire()
    _at_fork[:] = _alive
    for one in _at_fork:
        one.before_fork()


def _after_fork_in_parent() -> None:
    for one in _at_fork:
        one.after_fork_in_parent()
    _at_fork.clear()
    _forking.release()


def _after_fork_in_child() -> None:
    try:
        for one in _at_fork:
            with suppress(OSError, SpoolError):  # its file is gone, say: it will say so when it is used
                one.after_fork_in_child()
    finally:
        _at_fork.clear()
        _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
