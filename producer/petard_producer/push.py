"""Push events onto the list of their pool."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from types import TracebackType
from typing import Literal, Self

from pydantic import JsonValue, ValidationError
from pydantic_core import PydanticSerializationError
from redis import Redis
from redis.backoff import EqualJitterBackoff
from redis.exceptions import NoPermissionError
from redis.retry import Retry

from petard_producer.connect import LOST_CONNECTION, connect_to_push, worth_retrying
from petard_producer.event_ids import new_event_id
from petard_schema import (
    DeadReason,
    EventRefused,
    GameAbandoned,
    GameEvent,
    GameFinished,
    Keys,
    Side,
    UnrankedSide,
    event_json,
    parse_event,
)
from petard_schema.parse import bad_field
from petard_schema.signing import is_signed, sign_with
from petard_schema.signing import signing_key as read_key

RETRIES = 4
CHUNK = 500
"""Events per round trip of push_many: at most 10 MB, as an event has at most 16 KiB, and 4 more if signed."""


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
    """

    def __init__(
        self,
        client: Redis,
        *,
        source: str,
        prefix: str = "petard",
        poke: bool = True,
        signing_key: str | Sequence[str] = (),
    ) -> None:
        """Push through a client of your own; `source` names this server in every event it composes.

        Such a client should not retry by itself (`Retry(NoBackoff(), 0)`): its retries would multiply. Raises
        BadSigningKeyError for a key that is none.
        """
        self._client = client
        self._source = source
        self._keys = Keys(prefix)
        self._poke = poke
        keys = [signing_key] if isinstance(signing_key, str) else signing_key
        self._signing_keys = [read_key(key) for key in keys]
        self._retry = Retry(EqualJitterBackoff(base=0.1, cap=1.0), RETRIES, LOST_CONNECTION)

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        source: str,
        prefix: str = "petard",
        poke: bool = True,
        signing_key: str | Sequence[str] = (),
    ) -> Self:
        """Push to the Redis at `url`; without `poke` workers notice an event by looking, not at once."""
        return cls(connect_to_push(url), source=source, prefix=prefix, poke=poke, signing_key=signing_key)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; nothing is waiting in them."""
        self._client.close()

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
        event = parse_event(event_json(text))
        self._push({event.data.pool: [self._element(text, event)]})
        return event

    def push_many(self, events: Iterable[GameEvent]) -> int:
        """Push events in their order, 500 to a round trip, and return how many.

        When one is refused, those before it have been pushed, and it and those after it have not. When Redis
        is lost, some have been pushed: push the same events again, and each counts once.
        """
        return self.push_many_json(map(text_of, events))

    def push_many_json(self, texts: Iterable[bytes]) -> int:
        """Push events that are JSON already, otherwise as push_many does."""
        pushed = 0
        for chunk in chunks_by_pool(texts, self._element):
            self._push(chunk)
            pushed += sum(map(len, chunk.values()))
        return pushed

    def _envelope(
        self, event_id: str | None, time: datetime | None, traceparent: str | None
    ) -> dict[str, object]:
        return {
            "id": new_event_id() if event_id is None else event_id,
            "source": self._source,
            "time": datetime.now(UTC) if time is None else time,
            "traceparent": traceparent,
        }

    def _element(self, text: bytes, event: GameEvent) -> bytes:
        """Return what is pushed of an event: signed, if there are keys and nobody has signed it before."""
        if not self._signing_keys or is_signed(text):
            return text
        now = datetime.now(UTC)
        return sign_with(self._signing_keys, text, event_id=event.id, source=event.source, at=now)

    def _push(self, texts_by_pool: Mapping[str, Sequence[bytes]]) -> None:
        self._retry.call_with_retry(
            lambda: self._push_once(texts_by_pool), fail=_try_again, is_retryable=worth_retrying
        )

    def _push_once(self, texts_by_pool: Mapping[str, Sequence[bytes]]) -> None:
        with self._client.pipeline(transaction=False) as pipe:
            for pool, texts in texts_by_pool.items():
                pipe.rpush(self._keys.events(pool), *texts)
            if self._poke:
                for pool in texts_by_pool:
                    pipe.publish(self._keys.pushed(), pool)
            replies = pipe.execute(raise_on_error=False)
        for reply in replies[: len(texts_by_pool)]:
            if isinstance(reply, Exception):
                raise reply
        if any(isinstance(reply, NoPermissionError) for reply in replies[len(texts_by_pool) :]):
            # The events are on their lists; a poke that is forbidden now would be forbidden every time.
            self._poke = False


def text_of(event: GameEvent) -> bytes:
    """Return an event as JSON, or raise EventRefused where it holds half of a surrogate pair."""
    try:
        return event.to_json()
    except PydanticSerializationError as error:
        raise EventRefused(DeadReason.NOT_JSON, str(error)) from None


def chunks_by_pool(
    texts: Iterable[bytes], element: Callable[[bytes, GameEvent], bytes]
) -> Iterator[Mapping[str, Sequence[bytes]]]:
    """Yield the texts checked, as elements by pool, in chunks, up to the first that is refused."""
    remaining = iter(texts)
    while chunk := list(islice(remaining, CHUNK)):
        by_pool: dict[str, list[bytes]] = {}
        for text in chunk:
            try:
                event = parse_event(event_json(text))
            except EventRefused:
                yield by_pool
                raise
            by_pool.setdefault(event.data.pool, []).append(element(text, event))
        yield by_pool


def _try_again(_lost: Exception) -> None:
    """Do nothing between two attempts: redis-py has closed the connection already."""
