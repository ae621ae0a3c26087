"""Game servers with a spool are killed, Redis goes away: what a push promised is in the ledger, in order.

`PETARD_OUTAGE_SECONDS` is the length of the outage, 6 unless it is set.
"""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from faults.audit import Pushed
from faults.fleet import POOL, Fleet, wait_until
from faults.seasons import raws, season

OUTAGE_SECONDS = float(os.environ.get("PETARD_OUTAGE_SECONDS", "6"))
PROGRAM = Path(__file__).with_name("game_server.py")
PATIENCE = 60
SCHEDULING_SECONDS = 0.5
"""What a busy machine may add to the bound of 1 s."""


@dataclass
class GameServer:
    """The program beside this file, in one process after the other."""

    fleet: Fleet
    folder: Path
    events: Pushed
    per_second: float

    def __post_init__(self) -> None:
        self.folder.mkdir()
        (self.folder / "events").write_bytes(b"\n".join(raws(self.events)))
        (self.folder / "progress").touch()

    @property
    def promised(self) -> int:
        """How many pushes have returned."""
        return (self.folder / "progress").read_bytes().count(b"\n")

    @property
    def slowest(self) -> float:
        """The longest that a push has taken, in seconds."""
        return max(float(line) for line in (self.folder / "progress").read_text().splitlines())

    def start(self) -> None:
        arguments = [self.fleet.redis.url, self.fleet.keys.prefix, str(self.folder), str(self.per_second)]
        self.process = subprocess.Popen([sys.executable, str(PROGRAM), *arguments])

    def kill_after(self, pushes: int) -> None:
        """Start it, and kill -9 it when so many more pushes have returned."""
        before = self.promised
        self.start()
        try:
            wait_until(lambda: self.promised >= before + pushes, f"{pushes} pushes", PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()

    def finish(self) -> None:
        """Let a last process push what is left, and send everything."""
        self.start()
        assert self.process.wait(PATIENCE + len(self.events) / self.per_second) == 0


@pytest.fixture
def start_game_server(fleet: Fleet, tmp_path: Path) -> Callable[[int, float], GameServer]:
    def start_game_server(events: int, per_second: float) -> GameServer:
        return GameServer(fleet, tmp_path / "game-server", rated_season(events), per_second)

    return start_game_server


def rated_season(games: int) -> Pushed:
    """Return what a producer lets through: what would become a dead letter it refuses itself."""
    return [event for event in season(games) if event[1] == "rated"]


def assert_all_are_there_in_order(fleet: Fleet, events: Pushed) -> None:
    """Check the list, where events may be repeated, then the ledger, where they may not."""
    with fleet.client as client:
        found = client.lrange(fleet.keys.events(POOL), 0, -1)
    assert list(dict.fromkeys(found)) == raws(events)
    fleet.apply_all()
    fleet.publish_rest()
    fleet.audit(events)


def redis_is_there(_fleet: Fleet, _round: int) -> None:
    """Change nothing."""


def redis_is_away(fleet: Fleet, number: int) -> None:
    if number == 0:
        fleet.redis.kill()


def redis_comes_and_goes(fleet: Fleet, number: int) -> None:
    if number % 2 == 0:
        fleet.redis.kill()
    else:
        fleet.start_redis()


def redis_is_frozen_now_and_then(fleet: Fleet, number: int) -> None:
    if number % 2 == 0:
        fleet.redis.pause()
    else:
        fleet.redis.resume()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "weather", [redis_is_there, redis_is_away, redis_comes_and_goes, redis_is_frozen_now_and_then]
)
def test_killed_game_servers_lose_nothing_that_a_push_promised(
    fleet: Fleet,
    start_game_server: Callable[[int, float], GameServer],
    weather: Callable[[Fleet, int], None],
) -> None:
    server = start_game_server(400, 500.0)
    draws = random.Random(weather.__name__)

    for number in range(6):
        weather(fleet, number)
        server.kill_after(draws.randint(1, 40))
    promised = server.promised
    if weather is redis_is_away:
        fleet.start_redis()
    server.finish()

    assert promised >= 6
    assert_all_are_there_in_order(fleet, server.events)


@pytest.mark.timeout(300 + 3 * OUTAGE_SECONDS)
def test_outage_with_kills_loses_nothing_and_blocks_nobody(
    fleet: Fleet, start_game_server: Callable[[int, float], GameServer]
) -> None:
    per_second, kills = 50.0, max(4, int(OUTAGE_SECONDS / 15))
    server = start_game_server(int(OUTAGE_SECONDS * per_second) + 100, per_second)
    fleet.redis.kill()

    for _ in range(kills):
        server.kill_after(int(OUTAGE_SECONDS * per_second / kills))
    fleet.start_redis()
    server.finish()

    assert_all_are_there_in_order(fleet, server.events)
    assert server.slowest < 1.0 + SCHEDULING_SECONDS
