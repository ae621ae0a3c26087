"""Dead letters that nobody wants any more: marked as done with, kept with the reason."""

from collections.abc import Iterable, Iterator

from petard_worker.chunks import chunks
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.letter_changes import discard_letters

CHUNK = 100


def discard(connection: Connection, ids: Iterable[int], actor: str, reason: str) -> Iterator[int]:
    """Mark those letters that are open as done with, chunk by chunk; yields how many of each chunk."""
    for chunk in chunks(ids, CHUNK):
        yield discard_letters(connection, chunk, actor, reason)
