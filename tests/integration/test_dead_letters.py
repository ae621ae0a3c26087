"""Dead letters: every byte of what could not be accepted, with the reason, once."""

import hashlib

import psycopg
import pytest
from redis import Redis

from integration.arena import apply_all, dead_letters, finished
from petard_schema import MAX_EVENT_BYTES, DeadReason, EventRefused, Keys
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.dead_letters import MAX_BODY, bury, dead_letter
from petard_worker.postgres.letter_finds import read_letters
from petard_worker.postgres.letter_history import read_attempts

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


def newest(connection: Connection) -> list[tuple[int, str]]:
    """Return number and detail of what is kept of the first letter's attempts."""
    (letter,) = read_letters(connection, [1])
    return [(attempt.attempt, attempt.detail) for attempt in read_attempts(connection, letter)]


def refused(number: int) -> EventRefused:
    return EventRefused(DeadReason.NOT_JSON, f"for the {number}. time")


def test_every_attempt_is_in_the_log_with_what_was_done_before_it(
    connection: Connection, owner: psycopg.Connection
) -> None:
    bury(connection, "p", [dead_letter(b"junk", refused(1))])
    owner.execute("""
        UPDATE petard.dead_letter
        SET state = 'discarded', actor = 'ann', discard_reason = 'a test', closed = now()
    """)

    bury(connection, "p", [dead_letter(b"junk", refused(2))])

    (letter,) = read_letters(connection, [1])
    first, second = read_attempts(connection, letter)
    assert (first.attempt, first.detail, first.state) == (1, "for the 1. time", "discarded")
    assert (first.actor, first.discard_reason, first.worker) == ("ann", "a test", "test")
    assert first.at < second.at
    assert (second.attempt, second.detail, second.state) == (2, "for the 2. time", "open")


def test_of_very_many_attempts_the_first_and_the_last_are_kept(connection: Connection) -> None:
    for number in range(1, 101):
        bury(connection, "p", [dead_letter(b"junk", refused(number))])

    kept = newest(connection)

    numbers = [*range(1, 11), *range(90, 101)]
    assert kept == [(number, f"for the {number}. time") for number in numbers]


def test_many_copies_in_one_batch_are_one_line_of_the_log(connection: Connection) -> None:
    for number in range(1, 31):
        bury(connection, "p", [dead_letter(b"junk", refused(number))] * 500)

    assert [attempt for attempt, _ in newest(connection)] == [
        500 * n for n in [*range(1, 11), *range(20, 31)]
    ]


def edit_into(owner: psycopg.Connection, body: bytes) -> None:
    owner.execute(
        """
        UPDATE petard.dead_letter SET edited_body = %(body)s, edited_digest = sha256(%(body)s),
            edited_by = 'ann', edited_at = now()
        """,
        {"body": body},
    )


def test_what_a_letter_was_edited_into_is_that_letter_when_it_fails(
    connection: Connection, owner: psycopg.Connection
) -> None:
    bury(connection, "p", [dead_letter(b"junk", refused(1))])
    edit_into(owner, b"better junk")

    bury(connection, "p", [dead_letter(b"better junk", refused(2))])
    bury(connection, "q", [dead_letter(b"better junk", refused(2))])

    rows = owner.execute("SELECT pool, body, detail, attempts FROM petard.dead_letter ORDER BY id").fetchall()
    assert rows == [("p", b"junk", "for the 2. time", 2), ("q", b"better junk", "for the 2. time", 1)]


def test_original_and_edited_bytes_in_one_batch_are_two_attempts_of_one_letter(
    connection: Connection, owner: psycopg.Connection
) -> None:
    bury(connection, "p", [dead_letter(b"junk", refused(1))])
    edit_into(owner, b"better junk")
    both = [dead_letter(b"better junk", refused(2)), dead_letter(b"junk", refused(3))]

    bury(connection, "p", [*both, both[0], dead_letter(b"other junk", refused(4))])

    rows = owner.execute("SELECT body, detail, attempts FROM petard.dead_letter ORDER BY id").fetchall()
    assert [row[::2] for row in rows] == [(b"junk", 4), (b"other junk", 1)]
    assert newest(connection)[0] == (1, "for the 1. time")


def test_letters_of_a_batch_have_ids_in_the_order_in_which_they_came(
    connection: Connection, owner: psycopg.Connection
) -> None:
    bodies = [f"junk {number}".encode() for number in range(200)]

    bury(connection, "p", [dead_letter(body, REFUSED) for body in bodies])

    assert [body for body, _ in dead_letters(owner)] == bodies
