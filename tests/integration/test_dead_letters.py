"""Dead letters: every byte of what could not be accepted, with the reason, once."""

import hashlib

import psycopg
import pytest
from redis import Redis

from integration.arena import apply_all, dead_letters, finished
from petard_schema import MAX_EVENT_BYTES, DeadReason, EventRefused, Keys
from petard_worker import replay as replay_module
from petard_worker.postgres import dead_letters as table
from petard_worker.postgres.connect import Connection, connect_worker
from petard_worker.postgres.dead_letters import MAX_BODY, LetterFilter, bury, dead_letter
from petard_worker.replay import CHUNK, discard, replay

REFUSED = EventRefused(DeadReason.NOT_JSON, "no JSON")

ODD_BODIES = {
    "NUL": b'{"a": "\x00"}',
    "only NULs": b"\x00" * 100,
    "invalid UTF-8": b"\xff\xfe\x80abc",
    "a lone surrogate": b"\xed\xa0\x80",
    "an escaped lone surrogate": rb'{"id": "\ud800"}',
    "an escaped NUL": rb'{"id": "\u0000"}',
    "too large by one": b"x" * (MAX_EVENT_BYTES + 1),
    "a megabyte": bytes(range(256)) * 4096,
    "nothing at all": b"",
    "a line": b"\r\n",
    "NaN": b'{"a": NaN}',
}


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize("body", ODD_BODIES.values(), ids=ODD_BODIES.keys())
def test_every_byte_is_kept_up_to_64_kib(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection, body: bytes
) -> None:
    apply_all(connection, client, keys, [body, finished(1)])

    ((kept, reason),) = dead_letters(owner)
    assert kept == body[:MAX_BODY]
    assert reason == ("too_large" if len(body) > MAX_EVENT_BYTES else "not_json")
    assert owner.execute("SELECT digest FROM petard.dead_letter").fetchone() == (
        hashlib.sha256(body).digest(),
    )
    assert owner.execute("SELECT count(*) FROM petard.ledger").fetchone() == (1,)


@pytest.mark.usefixtures("pool")
def test_what_is_known_of_an_event_can_be_searched_for(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, [finished(1, "alice", "alice")])

    row = owner.execute("SELECT source, event_id, game, reason, state FROM petard.dead_letter").fetchone()
    assert row == ("/test", "e-1", "g-1", "self_match", "open")


def attempts(owner: psycopg.Connection) -> list[tuple[int, str, bool]]:
    """Return how often each letter was tried, its state, and whether it was seen again later."""
    return owner.execute(
        "SELECT attempts, state, last_seen > first_seen FROM petard.dead_letter ORDER BY id"
    ).fetchall()


def test_the_same_bytes_again_are_another_attempt(connection: Connection, owner: psycopg.Connection) -> None:
    bury(connection, "p", [dead_letter(b"junk", REFUSED)])
    bury(connection, "p", [dead_letter(b"junk", REFUSED), dead_letter(b"junk", REFUSED)])

    assert attempts(owner) == [(3, "open", True)]


def test_other_bytes_are_another_letter(connection: Connection, owner: psycopg.Connection) -> None:
    bury(connection, "p", [dead_letter(b"junk", REFUSED), dead_letter(b"junk ", REFUSED)])

    assert attempts(owner) == [(1, "open", False), (1, "open", False)]


def test_each_pool_keeps_its_own(connection: Connection, owner: psycopg.Connection) -> None:
    bury(connection, "p", [dead_letter(b"junk", REFUSED)])
    bury(connection, "q", [dead_letter(b"junk", REFUSED)])

    assert attempts(owner) == [(1, "open", False), (1, "open", False)]


