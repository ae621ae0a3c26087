"""A dead letter put right by hand, discarded or purged: the original is kept, nothing open is deleted."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from redis import Redis

from integration.arena import apply_all, finished, make_pool, outcomes
from integration.letters import EVERY, bury_all, run_all, states
from petard_schema import Keys
from petard_worker.dead_letters.discard import discard
from petard_worker.dead_letters.edit import (
    EditRefusedError,
    Setting,
    current_body,
    save_edit,
    still_wrong,
    value_of,
    with_settings,
)
from petard_worker.dead_letters.purge import opened_export, purge
from petard_worker.postgres import audit as stored
from petard_worker.postgres.connect import Connection, connect_worker
from petard_worker.postgres.letter_changes import ClosedFilter, purge_letters
from petard_worker.postgres.letter_finds import KeptLetter, LetterText, find_ids, read_letters, read_texts
from petard_worker.postgres.letter_history import read_replays, read_since
from petard_worker.verify.dead_letters import wrong_in

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SOON = ClosedFilter(datetime.now(UTC) + timedelta(days=1))
RANK_MISSING = finished(1).replace(b', "rank": 2', b"")


def letter(connection: Connection, number: int = 1) -> tuple[KeptLetter, LetterText]:
    return read_letters(connection, [number])[0], read_texts(connection, [number])[number]


def edit(connection: Connection, body: bytes, number: int = 1) -> None:
    save_edit(connection, *letter(connection, number), body, "ann")


@pytest.mark.usefixtures("pool")
def test_edited_event_counts_when_it_is_replayed_and_the_original_is_kept(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, [RANK_MISSING])
    body = with_settings(RANK_MISSING, [Setting("data.sides.1.rank", 2)])

    edit(connection, body)
    run_all(connection, client, keys)
    apply_all(connection, client, keys)

    kept, text = letter(connection)
    assert outcomes(owner) == [("e-1", "rated")]
    assert (kept.state, kept.edited_by, text.body, text.edited) == ("replayed", "ann", RANK_MISSING, body)


@pytest.mark.usefixtures("pool")
def test_edited_letter_that_fails_again_is_the_same_letter(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, [RANK_MISSING])
    edit(connection, with_settings(RANK_MISSING, [Setting("data.sides.1.rank", -1)]))

    for _ in range(2):
        run_all(connection, client, keys)
        apply_all(connection, client, keys)

    assert states(owner) == [("open", 3)]


def test_edited_letter_is_no_difference_to_an_audit(connection: Connection) -> None:
    no_id = with_settings(finished(1), [Setting("id", 5)])
    bury_all(connection, [no_id])
    edit(connection, with_settings(no_id, [Setting("id", "e-1")]))

    with stored.one_snapshot(connection):
        (row,) = stored.read_letters(connection, "p")

    assert (row.event_id, list(wrong_in(row))) == ("e-1", [])


def test_edit_says_what_is_still_wrong(connection: Connection) -> None:
    bury_all(connection, [RANK_MISSING])
    kept, text = letter(connection)
    elsewhere = with_settings(finished(1), [Setting("data.pool", "q")])
    tomorrow = with_settings(finished(1), [Setting("time", "2027-01-01T00:00:00Z")])

    wrong = [still_wrong(kept, body, NOW) for body in (text.body, elsewhere, tomorrow, finished(1))]

    assert [one and one.reason for one in wrong] == [
        "bad_field:data.sides.1.rank",
        "wrong_pool",
        "from_the_future",
        None,
    ]


def test_original_takes_an_edit_back(connection: Connection, owner: psycopg.Connection) -> None:
    bury_all(connection, [b"junk"])
    edit(connection, finished(1))
    before = letter(connection)[0]

    edit(connection, b"junk")

    kept, text = letter(connection)
    assert (before.event_id, kept.event_id) == ("e-1", None)
    assert (kept.edited_at, current_body(text)) == (None, b"junk")


REFUSED_EDITS = [
    ("nothing was changed", RANK_MISSING),
    ("another event", finished(9)),
    ("letter 2 says just that", finished(2).replace(b'"e-2"', b'"e-1"')),
    ("limit is 65536", b"x" * 70_000),
]


@pytest.mark.parametrize(("why", "body"), REFUSED_EDITS)
def test_edit_is_refused(connection: Connection, why: str, body: bytes) -> None:
    bury_all(connection, [RANK_MISSING, REFUSED_EDITS[2][1]])

    with pytest.raises(EditRefusedError, match=why):
        edit(connection, body)


def test_letter_that_has_changed_since_it_was_read_is_not_edited(
    connection: Connection, owner: psycopg.Connection
) -> None:
    bury_all(connection, [RANK_MISSING])
    read = letter(connection)
    bury_all(connection, [RANK_MISSING])
    with pytest.raises(EditRefusedError, match="changed meanwhile"):
        save_edit(connection, *read, finished(1), "ann")
    owner.execute("UPDATE petard.dead_letter SET state = 'discarded'")
    with pytest.raises(EditRefusedError, match="only open ones"):
        edit(connection, finished(1))


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        ("a", "1", {"a": 1, "b": [1, {"c": 2}]}),
        ("b.1.c", "x y", {"b": [1, {"c": "x y"}]}),
        ("b.2", '{"d": null}', {"b": [1, {"c": 2}, {"d": None}]}),
        ("b.0", "NaN", {"b": ["NaN", {"c": 2}]}),
    ],
)
def test_set_puts_a_value_in_its_place(path: str, value: str, found: object) -> None:
    body = with_settings(b'{"b": [1, {"c": 2}]}', [Setting(path, value_of(value))])

    assert json.loads(body) == found


@pytest.mark.parametrize("path", ["x.y", "b.5", "b.-1", "b.1.c.d", "b.x"])
def test_set_where_there_is_no_place_is_refused(path: str) -> None:
    with pytest.raises(EditRefusedError, match="the event has no"):
        with_settings(b'{"b": [1, {"c": 2}]}', [Setting(path, 1)])


def test_unset_removes_what_is_there() -> None:
    body = with_settings(b'{"a": 1, "b": [1, 2]}', [Setting("a", remove=True), Setting("b.0", remove=True)])

    assert json.loads(body) == {"b": [2]}
    with pytest.raises(EditRefusedError):
        with_settings(body, [Setting("a", remove=True)])


def test_discard_takes_those_that_are_open_and_keeps_why(
    connection: Connection, owner: psycopg.Connection
) -> None:
    bury_all(connection, [b"one", b"two", b"three"])
    owner.execute("UPDATE petard.dead_letter SET state = 'replayed' WHERE id = 1")

    done = list(discard(connection, [1, 2, 3], "ann", "a test server"))

    kept = [one for one in read_letters(connection, [1, 2, 3]) if one.state == "discarded"]
    assert done == [2]
    assert [(one.id, one.actor, one.discard_reason) for one in kept] == [
        (2, "ann", "a test server"),
        (3, "ann", "a test server"),
    ]
    assert all(one.closed for one in kept)


@pytest.mark.usefixtures("pool")
def test_what_happened_since_is_known(connection: Connection, client: Redis, keys: Keys) -> None:
    conflict = finished(1, "bob", "alice").replace(b'"e-1"', b'"e-2"')
    apply_all(connection, client, keys, [RANK_MISSING, finished(1), conflict, conflict + b" "])

    since = [read_since(connection, letter(connection, number)[0]) for number in (1, 2)]

    assert [(one.event and one.event.seq, one.game and one.game.seq) for one in since] == [(1, 1), (None, 1)]
    assert [[other.id for other in one.letters] for one in since] == [[], [3]]


def closed(owner: psycopg.Connection, days: int = 100) -> None:
    owner.execute(
        "UPDATE petard.dead_letter SET state = 'discarded', closed = now() - make_interval(days => %s)",
        (days,),
    )


def test_purge_deletes_old_closed_letters_with_their_log_and_no_others(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    bury_all(connection, [b"old"])
    run_all(connection, client, keys)
    bury_all(connection, [b"old"])
    closed(owner)
    bury_all(connection, [b"open"])
    before = datetime.now(UTC) - timedelta(days=99)

    done = list(purge(connection, ClosedFilter(before)))
    again = list(purge(connection, ClosedFilter(before)))

    assert (done, again) == ([1], [])
    assert owner.execute("SELECT body FROM petard.dead_letter").fetchall() == [(b"open",)]
    assert owner.execute("SELECT FROM petard.dead_letter_attempt").fetchall() == []
    assert owner.execute("SELECT FROM petard.replay_letter").fetchall() == []


def test_function_that_purges_refuses_open_letters_and_those_that_came_back(
    connection: Connection, owner: psycopg.Connection
) -> None:
    bury_all(connection, [b"open", b"came back"])
    read = read_letters(connection, [1, 2])
    bury_all(connection, [b"came back"])
    owner.execute("UPDATE petard.dead_letter SET state = 'discarded' WHERE id = 2")

    assert purge_letters(connection, read) == 0
    assert find_ids(connection, EVERY) == [1, 2]


def test_purge_does_not_wait_for_a_letter_that_is_being_buried(
    connection: Connection, owner: psycopg.Connection, database_url: str
) -> None:
    bury_all(connection, [b"one", b"two"])
    closed(owner)
    with connect_worker(database_url, "drain") as drain, drain.transaction():
        bury_all(drain, [b"one"])

        assert list(purge(connection, SOON)) == [1]

    assert states(owner) == [("open", 2)]


def test_export_is_on_disk_before_anything_is_deleted(
    connection: Connection, owner: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from petard_worker.dead_letters import purge as module  # noqa: PLC0415

    bury_all(connection, [b"\x00\xff"])
    bury_all(connection, [b"\x00\xff"])
    closed(owner)
    steps: list[str] = []
    real = module.purge_letters
    monkeypatch.setattr(module.os, "fsync", lambda _: steps.append("on disk"))
    monkeypatch.setattr(module, "purge_letters", lambda *args: steps.append("deleted") or real(*args))
    file = tmp_path / "letters.ndjson"
    file.write_bytes(b'{"unfinished')

    with opened_export(file) as export:
        list(purge(connection, SOON, export))

    unfinished, line = file.read_bytes().splitlines()
    record = json.loads(line)
    assert unfinished == b'{"unfinished'
    assert (bytes.fromhex(record["body_hex"]), record["attempts"]) == (b"\x00\xff", 2)
    assert [attempt["attempt"] for attempt in record["attempt_log"]] == [1, 2]
    assert steps == ["on disk", "on disk", "deleted"]
    assert find_ids(connection, EVERY) == []


def test_purge_killed_before_the_delete_loses_nothing(
    connection: Connection, owner: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from petard_worker.dead_letters import purge as module  # noqa: PLC0415

    bury_all(connection, [b"one"])
    closed(owner)
    file = tmp_path / "letters.ndjson"

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, opened_export(file) as export:
        patch.setattr(module, "purge_letters", die)
        with pytest.raises(KeyboardInterrupt):
            list(purge(connection, SOON, export))

    assert len(file.read_bytes().splitlines()) == 1
    assert find_ids(connection, EVERY) == [1]


def test_letter_knows_the_replays_that_had_it(connection: Connection, client: Redis, keys: Keys) -> None:
    make_pool(connection)
    bury_all(connection, [b"junk"])
    for _ in range(2):
        run_all(connection, client, keys)
        apply_all(connection, client, keys)

    replays = read_replays(connection, letter(connection)[0])

    assert [(one.run, one.actor, one.state) for one in replays] == [(1, "ann", "sent"), (2, "ann", "sent")]
