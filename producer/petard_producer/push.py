"""Push events onto the list of their pool."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from pydantic import JsonValue, ValidationError
from pydantic_core import PydanticSerializationError
from redis import Redis
from redis.backoff import EqualJitterBackoff
from redis.retry import Retry

from petard_producer.connect import LOST_CONNECTION, connect_to_push, worth_retrying
from petard_producer.event_ids import new_event_id
from petard_producer.rpush import CHUNK, Lists
from petard_producer.through_spool import SPOOL_LIMIT, Spooled, ThroughSpool
from petard_schema import (
    AnyGameEvent,
    DeadReason,
    EventRefused,
    GameAbandoned,
    GameEvent,
    GameFinished,
    Keys,
    Side,
    UnrankedSide,
    parse_element,
    read_element,
)
from petard_schema.parse import bad_field
from petard_schema.signing import is_signed, sign_with
from petard_schema.signing import signing_key as read_key

RETRIES = 4
CLOSE_WITHIN_S = 2.0


class Producer:
    """Pushes events; one may be shared by all threads of a process.

        from petard_producer import Producer, draw, duel, without_result

        with Producer.from_url("redis://127.0.0.1:6379/0", source="/servers/eu-1") as producer:
            producer.finished(pool="chess-blitz", game="g-1", sides=duel(winner="alice", loser="bob"))
            producer.finished(pool="chess-blitz", game="g-2", sides=draw("alice", "bob"))
            event = producer.abandoned(
                pool="chess-blitz", game="g-3", sides=without_result("alice", "bob"), abandoned_by=["bob"]
            )
            print(event.id)

    Whatever a worker would refuse for its content is refused here before it is pushed, with the same
    EventRefused. What only the worker can know (is there such a pool, has the game counted) is decided there.

    When Redis does not answer, a push is tried 5 times: within one to three seconds when it refuses
    connections, within about twelve when it hangs. Then redis.ConnectionError or redis.TimeoutError is
    raised, and the event may or may not be on the list. Push *the same event* again, as often as needed:
    `source` and `id` make it count once. The retries rest on that knowingly: an event whose confirmation was
    lost is on the list twice.
    Other errors of Redis (no permission, out of memory) are raised at once.

    With a `signing_key`, `whsec_…`, every event is signed when it is composed, in the name of its source;
    with several keys by each of them, while one takes over from another.

    With `spool`, the path of a file, a push returns when the event is on the disk in that file (written and
    fsynced), whether or not Redis is there; a thread sends what is in it, the oldest first, and removes what
    Redis has confirmed. Redis's errors are then seen in `spooled()` and in the log, not raised. A push raises
    a SpoolError instead: SpoolFull, SpoolBusy or SpoolUnusable.
    """

    def __init__(
        self,
        client: Redis,
        *,
        source: str,
        prefix: str = "petard",
        poke: bool = True,
        signing_key: str | Sequence[str] | None = None,
        spool: Path | str | None = None,
        spool_limit: int = SPOOL_LIMIT,
        block_at_most: float = 1.0,
    ) -> None:
        """Push through a client of your own; `source` names this server in every event it composes.

        Such a client should not retry by itself (`Retry(NoBackoff(), 0)`): its retries would multiply. Raises
        BadSigningKeyError for a key that is none, and ValueError for a list without one.
        The spool holds at most `spool_limit` bytes of events, and a push waits for its disk for at most
        `block_at_most` seconds. One spool is for one Redis; several processes of one machine may share it.
        """
        if not (spool_limit > 0 and block_at_most > 0):
            raise ValueError(
                f"spool_limit is {spool_limit} bytes, block_at_most {block_at_most} s; both must be above 0"
            )
        self._client = client
        self._source = source
        keys = [signing_key] if isinstance(signing_key, str) else signing_key
        if keys is not None and not keys:
            raise ValueError("signing_key has no keys; leave it out to push unsigned")
        self._signing_keys = [read_key(key) for key in keys or ()]
        self._lists = Lists(client, Keys(prefix), poke=poke)
        self._spool = (
            ThroughSpool(
                Path(spool).absolute(),
                self._lists,
                prefix=prefix,
                limit=spool_limit,
                block_at_most=block_at_most,
            )
            if spool is not None
            else None
        )
        self._retry = Retry(EqualJitterBackoff(base=0.1, cap=1.0), RETRIES, LOST_CONNECTION)

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        source: str,
        prefix: str = "petard",
        poke: bool = True,
        signing_key: str | Sequence[str] | None = None,
        spool: Path | str | None = None,
        spool_limit: int = SPOOL_LIMIT,
        block_at_most: float = 1.0,
    ) -> Self:
        """Push to the Redis at `url`; without `poke` workers notice an event by looking, not at once."""
        return cls(
            connect_to_push(url),
            source=source,
            prefix=prefix,
            poke=poke,
            signing_key=signing_key,
            spool=spool,
            spool_limit=spool_limit,
            block_at_most=block_at_most,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, timeout: float = CLOSE_WITHIN_S) -> None:
        """Close the connections; nothing is waiting in them.

        With a spool, send what can be sent within `timeout` seconds first. What is left stays in the file,
        for the next producer that opens it.
        """
        if self._spool is not None:
            self._spool.close(timeout)
        self._client.close()

    def flush(self, timeout: float) -> bool:
        """Wait for at most so many seconds until Redis has all that was pushed, and say whether it has.

        Without a spool that is so when a push returns. With one, what other processes pushed counts too.
        """
        return self._spool is None or self._spool.flush(timeout)

    def spooled(self) -> Spooled:
        """Return how much waits in the spool, and why it does; nothing without a spool."""
        return Spooled() if self._spool is None else self._spool.spooled()

    def finished(
        self,
        *,
        pool: str,
        game: str,
        sides: Sequence[Side],
        time: datetime | None = None,
        id: str | None = None,  # noqa: A002 - the name it has in the event
        rated: bool = True,
        decided_by: Literal["play", "shootout", "forfeit"] = "play",
        started: datetime | None = None,
        importance: float | None = None,
        knockout: bool = False,
        meta: dict[str, JsonValue] | None = None,
        traceparent: str | None = None,
    ) -> GameFinished:
        """Push that a game was finished, at `time` (now), and return the event as it was pushed.

        Give `id` only together with `time`: the same id with another time is another event, and would
        become a dead letter.
        """
        data = {
            "pool": pool,
            "game": game,
            "sides": sides,
            "rated": rated,
            "decided_by": decided_by,
            "started": started,
            "importance": importance,
            "knockout": knockout,
            "meta": meta,
        }
        try:
            event = GameFinished.model_validate(self._envelope(id, time, traceparent) | {"data": data})
        except ValidationError as error:
            raise bad_field(error) from None
        self.push(event)
        return event

    def abandoned(
        self,
        *,
        pool: str,
        game: str,
        sides: Sequence[UnrankedSide],
        abandoned_by: Sequence[str],
        time: datetime | None = None,
        id: str | None = None,  # noqa: A002 - the name it has in the event
        rated: bool = True,
        fault: Literal["player", "server"] = "player",
        started: datetime | None = None,
        importance: float | None = None,
        meta: dict[str, JsonValue] | None = None,
        traceparent: str | None = None,
    ) -> GameAbandoned:
        """Push that players left a game, at `time` (now), and return the event as it was pushed.

        Give `id` only together with `time`, as for `finished`.
        """
        data = {
            "pool": pool,
            "game": game,
            "sides": sides,
            "abandoned_by": abandoned_by,
            "rated": rated,
            "fault": fault,
            "started": started,
            "importance": importance,
            "meta": meta,
        }
        try:
            event = GameAbandoned.model_validate(self._envelope(id, time, traceparent) | {"data": data})
        except ValidationError as error:
            raise bad_field(error) from None
        self.push(event)
        return event

    def push(self, event: GameEvent) -> None:
        """Push one event."""
        self.push_json(text_of(event))

    def push_json(self, text: bytes) -> GameEvent:
        """Push one event that is JSON already, byte for byte as it is, and return what it says.

        An event that somebody has signed already is pushed as it is, too.
        """
        event = parse_element(text)
        self._push({event.data.pool: [self._element(text, event)]})
        return event

    def push_many(self, events: Iterable[GameEvent]) -> int:
        """Push events in their order, 500 to a round trip, and return how many.

        When one is refused, those before it have been pushed, and it and those after it have not. When Redis
        is lost, some have been pushed: push the same events again, and each counts once. A spool keeps each
        500 as one, all or none, and `block_at_most` is the bound for each 500.
        """
        return self.push_many_json(map(text_of, events))

    def push_many_json(self, texts: Iterable[bytes]) -> int:
        """Push events that are JSON already, otherwise as push_many does."""
        pushed = 0
        for chunk in chunks_by_pool(texts, self._element):
            self._push(chunk)
            pushed += sum(map(len, chunk.values()))
        return pushed

    def push_checked(self, elements: Mapping[str, Sequence[bytes]]) -> None:
        """Push elements that you have parsed before, by their pools, in one round trip, as they are.

        Nothing is looked at, so nothing is refused or signed: what is wrong with one, a worker finds. A few
        hundred at a time are plenty, and fit a spool.
        """
        if elements:
            self._push(elements)

    def _envelope(
        self, event_id: str | None, time: datetime | None, traceparent: str | None
    ) -> dict[str, object]:
        return {
            "id": new_event_id() if event_id is None else event_id,
            "source": self._source,
            "time": datetime.now(UTC) if time is None else time,
            "traceparent": traceparent,
        }

    def _element(self, text: bytes, event: AnyGameEvent) -> bytes:
        """Return what is pushed of an event: signed, if there are keys and nobody has signed it before."""
        if not self._signing_keys or is_signed(text):
            return text
        now = datetime.now(UTC)
        return sign_with(self._signing_keys, text, event_id=event.id, source=event.source, at=now)

    def _push(self, elements: Mapping[str, Sequence[bytes]]) -> None:
        # Made once, by pool: whatever is kept, sent and sent again is the same bytes.
        if self._spool is not None:
            self._spool.keep(elements)
        else:
            self._retry.call_with_retry(
                lambda: self._push_once(elements), fail=_try_again, is_retryable=worth_retrying
            )

    def _push_once(self, elements: Mapping[str, Sequence[bytes]]) -> None:
        for refusal in self._lists.append(elements).values():
            raise refusal


def text_of(event: GameEvent) -> bytes:
    """Return an event as JSON, or raise EventRefused where it holds half of a surrogate pair."""
    try:
        return event.to_json()
    except PydanticSerializationError as error:
        raise EventRefused(DeadReason.NOT_JSON, str(error)) from None


def chunks_by_pool(
    texts: Iterable[bytes], element: Callable[[bytes, AnyGameEvent], bytes]
) -> Iterator[Mapping[str, Sequence[bytes]]]:
    """Yield the texts checked, as elements by pool, in chunks, up to the first that is refused."""
    remaining = iter(texts)
    while chunk := list(islice(remaining, CHUNK)):
        by_pool: dict[str, list[bytes]] = {}
        for text in chunk:
            try:
                event = read_element(text)
            except EventRefused:
                if by_pool:
                    yield by_pool
                raise
            by_pool.setdefault(event.data.pool, []).append(element(text, event))
        yield by_pool


def _try_again(_lost: Exception) -> None:
    """Do nothing between two attempts: redis-py has closed the connection already."""
