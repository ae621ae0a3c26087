import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis

from integration.dying_redis import LossyProxy, RedisServer
from petard_producer import (
    EventRefused,
    GameFinished,
    Producer,
    Side,
    UnrankedSide,
    draw,
    duel,
    finish_order,
    without_result,
)
from petard_producer.push import CHUNK
from petard_schema import FinishedGame, GameEvent, Keys, parse_event

URL = "redis://127.0.0.1:6379/8"
SOURCE = "/servers/test"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(URL) as client:
        yield client


@pytest.fixture
def keys(server: redis.Redis) -> Iterator[Keys]:
    prefix = f"test-{uuid.uuid4().hex}"
    yield Keys(prefix)
    for key in server.scan_iter(f"{prefix}:*"):
        server.delete(key)


@pytest.fixture
def producer(keys: Keys) -> Iterator[Producer]:
    with Producer.from_url(URL, source=SOURCE, prefix=keys.prefix) as producer:
        yield producer


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    yield server
    server.close()


def waiting(client: redis.Redis, keys: Keys, pool: str) -> list[GameEvent]:
    return [parse_event(text) for text in client.lrange(keys.events(pool), 0, -1)]


def game(number: int, pool: str = "chess-blitz") -> GameFinished:
    data = FinishedGame(pool=pool, game=f"g-{number}", sides=duel(winner="alice", loser="bob"))
    return GameFinished(id=f"event-{number}", source=SOURCE, time=NOON, data=data)


def test_finished_game_arrives_as_the_event_that_was_returned(server, keys, producer):
    event = producer.finished(pool="chess-blitz", game="g-1", sides=duel(winner="alice", loser="bob"))

    assert waiting(server, keys, "chess-blitz") == [event]
    assert event.source == SOURCE
    assert event.data.sides == (Side(players=("alice",), rank=1), Side(players=("bob",), rank=2))


def test_game_that_nobody_dates_was_finished_now(producer):
    before = datetime.now(UTC)

    event = producer.finished(pool="chess-blitz", game="g-1", sides=draw("alice", "bob"))

    assert before <= event.time <= datetime.now(UTC)


def test_every_field_of_a_finished_game_arrives(server, keys, producer):
    teams = [Side(players=("a", "b"), rank=2, points=1.5, home=True), Side(players=("c", "d"), rank=1)]

    producer.finished(
        pool="football",
        game="final",
        sides=teams,
        time=NOON,
        id="e-1",
        rated=False,
        decided_by="shootout",
        started=datetime(2026, 11, 30, 10, tzinfo=UTC),
        importance=60.0,
        meta={"stadium": {"name": "Nørrebro", "seats": 4000}},
        traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    )

    (event,) = waiting(server, keys, "football")
    assert (event.id, event.time, event.traceparent) == (
        "e-1",
        NOON,
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    )
    assert (
        event.data.model_dump()
        == FinishedGame(
            pool="football",
            game="final",
            sides=tuple(teams),
            rated=False,
            decided_by="shootout",
            started=datetime(2026, 11, 30, 10, tzinfo=UTC),
            importance=60.0,
            meta={"stadium": {"name": "Nørrebro", "seats": 4000}},
        ).model_dump()
    )


def test_abandoned_game_arrives_as_the_event_that_was_returned(server, keys, producer):
    event = producer.abandoned(
        pool="chess-blitz",
        game="g-1",
        sides=without_result("alice", "bob"),
        abandoned_by=["bob"],
        fault="server",
    )

    assert waiting(server, keys, "chess-blitz") == [event]
    assert event.data.sides == (UnrankedSide(players=("alice",)), UnrankedSide(players=("bob",)))
    assert (event.data.abandoned_by, event.data.fault) == (("bob",), "server")


def test_order_of_finish_gives_the_ranks(producer):
    event = producer.finished(pool="race", game="g-1", sides=finish_order("carol", "alice", "bob"))

    assert [(side.players, side.rank) for side in event.data.sides] == [
        (("carol",), 1),
        (("alice",), 2),
        (("bob",), 3),
    ]


