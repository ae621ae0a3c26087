"""Replays of dead letters: one turn for each, in order, at a rate; one run at a time, resumed when killed."""

from collections.abc import Iterator

import psycopg
import pytest
from redis import Redis

from integration.arena import apply_all, finished, make_pool, outcomes, records
from integration.letters import AT_ONCE, EVERY, REFUSED, bury_all, run_all, start, states, turns
from petard_schema import Keys
from petard_worker import replay as replay_module
from petard_worker.dead_letters.discard import discard
from petard_worker.pace import Pace
from petard_worker.postgres import replay_runs
from petard_worker.postgres.connect import Connection, connect_worker
from petard_worker.postgres.dead_letters import MAX_BODY, bury, dead_letter
from petard_worker.postgres.letter_finds import LetterFilter, find_ids, group_letters
from petard_worker.replay import (
    CHUNK,
    NothingToReplayError,
    Progress,
    ReplayInterruptedError,
    ReplayRunningError,
    give_up,
    replay,
    resume_replay,
)

OPEN = LetterFilter(state="open")
MANY = 2 * CHUNK + 1


class KilledError(Exception):
    """Stands for kill -9."""


@pytest.fixture
def other(database_url: str) -> Iterator[Connection]:
    """Somebody else's session."""
    with connect_worker(database_url, "other") as other:
        yield other


@pytest.fixture
def many(connection: Connection) -> list[bytes]:
    """More letters than fit into a chunk, all of one pool."""
    bodies = [f"junk {number}".encode() for number in range(MANY)]
    bury_all(connection, bodies)
    return bodies


def test_a_letter_that_fails_again_is_not_picked_up_twice_by_the_same_run(
    connection: Connection, client: Redis, keys: Keys, many: list[bytes], owner: psycopg.Connection
) -> None:
    ids = find_ids(connection, OPEN)
    done = 0

    for step in replay(connection, client, keys, start(connection), AT_ONCE):
        done += step.sent
        bury_all(connection, many[:done])

    assert client.lrange(keys.events("p"), 0, -1) == many
    assert find_ids(connection, OPEN) == ids
    assert {actor for (actor,) in owner.execute("SELECT actor FROM petard.dead_letter")} == {None}


