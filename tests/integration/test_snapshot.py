"""Who was away for longer than the stream goes back starts over from a snapshot, and misses nothing."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from redis import Redis

from integration.arena import apply_all, games, make_pool, records
from integration.dying_redis import RedisServer
from petard_producer import (
    EpochChanged,
    Follower,
    GapFound,
    Position,
    RatingChanged,
    Snapshot,
    SnapshotNeeded,
)
from petard_schema import Keys
from petard_worker.pool_changes import PoolChange, change_pool
from petard_worker.postgres.connect import Connection
from petard_worker.publish import Publisher

ROOT = Path(__file__).resolve().parents[2]
KEPT = 100
"""The least that a stream can be set to hold."""


@pytest.fixture
def publisher(connection: Connection, client: Redis, keys: Keys) -> Publisher:
    make_pool(connection, stream_length=KEPT)
    return Publisher(connection, client, keys)


@pytest.fixture
def follower(redis_url: str, keys: Keys) -> Iterator[Follower]:
    with Follower.from_url(redis_url, pool="p", prefix=keys.prefix) as follower:
        yield follower


class LiveBoard:
    """A board that is shown somewhere, by the idiom of the README."""

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.scores: dict[str, float] = {}
        self.position: Position | None = None
        self.reasons: list[SnapshotNeeded] = []

    def take_snapshot(self) -> Snapshot:
        snapshot = self.follower.snapshot()
        self.scores, self.position = dict(snapshot.scores), snapshot.position
        return snapshot

    def show(self, change: RatingChanged) -> None:
        for one in change.data.changes:
            self.scores[one.player] = one.after.rating
        self.position = Position.of(change)

    def follow_until(self, seq: int, epoch: int = 1) -> None:
        """Follow up to an entry, starting over as often as need be."""
        while self.position is None or self.position < Position(epoch, seq):
            try:
                for change in self.follower.follow(after=self.position):
                    self.show(change)
                    if self.position == Position(epoch, seq):
                        return
            except SnapshotNeeded as reason:
                self.reasons.append(reason)
                self.take_snapshot()


def play(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, count: int, first: int
) -> None:
    """Rate games and publish them, looking at Redis each time as the loop does once a second."""
    apply_all(connection, client, keys, games(count, first=first))
    publish(publisher)


def publish(publisher: Publisher) -> None:
    publisher._checked = float("-inf")
    while publisher.publish_once():
        pass


def table(owner: psycopg.Connection) -> dict[str, float]:
    return {player: record.rating for player, record in records(owner).items()}


def test_snapshot_is_the_board_and_the_newest_position(
    connection: Connection,
    client: Redis,
    keys: Keys,
    publisher: Publisher,
    follower: Follower,
    owner: psycopg.Connection,
) -> None:
    play(connection, client, keys, publisher, 30, first=1)

    snapshot = follower.snapshot()

    assert snapshot.position == follower.newest() == Position(1, 30)
    assert snapshot.scores == table(owner)
    assert list(snapshot.scores.values()) == sorted(snapshot.scores.values(), reverse=True)


def test_snapshot_of_a_pool_without_a_game_is_empty(follower: Follower) -> None:
    assert follower.snapshot() == Snapshot(None, {})
    assert follower.oldest() is None


def test_follower_that_was_away_past_the_bound_ends_with_the_board_of_one_that_never_left(
    connection: Connection,
    client: Redis,
    keys: Keys,
    publisher: Publisher,
    follower: Follower,
    owner: psycopg.Connection,
) -> None:
    loyal, away = LiveBoard(follower), LiveBoard(follower)
    play(connection, client, keys, publisher, 50, first=1)
    loyal.follow_until(50)
    away.follow_until(50)
    for first in range(51, 651, 50):
        play(connection, client, keys, publisher, 50, first)
        loyal.follow_until(first + 49)

    away.follow_until(650)
    play(connection, client, keys, publisher, 50, first=651)
    loyal.follow_until(700)
    away.follow_until(700)

    assert loyal.reasons == []
    (gap,) = away.reasons
    assert isinstance(gap, GapFound)
    assert gap.expected == Position(1, 51)
    assert gap.got == gap.go_on_from.next()
    assert str(gap).endswith(f"take a snapshot, then follow after {gap.go_on_from}")
    assert away.scores == loyal.scores == table(owner)


def test_what_the_exception_names_is_a_place_to_go_on_from(
    connection: Connection,
    client: Redis,
    keys: Keys,
    publisher: Publisher,
    follower: Follower,
    owner: psycopg.Connection,
) -> None:
    for first in range(1, 601, 50):
        play(connection, client, keys, publisher, 50, first)
    with pytest.raises(GapFound) as gap:
        next(follower.follow(after=Position(1, 41)))
    assert gap.value.got == follower.oldest()
    board = LiveBoard(follower)
    board.scores, board.position = table(owner), gap.value.go_on_from
    # What is trimmed again before the follower goes on is another gap.
    change_pool(connection, "p", PoolChange({}, {"stream_length": 1000}))

    play(connection, client, keys, publisher, 50, first=601)
    board.follow_until(650)

    assert board.reasons == []
    assert board.scores == table(owner)


def test_the_bound_is_the_first_entry_that_can_be_followed_to(
    connection: Connection, client: Redis, keys: Keys, publisher: Publisher, follower: Follower
) -> None:
    for first in range(1, 601, 50):
        play(connection, client, keys, publisher, 50, first)
    oldest = follower.oldest()
    assert oldest is not None
    assert oldest.seq > 1

    assert Position.of(next(follower.follow(after=oldest.before()))) == oldest
    with pytest.raises(GapFound):
        next(follower.follow(after=oldest.before().before()))


def test_new_epoch_is_started_over_from_a_snapshot(
    connection: Connection,
    client: Redis,
    keys: Keys,
    publisher: Publisher,
    follower: Follower,
    owner: psycopg.Connection,
) -> None:
    board = LiveBoard(follower)
    play(connection, client, keys, publisher, 300, first=1)
    board.take_snapshot()
    ((_, fields),) = client.xrevrange(keys.changes("p"), count=1)
    for seq in (301, 302):  # published, and then lost by a failover of Postgres
        told = fields[b"event"].replace(b"1-300", b"1-%d" % seq).replace(b'"seq":300', b'"seq":%d' % seq)
        client.xadd(keys.changes("p"), {"event": told}, id=f"1-{seq}")
    board.follow_until(302)

    play(connection, client, keys, publisher, 50, first=301)
    board.follow_until(350, epoch=2)

    (changed,) = board.reasons
    assert isinstance(changed, EpochChanged)
    assert changed.old == Position(1, 302)
    assert changed.go_on_from == changed.new.before() == Position(2, 250)
    assert board.scores == table(owner)


@pytest.mark.parametrize("done", [1, 2, 3])
def test_wipe_in_the_middle_of_a_refill_is_started_over_from_a_snapshot(
    connection: Connection,
    client: Redis,
    keys: Keys,
    publisher: Publisher,
    follower: Follower,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    done: int,
) -> None:
    monkeypatch.setattr("petard_worker.publish.CHUNK", 20)
    board = LiveBoard(follower)
    for first in range(1, 601, 100):
        play(connection, client, keys, publisher, 100, first)
    board.take_snapshot()
    for _ in range(2):
        client.flushdb()
        publisher._checked = float("-inf")
        for _ in range(done):
            publisher.publish_once()

    middle = board.take_snapshot()
    publish(publisher)
    board.follow_until(600)

    # Rebuilt first, the board is ahead of the stream; what follows sets it back, and forth again.
    assert middle.position == Position(1, 500 + 20 * done)
    assert middle.scores == board.scores == table(owner)


def test_snapshots_fit_the_stream_while_both_move(
    connection: Connection,
    client: Redis,
    keys: Keys,
    publisher: Publisher,
    follower: Follower,
    owner: psycopg.Connection,
) -> None:
    play(connection, client, keys, publisher, 20, first=1)
    going = threading.Thread(
        target=lambda: [play(connection, client, keys, publisher, 5, first) for first in range(21, 221, 5)]
    )
    boards = []

    going.start()
    while going.is_alive():
        board = LiveBoard(follower)
        board.take_snapshot()
        boards.append(board)
    going.join()
    for board in boards[:: max(1, len(boards) // 20)]:
        board.follow_until(220)

    assert len({board.position for board in boards}) >= 1
    assert all(board.scores == table(owner) for board in boards[:: max(1, len(boards) // 20)])


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    yield server
    server.close()


def acl_lines() -> list[list[str]]:
    """The commands by which the README makes a user for boards."""
    readme = (ROOT / "producer/README.md").read_text(encoding="utf-8")
    return [line.split() for line in re.findall(r"^ACL SETUSER board .*$", readme, re.MULTILINE)]


def test_rights_of_the_readme_suffice(own_server: RedisServer) -> None:
    for words in acl_lines():
        own_server.client.execute_command(*[">secret" if word == ">…" else word for word in words])
    own_server.client.zadd("petard:leaderboard:p", {"ann": 1500.25})

    with Follower.from_url(f"redis://board:secret@127.0.0.1:{own_server.port}/0", pool="p") as follower:
        assert follower.snapshot() == Snapshot(None, {"ann": 1500.25})
        assert follower.oldest() is None
        assert follower.newest() is None

    assert own_server.client.acl_log() == []


def test_user_who_may_not_read_the_board_takes_no_snapshot(own_server: RedisServer) -> None:
    own_server.client.execute_command(*[">secret" if word == ">…" else word for word in acl_lines()[0]])

    with (
        Follower.from_url(f"redis://board:secret@127.0.0.1:{own_server.port}/0", pool="p") as follower,
        pytest.raises(redis.exceptions.NoPermissionError),
    ):
        follower.snapshot()


def test_idiom_of_the_readme_shows_the_board_of_the_table(
    connection: Connection,
    client: Redis,
    keys: Keys,
    publisher: Publisher,
    follower: Follower,
    owner: psycopg.Connection,
) -> None:
    readme = (ROOT / "producer/README.md").read_text(encoding="utf-8")
    (idiom,) = re.findall(r"<!-- snapshot -->\n```python\n(.*?)```", readme, re.DOTALL)
    for first in range(1, 401, 50):
        play(connection, client, keys, publisher, 50, first)
    board = LiveBoard(follower)

    def show_board(scores: dict[str, float]) -> None:
        board.scores = dict(scores)
        play(connection, client, keys, publisher, 50, first=401)

    def show(change: RatingChanged) -> None:
        board.show(change)
        if board.position == Position(1, 450):
            follower.stop()

    exec(
        idiom,
        {"follower": follower, "show_board": show_board, "show": show, "SnapshotNeeded": SnapshotNeeded},
    )

    assert board.scores == table(owner)


@pytest.mark.parametrize("kept", [100, 250])
@pytest.mark.parametrize("chunk", [7, 500])
def test_no_stream_is_trimmed_below_what_it_is_set_to_hold(
    connection: Connection,
    client: Redis,
    keys: Keys,
    monkeypatch: pytest.MonkeyPatch,
    kept: int,
    chunk: int,
) -> None:
    monkeypatch.setattr("petard_worker.publish.CHUNK", chunk)
    make_pool(connection, stream_length=kept)
    publisher = Publisher(connection, client, keys)
    apply_all(connection, client, keys, games(1000))
    lengths = []

    published = 0
    while count := publisher.publish_once():
        published += count
        lengths.append((client.xlen(keys.changes("p")), min(published, kept)))

    # A refill begins with the entry from which on there will be enough.
    assert published == kept
    for first in range(1001, 1801, 100):
        apply_all(connection, client, keys, games(100, first=first))
        while publisher.publish_once():
            lengths.append((client.xlen(keys.changes("p")), kept))
    assert all(length >= least for length, least in lengths)
    assert lengths[-1][0] < 1800


HISTORY = ("ledger", "change", "dead_letter")


@pytest.mark.parametrize("table_", HISTORY)
@pytest.mark.parametrize("role", ["petard_worker", "petard_reader"])
@pytest.mark.parametrize("right", ["DELETE", "TRUNCATE"])
def test_nobody_in_the_service_may_trim_history(
    owner: psycopg.Connection, table_: str, role: str, right: str
) -> None:
    row = owner.execute(
        "SELECT has_table_privilege(%s, %s, %s)", (role, f"petard.{table_}", right)
    ).fetchone()

    assert row == (False,)


def test_nothing_in_the_code_asks_for_it_but_the_purge_of_closed_letters() -> None:
    sources = [
        *(ROOT / "worker/petard_worker").rglob("*.py"),
        *(ROOT / "worker/petard_worker").rglob("*.sql"),
    ]
    asks = re.compile(r"\b(DELETE\s+FROM|TRUNCATE|DROP\s+TABLE|DETACH\s+PARTITION)\b")

    asking = [path.name for path in sources if asks.search(path.read_text(encoding="utf-8"))]
    assert asking == ["0004_dead_letters.sql"]  # the one function, which refuses open letters
    assert len(sources) > 100