@pytest.mark.parametrize(
    ("reason", "wrong"),
    [
        ("bad_field:data.pool", {"pool": "Chess Blitz"}),
        ("bad_field:data.game", {"game": ""}),
        ("bad_field:id", {"id": ""}),
        ("bad_field:time", {"time": datetime(2026, 11, 30, 12)}),  # noqa: DTZ001 - no zone is the point
        ("bad_field:data.decided_by", {"decided_by": "dice"}),
        ("bad_field:data.sides.1.players.0", {"sides": duel(winner="alice", loser="bob ")}),
        ("self_match", {"sides": duel(winner="alice", loser="alice")}),
        ("one_side", {"sides": finish_order("alice")}),
        ("too_many_players", {"sides": draw(*(f"p{number}" for number in range(65)))}),
        ("player_on_two_sides", {"sides": finish_order("alice", "bob", "alice")}),
        ("too_large", {"meta": {"replay": "x" * 20_000}}),
        ("too_deep", {"meta": {"a": [[[[[[[[[[[[[[1]]]]]]]]]]]]]]}}),
        ("not_json", {"meta": {"a": "\ud800"}}),
    ],
)
def test_what_a_worker_would_refuse_is_refused_before_it_is_pushed(server, keys, producer, reason, wrong):
    right = {"pool": "chess-blitz", "game": "g-1", "sides": duel(winner="alice", loser="bob")}

    with pytest.raises(EventRefused) as refusal:
        producer.finished(**right | wrong)

    assert refusal.value.reason == reason
    assert list(server.scan_iter(f"{keys.prefix}:*")) == []


def test_abandoner_who_did_not_play_is_refused(server, keys, producer):
    with pytest.raises(EventRefused, match="abandoner_not_in_game"):
        producer.abandoned(
            pool="chess-blitz", game="g-1", sides=without_result("alice", "bob"), abandoned_by=["carol"]
        )

    assert list(server.scan_iter(f"{keys.prefix}:*")) == []


def test_json_is_pushed_byte_for_byte(server, keys, producer):
    text = game(1).to_json().replace(b'"rated":true', b'"rated" : true, "unknown": "kept"')

    event = producer.push_json(text)

    assert server.lrange(keys.events("chess-blitz"), 0, -1) == [text]
    assert event == game(1)


def test_many_events_keep_the_order_of_each_pool(server, keys, producer):
    events = [game(number, pool=f"pool-{number % 3}") for number in range(CHUNK * 2 + 7)]

    pushed = producer.push_many(event for event in events)

    assert pushed == len(events)
    for rest in range(3):
        assert waiting(server, keys, f"pool-{rest}") == events[rest::3]


def test_no_events_are_no_work(producer):
    assert producer.push_many([]) == 0


def test_many_events_are_pushed_up_to_the_one_that_is_refused(server, keys, producer):
    texts = [game(number).to_json() for number in range(CHUNK + 10)]
    texts[CHUNK + 5] = b"{"

    with pytest.raises(EventRefused, match="not_json"):
        producer.push_many_json(texts)

    assert server.lrange(keys.events("chess-blitz"), 0, -1) == texts[: CHUNK + 5]


def test_what_was_checked_before_is_pushed_as_it_is_and_poked_once_for_each_pool(server, keys, producer):
    elements = {"chess-blitz": [b"{", game(1).to_json()], "race": [b"not looked at"]}

    heard = pokes(server, keys, lambda: producer.push_checked(elements))

    assert {pool: server.lrange(keys.events(pool), 0, -1) for pool in elements} == elements
    assert heard == [b"chess-blitz", b"race"]


def test_nothing_that_was_checked_is_no_work(producer):
    producer.push_checked({})


def test_threads_may_share_a_producer(server, keys, producer):
    def push(number: int) -> str:
        return producer.finished(pool="chess-blitz", game=f"g-{number}", sides=draw("alice", "bob")).id

    with ThreadPoolExecutor(4) as threads:
        ids = list(threads.map(push, range(200)))

    assert Counter(event.id for event in waiting(server, keys, "chess-blitz")) == Counter(ids)
    assert len(set(ids)) == 200


def pokes(server: redis.Redis, keys: Keys, push: Callable[[], object]) -> list[bytes]:
    """Return what is published while `push` pushes; a poke of our own marks the end."""
    with server.pubsub(ignore_subscribe_messages=True) as channel:
        channel.subscribe(keys.pushed())
        while not server.pubsub_numsub(keys.pushed())[0][1]:
            channel.get_message(timeout=0.1)
        push()
        server.publish(keys.pushed(), "end")
        heard: list[bytes] = []
        for message in channel.listen():
            if message["data"] == b"end":
                return heard
            heard.append(message["data"])
    raise AssertionError("the channel was closed")


def test_push_pokes_the_dispatcher_once_for_each_pool(server, keys, producer):
    heard = pokes(server, keys, lambda: producer.push_many([game(1), game(2, pool="race"), game(3)]))

    assert heard == [b"chess-blitz", b"race"]


def test_producer_that_shall_not_poke_only_pushes(server, keys):
    with Producer.from_url(URL, source=SOURCE, prefix=keys.prefix, poke=False) as quiet:
        heard = pokes(server, keys, lambda: quiet.push(game(1)))

    assert heard == []
    assert waiting(server, keys, "chess-blitz") == [game(1)]


