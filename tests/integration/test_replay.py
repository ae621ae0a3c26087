"""Replaying a ledger gives the same bits: random seasons in pools of every system, with parameters changed
between batches, two workers, late and repeated events, abandons, and games at the very edge of a period."""

import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from redis import Redis

from integration.arena import apply_all, dead_letters, event, make_pool, push, records
from petard_schema import Keys, PeriodClosed, parse_event
from petard_schema.times import format_time
from petard_worker.apply import apply_batch, apply_or_bury_head
from petard_worker.breaker import Breaker
from petard_worker.fold import PlayerRecord, fold_event, new_record, players_of
from petard_worker.intake import Intake
from petard_worker.known import Known
from petard_worker.periods import FIRST, Period, period_at
from petard_worker.pool_changes import PoolChange, change_pool
from petard_worker.postgres.connect import Connection, connect_worker
from petard_worker.ratings.parameters import ParameterValue
from petard_worker.ratings.pool_rules import pool_rules

PLAYERS = [f"player-{number}" for number in range(7)]
STEPS = (0, 0, 1e-6, 3600, 86_400, 7 * 86_400, 14 * 86_400, 40 * 86_400, 400 * 86_400)
EXPECTED_REFUSALS = {"conflicting_game", "unsupported_game", "bad_field:source"}
POOLS: list[tuple[str, dict[str, ParameterValue]]] = [
    ("glicko", {"period": 7}),
    ("glicko", {"award_win": True}),
    ("glicko2", {"period": 30, "award_win": True}),
    ("glicko2", {"tau": 1.2}),
    ("elo", {"period": 7, "k_rule": "fide", "expectation": "fide_table", "difference_cap": 400}),
    ("elo", {"period": 14, "k_rule": "uscf", "floor": "uscf", "rating_min": 100}),
    ("elo", {"carry": 0.5, "season_month": 8, "period": 1}),
    ("elo", {"k_rule": "dwz", "bomb_threshold": 0}),
    ("fifa", {}),
    ("world_rugby", {"award_win": True}),
    ("weng_lin", {}),
]


def season(chance: random.Random, system: str, count: int) -> Iterator[bytes]:
    """Yield events as they might come from several game servers with clocks of their own."""
    time = datetime(chance.choice([1, 1969, 2020, 2025]), chance.randint(1, 12), 1, tzinfo=UTC)
    before: list[bytes] = []
    for number in range(count):
        time = min(time + timedelta(seconds=chance.choice(STEPS)), datetime(2026, 11, 29, tzinfo=UTC))
        raw = report(chance, system, number, moved(chance, time))
        before.append(raw)
        yield raw
        if chance.random() < 0.1:
            yield chance.choice(before)
        if chance.random() < 0.02:
            yield raw.replace(b'"/test"', b'"/petard"')


def moved(chance: random.Random, time: datetime) -> datetime:
    """Return the time, or one that is late, or one at the edge of a week."""
    if time.year < 10:
        return time
    if chance.random() < 0.2:
        time -= timedelta(seconds=chance.choice([1, 86_400, 60 * 86_400, 800 * 86_400]))
    if chance.random() < 0.15:
        week = FIRST + (time - FIRST) // timedelta(days=7) * timedelta(days=7)
        return week - timedelta(microseconds=chance.choice([0, 1]))
    return time


