"""A game server with a spool, as a process of its own to be killed: pushes one event after the other.

What it has been promised it writes down: one line for each event, with the seconds its longest push took.
An event whose line is missing is pushed again by the next process, as a game server would.
"""

import os
import sys
import threading
import time
from pathlib import Path

from petard_producer import Producer, SpoolBusy


def main(url: str, prefix: str, folder: Path, per_second: float) -> None:
    """Push what is left of the events, and end when Redis has all of them."""
    events = (folder / "events").read_bytes().splitlines()
    progress = os.open(folder / "progress", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    begin = (folder / "progress").read_bytes().count(b"\n")
    pause = threading.Event()
    spool = folder / "spool.db"
    with Producer.from_url(url, source="/servers/1", prefix=prefix, spool=spool) as producer:
        for text in events[begin:]:
            took = push(producer, text)
            os.write(progress, f"{took:.6f}\n".encode())
            pause.wait(max(0.0, 1 / per_second - took))
        if not producer.flush(60):
            sys.exit(f"not sent: {producer.spooled()}")


def push(producer: Producer, text: bytes) -> float:
    """Push until it is promised, and return how many seconds the longest attempt took."""
    longest = 0.0
    while True:
        began = time.monotonic()
        try:
            producer.push_json(text)
        except SpoolBusy:
            longest = max(longest, time.monotonic() - began)
        else:
            return max(longest, time.monotonic() - began)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4]))
