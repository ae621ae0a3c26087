"""`petard reingest`: what was applied lately is offered again, and counts only if Postgres has lost it."""

import json
from datetime import UTC, datetime

import psycopg
import pytest
from redis import Redis

from acceptance.conftest import Command, Play
from integration.arena import dead_letters, finished, games, make_pool
from petard_schema import Keys
from petard_schema.times import format_time
from petard_worker.postgres.connect import Connection
from petard_worker.recent import redis_now

REINGEST = ("reingest", "p", "--yes", "--json", "--since")


@pytest.fixture
def long_kept(client: Redis, keys: Keys) -> None:
    """A Redis that has made copies for long: it can tell that there was nothing before."""
    client.set(keys.recent_since(), f"{redis_now(client) - 86_400_000} 3600000")


def waiting(client: Redis, keys: Keys) -> list[bytes]:
    return client.lrange(keys.events("p"), 0, -1)


def lose_everything(owner: psycopg.Connection) -> None:
    """Do what a failover does to commits that were not replicated."""
    owner.execute("TRUNCATE petard.ledger, petard.change, petard.rating, petard.dead_letter")
    owner.execute("UPDATE petard.pool SET seq = 0, newest = NULL")


@pytest.mark.usefixtures("long_kept")
def test_what_the_ledger_lost_counts_again_as_it_did(
    run: Command, play: Play, owner: psycopg.Connection
) -> None:
    play(*games(30), b"nonsense")
    play(*games(30, first=31))
    before = run("leaderboard", "p", "--json").json
    letters = dead_letters(owner)
    lose_everything(owner)

    ended = run(*REINGEST, "10m")

    assert ended.code == 0
    assert [(told["events"], told["offered"], told["complete"]) for told in ended.json] == [(61, 61, True)]
    assert run("worker", "--burst").code == 0
    assert run("leaderboard", "p", "--json").json == before
    assert dead_letters(owner) == letters
    assert run("status", "--json").json["pools"][0]["seq"] == 60


@pytest.mark.usefixtures("long_kept")
def test_what_the_ledger_has_is_dropped(run: Command, play: Play, owner: psycopg.Connection) -> None:
    play(*games(30), b"nonsense")
    before = run("leaderboard", "p", "--json").json

    for _ in range(2):
        assert run(*REINGEST, "10m").code == 0
        assert run("worker", "--burst").code == 0

    assert run("leaderboard", "p", "--json").json == before
    assert run("status", "--json").json["pools"][0]["seq"] == 30
    # The copies are copied, too, and each text is offered once a run.
    assert owner.execute("SELECT attempts FROM petard.dead_letter").fetchall() == [(3,)]


@pytest.mark.usefixtures("long_kept")
def test_events_come_to_the_tail_in_their_order(run: Command, play: Play, client: Redis, keys: Keys) -> None:
    events = [*games(1_200), b"\x00\xff", b""]
    play(*events[:-1])
    waits = finished(5_000)
    client.rpush(keys.events("p"), waits)

    run(*REINGEST, "10m")

    assert waiting(client, keys) == [waits, *events[:-1]]


@pytest.mark.usefixtures("long_kept")
def test_a_dry_run_says_how_many_and_pushes_nothing(
    run: Command, play: Play, client: Redis, keys: Keys
) -> None:
    play(*games(10))

    told = run("reingest", "p", "--since", "10m", "--dry-run", "--json")
    shown = run("reingest", "p", "--since", "10m", "--dry-run")

    assert (told.code, told.json[0]["events"], told.json[0]["offered"]) == (0, 10, 0)
    assert "10" in shown.stdout
    assert waiting(client, keys) == []


@pytest.mark.usefixtures("long_kept")
def test_only_what_was_applied_between_the_two_times(
    run: Command, play: Play, client: Redis, keys: Keys
) -> None:
    def redis_time() -> str:
        return format_time(datetime.fromtimestamp(redis_now(client) / 1_000, UTC))

    play(finished(1))
    since = redis_time()
    play(finished(2))
    until = redis_time()
    play(finished(3))

    assert run(*REINGEST, since, "--until", until).code == 0

    assert waiting(client, keys) == [finished(2)]