def test_letters_that_come_after_the_start_are_not_of_the_run(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    bury_all(connection, [b"one"])
    run = start(connection)
    bury_all(connection, [b"two"])

    steps = list(replay(connection, client, keys, run, AT_ONCE))

    assert steps == [Progress(1, 0, 0)]
    assert states(owner) == [("replayed", 1), ("open", 1)]


def test_letters_of_several_pools_go_in_the_order_of_their_ids(
    connection: Connection, client: Redis, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed: list[int] = []
    real = replay_module.send

    def send(redis, keys, run, letters):  # type: ignore[no-untyped-def]
        pushed.extend(letter.id for letter in letters)
        real(redis, keys, run, letters)

    monkeypatch.setattr(replay_module, "send", send)
    for number in range(40):
        bury_all(connection, [f"junk {number}".encode()], "pq"[number % 3 == 0])

    run_all(connection, client, keys)

    assert pushed == sorted(pushed)
    assert (client.llen(keys.events("p")), client.llen(keys.events("q"))) == (26, 14)


def test_replay_of_what_has_counted_changes_nothing(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    events = [finished(number) for number in range(1, 51)]
    apply_all(connection, client, keys, events)  # no such pool
    make_pool(connection)
    apply_all(connection, client, keys, events)
    before = outcomes(owner), records(owner), owner.execute("SELECT * FROM petard.pool").fetchall()
    changes = owner.execute("SELECT * FROM petard.change ORDER BY pool, player, player_seq").fetchall()

    run_all(connection, client, keys)
    apply_all(connection, client, keys)

    assert len(before[0]) == 50
    assert (outcomes(owner), records(owner), owner.execute("SELECT * FROM petard.pool").fetchall()) == before
    assert (
        owner.execute("SELECT * FROM petard.change ORDER BY pool, player, player_seq").fetchall() == changes
    )
    assert states(owner) == [("replayed", 1)] * 50


def test_what_fails_again_is_another_attempt_of_the_same_letter(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, [finished(1), b"junk"])
    make_pool(connection)

    run_all(connection, client, keys)
    apply_all(connection, client, keys)

    assert states(owner) == [("replayed", 1), ("open", 2)]
    assert outcomes(owner) == [("e-1", "rated")]


def test_a_letter_that_comes_back_before_it_is_marked_stays_open(
    connection: Connection, client: Redis, keys: Keys, many: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_module, "send", lambda *_: bury_all(connection, [many[0]]))
    ids = find_ids(connection, OPEN)

    run_all(connection, client, keys, LetterFilter(ids=ids[:2]))

    assert find_ids(connection, OPEN) == [ids[0], *ids[2:]]


def test_a_letter_that_is_buried_again_right_now_stays_open(
    connection: Connection, client: Redis, keys: Keys, many: list[bytes], other: Connection
) -> None:
    """And nobody waits: whoever buries many letters and whoever marks many must not lock each other out."""
    ids = find_ids(connection, OPEN)
    with other.transaction():
        bury_all(other, [many[0]])

        run_all(connection, client, keys, LetterFilter(ids=ids[:2]))

    assert find_ids(connection, OPEN) == [ids[0], *ids[2:]]


def test_a_letter_that_is_edited_between_the_push_and_the_mark_stays_open(
    connection: Connection,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bury_all(connection, [b"junk"])
    edit = """
        UPDATE petard.dead_letter SET edited_body = 'x', edited_digest = sha256('x'), edited_by = 'bob',
            edited_at = now()
    """
    monkeypatch.setattr(replay_module, "send", lambda *_: owner.execute(edit))

    run_all(connection, client, keys)

    assert states(owner) == [("open", 1)]


def test_what_somebody_discards_before_its_turn_is_not_sent(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection, other: Connection
) -> None:
    bury_all(connection, [b"one", b"two"])
    run = start(connection)
    list(discard(other, [1], "bob", "a test"))

    steps = list(replay(connection, client, keys, run, AT_ONCE))

    assert steps == [Progress(1, 1, 0)]
    assert client.lrange(keys.events("p"), 0, -1) == [b"two"]
    assert turns(owner) == ["closed", "sent"]


def test_a_letter_of_which_only_the_start_was_kept_is_not_sent(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """Its start is another body: it would become another letter."""
    apply_all(connection, client, keys, [b"x" * (MAX_BODY + 1), b"y" * MAX_BODY])

    steps = run_all(connection, client, keys)

    assert steps == [Progress(1, 0, 1)]
    assert client.lrange(keys.events("p"), 0, -1) == [b"y" * MAX_BODY]
    assert states(owner) == [("open", 1), ("replayed", 1)]


def test_second_start_is_told_who_runs_and_how_far(
    connection: Connection, other: Connection, client: Redis, keys: Keys, many: list[bytes]
) -> None:
    steps = replay(connection, client, keys, start(connection), AT_ONCE)
    next(steps)

    with pytest.raises(
        ReplayRunningError, match=rf"replay 1 of pool 'p', by ann .* {CHUNK} of {MANY} letters"
    ):
        start(other)
    with pytest.raises(ReplayRunningError, match="replay 1"):
        resume_replay(other)
    list(steps)
    with pytest.raises(NothingToReplayError):
        start(other)

    assert client.llen(keys.events("p")) == len(many)


def test_a_run_locks_each_of_its_pools_and_no_other(connection: Connection, other: Connection) -> None:
    for pool in ("p", "q", "r"):
        bury_all(connection, [b"junk"], pool)
    start(connection, LetterFilter(pool="q"))

    with pytest.raises(ReplayRunningError, match="'q'"):
        start(other)
    run = start(other, LetterFilter(pool="p"))

    assert run.pools == ["p"]
    assert start(other, LetterFilter(pool="r")).pools == ["r"]


def test_killed_run_is_named_and_resumed_and_nothing_is_sent_twice(
    connection: Connection,
    database_url: str,
    client: Redis,
    keys: Keys,
    many: list[bytes],
    owner: psycopg.Connection,
) -> None:
    with connect_worker(database_url, "victim") as victim:
        steps = replay(victim, client, keys, start(victim), AT_ONCE)
        next(steps)
        steps.close()
        # Waits for its end: until then the dead one still has its lock.
        owner.execute("SELECT pg_terminate_backend(%s, 10000)", (victim.info.backend_pid,))

    with pytest.raises(ReplayInterruptedError, match=r"--resume"):
        start(connection)
    run = resume_replay(connection)
    assert run is not None
    list(replay(connection, client, keys, run, AT_ONCE))

    assert (run.actor, run.letters, run.waiting) == ("ann", MANY, MANY - CHUNK)
    assert client.lrange(keys.events("p"), 0, -1) == many
    assert turns(owner) == ["sent"] * MANY
    assert resume_replay(connection) is None
    assert not client.exists(keys.replay(str(run.token)))


def test_killed_between_push_and_mark_a_letter_that_failed_again_stays_open_and_is_not_pushed_again(
    connection: Connection,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bury_all(connection, [b"good", b"bad"])

    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(replay_runs, "end_turns", die)
        with pytest.raises(KilledError):
            run_all(connection, client, keys)
    bury_all(connection, [b"bad"])
    run = resume_replay(connection)
    assert run is not None

    steps = list(replay(connection, client, keys, run, AT_ONCE))

    assert steps == [Progress(2, 0, 0)]
    assert client.lrange(keys.events("p"), 0, -1) == [b"good", b"bad"]
    assert states(owner) == [("replayed", 1), ("open", 2)]


def test_given_up_run_leaves_the_rest_open_and_the_pool_free(
    connection: Connection, client: Redis, keys: Keys, many: list[bytes], owner: psycopg.Connection
) -> None:
    steps = replay(connection, client, keys, start(connection), AT_ONCE)
    next(steps)
    steps.close()
    run = resume_replay(connection)
    assert run is not None

    dropped = give_up(connection, client, keys, run)

    assert dropped == MANY - CHUNK
    assert turns(owner) == ["sent"] * CHUNK + ["dropped"] * dropped
    assert start(connection).letters == dropped


def test_resumed_after_redis_was_wiped_what_had_no_mark_is_pushed(
    connection: Connection, client: Redis, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    bury_all(connection, [b"one"])

    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(replay_runs, "end_turns", die)
        with pytest.raises(KilledError):
            run_all(connection, client, keys)
    client.flushdb()
    run = resume_replay(connection)
    assert run is not None

    list(replay(connection, client, keys, run, AT_ONCE))

    assert client.lrange(keys.events("p"), 0, -1) == [b"one"]


@pytest.mark.parametrize("rate", [1, 7, 100, 500, 3000])
def test_rate_is_the_cap(
    connection: Connection, client: Redis, keys: Keys, rate: int, many: list[bytes]
) -> None:
    now = 0.0
    times: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    pace = Pace(rate, clock=lambda: now, sleep=sleep)
    for step in replay(connection, client, keys, start(connection), pace):
        times += [now] * step.sent

    assert all(number <= time * rate + 1e-6 for number, time in enumerate(times, 1))
    assert now == pytest.approx(MANY / rate)


def test_after_a_delay_no_more_than_a_quarter_of_a_second_is_caught_up() -> None:
    now, waited = 0.0, 0.0

    def sleep(seconds: float) -> None:
        nonlocal now, waited
        now, waited = now + seconds, waited + seconds

    pace = Pace(100, clock=lambda: now, sleep=sleep)
    pace.wait(1)
    now = 60.0
    for _ in range(300):
        pace.wait(1)

    assert waited == pytest.approx(0.01 + 2.75)


FILTERS: list[tuple[LetterFilter, list[int]]] = [
    (EVERY, [1, 2, 3]),
    (LetterFilter(pool="q"), [3]),
    (LetterFilter(source="/test"), [2]),
    (LetterFilter(reason="self_match"), [2]),
    (LetterFilter(traceback_hash="none"), []),
]


@pytest.mark.parametrize(("wanted", "ids"), FILTERS)
def test_filter_means_the_same_to_list_groups_and_runs(
    connection: Connection, owner: psycopg.Connection, wanted: LetterFilter, ids: list[int],
    client: Redis, keys: Keys,
) -> None:  # fmt: skip
    make_pool(connection)
    apply_all(connection, client, keys, [b"junk", finished(1, "a", "a")])
    bury_all(connection, [b"junk"], "q")

    found = find_ids(connection, wanted)
    groups = group_letters(connection, wanted)

    assert found == ids
    assert sum(group.letters for group in groups) == len(ids)
    if ids:
        assert start(connection, wanted).letters == len(ids)


def test_filter_by_time_goes_by_when_a_letter_was_seen_last(
    connection: Connection, owner: psycopg.Connection
) -> None:
    for number in range(3):
        bury(connection, "p", [dead_letter(b"%d" % number, REFUSED)])
    times = [time for (time,) in owner.execute("SELECT last_seen FROM petard.dead_letter ORDER BY id")]

    assert find_ids(connection, LetterFilter(since=times[1])) == [2, 3]
    assert find_ids(connection, LetterFilter(until=times[1])) == [1]
    assert find_ids(connection, LetterFilter(since=times[1], until=times[2])) == [2]


def test_begun_run_holds_up_no_burial(connection: Connection, other: Connection) -> None:
    bury_all(connection, [b"one", b"two"])
    start(other)
    connection.execute("SET lock_timeout = '1ms'")

    bury_all(connection, [b"one", b"three"])

    assert len(find_ids(connection, OPEN)) == 3
