"""The ledger is the outbox: streams without a gap, boards equal to the table, whatever happens to Redis."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import cast

import psycopg
import pytest
from jsonschema import Draft202012Validator
from redis import Redis
from structlog.testing import capture_logs

from example_files import SCHEMA
from integration.arena import (
    START,
    abandoned,
    apply_all,
    counted,
    finished,
    games,
    make_pool,
    records,
)
from integration.dying_redis import LossyProxy
from petard_schema import Keys, RatingChanged
from petard_schema.times import format_time
from petard_worker import publish
from petard_worker.change_stream import NOTHING, BoardMoves, ChangeStream, StreamEntry, StreamId
from petard_worker.pool_settings import PoolSettings, as_given
from petard_worker.postgres import outbox, pools
from petard_worker.postgres.connect import Connection, connect_publisher
from petard_worker.postgres.pools import PublishedPool
from petard_worker.publish import CHECKED_AT_ONCE, CHECKED_IN_LOOKS, CHUNK, SHARED_CHUNK, Cursor, Publisher
from petard_worker.redis_client import connect_redis
from petard_worker.run_publisher import PublisherActiveError, publish_rest, run_publisher

TOLD = Draft202012Validator(json.loads((SCHEMA / "json/petard.rating.changed.v1.json").read_text()))
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def publisher(connection: Connection, client: Redis, keys: Keys) -> Publisher:
    return Publisher(connection, client, keys)


def publish_all(publisher: Publisher) -> int:
    """Publish until everything is, looking at Redis each time as the loop does once a second."""
    total = 0
    for _ in range(100):
        publisher._checked = float("-inf")
        count = publisher.publish_once()
        total += count
        if not count and is_caught_up(publisher):
            return total
    raise AssertionError("the publisher does not catch up")


def is_caught_up(publisher: Publisher) -> bool:
    cursors = publisher.cursors
    return all(
        pool.name in cursors and cursors[pool.name].seq == pool.seq
        for pool in pools.list_published(publisher.connection)
    )


def entries(client: Redis, keys: Keys, pool: str = "p") -> list[tuple[str, dict[bytes, bytes]]]:
    found = cast("list[tuple[bytes, dict[bytes, bytes]]]", client.xrange(keys.changes(pool)))
    return [(stream_id.decode(), fields) for stream_id, fields in found]


def stream_ids(client: Redis, keys: Keys) -> list[str]:
    return [stream_id for stream_id, _ in entries(client, keys)]


def messages(client: Redis, keys: Keys) -> list[RatingChanged]:
    """Return what was published, each held to the schema and to its own place in the stream."""
    found = []
    for stream_id, fields in entries(client, keys):
        assert set(fields) == {b"event"}
        TOLD.validate(json.loads(fields[b"event"]))
        message = RatingChanged.model_validate_json(fields[b"event"])
        assert message.id == f"p/{stream_id}"
        assert f"{message.data.epoch}-{message.data.seq}" == stream_id
        found.append(message)
    return found


def board(client: Redis, keys: Keys) -> dict[str, float]:
    pairs = cast("list[tuple[bytes, float]]", client.zrange(keys.leaderboard("p"), 0, -1, withscores=True))
    return {player.decode(): score for player, score in pairs}


def table(owner: psycopg.Connection) -> dict[str, float]:
    return {player: record.rating for player, record in records(owner).items() if record.last_played}


@pytest.mark.usefixtures("pool")
def test_each_ledger_entry_is_published_once_in_order(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, games(30))

    published = publish_all(publisher)

    assert published == 30
    assert stream_ids(client, keys) == [f"1-{seq}" for seq in range(1, 31)]
    assert [message.data.cause.id for message in messages(client, keys)] == counted(owner)


@pytest.mark.usefixtures("pool")
def test_more_than_a_chunk_is_published_without_a_gap(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, games(2 * CHUNK + 7))

    publish_all(publisher)

    assert stream_ids(client, keys) == [f"1-{seq}" for seq in range(1, 2 * CHUNK + 8)]
    assert board(client, keys) == table(owner)


@pytest.mark.usefixtures("pool")
def test_ignored_entries_are_published_too(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    events = [finished(1), finished(2, rated=False), abandoned(3, fault="server"), abandoned(4)]
    apply_all(connection, client, keys, events)

    publish_all(publisher)

    said = [(m.data.outcome, m.data.reason, len(m.data.changes)) for m in messages(client, keys)]
    assert said == [
        ("rated", None, 2),
        ("ignored", "unrated", 0),
        ("ignored", "server_fault", 0),
        ("rated", None, 1),
    ]


@pytest.mark.usefixtures("pool")
def test_what_there_is_not_is_left_out_of_a_message_and_is_not_null(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    free_abandons = [abandoned(number, "zoë") for number in range(2, 5)]
    apply_all(connection, client, keys, [finished(1, rated=False), *free_abandons, abandoned(5, "zoë")])

    publish_all(publisher)

    ignored, free, *_, penalty = (json.loads(fields[b"event"]) for _, fields in entries(client, keys))
    for message in (ignored, free, penalty):
        TOLD.validate(message)
        assert b"null" not in json.dumps(message).encode()
    assert set(ignored["data"]) == {"pool", "epoch", "seq", "cause", "outcome", "reason", "changes"}
    assert set(free["data"]) == {"pool", "epoch", "seq", "cause", "outcome", "changes"}
    assert free["data"]["changes"][0]["explanation"] == {"penalty": False, "late": False}
    assert set(penalty["data"]["changes"][0]["explanation"]) == {
        *("expected", "actual", "rd_aged", "penalty", "late")
    }
    assert set(penalty["data"]["changes"][0]["after"]) == {"rating", "rd", "bomb", "games"}


@pytest.mark.usefixtures("pool")
def test_a_message_says_what_the_tables_say(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    events = [finished(1, "zoë", "bob"), *(abandoned(number, "zoë") for number in range(2, 6))]
    apply_all(connection, client, keys, events)

    publish_all(publisher)

    *_, last = messages(client, keys)
    (change,) = last.data.changes
    standing = records(owner)["zoë"]
    assert last.subject == last.data.pool == "p"
    assert last.data.cause.model_dump() == {
        "id": "e-5",
        "source": "/test",
        "type": "petard.game.abandoned.v1",
        "game": "g-5",
    }
    assert (change.player, change.player_seq) == ("zoë", 5)
    assert change.after.model_dump(exclude_none=True) == {
        "rating": standing.rating,
        "rd": standing.rd,
        "bomb": 40,
        "games": 1,
    }
    assert change.explanation.penalty
    assert not change.explanation.late
    assert change.explanation.actual == 0


@pytest.mark.usefixtures("pool")
def test_the_chain_in_the_stream_is_unbroken_for_every_player(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    apply_all(connection, client, keys, [*games(100), *(abandoned(n, "player-1") for n in range(101, 106))])

    publish_all(publisher)

    left: dict[str, object] = {}
    for message in messages(client, keys):
        for change in message.data.changes:
            assert left.get(change.player, change.before) == change.before
            left[change.player] = change.after


@pytest.mark.usefixtures("pool")
def test_a_name_that_this_python_would_refuse_is_read_and_is_no_reason_for_a_new_epoch(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """A worker with a newer Unicode has accepted a character that is unassigned here."""
    name = "new\u0378"
    apply_all(connection, client, keys, games(1))
    sql = "UPDATE petard.ledger SET event_id = %(name)s, source = %(name)s, game = %(name)s"
    owner.execute(sql, {"name": name})
    owner.execute("UPDATE petard.change SET player = %(name)s || player", {"name": name})
    publish_all(Publisher(connection, client, keys))

    publish_all(Publisher(connection, client, keys))

    assert stream_ids(client, keys) == ["1-1"]
    (told,) = messages(client, keys)
    assert (told.data.cause.id, told.data.cause.source, told.data.cause.game) == (name, name, name)
    assert [change.player for change in told.data.changes] == [name + "player-1", name + "player-10"]


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize(
    ("given", "carried"), [(TRACE, TRACE), (None, None), ("garbage", None), ({"a": 1}, None), (7, None)]
)
def test_a_traceparent_is_carried_if_it_is_one(
    connection: Connection,
    client: Redis,
    keys: Keys,
    publisher: Publisher,
    given: object,
    carried: str | None,
) -> None:
    raw = json.dumps(json.loads(finished(1)) | {"traceparent": given}).encode()
    apply_all(connection, client, keys, [raw, finished(2, meta={"traceparent": TRACE})])

    publish_all(publisher)

    written = [json.loads(fields[b"event"]) for _, fields in entries(client, keys)]
    assert [message.get("traceparent") for message in written] == [carried, None]
    assert "traceparent" not in written[1]


@pytest.mark.usefixtures("pool")
def test_followers_are_poked_after_a_chunk(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    apply_all(connection, client, keys, games(3))
    with client.pubsub(ignore_subscribe_messages=True) as pokes:  # type: ignore[no-untyped-call]
        pokes.subscribe(keys.changed())
        pokes.get_message(timeout=1)

        publish_all(publisher)

        assert pokes.get_message(timeout=5)["data"] == b"p 1-3"


@pytest.mark.usefixtures("pool")
def test_a_second_publisher_goes_on_where_the_first_stopped(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    apply_all(connection, client, keys, games(5))
    publish_all(publisher)
    apply_all(connection, client, keys, games(5, first=6))

    published = publish_all(Publisher(connection, client, keys))

    assert published == 5
    assert stream_ids(client, keys) == [f"1-{seq}" for seq in range(1, 11)]


@pytest.mark.usefixtures("pool")
def test_a_publisher_that_was_overtaken_repeats_nothing(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    """A zombie: it was frozen, another one published, and it wakes up with an old cursor."""
    apply_all(connection, client, keys, games(5))
    publish_all(publisher)
    apply_all(connection, client, keys, games(5, first=6))
    publish_all(Publisher(connection, client, keys))

    apply_all(connection, client, keys, games(5, first=11))
    publisher.publish_pool(pools.list_published(connection)[0])

    assert stream_ids(client, keys) == [f"1-{seq}" for seq in range(1, 11)]
    publish_all(publisher)
    assert stream_ids(client, keys) == [f"1-{seq}" for seq in range(1, 16)]
    assert board(client, keys) == table(owner)


@pytest.mark.usefixtures("pool")
def test_an_append_whose_answer_was_lost_counts_as_done(
    connection: Connection, client: Redis, keys: Keys, redis_url: str
) -> None:
    apply_all(connection, client, keys, games(CHUNK + 5))
    host = client.connection_pool.connection_kwargs["host"]
    port = client.connection_pool.connection_kwargs["port"]
    database = redis_url.rpartition("/")[2]
    with (
        LossyProxy((host, port)) as proxy,
        connect_redis(f"redis://127.0.0.1:{proxy.port}/{database}") as lossy,
    ):
        publisher = Publisher(connection, lossy, keys)
        (pool,) = pools.list_published(connection)
        publisher.cursors["p"] = publisher.synchronise(pool)
        lossy.ping()
        proxy.lose_next_reply()

        published = publisher.publish_pool(pool)

        assert proxy.lost.is_set()
        assert published == CHUNK
        publish_all(publisher)
    assert stream_ids(client, keys) == [f"1-{seq}" for seq in range(1, CHUNK + 6)]


@pytest.mark.usefixtures("pool")
def test_a_wiped_redis_is_refilled(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, games(CHUNK + 40))
    publish_all(publisher)
    before = entries(client, keys)
    client.flushdb()

    publish_all(publisher)

    assert entries(client, keys) == before
    assert board(client, keys) == table(owner)


@pytest.mark.usefixtures("pool")
def test_a_refill_sets_nobody_back_on_the_board(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, games(3 * CHUNK))
    publish_all(publisher)
    client.flushdb()
    publisher.cursors.clear()

    for chunk in range(1, 4):
        publisher.publish_once()

        assert client.xlen(keys.changes("p")) == chunk * CHUNK
        assert board(client, keys) == table(owner)


@pytest.mark.usefixtures("pool")
def test_a_redis_that_was_wiped_in_the_middle_has_no_gap(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    apply_all(connection, client, keys, games(10))
    publish_all(publisher)
    apply_all(connection, client, keys, games(10, first=11))
    client.flushdb()

    refused = publisher.publish_pool(pools.list_published(connection)[0])
    publish_all(publisher)

    assert refused == 0
    assert stream_ids(client, keys) == [f"1-{seq}" for seq in range(1, 21)]


@pytest.mark.usefixtures("pool")
def test_a_redis_that_lost_its_last_seconds_gets_them_again(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, games(10))
    publish_all(publisher)
    snapshot = {key: client.dump(key) for key in (keys.changes("p"), keys.leaderboard("p"))}
    apply_all(connection, client, keys, games(10, first=11))
    publish_all(publisher)
    for key, value in snapshot.items():
        client.restore(key, 0, cast("bytes", value), replace=True)

    publish_all(publisher)

    assert stream_ids(client, keys) == [f"1-{seq}" for seq in range(1, 21)]
    assert board(client, keys) == table(owner)


def test_a_stream_is_trimmed_to_about_its_length_and_refilled_no_further(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    make_pool(connection, stream_length=100)
    apply_all(connection, client, keys, games(900))

    publish_all(publisher)
    trimmed = stream_ids(client, keys)
    client.flushdb()
    publish_all(publisher)
    refilled = stream_ids(client, keys)

    assert 100 <= len(trimmed) <= 300
    assert trimmed == [f"1-{seq}" for seq in range(901 - len(trimmed), 901)]
    assert refilled == [f"1-{seq}" for seq in range(801, 901)]


@pytest.mark.usefixtures("pool")
def test_a_redis_that_is_ahead_starts_a_new_epoch_with_a_full_refill(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """A failover of Postgres lost commits that followers have seen."""
    apply_all(connection, client, keys, games(10))
    publish_all(Publisher(connection, client, keys))
    lose_commits_after(owner, 7)

    publish_all(Publisher(connection, client, keys))

    epoch_1 = [f"1-{seq}" for seq in range(1, 11)]
    assert stream_ids(client, keys) == epoch_1 + [f"2-{seq}" for seq in range(1, 8)]
    assert {message.data.epoch for message in messages(client, keys)[10:]} == {2}
    assert board(client, keys) == table(owner)


@pytest.mark.usefixtures("pool")
def test_other_events_in_the_place_of_lost_ones_start_a_new_epoch(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """The lost seqs were handed out again before the publisher could look: seq alone would not tell."""
    apply_all(connection, client, keys, games(10))
    publish_all(Publisher(connection, client, keys))
    lose_commits_after(owner, 7)
    apply_all(connection, client, keys, games(5, first=11))

    publish_all(Publisher(connection, client, keys))

    assert stream_ids(client, keys)[10:] == [f"2-{seq}" for seq in range(1, 13)]


@pytest.mark.usefixtures("pool")
def test_the_same_event_with_other_numbers_starts_a_new_epoch(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """The lost events were sent again, in another order: the last one stands where it stood."""
    before, (first, second, last) = games(7), games(3, players=2, first=8)
    apply_all(connection, client, keys, [*before, first, second, last])
    publish_all(Publisher(connection, client, keys))
    lose_commits_after(owner, 7)
    apply_all(connection, client, keys, [finished(11, "player-0", "player-2"), second, last])

    publish_all(Publisher(connection, client, keys))

    causes = [message.data.cause.id for message in messages(client, keys)]
    assert causes[9] == causes[-1] == "e-10"
    assert stream_ids(client, keys)[10:] == [f"2-{seq}" for seq in range(1, 11)]


@pytest.mark.usefixtures("pool")
def test_the_same_events_in_another_order_start_a_new_epoch_whatever_the_last_one_says(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """Games of strangers: the last entry is the same in every bit, those before it are not."""
    first, second, last = (finished(8, "ann", "ben"), finished(9, "cid", "dan"), finished(10, "eve", "fay"))
    apply_all(connection, client, keys, [*games(7), first, second, last])
    publish_all(Publisher(connection, client, keys))
    lose_commits_after(owner, 7)
    apply_all(connection, client, keys, [second, first, last])

    publish_all(Publisher(connection, client, keys))

    assert stream_ids(client, keys)[10:] == [f"2-{seq}" for seq in range(1, 11)]


def even_matches(count: int) -> list[bytes]:
    """Return games of alice, who wins one and loses one until she is well known."""
    rivals = [("alice", f"rival-{number % 10}") for number in range(count)]
    pairs = [(a, b) if number // 10 % 2 else (b, a) for number, (a, b) in enumerate(rivals)]
    return [finished(number, *pair) for number, pair in enumerate(pairs, 1)]


def lose_commits_after(owner: psycopg.Connection, seq: int) -> None:
    """Make the database what it was when the pool stood at `seq`."""
    with owner.transaction():
        owner.execute("DELETE FROM petard.ledger WHERE seq > %(seq)s", {"seq": seq})
        owner.execute("DELETE FROM petard.rating")
        owner.execute("DELETE FROM petard.change WHERE seq > %(seq)s", {"seq": seq})
        owner.execute("""
            INSERT INTO petard.rating
            SELECT DISTINCT ON (player) pool, player, rating_after, rd_after, NULL, bomb_after, 50, 0, 0,
                   games_after, games_after, 0, 0, rating_after, now(), player_seq
            FROM petard.change ORDER BY player, player_seq DESC
        """)
        owner.execute("UPDATE petard.pool SET seq = %(seq)s", {"seq": seq})


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize(
    ("stream_id", "fields"),
    [
        ("1-6", {"event": "{}"}),
        ("1-6", {"no": "event"}),
        ("1-6", {"event": "no json"}),
        ("1-6", {"event": b"\xff"}),
        ("1-6", {"event": '{"data": []}'}),
        ("1-6", {"event": "[" * 100_000}),
        ("1-9", {"event": "{}"}),
        ("9-1", {"event": "{}"}),
        ("1700000000000-0", {"event": "{}"}),
    ],
)
def test_a_foreign_entry_starts_a_new_epoch(
    connection: Connection,
    client: Redis,
    keys: Keys,
    publisher: Publisher,
    stream_id: str,
    fields: dict[str | bytes, str | bytes],
) -> None:
    apply_all(connection, client, keys, games(5))
    publish_all(publisher)
    client.xadd(keys.changes("p"), fields, stream_id)  # type: ignore[arg-type]
    apply_all(connection, client, keys, games(3, first=6))

    publish_all(publisher)

    epoch = int(stream_id.partition("-")[0]) + 1
    assert stream_ids(client, keys)[6:] == [f"{epoch}-{seq}" for seq in range(1, 9)]
    assert connection.execute("SELECT epoch FROM petard.pool").fetchone() == (epoch,)


@pytest.mark.parametrize("spoil", ["wrong type", "the last id there is"])
def test_a_stream_that_cannot_be_appended_to_holds_up_no_other_pool(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, spoil: str
) -> None:
    make_pool(connection, "a")
    make_pool(connection)
    if spoil == "wrong type":
        client.set(keys.changes("a"), "not a stream")
    else:
        client.xadd(keys.changes("a"), {"event": "{}"}, f"{2**64 - 1}-{2**64 - 1}")
    apply_all(connection, client, keys, games(5))

    with capture_logs() as logs:
        publisher.publish_once()

    assert stream_ids(client, keys) == [f"1-{seq}" for seq in range(1, 6)]
    assert [(entry["event"], entry["pool"]) for entry in logs if entry["log_level"] == "error"] == [
        ("pool_not_published", "a")
    ]


@pytest.mark.usefixtures("pool")
def test_the_board_equals_the_table_after_every_batch(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    for batch in range(20):
        first = 1 + 10 * batch
        leavers = [abandoned(first + 8, f"player-{batch}"), abandoned(first + 9, "player-3")]
        apply_all(connection, client, keys, [*games(8, first=first), *leavers])

        publish_all(publisher)

        assert board(client, keys) == table(owner)


@pytest.mark.usefixtures("pool")
def test_a_lost_board_is_rebuilt(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, games(30))
    publish_all(publisher)
    client.delete(keys.leaderboard("p"))

    publish_all(publisher)

    assert board(client, keys) == table(owner)
    assert len(board(client, keys)) == 20
    assert client.ttl(keys.leaderboard("p")) == -1


@pytest.mark.usefixtures("pool")
def test_a_free_abandon_puts_nobody_on_the_board(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    apply_all(connection, client, keys, [abandoned(1)])

    publish_all(publisher)

    assert board(client, keys) == {}


def write_entry(owner: psycopg.Connection, player: str, rating: float) -> None:
    """Write what an operator's correction would: an entry that is no game."""
    with owner.transaction():
        owner.execute("""
            INSERT INTO petard.ledger
                (pool, seq, source, event_id, type, time, outcome, counts, late, version, body)
            SELECT 'p', seq + 1, '/ops', 'adjust', 'petard.rating.adjusted.v1', now(), 'rated', false, false,
                   1, '{}'
            FROM petard.pool
        """)
        change = """
            INSERT INTO petard.change (pool, player, player_seq, seq, rating_before, rating_after, rd_before,
                rd_after, bomb_before, bomb_after, games_before, games_after, penalty, late)
            SELECT 'p', player, player_seq + 1, seq + 1, rating, %(rating)s, rd, rd, bomb, bomb, games, games,
                   false, false
            FROM petard.rating JOIN petard.pool ON pool.name = rating.pool WHERE player = %(player)s
        """
        values = {"player": player, "rating": rating}
        owner.execute(change, values)
        owner.execute(
            "UPDATE petard.rating SET rating = %(rating)s, player_seq = player_seq + 1"
            " WHERE player = %(player)s",
            values,
        )
        owner.execute("UPDATE petard.pool SET seq = seq + 1")