def test_copies_that_do_not_reach_back_are_offered_and_are_a_failure(
    run: Command, play: Play, client: Redis, keys: Keys
) -> None:
    """This Redis is new: it cannot know what was applied before its first copy."""
    play(*games(10))

    ended = run(*REINGEST, "10m")
    anyway = run(*REINGEST, "10m", "--anyway")

    assert (ended.code, anyway.code) == (1, 0)
    for told in (ended, anyway):
        (facts,) = json.loads(told.stdout)
        assert (facts["offered"], facts["complete"]) == (10, False)
        assert "reach back to 2" in told.stderr
    assert "have producers send again" in ended.stderr
    assert waiting(client, keys) == games(10) * 2


def test_a_pool_without_copies_is_a_failure(run: Command, pool: str) -> None:
    ended = run("reingest", pool, "--since", "10m", "--json")

    assert ended.code == 1
    assert json.loads(ended.stdout) == [
        {"pool": pool, "events": 0, "offered": 0, "reaches_back_to": None, "complete": False}
    ]
    assert "there are no copies" in ended.stderr


@pytest.mark.usefixtures("long_kept")
def test_all_pools_quiet_ones_too(
    run: Command, play: Play, connection: Connection, client: Redis, keys: Keys
) -> None:
    make_pool(connection, "quiet")
    play(*games(10))
    client.rpush(keys.events("nowhere"), finished(1))
    assert run("worker", "--burst").code == 0

    ended = run("reingest", "--all", "--since", "10m", "--yes", "--json")

    assert [(told["pool"], told["offered"], told["complete"]) for told in ended.json] == [
        ("p", 10, True),
        ("quiet", 0, True),
    ]
    assert ended.code == 0
    assert "left alone: copies of 1 pools that do not exist (nowhere)" in ended.stderr


@pytest.mark.usefixtures("long_kept")
def test_it_asks_and_nobody_can_answer(run: Command, play: Play, client: Redis, keys: Keys) -> None:
    play(*games(3))

    ended = run("reingest", "p", "--since", "10m")

    assert ended.code == 2
    assert "--yes is needed to offer 3 events again" in ended.stderr
    assert waiting(client, keys) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--since", "10m"), "POOL… or --all"),
        (("p", "--all", "--since", "10m"), "POOL… or --all"),
        (("p", "--since", "yesterday"), "'yesterday' is neither a time"),
        (("p", "--since", "10"), "'10' is neither a time"),
        (("p", "--since", "-10m"), "'-10m' is neither a time"),
        (("p", "--since", "2026-13-01T00:00:00Z"), "--since '2026-13-01T00:00:00Z'"),
        (("p", "--since", "1m", "--until", "2m"), "'1m' is later than --until '2m'"),
        (("p", "--since", "9999-01-01T00:00:00Z"), "is later than --until 'now'"),
    ],
)
@pytest.mark.usefixtures("pool")
def test_a_usage_error_names_what_is_wrong(run: Command, arguments: tuple[str, ...], complaint: str) -> None:
    ended = run("reingest", *arguments)

    assert ended.code == 2
    assert complaint in ended.stderr


def test_a_pool_that_does_not_exist(run: Command, pool: str) -> None:
    ended = run("reingest", pool, "nowhere", "--since", "10m")

    assert ended.code == 1
    assert "there is no pool 'nowhere'" in ended.stderr


def test_status_shows_how_far_back_copies_reach(run: Command, play: Play, client: Redis, keys: Keys) -> None:
    never = run("status", "--json")
    play(*games(10))
    client.set(keys.recent_since(), f"{redis_now(client) - 100_000} 3600000")
    play(*games(10, first=11))
    client.delete(keys.recent("p"))  # as if it had expired
    quiet = run("status", "--json").json["pools"][0]
    play(*games(10, first=21))

    status = run("status", "--json").json["pools"][0]
    shown = run("status").stdout

    assert never.code == 0
    assert quiet["recent_bytes"] == 0
    assert 100 <= quiet["recent_age_s"] < 160
    assert 100 <= status["recent_age_s"] < 160
    assert 10 * 200 < status["recent_bytes"] < 10 * 1_000
    assert "copies reach back (s)" in shown


def test_nothing_is_kept_when_the_setting_says_so(
    run: Command, play: Play, client: Redis, keys: Keys
) -> None:
    off = run.where(PETARD_RECENT_SECONDS="0")
    play(finished(1))
    off("push", stdin=finished(2))

    assert off("worker", "--burst").code == 0

    status = run("status", "--json").json["pools"][0]
    assert (status["seq"], status["recent_age_s"], status["recent_bytes"]) == (2, None, 0)
    assert not client.exists(keys.recent("p"))
