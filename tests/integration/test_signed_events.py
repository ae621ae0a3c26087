"""Signed events on their way through real drains: who may say what, and how a key is changed or revoked."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from redis import Redis

from integration.arena import (
    POOL,
    counted,
    dead_letters,
    event,
    finished,
    fold_of_ledger,
    games,
    make_pool,
    outcomes,
    push,
    records,
    run_drain,
)
from integration.letters import run_all
from petard_producer import Producer
from petard_schema import Keys
from petard_worker.apply import MANY, apply_batch, apply_or_bury_head
from petard_worker.breaker import Breaker
from petard_worker.intake import Intake
from petard_worker.jobs import Workshop, submit_event
from petard_worker.keyring import Keyring
from petard_worker.pool_changes import PoolChange, change_pool
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.letter_finds import LetterFilter
from petard_worker.signing_keys import read_signing_keys
from petard_worker.status import head_age
from petard_worker.waiting import find_waiting
from signed_elements import key, setting, signed

SOURCE = "/test"
YEAR = timedelta(days=365)


def other(number: int) -> bytes:
    """Return the report of a game by a source that does not sign."""
    return finished(number).replace(b'"/test"', b'"/somebody"')


def details(owner: psycopg.Connection) -> list[tuple[str, str]]:
    """Return reason and detail of every dead letter."""
    return owner.execute("SELECT reason, detail FROM petard.dead_letter ORDER BY id").fetchall()


def require_signature(connection: Connection) -> None:
    assert change_pool(connection, POOL, PoolChange({}, {"require_signature": True}))


@pytest.fixture
def signing(workshop: Workshop, pool: str) -> Workshop:
    """A workshop that knows key 1 of one source, and a pool."""
    assert pool
    workshop.keyring = Keyring(read_signing_keys(setting({SOURCE: [key(1)]})))
    return workshop


def test_signed_and_unsigned_events_count_in_their_order(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    unsigned = [body.replace(b'"/test"', b'"/somebody"') for body in games(40)]
    elements = [signed(body) if number % 3 else unsigned[number] for number, body in enumerate(games(40))]
    push(client, keys, elements)

    run_drain(signing)

    assert counted(owner) == [f"e-{number}" for number in range(1, 41)]
    assert records(owner) == fold_of_ledger(owner)
    assert dead_letters(owner) == []


def test_the_ledger_has_the_event_without_its_signature(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    push(client, keys, [signed(finished(1))])

    run_drain(signing)

    assert owner.execute("SELECT body::text FROM petard.ledger").fetchall() == [(finished(1).decode(),)]


def test_the_dead_letter_has_the_whole_element_and_can_be_searched_for(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    forged = signed(finished(1), key(9))
    push(client, keys, [forged])

    run_drain(signing)

    assert dead_letters(owner) == [(forged, "bad_signature")]
    row = owner.execute("SELECT source, event_id, game, detail FROM petard.dead_letter").fetchone()
    assert row == (SOURCE, "e-1", "g-1", "no signature fits a key of source '/test'")


def test_nobody_speaks_unsigned_in_the_name_of_a_source_that_signs(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    push(client, keys, [finished(1), other(2)])

    run_drain(signing)

    assert counted(owner) == ["e-2"]
    assert details(owner) == [
        ("bad_signature", "source '/test' signs its events, and this one is not signed")
    ]


def test_a_signature_is_worth_nothing_where_no_key_is_known(
    workshop: Workshop, pool: str, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    push(client, keys, [signed(finished(1))])

    run_drain(workshop, pool)

    assert details(owner) == [
        ("bad_signature", "no key of source '/test' is known here, or none any more"),
    ]


def test_a_pool_may_take_signed_events_only(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, connection: Connection
) -> None:
    require_signature(connection)
    push(client, keys, [other(1), signed(finished(2)), b"nonsense"])

    run_drain(signing)

    assert counted(owner) == ["e-2"]
    assert details(owner) == [
        ("bad_signature", "pool 'p' takes signed events only, and this one is not signed"),
        ("not_json", "Expecting value: line 1 column 1 (char 0)"),
    ]


@pytest.mark.parametrize("ahead", [-YEAR, timedelta(minutes=4)])
def test_an_event_that_was_signed_long_ago_or_by_a_fast_clock_counts(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, ahead: timedelta
) -> None:
    """What was spooled during an outage is honestly old."""
    push(client, keys, [signed(finished(1), at=datetime.now(UTC) + ahead)])

    run_drain(signing)

    assert counted(owner) == ["e-1"]


def test_an_event_signed_in_the_future_is_refused(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    push(client, keys, [signed(finished(1), at=datetime.now(UTC) + timedelta(hours=1))])

    run_drain(signing)

    ((reason, detail),) = details(owner)
    assert reason == "bad_signature"
    assert detail.endswith(" s ahead of our time, 300 s are allowed")


def test_an_event_signed_again_is_the_same_event(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    now = datetime.now(UTC)
    push(client, keys, [signed(finished(1), at=now - YEAR), signed(finished(1), at=now)])
    run_drain(signing)
    push(client, keys, [signed(finished(1), key(1), key(2), at=now)])

    run_drain(signing)

    assert outcomes(owner) == [("e-1", "rated")]
    assert dead_letters(owner) == []


def test_a_signature_does_not_make_a_used_id_good_for_another_event(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    push(client, keys, [signed(finished(1)), signed(finished(1, "carol"))])

    run_drain(signing)

    assert [reason for reason, _ in details(owner)] == ["id_reused"]


def test_a_source_is_heard_in_its_pools_only(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, connection: Connection
) -> None:
    make_pool(connection, "q")
    signing.keyring = Keyring(read_signing_keys(setting({SOURCE: [key(1)]}, pools=["q", "r"])))
    push(client, keys, [signed(finished(1))])
    push(client, keys, [signed(finished(2, pool="q")), signed(finished(3))], pool="q")

    run_drain(signing)
    run_drain(signing, "q")

    assert counted(owner, "q") == ["e-2"]
    assert details(owner) == [("bad_signature", "source '/test' may speak in q, r only")] * 2


def test_an_event_for_one_pool_does_not_count_in_another(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, connection: Connection
) -> None:
    make_pool(connection, "q")
    push(client, keys, [signed(finished(1))], pool="q")

    run_drain(signing, "q")

    assert [reason for reason, _ in details(owner)] == ["wrong_pool"]


def test_a_dead_letter_that_is_replayed_after_its_key_was_added_counts_once(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, connection: Connection
) -> None:
    element = signed(finished(1), key(2))
    push(client, keys, [element, element])
    run_drain(signing)
    signing.keyring.keys = read_signing_keys(setting({SOURCE: [key(2), key(1)]}))

    steps = run_all(connection, client, keys, LetterFilter(reason="bad_signature"))
    assert sum(step.sent for step in steps) == 1
    run_drain(signing)
    push(client, keys, [element])
    run_drain(signing)

    assert outcomes(owner) == [("e-1", "rated")]
    assert [state for (state,) in owner.execute("SELECT state FROM petard.dead_letter")] == ["replayed"]


def test_a_replay_with_the_key_still_missing_stays_dead(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, connection: Connection
) -> None:
    push(client, keys, [signed(finished(1), key(2))])
    run_drain(signing)

    run_all(connection, client, keys)
    run_drain(signing)

    assert counted(owner) == []
    rows = owner.execute("SELECT state, attempts FROM petard.dead_letter").fetchall()
    assert rows == [("open", 2)]


def test_what_was_read_ahead_is_judged_again_when_a_key_is_revoked(
    client: Redis, keys: Keys, owner: psycopg.Connection, connection: Connection, pool: str
) -> None:
    keyring = Keyring(read_signing_keys(setting({SOURCE: [key(1)]})))
    intake = Intake(client, keys, pool, keyring)
    push(client, keys, [signed(finished(number)) for number in range(1, MANY + 3)])
    apply_batch(connection, intake, Breaker(), MANY)  # and two more are read ahead
    keyring.keys = read_signing_keys(setting({SOURCE: [key(2)]}))

    apply_batch(connection, intake, Breaker(), MANY)

    assert len(counted(owner)) == MANY
    assert [reason for _, reason in dead_letters(owner)] == ["bad_signature"] * 2


def test_an_event_that_stands_alone_under_suspicion_is_verified_too(
    client: Redis, keys: Keys, owner: psycopg.Connection, connection: Connection, pool: str
) -> None:
    intake = Intake(client, keys, pool, Keyring(read_signing_keys(setting({SOURCE: [key(1)]}))))
    push(client, keys, [signed(finished(1)), finished(2)])

    apply_or_bury_head(connection, intake, Breaker())
    apply_or_bury_head(connection, intake, Breaker())

    assert counted(owner) == ["e-1"]
    assert [reason for _, reason in dead_letters(owner)] == ["bad_signature"]


def test_forged_events_do_not_stop_the_pool(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """They are wrong by their content: the breaker is for mistakes of ours."""
    push(client, keys, [*[finished(number) for number in range(200)], signed(finished(200))])

    run_drain(signing)

    assert counted(owner) == ["e-200"]
    assert len(dead_letters(owner)) == 200


def test_a_waiting_signed_event_is_found_and_has_an_age(client: Redis, keys: Keys) -> None:
    push(client, keys, [signed(finished(1))])

    fate = find_waiting(client, keys, "e-1")

    assert fate is not None
    assert (fate.source, fate.outcome, fate.pool) == (SOURCE, "waiting", POOL)
    then = datetime(2026, 1, 1, 0, 2, tzinfo=UTC)
    assert head_age(client, keys, POOL, then) == 60


def test_a_signed_event_can_be_submitted_through_rq(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    element = signed(finished(1))

    submit_event(element.decode(), workshop=signing)

    assert client.lrange(keys.events(POOL), 0, -1) == [element]
    run_drain(signing)
    assert counted(owner) == ["e-1"]


def test_what_a_producer_with_a_key_pushes_is_signed(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection, connection: Connection
) -> None:
    require_signature(connection)
    already = signed(finished(3))
    producer = Producer(client, source=SOURCE, prefix=keys.prefix, signing_key=[key(2), key(1)])

    producer.push_json(finished(1))
    producer.push_many_json([finished(2), already])
    pushed = client.lrange(keys.events(POOL), 0, -1)
    run_drain(signing)

    assert all(element.startswith(b"petard-source: /test\n") for element in pushed)
    assert pushed[2] == already
    assert counted(owner) == ["e-1", "e-2", "e-3"]


def test_a_producer_without_a_key_pushes_byte_for_byte(client: Redis, keys: Keys) -> None:
    producer = Producer(client, source=SOURCE, prefix=keys.prefix)

    producer.push_json(finished(1))

    assert client.lrange(keys.events(POOL), 0, -1) == [finished(1)]


@pytest.mark.parametrize("bad", ["", "whsec_", "whsec_AAAA", ["nonsense"]])
def test_a_producer_with_a_key_that_is_none_is_not_made(client: Redis, bad: str | list[str]) -> None:
    with pytest.raises(ValueError, match="a key"):
        Producer(client, source=SOURCE, signing_key=bad)


def test_a_producer_with_a_list_without_keys_is_not_made(client: Redis) -> None:
    with pytest.raises(ValueError, match="leave it out to push unsigned"):
        Producer(client, source=SOURCE, signing_key=[])


def test_a_key_is_rotated_and_revoked_in_its_file_while_the_worker_runs(
    petard,  # type: ignore[no-untyped-def]  # the command line of tests/conftest.py
    client: Redis,
    keys: Keys,
    pool: str,
    owner: psycopg.Connection,
    tmp_path: Path,
    wait_until: Callable[..., None],
) -> None:
    file = tmp_path / "keys.json"
    file.write_text(setting({SOURCE: [key(1)]}))
    petard.environment["PETARD_SIGNING_KEYS_FILE"] = str(file)
    worker = petard.start("worker")
    numbers = iter(range(1, 100_000))

    def push_one(*by: str) -> str:
        number = next(numbers)
        push(client, keys, [signed(finished(number, f"w-{number}"), *by)])
        client.publish(keys.pushed(), pool)
        wait_until(lambda: client.llen(keys.events(pool)) == 0, "the event to be taken")
        assert worker.poll() is None
        return f"e-{number}"

    assert push_one(key(1)) in counted(owner)
    assert push_one(key(2)) not in counted(owner)
    file.write_text(setting({SOURCE: [key(2), key(1)]}))
    wait_until(lambda: push_one(key(2)) in counted(owner), "the new key to be known")
    assert push_one(key(1)) in counted(owner)
    file.write_text(setting({SOURCE: [key(2)]}))
    wait_until(lambda: push_one(key(1)) not in counted(owner), "the old key to be revoked", 5)
    file.write_text("{ broken")
    wait_until(lambda: push_one(key(2)) and "signing_keys_unusable" in petard.log_of(worker), "the log")
    assert push_one(key(2)) in counted(owner)
    assert push_one(key(1)) not in counted(owner)
    log = petard.log_of(worker)
    assert log.count("signing_keys_unusable") == 1
    assert key(1)[6:14] not in log
    assert key(2)[6:14] not in log


def test_the_setting_alone_reaches_the_worker(
    petard,  # type: ignore[no-untyped-def]  # the command line of tests/conftest.py
    client: Redis,
    keys: Keys,
    pool: str,
    owner: psycopg.Connection,
) -> None:
    assert pool
    petard.environment["PETARD_SIGNING_KEYS"] = setting({SOURCE: [key(1)]})
    push(client, keys, [signed(finished(1)), finished(2)])

    ended = petard.run("worker", "--burst")

    assert ended.returncode == 0, ended.stderr
    assert counted(owner) == ["e-1"]
    assert [reason for _, reason in dead_letters(owner)] == ["bad_signature"]


def test_an_abandoned_game_can_be_signed_too(
    signing: Workshop, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    sides = [{"players": ["alice"]}, {"players": ["bob"]}]
    body = event("abandoned", "e-1", {"pool": POOL, "game": "g", "sides": sides, "abandoned_by": ["bob"]})
    push(client, keys, [signed(body)])

    run_drain(signing)

    assert outcomes(owner) == [("e-1", "rated")]
