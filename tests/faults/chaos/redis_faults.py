"""Faults of Redis: it dies, forgets, goes back in time, is replaced by a replica that lags, or is full."""

import shutil

import redis

from faults.chaos.stage import Stage

AOF = "appendonlydir"


def kill_redis(stage: Stage) -> None:
    """SIGKILL, and a start from the append-only file: nothing that was answered is lost."""
    stage.fleet.redis.kill()
    stage.start_redis()


def wipe_redis(stage: Stage) -> None:
    """FLUSHALL: waiting events, streams, boards and RQ's own keys are gone."""
    with stage.game_servers_offering_again(), stage.fleet.client as client:
        client.flushall()


def restore_an_older_aof(stage: Stage) -> None:
    """Start from a copy of the append-only file that was taken a moment ago, as from a backup."""
    server = stage.fleet.redis
    live, copy = server.folder / AOF, server.folder / f"{AOF}.copy"
    server.pause()
    shutil.copytree(live, copy)
    server.resume()
    stage.let_pass(stage.draw.uniform(0.3, 1.5))
    with stage.game_servers_offering_again():
        server.kill()
        shutil.rmtree(live)
        copy.rename(live)
        stage.start_redis()


def fail_redis_over(stage: Stage) -> None:
    """The primary dies; a replica that lacks the last writes takes its place, under the same address."""
    pair = stage.redis
    pair.stall_replication()
    stage.let_pass(stage.draw.uniform(0.3, 1.5))
    with stage.game_servers_offering_again():
        pair.fail_over()
        stage.fleet.redis = pair.primary
    stage.over()
    with stage.clock_shown():
        pair.rebuild_standby()


def fill_redis(stage: Stage) -> None:
    """`OOM command not allowed`: Redis takes nothing more for a while, and gives out what it has."""
    with stage.fleet.client as client:
        # Not half of what it uses: what a replica needs does not count, and may be most of it.
        client.config_set("maxmemory", 1)
        try:
            assert is_full(client)
            stage.let_pass(stage.draw.uniform(0.5, 2.0))
        finally:
            client.config_set("maxmemory", 0)


def is_full(client: "redis.Redis") -> bool:
    try:
        client.set("faults:probe", "")
    except redis.OutOfMemoryError:
        return True
    return False
