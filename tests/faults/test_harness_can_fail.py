"""A check that never fails shows nothing: all damage is found, and so are services broken on purpose."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from faults.audit import (
    ChangeRow,
    Evidence,
    LedgerRow,
    Pushed,
    StreamRow,
    assert_nothing_lost_nothing_twice,
    gathered,
)
from faults.chaos.clock import SLEEP_BY_SELECT
from faults.chaos.scenario import Plan, run
from faults.differences import Differences, count_differences
from faults.fleet import MAIN, POOL, RULES, Fleet, wait_until
from faults.holding_proxy import HoldingProxy, script_call
from faults.seasons import rated, raws, season
from petard_schema import DeadReason
from petard_worker.embedded import PostgresServer, RedisServer
from petard_worker.fold import PlayerRecord
from petard_worker.intake import TRIM
from petard_worker.jobs import SUBMIT_EVENT
from petard_worker.rq_worker import enqueue_job, open_queue

Row = TypeVar("Row")
AT = 100
"""Where the damage is done."""


@pytest.fixture(scope="module")
def events() -> Pushed:
    return season(400)


@pytest.fixture(scope="module")
def sound(
    killable_servers: tuple[PostgresServer, RedisServer],
    tmp_path_factory: pytest.TempPathFactory,
    events: Pushed,
) -> Evidence:
    """Everything a run without faults has left, in lists that can be changed."""
    fleet = Fleet(*killable_servers, tmp_path_factory.mktemp("sound"))
    fleet.prepare()
    fleet.push(raws(events))
    fleet.apply_all()
    fleet.publish_rest()
    with fleet.client as client, gathered(fleet.postgres.url, client, fleet.keys, POOL) as evidence:
        assert evidence.stream is not None
        return replace(
            evidence,
            ledger=list(evidence.ledger),
            changes=list(evidence.changes),
            stream=list(evidence.stream),
        )


def ledger(evidence: Evidence) -> list[LedgerRow]:
    return list(evidence.ledger)


def stream(evidence: Evidence) -> list[StreamRow]:
    return list(evidence.stream or ())


def without(rows: Sequence[Row]) -> list[Row]:
    return [*rows[:AT], *rows[AT + 1 :]]


def doubled(rows: Sequence[Row]) -> list[Row]:
    return [*rows[: AT + 1], *rows[AT:]]


def swapped(rows: Sequence[Row]) -> list[Row]:
    return [*rows[:AT], rows[AT + 1], rows[AT], *rows[AT + 2 :]]


def numbered(rows: Sequence[LedgerRow]) -> list[LedgerRow]:
    return [row._replace(seq=number) for number, row in enumerate(rows, 1)]


def nudged(value: float) -> float:
    return math.nextafter(value, math.inf)


def entry_lost(evidence: Evidence) -> Evidence:
    return replace(evidence, ledger=without(ledger(evidence)))


def event_lost(evidence: Evidence) -> Evidence:
    return replace(evidence, ledger=numbered(without(ledger(evidence))), seq=evidence.seq - 1)


def last_entry_lost(evidence: Evidence) -> Evidence:
    return replace(evidence, ledger=ledger(evidence)[:-1], seq=evidence.seq - 1)


def entry_twice(evidence: Evidence) -> Evidence:
    return replace(evidence, ledger=doubled(ledger(evidence)))


def event_twice(evidence: Evidence) -> Evidence:
    return replace(evidence, ledger=numbered(doubled(ledger(evidence))), seq=evidence.seq + 1)


def events_out_of_order(evidence: Evidence) -> Evidence:
    return replace(evidence, ledger=numbered(swapped(ledger(evidence))))


def counter_ahead(evidence: Evidence) -> Evidence:
    return replace(evidence, seq=evidence.seq + 1)


def change_lost(evidence: Evidence) -> Evidence:
    return replace(evidence, changes=without(list(evidence.changes)))


def change_twice(evidence: Evidence) -> Evidence:
    return replace(evidence, changes=doubled(list(evidence.changes)))


def change_off_by_one_bit(evidence: Evidence) -> Evidence:
    changes: list[ChangeRow] = list(evidence.changes)
    changes[AT] = changes[AT]._replace(rating_after=nudged(changes[AT].rating_after))
    return replace(evidence, changes=changes)


def rating_off_by_one_bit(evidence: Evidence) -> Evidence:
    player, record = next(iter(evidence.ratings.items()))
    altered: Mapping[str, PlayerRecord] = {player: record._replace(rd=nudged(record.rd))}
    return replace(evidence, ratings={**evidence.ratings, **altered})


def rating_lost(evidence: Evidence) -> Evidence:
    return replace(evidence, ratings=dict(list(evidence.ratings.items())[1:]))


def stream_entry_lost(evidence: Evidence) -> Evidence:
    return replace(evidence, stream=without(stream(evidence)))


def last_stream_entry_lost(evidence: Evidence) -> Evidence:
    return replace(evidence, stream=stream(evidence)[:-1])


def stream_entry_twice(evidence: Evidence) -> Evidence:
    return replace(evidence, stream=doubled(stream(evidence)))


def stream_entries_swapped(evidence: Evidence) -> Evidence:
    return replace(evidence, stream=swapped(stream(evidence)))


def stream_tells_of_another_event(evidence: Evidence) -> Evidence:
    rows = stream(evidence)
    rows[AT] = StreamRow(rows[AT].id, rows[AT + 1].event)
    return replace(evidence, stream=rows)


def letter_lost(evidence: Evidence) -> Evidence:
    return replace(evidence, letters=evidence.letters[1:])


def letter_twice(evidence: Evidence) -> Evidence:
    return replace(evidence, letters=[*evidence.letters, evidence.letters[0]])


def letter_with_another_reason(evidence: Evidence) -> Evidence:
    body, _ = evidence.letters[0]
    return replace(evidence, letters=[(body, "internal_error"), *evidence.letters[1:]])


def player_missing_on_the_board(evidence: Evidence) -> Evidence:
    return replace(evidence, board=dict(list((evidence.board or {}).items())[1:]))


def score_off_by_one_bit(evidence: Evidence) -> Evidence:
    board = dict(evidence.board or {})
    player = next(iter(board))
    return replace(evidence, board={**board, player: nudged(board[player])})


def player_missing_at_the_follower(evidence: Evidence) -> Evidence:
    return replace(evidence, followed=dict(list((evidence.board or {}).items())[1:]))


def follower_off_by_one_bit(evidence: Evidence) -> Evidence:
    return replace(evidence, followed=score_off_by_one_bit(evidence).board)


def test_sound_run_passes(sound: Evidence, events: Pushed) -> None:
    assert assert_nothing_lost_nothing_twice(sound, RULES, [events]) == rated(events)


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (entry_lost, "a gap or a repeat"),
        (event_lost, "expected .*, found"),
        (last_entry_lost, "which no entry has"),
        (entry_twice, "a gap or a repeat"),
        (event_twice, "expected .*, found"),
        (events_out_of_order, "expected .*, found"),
        (counter_ahead, "counter"),
        (change_lost, "changes of entry"),
        (change_twice, "changes of entry"),
        (change_off_by_one_bit, "changes of entry"),
        (rating_off_by_one_bit, "the fold says"),
        (rating_lost, "players"),
        (stream_entry_lost, f"the stream has 1-{AT + 2} where 1-{AT + 1} is due"),
        (last_stream_entry_lost, "the stream ends"),
        (stream_entry_twice, f"the stream has 1-{AT + 1} where 1-{AT + 2} is due"),
        (stream_entries_swapped, f"the stream has 1-{AT + 2} where 1-{AT + 1} is due"),
        (stream_tells_of_another_event, f"stream entry 1-{AT + 1}"),
        (letter_lost, "dead letters"),
        (letter_twice, "dead letters"),
        (letter_with_another_reason, "dead letters"),
        (player_missing_on_the_board, "board"),
        (score_off_by_one_bit, "board"),
        (player_missing_at_the_follower, "board of the follower"),
        (follower_off_by_one_bit, "board of the follower"),
    ],
)
def test_damage_is_found(
    sound: Evidence, events: Pushed, damage: Callable[[Evidence], Evidence], found: str
) -> None:
    damaged = damage(sound)

    with pytest.raises(AssertionError, match=found):
        assert_nothing_lost_nothing_twice(damaged, RULES, [events])


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (event_lost, Differences(1, 0, 0, 0)),
        (event_twice, Differences(0, 1, 0, 0)),
        (events_out_of_order, Differences(0, 0, 1, 0)),
    ],
)
def test_differences_are_counted(
    sound: Evidence, events: Pushed, damage: Callable[[Evidence], Evidence], expected: Differences
) -> None:
    assert count_differences(sound.ledger, [events]) == Differences(0, 0, 0, 0)
    assert count_differences(damage(sound).ledger, [events]) == expected


def test_a_failed_job_is_reported_with_the_last_line_of_its_error(fleet: Fleet) -> None:
    fleet.worker()
    with fleet.client as client:
        enqueue_job(open_queue(client, {}, fleet.keys.prefix), SUBMIT_EVENT, "no event")

    wait_until(lambda: fleet.failed_jobs() == 1, "the job to fail")

    (told,) = fleet.failures_of_jobs()
    assert DeadReason.NOT_JSON in told


BLIND_TRIM = f"""
from petard_worker.intake import Intake
Intake.trim = lambda self, batch: bool(self.redis.ltrim(self.keys.events(self.pool), len(batch), -1))
{MAIN}
"""

TRIM_BEFORE_COMMIT = f"""
from petard_worker.intake import Intake
read = Intake.read
def read_and_trim(self, limit, *, same):
    arrivals = read(self, limit, same=same)
    self.trim([arrival.raw for arrival in arrivals])
    return arrivals