@pytest.mark.parametrize("state", ["replayed", "discarded"])
def test_a_letter_that_comes_back_is_open_again_with_its_latest_reason(
    connection: Connection, owner: psycopg.Connection, state: str
) -> None:
    bury(connection, "p", [dead_letter(b"junk", REFUSED)])
    owner.execute("UPDATE petard.dead_letter SET state = %(state)s, actor = 'ann'", {"state": state})

    bury(connection, "p", [dead_letter(b"junk", EventRefused(DeadReason.UNKNOWN_POOL, "no pool"))])

    row = owner.execute("SELECT state, actor, reason, detail, attempts FROM petard.dead_letter").fetchone()
    assert row == ("open", None, "unknown_pool", "no pool", 2)


@pytest.mark.parametrize(
    "detail", ["a\x00b", "\ud800", "x" * 5000, "美" * 5000], ids=["NUL", "surrogate", "long", "wide"]
)
def test_no_detail_keeps_a_letter_from_being_stored(
    connection: Connection, owner: psycopg.Connection, detail: str
) -> None:
    bury(connection, "p", [dead_letter(b"junk", EventRefused(DeadReason.INTERNAL_ERROR, detail))])

    row = owner.execute("SELECT length(detail) FROM petard.dead_letter").fetchone()
    assert row is not None
    assert 1 <= row[0] <= 1000


OPEN = LetterFilter(state="open")
MANY = 2 * CHUNK + 1


@pytest.fixture
def many(connection: Connection) -> list[bytes]:
    """More letters than fit into a chunk, all of one pool."""
    bodies = [f"junk {number}".encode() for number in range(MANY)]
    bury(connection, "p", [dead_letter(body, REFUSED) for body in bodies])
    return bodies


def test_a_letter_that_fails_again_is_not_picked_up_twice_by_the_same_replay(
    connection: Connection, client: Redis, keys: Keys, many: list[bytes], owner: psycopg.Connection
) -> None:
    ids = table.find_ids(connection, OPEN)
    done = []

    for count in replay(connection, client, keys, ids, "ann"):
        done.append(count)
        bury(connection, "p", [dead_letter(body, REFUSED) for body in many[: sum(done)]])

    assert done == [CHUNK, CHUNK, 1]
    assert client.lrange(keys.events("p"), 0, -1) == many
    assert table.find_ids(connection, OPEN) == ids
    assert {actor for (actor,) in owner.execute("SELECT actor FROM petard.dead_letter")} == {None}


def test_a_letter_that_comes_back_before_it_is_marked_stays_open(
    connection: Connection, client: Redis, keys: Keys, many: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused_at_once(*arguments: object) -> None:
        bury(connection, "p", [dead_letter(many[0], REFUSED)])

    monkeypatch.setattr(replay_module, "push_lines", refused_at_once)
    ids = table.find_ids(connection, OPEN)

    done = list(replay(connection, client, keys, ids[:2], "ann"))

    assert done == [2]
    assert table.find_ids(connection, OPEN) == [ids[0], *ids[2:]]


def test_discard_takes_all_that_are_open(
    connection: Connection, many: list[bytes], owner: psycopg.Connection
) -> None:
    ids = table.find_ids(connection, OPEN)
    owner.execute("UPDATE petard.dead_letter SET state = 'replayed' WHERE id = %(id)s", {"id": ids[0]})

    done = list(discard(connection, ids, "ann"))

    assert done == [CHUNK - 1, CHUNK, 1]
    counts = owner.execute("SELECT state, actor, count(*) FROM petard.dead_letter GROUP BY 1, 2 ORDER BY 1")
    assert counts.fetchall() == [("discarded", "ann", len(many) - 1), ("replayed", None, 1)]


def test_a_letter_that_is_buried_again_right_now_stays_open(
    connection: Connection, client: Redis, keys: Keys, many: list[bytes], database_url: str
) -> None:
    """And nobody waits: whoever buries many letters and whoever marks many must not lock each other out."""
    ids = table.find_ids(connection, OPEN)
    with connect_worker(database_url, "other") as other, other.transaction():
        bury(other, "p", [dead_letter(many[0], REFUSED)])

        done = list(replay(connection, client, keys, ids[:2], "ann"))

    assert done == [2]
    assert table.find_ids(connection, OPEN) == [ids[0], *ids[2:]]
