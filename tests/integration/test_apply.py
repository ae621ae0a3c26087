"""One batch, one transaction: what is written when events are applied."""

import json
from collections import Counter
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql
from redis import Redis

from integration.arena import (
    START,
    abandoned,
    apply_all,
    broken_chains,
    counted,
    dead_letters,
    event,
    finished,
    fold_of_ledger,
    games,
    ids_of,
    make_pool,
    outcomes,
    push,
    records,
)
from petard_schema import Keys
from petard_schema.times import format_time
from petard_worker.apply import Applied, PoolStoppedError, apply_batch
from petard_worker.breaker import Breaker
from petard_worker.intake import Intake
from petard_worker.postgres import pools
from petard_worker.postgres.connect import Connection, connect_worker
from petard_worker.ratings.pool_rules import pool_rules
from petard_worker.simulate import Season, simulate_with_labels

pytestmark = pytest.mark.usefixtures("pool")


def test_a_finished_game_rates_both_players(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, [finished(1, "alice", "bob")])

    standing = records(owner)
    # Two new players by Glickman's formulas: 1500 +- 162.2, RD 290.2.
    assert standing["alice"].rating == pytest.approx(1662.2120026, abs=1e-6)
    assert standing["bob"].rating == pytest.approx(1337.7879974, abs=1e-6)
    assert standing["alice"].rd == standing["bob"].rd == pytest.approx(290.2305061, abs=1e-6)
    assert (standing["alice"].games, standing["alice"].wins, standing["bob"].losses) == (1, 1, 1)
    assert standing["alice"].last_played == START + timedelta(minutes=1)
    assert client.llen(keys.events("p")) == 0


def test_a_commit_is_on_disk_whatever_the_database_says(database_url: str, owner: psycopg.Connection) -> None:
    name = sql.Identifier(owner.info.dbname)
    owner.execute(sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(name))

    with connect_worker(database_url, "test") as worker, psycopg.connect(database_url) as anybody:
        told = [session.execute("SHOW synchronous_commit").fetchone() for session in (anybody, worker)]

    assert told == [("off",), ("on",)]


def test_nothing_waiting_writes_nothing(connection: Connection, client: Redis, keys: Keys) -> None:
    applied = apply_batch(connection, Intake(client, keys, "p"), Breaker(), 500)

    assert applied == Applied(0)


def test_a_batch_tells_what_it_came_to(connection: Connection, client: Redis, keys: Keys) -> None:
    push(client, keys, [finished(1), finished(1), b"junk", finished(2)])

    applied = apply_batch(connection, Intake(client, keys, "p"), Breaker(), 500)

    assert applied == Applied(events=4, entries=2, dead=1, repeats=1)


