"""`petard verify` as people run it."""

import psycopg
from redis import Redis

from acceptance.conftest import Command, Play
from integration.arena import games, make_pool
from petard_schema import Keys
from petard_worker.postgres.connect import Connection

FAILED, USAGE, UNAVAILABLE = 1, 2, 69
NOBODY = "127.0.0.1:1"
"""A port at which nobody listens."""


def test_sound_service_agrees_and_says_what_was_compared(run: Command, play: Play) -> None:
    play(*games(40))
    assert run("publisher", "--once").code == 0

    told = run("verify")
    found = run("verify", "p", "--json").json

    assert told.code == 0, told
    assert told.stderr == "everything agrees\n"
    heads, values = (line.split() for line in told.stdout.splitlines())
    assert heads[:4] == ["pool", "entries", "changes", "players"]
    assert values[:4] == ["p", "40", "80", "20"]
    assert isinstance(found, dict)
    (pool,) = found["pools"]
    assert found["differences"] == pool["differences"] == 0
    assert (pool["entries"], pool["changes"], pool["players"], pool["dead_letters"]) == (40, 80, 20, 0)
    assert pool["stream"] == {"oldest": "1-1", "newest": "1-40", "entries": 40, "lag": 0}
    assert pool["board"] == {"players": 20, "looked_again": 0}
    assert (pool["counts"], pool["first"]) == ({}, [])
    assert pool["entries_per_s"] > 0


def test_difference_is_named_and_counted_and_the_exit_code_is_1(
    run: Command, play: Play, owner: psycopg.Connection
) -> None:
    play(*games(40))
    assert run("publisher", "--once").code == 0
    owner.execute("UPDATE petard.change SET bomb_after = bomb_after + 1 WHERE seq > 10")

    told = run("verify", "--limit", "2")
    found = run("verify", "--limit", "1", "--json", "--no-redis")

    assert (told.code, found.code) == (FAILED, FAILED)
    lines = told.stdout.splitlines()
    assert lines[0].startswith("p: change entry 11 ")
    assert lines[0].endswith(": bomb_after is 1, due is 0")
    assert lines[2] == "p: 120 differences in all: change.bomb_after 60, stream.data.changes.after.bomb 60"
    assert told.stderr == "120 differences\n"
    assert '"counts": {"change.bomb_after": 60}' in found.stdout
    assert '"where": "change", "what": "bomb_after", "seq": 11, "player": ' in found.stdout
    assert '"stored": 1, "due": 0}]' in found.stdout


def test_only_the_named_pools_are_looked_at(
    run: Command, play: Play, connection: Connection, owner: psycopg.Connection
) -> None:
    play(*games(4))
    make_pool(connection, "other")
    owner.execute("UPDATE petard.pool SET seq = seq + 1 WHERE name = 'p'")

    assert run("verify", "other", "--no-redis").code == 0
    assert run("verify", "p", "other", "--no-redis").code == FAILED
    assert run("verify", "--no-redis").code == FAILED


def test_pool_that_is_not_there_is_named(run: Command) -> None:
    ended = run("verify", "nowhere")

    assert ended.code == FAILED
    assert ended.stderr == "petard: there is no pool 'nowhere': 'petard pool list' shows them\n"


def test_service_without_pools_agrees(run: Command) -> None:
    assert run("verify").code == 0
    assert run("verify", "--json").json == {"differences": 0, "pools": []}


def test_without_redis_postgres_can_be_looked_at_alone(run: Command, play: Play) -> None:
    play(*games(4))
    lost = run.where(PETARD_REDIS_URL=f"redis://{NOBODY}/0")

    refused, alone = lost("verify"), lost("verify", "--no-redis", "--json")

    assert refused.code == UNAVAILABLE
    assert refused.stderr.startswith("petard: cannot reach Redis (PETARD_REDIS_URL)")
    assert "--no-redis" in refused.stderr
    assert isinstance(alone.json, dict)
    (pool,) = alone.json["pools"]
    assert (pool["stream"], pool["board"], pool["entries"]) == (None, None, 4)


def test_wiped_redis_is_a_board_that_is_not_there(
    run: Command, play: Play, client: Redis, keys: Keys
) -> None:
    play(*games(4))
    assert run("publisher", "--once").code == 0
    client.delete(keys.changes("p"), keys.leaderboard("p"))

    ended = run("verify")

    assert ended.code == FAILED
    assert "board is 'not there: the publisher will rebuild it'" in ended.stdout
    assert run("publisher", "--once").code == 0
    assert run("verify").code == 0