Intake.has_work = lambda self, limit: self.waiting() > 0
Intake.read = read_and_trim
{MAIN}
"""

FORGETFUL = f"""
from petard_worker.postgres import ledger
ledger.ask_events = lambda connection, pool, keys: dict
ledger.ask_games = lambda connection, pool, games: dict
{MAIN}
"""

PLAIN_APPEND = f"""
from petard_worker import change_stream, publish
from petard_worker.server_function import ServerFunction
blind = change_stream.APPEND.replace("if last ~= ARGV[1] then return last end", "")
change_stream.APPEND_FUNCTION = ServerFunction("append", blind)
publish.Publisher.check_redis = lambda self, *pools: None
{MAIN}
"""


def test_worker_that_trims_blindly_is_found(fleet: Fleet, proxy: HoldingProxy, events: Pushed) -> None:
    fleet.worker(proxy.url, BLIND_TRIM)
    proxy.hold_request(b"LTRIM")
    fleet.push(raws(events[:AT]))
    assert proxy.held.wait(10)
    other = fleet.worker()
    wait_until(lambda: fleet.waiting() == 0, "the other worker to trim")
    other.kill()  # else it may have read the rest before that is trimmed

    fleet.push(raws(events[AT:]))
    waiting = fleet.waiting()
    proxy.let_go()
    wait_until(lambda: fleet.waiting() < waiting, "the blind trim")
    wait_until(lambda: fleet.waiting() == 0, "the rest to be applied")
    fleet.publish_rest()

    with pytest.raises(AssertionError, match=r"expected .*, found"):
        fleet.audit(events)


def test_worker_that_trims_before_its_commit_is_found(fleet: Fleet, events: Pushed) -> None:
    fleet.push(raws(events[:AT]))
    fleet.apply_all()
    fleet.worker(program=TRIM_BEFORE_COMMIT)

    with fleet.ratings_locked():
        fleet.push(raws(events[AT:]))
        fleet.wait_until_blocked().kill()
        fleet.end_sessions()  # else Postgres, which has all of the batch, goes on without the worker
    fleet.apply_all()
    fleet.publish_rest()

    with pytest.raises(AssertionError, match="which no entry has"):
        fleet.audit(events)


def test_worker_that_knows_no_repeats_is_found(fleet: Fleet, proxy: HoldingProxy, events: Pushed) -> None:
    with fleet.owner() as connection:
        connection.execute("ALTER TABLE petard.ledger DROP CONSTRAINT ledger_counts_an_event_once")
        connection.execute("DROP INDEX petard.ledger_counts_a_game_once")
    victim = fleet.worker(proxy.url)
    proxy.hold_request(script_call(TRIM))
    fleet.push(raws(events))
    assert proxy.held.wait(10)
    victim.kill()
    proxy.drop()
    once = fleet.applied()

    fleet.worker(program=FORGETFUL)
    wait_until(lambda: fleet.waiting() == 0, "the events to be applied again")

    fleet.publish_rest()
    assert fleet.applied() > once

    with pytest.raises(AssertionError, match=r"expected .*, found"):
        fleet.audit(events)


def test_publisher_that_appends_without_comparing_is_found(fleet: Fleet, events: Pushed) -> None:
    fleet.publisher(program=PLAIN_APPEND)
    fleet.push(raws(events[:AT]))
    fleet.apply_all()
    fleet.wait_until_published(rated(events[:AT]))

    with fleet.client as client:
        client.flushall()
    fleet.push(raws(events[AT:]))
    fleet.apply_all()

    wait_until(lambda: fleet.published() == rated(events), "the rest to be published")

    with pytest.raises(AssertionError, match=r"the stream has .* where 1-1 is due"):
        fleet.audit(events)


@pytest.mark.timeout(400)
def test_chaos_finds_a_publisher_that_appends_without_comparing(tmp_path: Path) -> None:
    plan = Plan(seed=3, events=4_000, faults=2, only=("wipe_redis",))

    report = run(plan, tmp_path, print, program=f"{SLEEP_BY_SELECT}\n{PLAIN_APPEND}")

    assert report.failure is not None
    assert "--seed 3" in report.command
    assert "--only wipe_redis" in report.command