def test_a_batch_is_no_larger_than_asked_for(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    push(client, keys, games(10))

    apply_batch(connection, Intake(client, keys, "p"), Breaker(), 4)

    assert counted(owner) == ids_of(games(4))
    assert client.lrange(keys.events("p"), 0, -1) == games(6, first=5)


def test_the_size_of_batches_changes_no_bit(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    events = games(60)

    apply_all(connection, client, keys, events, limit=7)

    assert records(owner) == fold_of_ledger(owner)
    assert counted(owner) == ids_of(events)


def test_the_ledger_keeps_every_byte_of_an_event(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    pretty = json.dumps(json.loads(finished(1)), indent=3, ensure_ascii=True).replace("alice", "al\\u00efce")
    raw = b"\r\n\t " + pretty.encode() + b"  \n"

    apply_all(connection, client, keys, [raw])

    (body,) = owner.execute("SELECT body::text FROM petard.ledger").fetchall()[0]
    assert body.encode() == raw
    assert "alïce" in records(owner)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (finished(1, rated=False), "unrated"),
        (abandoned(1, rated=False), "unrated"),
        (abandoned(1, fault="server"), "server_fault"),
    ],
)
def test_what_changes_nothing_stands_in_the_ledger_as_ignored(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection, raw: bytes, reason: str
) -> None:
    apply_all(connection, client, keys, [raw])

    assert outcomes(owner) == [("e-1", reason)]
    assert records(owner) == {}


def test_an_ignored_report_leaves_the_game_open_for_the_one_that_counts(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    unrated = finished(1, rated=False)
    counts = finished(1).replace(b'"e-1"', b'"e-2"')

    apply_all(connection, client, keys, [unrated, counts])

    assert outcomes(owner) == [("e-1", "unrated"), ("e-2", "rated")]


def test_a_late_event_ages_nobody_and_is_marked(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, [finished(9000), finished(5)])

    entries = owner.execute("SELECT event_id, late FROM petard.ledger ORDER BY seq").fetchall()
    changes = owner.execute("SELECT late, rd_aged = rd_before FROM petard.change WHERE seq = 2").fetchall()
    assert entries == [("e-9000", False), ("e-5", True)]
    assert changes == [(True, True), (True, True)]
    assert records(owner)["alice"].last_played == START + timedelta(minutes=9000)


def test_an_event_from_the_future_is_a_dead_letter_only_beyond_five_minutes(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    now = owner.execute("SELECT clock_timestamp()").fetchone()
    assert now is not None
    soon = json.loads(finished(1)) | {"time": format_time(now[0] + timedelta(minutes=4))}
    future = json.loads(finished(2)) | {"time": format_time(now[0] + timedelta(minutes=6))}

    apply_all(connection, client, keys, [json.dumps(soon).encode(), json.dumps(future).encode()])

    assert counted(owner) == ["e-1"]
    assert [reason for _, reason in dead_letters(owner)] == ["from_the_future"]


def test_an_event_for_another_pool_is_a_dead_letter(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, "other")

    apply_all(connection, client, keys, [finished(1, pool="other")])

    assert [reason for _, reason in dead_letters(owner)] == ["wrong_pool"]
    assert counted(owner, "other") == []


def test_the_same_event_may_count_in_two_pools(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, "other")
    push(client, keys, [finished(1, pool="other")], "other")
    push(client, keys, [finished(1)])

    apply_batch(connection, Intake(client, keys, "p"), Breaker(), 500)
    apply_batch(connection, Intake(client, keys, "other"), Breaker(), 500)

    assert counted(owner) == counted(owner, "other") == ["e-1"]
    assert records(owner) == records(owner, "other")


def test_events_of_a_pool_that_does_not_exist_become_dead_letters(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    push(client, keys, [finished(1, pool="nowhere"), b"junk"], "nowhere")

    applied = apply_batch(connection, Intake(client, keys, "nowhere"), Breaker(), 500)

    assert applied == Applied(events=2, dead=2)
    letters = dead_letters(owner, "nowhere")
    assert letters == [(finished(1, pool="nowhere"), "unknown_pool"), (b"junk", "unknown_pool")]
    assert not client.exists(keys.events("nowhere"))


def test_each_entry_names_the_version_of_the_rules_that_rated_it(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, [finished(1)])
    pools.set_parameters(connection, "p", pool_rules("glicko", {"c": 10.0}).parameters())
    apply_all(connection, client, keys, [finished(2)])

    versions = owner.execute("SELECT seq, version FROM petard.ledger ORDER BY seq").fetchall()
    since = owner.execute("SELECT version, since_seq FROM petard.pool_version ORDER BY version").fetchall()
    assert versions == [(1, 1), (2, 2)]
    assert since == [(1, 1), (2, 2)]


def test_a_lower_cap_for_bombs_makes_nobodys_events_poison(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, [abandoned(number) for number in range(5)])
    lower = pool_rules("glicko", {"bomb_cap": 20, "award_win": True}).parameters()
    pools.set_parameters(connection, "p", lower)

    later = [abandoned(5, "bob", "alice"), finished(6), abandoned(7)]
    apply_all(connection, client, keys, later)

    assert dead_letters(owner) == []
    assert records(owner)["alice"].bomb == 20


def test_a_stopped_pool_keeps_its_events(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    pools.stop_pool(connection, "p", "because")
    push(client, keys, [finished(1)])

    with pytest.raises(PoolStoppedError, match="because"):
        apply_batch(connection, Intake(client, keys, "p"), Breaker(), 500)

    assert client.lrange(keys.events("p"), 0, -1) == [finished(1)]
    assert counted(owner) == []


def test_a_game_of_teams_and_a_free_for_all_change_everybody_in_them(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    teams = [{"players": ["a", "b"], "rank": 1}, {"players": ["c", "d", "e"], "rank": 2}]
    field = [{"players": [name], "rank": rank} for rank, name in enumerate("abcdef", 1)]
    events = [finished(1, sides=teams), finished(2, sides=field)]

    apply_all(connection, client, keys, events)

    assert {player: record.games for player, record in records(owner).items()} == {
        **dict.fromkeys("abcde", 2),
        "f": 1,
    }
    assert records(owner) == fold_of_ledger(owner)


def test_a_whole_season_ends_as_its_labels_say(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    """Rule 9 of the pipeline: every event is in the ledger, a repeat of one there, or a dead letter."""
    season = Season(pool="p", games=1500, players=60, abandon_share=0.05, hostile_share=0.08, start=START)
    delivered = list(simulate_with_labels(season))
    expected = Counter(str(label) for _, label in delivered)

    apply_all(connection, client, keys, [line for line, _ in delivered], limit=100)

    entries = owner.execute("SELECT body::text FROM petard.ledger ORDER BY seq").fetchall()
    rated = [line for line, label in delivered if label == "rated"]
    assert [body.encode() for (body,) in entries] == rated
    attempts = owner.execute("SELECT reason, sum(attempts)::int FROM petard.dead_letter GROUP BY 1")
    del expected["rated"], expected["repeat"]
    found: Counter[str] = Counter()
    for reason, count in attempts:
        found[reason.partition(":")[0]] += count
    assert found == expected
    assert found.total() > 50
    assert records(owner) == fold_of_ledger(owner)
    assert broken_chains(owner) == []


def test_the_bombs_timeline_of_the_rules(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    first = ["A→10", "A→20", "A→30", "A→40P", "F10→30", "A→40P", "F30→10"]
    steps = [*first, "A→20", "A→30", "F50→0", "A→10"]
    number = 0
    seen: list[str] = []

    for step in steps:
        kind, _, _ = step.partition("→")
        repeats = int(kind[1:] or 1)
        for _ in range(repeats):
            number += 1
            raw = abandoned(number) if kind[0] == "A" else finished(number)
            before = records(owner).get("alice")
            apply_all(connection, client, keys, [raw])
        after = records(owner)["alice"]
        punished = before is not None and after.penalties > before.penalties
        seen.append(f"{kind}→{after.bomb}{'P' if punished else ''}")
        if kind[0] == "A":
            lost = before is not None and after.rating < before.rating
            assert lost == punished, step

    assert seen == steps
    final = records(owner)["alice"]
    assert (final.abandons, final.penalties, final.games) == (8, 2, 90)
    assert broken_chains(owner) == []


def test_a_penalty_is_a_loss_against_the_lowest_rating_and_moves_nobody_else(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    apply_all(connection, client, keys, [finished(1), *(abandoned(number) for number in range(2, 5))])
    before = records(owner)

    apply_all(connection, client, keys, [abandoned(5)])

    after = records(owner)
    (explained,) = owner.execute(
        "SELECT expected, actual, penalty FROM petard.change WHERE player = 'alice' AND seq = 5"
    ).fetchall()
    assert after["bob"] == before["bob"]
    assert after["alice"].rating < before["alice"].rating
    counters = before["alice"]._replace(bomb=40, abandons=4, penalties=1, player_seq=5, rating=0, rd=0)
    counters = counters._replace(last_played=START + timedelta(minutes=5))
    assert after["alice"]._replace(rating=0, rd=0) == counters
    # The chance against an opponent 1600 points below.
    assert explained[0] > 0.999
    assert explained[1:] == (0, True)


def test_an_event_of_an_unknown_kind_is_kept_for_the_version_that_knows_it(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    raw = event("reviewed", "e-1", {"pool": "p", "game": "g-1"})

    apply_all(connection, client, keys, [raw])

    assert dead_letters(owner) == [(raw, "unknown_type")]