def report(chance: random.Random, system: str, number: int, time: datetime) -> bytes:
    """Return a finished or an abandoned game of a shape that the system can rate, mostly."""
    names = chance.sample(PLAYERS, len(PLAYERS))
    teams = system in {"glicko", "glicko2", "weng_lin"} and chance.random() < 0.4
    sides = [names[:1], names[1:3], names[3:4]] if teams else [names[:1], names[1:2]]
    facts: dict[str, object] = {"pool": "p", "game": f"g-{number}"}
    if chance.random() < 0.25:
        leaver = chance.choice(
            [PLAYERS[0] if PLAYERS[0] in sides[0] + sides[1] else sides[0][0], sides[1][0]]
        )
        facts |= {"sides": [{"players": side} for side in sides], "abandoned_by": [leaver]}
        facts["fault"] = chance.choice(["player"] * 6 + ["server"])
        return event("abandoned", f"e-{number}", facts, time=format_time(time))
    best = chance.randint(1, 2)
    facts["sides"] = [
        {"players": side, "rank": rank, "points": 30 - 10 * rank, "home": chance.random() < 0.3,
         "weights": [chance.choice([1, 0.5, 1e-200]) for _ in side]}
        for side, rank in zip(sides, (best, 3 - best, 2), strict=False)
    ]  # fmt: skip
    facts |= {"knockout": chance.random() < 0.3, "importance": chance.choice([1, 60])}
    facts |= {"rated": chance.random() < 0.95, "decided_by": chance.choice(["play", "play", "forfeit"])}
    if number and chance.random() < 0.04:
        facts["game"] = f"g-{chance.randrange(number)}"
    return event("finished", f"e-{number}", facts, time=format_time(time))


def other_parameters(chance: random.Random, system: str) -> dict[str, ParameterValue]:
    """Return a change that an operator could make."""
    changes: dict[str, ParameterValue] = {"bomb_cap": chance.choice([40, 50])}
    if system in {"glicko", "glicko2"}:
        changes |= {"period": chance.choice([0, 7, 7, 14, 30, 1]), "rd_floor": chance.choice([1, 30, 300])}
    if system == "elo":
        changes["rating_max"] = chance.choice([1600, 4000])
    return changes


def replay(owner: psycopg.Connection) -> dict[str, PlayerRecord]:
    """Fold the ledger entry by entry, with nothing but it and the versions of the parameters."""
    versions: Mapping[int, tuple[str, dict[str, ParameterValue]]] = {
        version: (system, parameters)
        for version, system, parameters in owner.execute(
            "SELECT version, system, parameters FROM petard.pool_version"
        )
    }
    standing: dict[str, PlayerRecord] = {}
    newest: datetime | None = None
    period: Period | None = None
    current = 0
    rows = owner.execute("SELECT type, version, outcome, body::text FROM petard.ledger ORDER BY seq")
    for kind, version, outcome, body in rows:
        rules = pool_rules(*versions[version])
        if version != current:
            current = version
            period = None if newest is None else period_at(newest, rules.system.period, version)
        if kind == "petard.period.closed.v1":
            begins = PeriodClosed.model_validate_json(body).data.next_first_day
            period = Period((begins - FIRST.date()).days, rules.system.period, version)
        elif outcome == "rated":
            entry = parse_event(body.encode())
            period = period_at(entry.time, rules.system.period, version) if period is None else period
            before = {name: standing.get(name, new_record(rules)) for name in players_of(entry)}
            verdict = fold_event(rules, before, entry, period)
            standing |= {change.player: change.after for change in verdict.changes}
            newest = entry.time if newest is None else max(newest, entry.time)
    return {player: record._replace(period=None) for player, record in standing.items()}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("system", "parameters"), POOLS)
def test_replay_gives_the_same_bits(
    connection: Connection,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    database_url: str,
    system: str,
    parameters: dict[str, ParameterValue],
    seed: int,
) -> None:
    chance = random.Random(f"{system} {parameters} {seed}")
    make_pool(connection, system=system, parameters=parameters)
    waiting = [*season(chance, system, 150)]

    with connect_worker(database_url, "another worker") as other:
        workers = [(one, Intake(client, keys, "p"), Breaker(), Known()) for one in (connection, other)]
        while waiting:
            share = chance.choice([1, 7, 60])
            push(client, keys, waiting[:share])
            waiting = waiting[share:]
            worker, intake, breaker, known = chance.choice(workers)
            if chance.random() < 0.1:
                apply_or_bury_head(worker, intake, breaker)
            apply_batch(worker, intake, breaker, chance.choice([1, 3, 50]), known)
            if chance.random() < 0.2:
                changes = PoolChange(other_parameters(chance, system), {})
                change_pool(connection, "p", changes)
    apply_all(connection, client, keys)

    found = records(owner)
    assert found == replay(owner)
    assert len(found) == len(PLAYERS)
    assert {reason for _, reason in dead_letters(owner)} <= EXPECTED_REFUSALS
