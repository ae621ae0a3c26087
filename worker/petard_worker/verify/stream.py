"""Does the change stream tell what the ledger says? Entry by entry, as far as the stream goes back.

Judged are the entries of the ledger's epoch, up to the ledger entry at which the audit began: what is
published after that is not in its snapshot, and entries of older epochs are history. Where the stream begins
is told and not judged, since older entries are trimmed; so is how far the publisher is behind.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, cast

import redis
from redis import Redis

from petard_schema import Keys
from petard_worker.change_stream import NOTHING, StreamId, last_stream_id
from petard_worker.postgres import outbox
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.pools import Pool
from petard_worker.rating_changed import render
from petard_worker.verify.differences import MISSING, Differences, Where

CHUNK = 500
FIELD = b"event"

RawEntry = tuple[bytes, dict[bytes, bytes]]


class Told(NamedTuple):
    """An entry of the stream; `seq` is that of the ledger entry it should tell of."""

    seq: int
    fields: Mapping[bytes, bytes]


class StreamReport(NamedTuple):
    """What of the stream was compared."""

    oldest: str | None
    """The first entry it holds, of any epoch: who follows from further back is told to take a snapshot."""
    newest: str | None
    """The last entry that was compared."""
    entries: int
    """How many were compared."""
    lag: int
    """How many of the ledger's entries had not been published yet when it was read to its end."""


def find_last_ids(client: Redis, keys: Keys, pools: Sequence[str]) -> dict[str, StreamId]:
    """Return the last id of every pool's stream: ask before the snapshot, which must be no older."""
    return {pool: last_stream_id(client, keys, pool) for pool in pools}


@dataclass(frozen=True)
class StreamAudit:
    """The stream of one pool beside the ledger, in the snapshot of the connection."""

    connection: Connection
    redis: Redis
    keys: Keys
    pool: Pool
    last: StreamId
    """The last id the stream had before the snapshot."""
    found: Differences

    def check(self) -> StreamReport:
        """Compare every entry that can be."""
        if self.last > StreamId(self.pool.epoch, self.pool.seq):
            # Without an epoch of their own these entries are not the ledger's: the publisher will raise it.
            self.found.add(Where.STREAM, "last id", str(self.last), f"at most {self.id_of(self.pool.seq)}")
        oldest, newest, count = self.oldest(), 0, 0
        for chunk in self.chunks():
            for seq, _ in chunk:
                if newest and seq != newest + 1 and not self.is_trimmed(newest + 1):
                    self.found.add(
                        Where.STREAM, "next id", self.id_of(seq), self.id_of(newest + 1), newest + 1
                    )
                newest = seq
            for run in runs(chunk):
                self.compare(run)
            count += len(chunk)
        published = min(self.last.seq, self.pool.seq) if self.last.epoch == self.pool.epoch else 0
        self.check_ends(newest, published)
        return StreamReport(
            None if oldest is None else str(oldest),
            self.id_of(newest) if newest else None,
            count,
            self.pool.seq - max(newest, published),
        )

    def chunks(self) -> Iterator[list[Told]]:
        """Yield the entries that are judged, some at a time."""
        start = f"{self.pool.epoch}-0"
        last = self.id_of(self.pool.seq)
        while chunk := cast("list[RawEntry]", self.redis.xrange(self.key, start, last, count=CHUNK)):
            yield [Told(StreamId.parse(stream_id).seq, fields) for stream_id, fields in chunk]
            start = f"({chunk[-1][0].decode()}"

    def compare(self, run: Sequence[Told]) -> None:
        """Compare entries without a gap between them with those of the ledger."""
        first, last = run[0].seq, run[-1].seq
        entries = outbox.read_entries(self.connection, self.pool.name, first - 1, len(run))
        changes = outbox.read_changes(self.connection, self.pool.name, first - 1, last)
        messages = render(self.pool.name, self.pool.epoch, entries, changes)
        due = {entry.seq: message for entry, message in zip(entries, messages, strict=True)}
        for told in run:
            if told.seq not in due:
                stored = told.fields.get(FIELD, b"").decode(errors="replace")
                self.found.add(Where.STREAM, "entry", stored, MISSING, told.seq)
            elif told.fields != {FIELD: due[told.seq]}:
                self.compare_fields(told, due[told.seq])

    def compare_fields(self, told: Told, due: bytes) -> None:
        """Say where an entry tells something else; the same JSON in other words does not count."""
        names = sorted(name.decode(errors="replace") for name in told.fields)
        if names != [FIELD.decode()]:
            self.found.add(Where.STREAM, "fields", names, [FIELD.decode()], told.seq)
            return
        try:
            stored = json.loads(told.fields[FIELD])
        except (ValueError, RecursionError):
            text = told.fields[FIELD].decode(errors="replace")
            self.found.add(Where.STREAM, "event", text, due.decode(), told.seq)
            return
        for path, one, other in unequal(stored, json.loads(due)):
            self.found.add(Where.STREAM, path or "event", one, other, told.seq)

    def check_ends(self, newest: int, published: int) -> None:
        """Check that the stream holds its own last entry, and that nobody has deleted its first ones."""
        if newest < published and not self.is_trimmed(published):
            self.found.add(Where.STREAM, "entry", MISSING, self.id_of(published), published)
        deleted, oldest = self.last_deleted(), self.oldest()
        if oldest is not None and deleted == (oldest.epoch, oldest.seq - 1):
            due = f"{deleted}, which somebody has deleted"
            self.found.add(Where.STREAM, "first id", str(oldest), due, deleted.seq)

    def is_trimmed(self, seq: int) -> bool:
        """Return whether the stream begins behind this entry by now: then it went while we read."""
        oldest = self.oldest()
        return oldest is not None and oldest > (self.pool.epoch, seq)

    def oldest(self) -> StreamId | None:
        """Return the id of the first entry that is in the stream."""
        found = cast("list[RawEntry]", self.redis.xrange(self.key, count=1))
        return StreamId.parse(found[0][0]) if found else None

    def last_deleted(self) -> StreamId:
        """Return the highest id that was deleted by itself, 0-0 if none was; trimming does not count.

        Redis before 7 does not know.
        """
        try:
            info = cast("dict[str, bytes]", self.redis.xinfo_stream(self.key))
        except redis.ResponseError as error:
            if "no such key" not in str(error):
                raise
            return NOTHING
        return StreamId.parse(info.get("max-deleted-entry-id", b"0-0"))

    def id_of(self, seq: int) -> str:
        """Return the id under which a ledger entry is published."""
        return str(StreamId(self.pool.epoch, seq))

    @property
    def key(self) -> str:
        """Name the stream."""
        return self.keys.changes(self.pool.name)


def runs(chunk: Sequence[Told]) -> Iterator[list[Told]]:
    """Yield the entries in runs without a gap."""
    for _, run in groupby(enumerate(chunk), key=lambda place: place[1].seq - place[0]):
        yield [told for _, told in run]


def unequal(stored: object, due: object, path: str = "") -> Iterator[tuple[str, object, object]]:
    """Yield where two JSON documents differ: the path, and the value in each."""
    if isinstance(stored, dict) and isinstance(due, dict):
        for name in {**due, **stored}:
            below = f"{path}.{name}" if path else str(name)
            yield from unequal(stored.get(name, MISSING), due.get(name, MISSING), below)
    elif isinstance(stored, list) and isinstance(due, list) and len(stored) == len(due):
        for one, other in zip(stored, due, strict=True):
            yield from unequal(one, other, path)
    elif stored != due:
        yield path, stored, due
