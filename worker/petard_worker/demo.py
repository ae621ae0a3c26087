"""A simulated season through the whole pipeline, and how well the ratings found the true strengths."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import correlation
from typing import NamedTuple

from redis import Redis

from petard_schema import Keys
from petard_worker.change_stream import last_stream_id
from petard_worker.chunks import chunks
from petard_worker.pool_changes import make_pool
from petard_worker.pool_settings import PoolSettings
from petard_worker.postgres import boards, dead_letters, pools
from petard_worker.postgres.boards import BoardLine
from petard_worker.postgres.connect import Connection
from petard_worker.push import push_lines
from petard_worker.simulate import Season, simulate, strengths

CHUNK = 500
LOOK_SECONDS = 0.05
SYSTEM = "glicko"


class Moment(NamedTuple):
    """How far the demo has come."""

    pushed: int
    applied: int
    published: int


class Report(NamedTuple):
    """What came of the season."""

    pool: str
    lines: int
    entries: int
    seconds: float
    applied_per_second: float
    spearman: float
    top: Sequence[BoardLine]
    dead: Mapping[str, int]


class Audience(NamedTuple):
    """Who watches: `report` is told how far it is, `check` may raise when the roles have died."""

    report: Callable[[Moment], None]
    check: Callable[[], None]
    patience: float
    """For how many seconds nothing may move."""


class DemoFailedError(Exception):
    """The season was not finished; the message says what was still open."""


@dataclass(frozen=True)
class Stage:
    """Where the demo plays: a database, a Redis and the key prefix the roles use."""

    connection: Connection
    redis: Redis
    keys: Keys


def free_pool(connection: Connection) -> str:
    """Return the first of demo, demo-2, demo-3, … that does not exist."""
    taken = {pool.name for pool in pools.list_pools(connection)}
    number = 1
    while (name := "demo" if number == 1 else f"demo-{number}") in taken:
        number += 1
    return name


def season_until_now(pool: str, players: int, games: int, seed: int) -> Season:
    """Return a season that ends now, so that nobody's rating has aged since."""
    spacing = Season().seconds_between_games
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=spacing * (games + 1))
    return Season(pool=pool, seed=seed, players=players, games=games, start=start)


def play(stage: Stage, season: Season, audience: Audience) -> Report:
    """Push the season and wait until every line is applied and every entry published.

    Raises DemoFailedError when nothing moves for longer than the audience has patience.
    """
    make_pool(stage.connection, season.pool, SYSTEM, {}, {})
    lines = list(simulate(season))
    started = time.monotonic()
    pushed = 0
    for chunk in chunks(lines, CHUNK):
        push_lines(stage.redis, stage.keys, season.pool, chunk)
        pushed += len(chunk)
        audience.report(look(stage, season.pool, pushed))
    applied_after = wait(stage, season.pool, len(lines), started, audience)
    return judge(stage, season, len(lines), applied_after)


def wait(stage: Stage, pool: str, lines: int, started: float, audience: Audience) -> float:
    """Wait until all is applied and published; return after how many seconds the last line was applied."""
    moment = look(stage, pool, lines)
    moved = time.monotonic()
    applied_after = 0.0
    while True:
        audience.check()
        now = look(stage, pool, lines)
        if now != moment:
            moment, moved = now, time.monotonic()
            audience.report(moment)
        if moment.applied == lines and not applied_after:
            applied_after = time.monotonic() - started
        if moment.applied == lines and moment.published == entries_of(stage, pool):
            return applied_after
        if time.monotonic() - moved > audience.patience:
            raise DemoFailedError(f"nothing moved for {audience.patience:.0f} s: {moment}")
        time.sleep(LOOK_SECONDS)


def look(stage: Stage, pool: str, pushed: int) -> Moment:
    """Return how far the season is."""
    applied = pushed - stage.redis.llen(stage.keys.events(pool))
    return Moment(pushed, applied, last_stream_id(stage.redis, stage.keys, pool).seq)


def entries_of(stage: Stage, pool: str) -> int:
    """Return how many ledger entries the pool has."""
    found = pools.get_pool(stage.connection, pool)
    return found.seq if found else 0


def judge(stage: Stage, season: Season, lines: int, seconds: float) -> Report:
    """Return what came of the season."""
    listing = boards.list_by(season.pool, PoolSettings(), datetime.now(UTC))
    ranked = boards.board_top(stage.connection, listing, season.players)
    true = strengths(season)
    return Report(
        season.pool,
        lines,
        entries_of(stage, season.pool),
        seconds,
        lines / seconds,
        spearman([line.rating for line in ranked], [true[line.player] for line in ranked]),
        ranked[:10],
        dead_letters.count_letters(stage.connection, "open").get(season.pool, {}),
    )


def spearman(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return Spearman's rank correlation, -1 to 1: the correlation of the ranks."""
    return correlation(ranks(xs), ranks(ys)) if len(xs) > 1 else 1.0


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of every value; equal values share the mean of their ranks."""
    order = sorted(values)
    first = {value: order.index(value) for value in set(values)}
    return [first[value] + (order.count(value) - 1) / 2 for value in values]