def test_user_who_may_rpush_and_nothing_else_pushes_and_is_refused_one_poke(own_server):
    own_server.client.execute_command(
        "ACL", "SETUSER", "game-server", "on", ">secret", "resetkeys", "%W~petard:events:*", "-@all", "+rpush"
    )
    url = f"redis://game-server:secret@127.0.0.1:{own_server.port}/0"

    with Producer.from_url(url, source=SOURCE) as producer:
        for number in range(3):
            producer.push(game(number))

    assert waiting(own_server.client, Keys(), "chess-blitz") == [game(0), game(1), game(2)]
    refused = own_server.client.acl_log()
    assert [(entry["object"], entry["count"]) for entry in refused] == [("publish", 1)]


def test_user_who_may_not_push_is_told_so(own_server):
    own_server.client.execute_command("ACL", "SETUSER", "reader", "on", ">secret", "~*", "-@all", "+get")
    url = f"redis://reader:secret@127.0.0.1:{own_server.port}/0"

    with Producer.from_url(url, source=SOURCE) as producer, pytest.raises(redis.exceptions.NoPermissionError):
        producer.push(game(1))


def test_refused_login_is_not_tried_again(own_server):
    url = f"redis://nobody:wrong@127.0.0.1:{own_server.port}/0"

    with Producer.from_url(url, source=SOURCE) as producer, pytest.raises(redis.AuthenticationError):
        producer.push(game(1))

    (refused,) = own_server.client.acl_log()
    assert (refused["reason"], refused["count"]) == ("auth", 1)


def test_full_redis_is_told_at_once(own_server):
    own_server.client.config_set("maxmemory", "1")

    with (
        Producer.from_url(own_server.url, source=SOURCE) as producer,
        pytest.raises(redis.OutOfMemoryError),
    ):
        producer.push(game(1))


def test_lost_reply_puts_the_event_on_the_list_twice_under_one_identity(server, keys):
    with (
        LossyProxy(("127.0.0.1", 6379)) as proxy,
        Producer.from_url(f"redis://127.0.0.1:{proxy.port}/8", source=SOURCE, prefix=keys.prefix) as producer,
    ):
        producer.push(game(1))
        proxy.lose_next_reply()
        producer.push(game(2))
        producer.push(game(3))

        assert proxy.lost.is_set()

    assert [event.id for event in waiting(server, keys, "chess-blitz")] == [
        "event-1",
        "event-2",
        "event-2",
        "event-3",
    ]
    assert server.lindex(keys.events("chess-blitz"), 1) == server.lindex(keys.events("chess-blitz"), 2)


def test_lost_request_puts_the_event_on_the_list_once(server, keys):
    with (
        LossyProxy(("127.0.0.1", 6379)) as proxy,
        Producer.from_url(f"redis://127.0.0.1:{proxy.port}/8", source=SOURCE, prefix=keys.prefix) as producer,
    ):
        producer.push(game(1))
        proxy.lose_next_request()
        producer.push(game(2))

        assert proxy.lost.is_set()

    assert waiting(server, keys, "chess-blitz") == [game(1), game(2)]


def test_lost_reply_repeats_a_chunk_and_loses_none_of_it(server, keys):
    events = [game(number) for number in range(CHUNK * 2)]

    with (
        LossyProxy(("127.0.0.1", 6379)) as proxy,
        Producer.from_url(f"redis://127.0.0.1:{proxy.port}/8", source=SOURCE, prefix=keys.prefix) as producer,
    ):
        producer.push(game(0))
        proxy.lose_next_reply()
        pushed = producer.push_many(events)

    assert pushed == len(events)
    first_seen = list(dict.fromkeys(event.id for event in waiting(server, keys, "chess-blitz")))
    assert first_seen == [event.id for event in events]


def test_event_that_met_a_dead_redis_can_be_pushed_again(own_server):
    with Producer.from_url(own_server.url, source=SOURCE) as producer:
        producer.push(game(1))
        own_server.kill()
        with pytest.raises(redis.ConnectionError):
            producer.push(game(2))
        own_server.start()

        producer.push(game(2))

    assert waiting(own_server.client, Keys(), "chess-blitz") == [game(1), game(2)]


def test_producer_needs_nothing_of_the_worker():
    program = """
import sys
for name in ("psycopg", "rq", "structlog", "typer", "pydantic_settings", "petard_worker"):
    sys.modules[name] = None
import petard_producer
"""

    subprocess.run([sys.executable, "-c", program], check=True)