@pytest.mark.usefixtures("pool")
def test_an_entry_that_is_no_game_moves_the_board_too(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, games(30))
    publish_all(publisher)
    write_entry(owner, "player-1", 2222.5)

    publisher.publish_once()

    assert board(client, keys)["player-1"] == 2222.5
    assert board(client, keys) == table(owner)


@pytest.mark.usefixtures("pool")
def test_a_player_whose_only_game_is_void_leaves_the_board(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, games(30))
    publish_all(publisher)
    owner.execute("UPDATE petard.rating SET last_played = NULL WHERE player = 'player-1'")
    write_entry(owner, "player-1", 1500)

    publisher.publish_once()

    assert "player-1" not in board(client, keys)
    assert board(client, keys) == table(owner)


def test_a_board_of_nobody_is_not_rebuilt_again_and_again(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    make_pool(connection, hide_provisional=True)
    apply_all(connection, client, keys, games(5))
    publish_all(publisher)
    built = publisher.cursors["p"].board

    publish_all(publisher)

    assert board(client, keys) == {}
    assert publisher.cursors["p"].board is built


@pytest.mark.usefixtures("pool")
def test_a_board_of_which_a_part_has_expired_is_not_put_in_place(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    """Its publisher was frozen while it wrote it, and another one has put up a whole board since."""
    apply_all(connection, client, keys, games(30))
    publish_all(publisher)
    whole, (pool,) = board(client, keys), pools.list_published(connection)
    place = publisher.board._place

    def place_late(keys: list[str], args: list[str | int]) -> object:
        client.zremrangebyrank(keys[1], 0, 2)
        return place(keys=keys, args=args)

    publisher.board._place = place_late  # type: ignore[assignment]
    with capture_logs() as logs:
        state = publisher.board.rebuild(pool, publisher.cursors["p"].expected)

    assert [entry["event"] for entry in logs] == ["board_refused"]
    assert publisher.board.is_due(pool, state)
    assert board(client, keys) == whole == table(owner)
    assert client.keys(keys.leaderboard("p") + ":*") == []


def test_provisional_players_are_left_out_when_the_pool_says_so(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    make_pool(connection, hide_provisional=True)

    for raw in even_matches(40):
        apply_all(connection, client, keys, [raw])
        publish_all(publisher)
        known = {player: r.rating for player, r in records(owner).items() if r.rd <= 110}
        assert board(client, keys) == known

    assert board(client, keys)
    assert len(records(owner)) > len(board(client, keys))


def test_a_player_who_becomes_provisional_again_leaves_the_board(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    make_pool(connection, hide_provisional=True)
    late = format_time(START + timedelta(days=300))
    apply_all(connection, client, keys, even_matches(40))
    publish_all(publisher)
    assert "alice" in board(client, keys)
    owner.execute(
        "UPDATE petard.rating SET last_played = last_played - interval '5 years' WHERE player = 'alice'"
    )

    apply_all(connection, client, keys, [json.dumps(json.loads(finished(99)) | {"time": late}).encode()])
    publish_all(publisher)

    assert records(owner)["alice"].rd > 110
    assert "alice" not in board(client, keys)


def test_a_conservative_board_ranks_by_rating_less_twice_the_deviation(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    make_pool(connection, ranked_by="conservative")
    apply_all(connection, client, keys, games(30))

    publish_all(publisher)
    appended = board(client, keys)
    client.delete(keys.leaderboard("p"))
    publish_all(publisher)

    assert appended == {player: r.rating - 2 * r.rd for player, r in records(owner).items()}
    assert board(client, keys) == appended


@pytest.mark.usefixtures("pool")
def test_new_settings_rebuild_the_board(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, games(30))
    publish_all(publisher)
    pools.set_settings(connection, "p", as_given(PoolSettings(ranked_by="conservative")))

    publish_all(publisher)

    assert board(client, keys) == {player: r.rating - 2 * r.rd for player, r in records(owner).items()}


@pytest.mark.usefixtures("pool")
def test_players_who_have_not_played_for_long_leave_the_board(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, games(30))
    owner.execute("UPDATE petard.rating SET last_played = now()")
    owner.execute(
        "UPDATE petard.rating SET last_played = now() - interval '8 days' WHERE player = 'player-1'"
    )
    pools.set_settings(connection, "p", as_given(PoolSettings(hide_inactive_days=7)))

    publish_all(publisher)

    assert set(records(owner)) - set(board(client, keys)) == {"player-1"}


@pytest.mark.usefixtures("pool")
def test_no_half_built_board_is_left_behind(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    apply_all(connection, client, keys, games(30))

    publish_all(publisher)

    assert client.keys(keys.leaderboard("p") + "*") == [keys.leaderboard("p").encode()]


@pytest.mark.usefixtures("pool")
def test_a_board_of_more_than_a_chunk_is_whole(
    connection: Connection,
    client: Redis,
    keys: Keys,
    publisher: Publisher,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("petard_worker.board.CHUNK", 7)
    apply_all(connection, client, keys, games(30))

    publish_all(publisher)

    assert board(client, keys) == table(owner)
    assert len(board(client, keys)) == 20


def test_a_step_may_move_more_players_than_redis_takes_in_one_call(client: Redis, keys: Keys) -> None:
    stream = ChangeStream(client, keys)
    leaving = {f"leaving-{number}": float(number) for number in range(5_000)}
    coming = {f"coming-{number}": float(number) for number in range(5_001)}
    client.zadd(keys.leaderboard("p"), {"staying": 1.0, **leaving})

    stream.append("p", NOTHING, [StreamEntry(StreamId(1, 1), "{}")], BoardMoves(coming, leaving), 10)

    assert board(client, keys) == {"staying": 1.0, **coming}


@pytest.mark.parametrize("frozen", ["idle", "in a transaction", "while it reads"])
def test_the_lock_of_a_frozen_publisher_comes_free(
    connection: Connection, database_url: str, frozen: str, wait_until: Callable[..., None]
) -> None:
    with closing(connect_publisher(database_url, "frozen")) as silent:
        assert outbox.try_publisher_lock(silent)
        if frozen == "in a transaction":
            silent.pgconn.exec_(b"BEGIN")
        elif frozen == "while it reads":
            silent.pgconn.send_query(b"SELECT repeat('x', 1000) FROM generate_series(1, 100000)")
        assert not outbox.try_publisher_lock(connection)

        wait_until(lambda: outbox.try_publisher_lock(connection), "the lock", 10)


@pytest.fixture
def stop() -> Iterator[threading.Event]:
    stop = threading.Event()
    yield stop
    stop.set()


@pytest.mark.usefixtures("pool")
def test_one_publisher_of_the_fleet_is_active_and_another_takes_over(
    connection: Connection,
    client: Redis,
    keys: Keys,
    redis_url: str,
    database_url: str,
    owner: psycopg.Connection,
    wait_until: Callable[..., None],
    stop: threading.Event,
) -> None:
    clients = [connect_redis(redis_url) for _ in range(2)]
    threads = [
        threading.Thread(
            target=run_publisher, args=(lambda: connect_publisher(database_url, "pub"), own, keys, stop)
        )
        for own in clients
    ]
    lock = {"lock": outbox.PUBLISHER_LOCK & 0xFFFFFFFF}
    # Other tests run at the same time, in databases of their own.
    holder = """
        SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
        WHERE locktype = 'advisory' AND objid = %(lock)s AND granted AND datname = current_database()
    """
    sessions = """
        SELECT count(*) FROM pg_stat_activity
        WHERE application_name = 'petard pub' AND datname = current_database()
    """
    with capture_logs() as logs:
        for thread in threads:
            thread.start()
        wait_until(lambda: owner.execute(holder, lock).fetchone(), "an active publisher", 5)
        wait_until(lambda: owner.execute(sessions).fetchone() == (2,), "the other one", 5)
        wait_until(lambda: len(logs) == 2, "both to say what they do", 5)
    pids = owner.execute(holder, lock).fetchall()
    apply_all(connection, client, keys, games(10))
    wait_until(lambda: len(stream_ids(client, keys)) == 10, "the first entries", 5)

    owner.execute("SELECT pg_terminate_backend(%(pid)s)", {"pid": pids[0][0]})
    apply_all(connection, client, keys, games(10, first=11))
    wait_until(lambda: len(stream_ids(client, keys)) == 20, "the entries after it", 10)

    stop.set()
    for thread in threads:
        thread.join(10)
    for own in clients:
        own.close()
    assert sorted(line["event"] for line in logs) == ["publisher_active", "publisher_standing_by"]
    assert len(pids) == 1
    assert stream_ids(client, keys) == [f"1-{seq}" for seq in range(1, 21)]


@pytest.mark.usefixtures("pool")
def test_publishing_the_rest_tells_how_much_it_was(
    connection: Connection, client: Redis, keys: Keys, database_url: str
) -> None:
    apply_all(connection, client, keys, games(CHUNK + 3))

    published = publish_rest(lambda: connect_publisher(database_url, "pub"), client, keys)

    assert published == CHUNK + 3


@pytest.mark.usefixtures("pool")
def test_publishing_the_rest_is_refused_while_another_publisher_is_active(
    connection: Connection, client: Redis, keys: Keys, database_url: str
) -> None:
    assert outbox.try_publisher_lock(connection)

    with pytest.raises(PublisherActiveError):
        publish_rest(lambda: connect_publisher(database_url, "pub"), client, keys)


@pytest.mark.usefixtures("pool")
def test_a_poke_publishes_its_pool_and_looks_at_no_other(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, owner: psycopg.Connection
) -> None:
    make_pool(connection, "other")
    publisher.publish_once()
    apply_all(connection, client, keys, games(5))

    unasked = publisher.publish_poked(["other", "set aside"])
    published = publisher.publish_poked(["p"])

    assert (unasked, published) == (0, 5)
    assert stream_ids(client, keys) == [f"1-{seq}" for seq in range(1, 6)]
    assert board(client, keys) == table(owner)


@pytest.mark.usefixtures("pool")
def test_a_poke_about_a_pool_that_is_new_makes_a_look_due(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    publisher.publish_once()
    make_pool(connection, "new")
    before = publisher.is_look_due()

    publisher.publish_poked(["new"])

    assert (before, publisher.is_look_due()) == (False, True)


@pytest.mark.usefixtures("pool")
def test_what_was_more_than_a_chunk_is_gone_on_with_without_another_poke(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    publisher.publish_once()
    apply_all(connection, client, keys, games(CHUNK + 5))

    counts = [publisher.publish_poked(["p"])]
    while publisher.behind:
        counts.append(publisher.publish_poked(publisher.behind))

    assert counts == [CHUNK, 5]


def test_a_flooded_pool_is_published_in_parts_beside_a_quiet_one_and_after_it(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    make_pool(connection)
    make_pool(connection, "quiet")
    publisher.publish_once()
    apply_all(connection, client, keys, games(2 * CHUNK))
    publisher.publish_poked(["p"])
    order: list[str] = []
    publish_next = publisher.publish_next

    def watched(pool: PublishedPool, cursor: Cursor) -> int:
        order.append(pool.name)
        return publish_next(pool, cursor)

    publisher.publish_next = watched  # type: ignore[method-assign]

    published = publisher.publish_poked(["p", "quiet"])

    assert order == ["quiet", "p"]
    assert 0 < published == SHARED_CHUNK < CHUNK


def test_one_stream_that_is_not_as_left_makes_all_others_suspicious(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    """A thousand pools are compared a hundred at a time, but what befell one may have befallen all."""
    names = [f"pool-{number:03}" for number in range(CHECKED_AT_ONCE + 20)]
    for name in names:
        make_pool(connection, name)
    publish_all(publisher)
    first, last = names[publisher._next_checked], names[publisher._next_checked - 1]
    client.xadd(keys.changes(last), {"event": "{}"}, "1-1")

    publisher.check_redis()
    overlooked = last in publisher.cursors
    publisher._next_checked = names.index(first)
    client.xadd(keys.changes(first), {"event": "{}"}, "1-1")
    publisher.check_redis()

    assert overlooked
    assert publisher.cursors.keys() == set(names) - {first, last}


def test_however_many_pools_there_are_three_checks_compare_all(
    connection: Connection,
    client: Redis,
    keys: Keys,
    publisher: Publisher,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publish, "CHECKED_AT_ONCE", 2)
    names = [f"pool-{number:02}" for number in range(12)]
    for name in names:
        make_pool(connection, name)
    publish_all(publisher)
    publisher._next_checked = 0
    client.xadd(keys.changes(names[-1]), {"event": "{}"}, "1-1")

    for _ in range(CHECKED_IN_LOOKS):
        publisher.check_redis()

    assert names[-1] not in publisher.cursors


def test_a_redis_that_was_away_is_compared_with_every_pool(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher
) -> None:
    names = [f"pool-{number:03}" for number in range(CHECKED_AT_ONCE + 20)]
    for name in names:
        make_pool(connection, name)
    publish_all(publisher)
    last = names[publisher._next_checked - 1]
    client.xadd(keys.changes(last), {"event": "{}"}, "1-1")

    publisher.suspect_redis()
    due = publisher.is_look_due()
    with capture_logs() as logs:
        publisher.publish_once()

    assert due
    assert [entry["pool"] for entry in logs if entry["event"] == "stream_not_as_left"] == [last]
