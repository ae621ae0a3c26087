"""Keeps events in the spool from one thread of each process, so that callers need not wait for a slow disk.

An fsync cannot be interrupted. So whoever pushes leaves a request, and waits for it only so long. Requests
that have come meanwhile share one transaction, and one fsync.
"""

import threading
from collections import deque
from collections.abc import Sequence

from petard_producer.spool import ElementsByPool, Spool
from petard_producer.spool_errors import (
    MAY_BE_KEPT,
    NOT_KEPT,
    SpoolBusy,
    SpoolError,
    SpoolFull,
    SpoolUnusable,
)

MOST_BYTES = 8 << 20
"""What one transaction takes in at most, but for its last request."""


class Request:
    """Events that one call wants to be kept, all or none, and what became of that."""

    def __init__(self, elements_by_pool: ElementsByPool) -> None:
        self.elements_by_pool = elements_by_pool
        self.size = sum(len(element) for elements in elements_by_pool.values() for element in elements)
        self.settled = threading.Event()
        self._error: SpoolError | None = None

    def refuse(self, error: SpoolError) -> None:
        """Say why it was not done; the first reason stays."""
        self._error = self._error or error

    def result(self) -> None:
        """Return when the events are durable, or raise why not."""
        error = self._error
        if error is None:
            return
        if isinstance(error, SpoolFull):
            raise error
        kept = MAY_BE_KEPT if error.may_be_kept else NOT_KEPT
        raise type(error)(error.path, f"{error.problem}. {kept}", may_be_kept=error.may_be_kept) from error


class SpoolWriter:
    """The one thread of a process that adds to the spool."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._changed = threading.Condition()
        self._requests: deque[Request] = deque()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="petard-spool-writer", daemon=True)

    def start(self) -> None:
        """Begin to work off requests."""
        self._thread.start()

    def keep(self, elements_by_pool: ElementsByPool, within: float) -> None:
        """Return when the events are durable; raise SpoolBusy when that takes longer than so many seconds."""
        request = self.ask(elements_by_pool)
        if request.settled.wait(within):
            return request.result()
        if self._withdraw(request):
            problem = f"could not be written within {within:g} s: another process or the disk is at it"
            raise SpoolBusy(self._spool.path, f"{problem}. {NOT_KEPT}")
        if request.settled.is_set():
            return request.result()
        problem = f"was still being written after {within:g} s: the disk is slow"
        raise SpoolBusy(self._spool.path, f"{problem}. {MAY_BE_KEPT}", may_be_kept=True)

    def ask(self, elements_by_pool: ElementsByPool) -> Request:
        """Leave a request, which the next transaction takes up."""
        request = Request(elements_by_pool)
        with self._changed:
            if self._stopping:
                raise SpoolUnusable(self._spool.path, f"was closed by this process. {NOT_KEPT}")
            self._requests.append(request)
            self._changed.notify()
        return request

    def write_once(self) -> bool:
        """Try to settle the oldest requests with one transaction; say whether the file could be had."""
        taken: list[Request] = []
        try:
            with self._spool.adding() as add:
                # Not earlier: who stops waiting while the file is locked shall know that nothing was kept.
                taken = self._take()
                for request in taken:
                    try:
                        add(request.elements_by_pool)
                    except SpoolFull as full:
                        request.refuse(full)
        except SpoolError as error:
            if isinstance(error, SpoolBusy) and not taken:
                return False
            taken = taken or self._take()
            refuse_all(taken, error)
        except Exception as error:  # noqa: BLE001 - the edge of the thread: nobody may wait for it in vain
            taken = taken or self._take()
            problem = f"failed ({type(error).__name__}: {error})"
            refuse_all(taken, SpoolUnusable(self._spool.path, problem, may_be_kept=True))
        for request in taken:
            request.settled.set()
        return True

    def stop(self, within: float) -> bool:
        """Take no more requests, settle those that are there, and say whether the thread has ended."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(within)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while self._wait():
            self.write_once()

    def _wait(self) -> bool:
        """Wait for a request; False when there will be none any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._requests or self._stopping)
            return bool(self._requests)

    def _withdraw(self, request: Request) -> bool:
        """Take a request back; False when its transaction has begun."""
        with self._changed:
            if request not in self._requests:
                return False
            self._requests.remove(request)
            return True

    def _take(self) -> list[Request]:
        taken: list[Request] = []
        size = 0
        with self._changed:
            while self._requests and size < MOST_BYTES:
                taken.append(self._requests.popleft())
                size += taken[-1].size
        return taken


def refuse_all(requests: Sequence[Request], error: SpoolError) -> None:
    """Say to each why it was not done."""
    for request in requests:
        request.refuse(error)
