"""Rating through the pipeline is calling the pure function: for every system, to the bit.

The games are drawn by Hypothesis, go through Redis and Postgres in batches, and are rated once more by a loop
that knows nothing of events, batches or records: it hands the players' states to the system, game by game.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from integration.arena import START, apply_all, dead_letters, event, make_pool, records
from petard_schema import Keys
from petard_schema.times import format_time
from petard_worker.postgres.connect import Connection
from petard_worker.ratings.parameters import ParameterValue
from petard_worker.ratings.pool_rules import SYSTEMS, pool_rules
from petard_worker.ratings.system import Game, GameSide, PlayerState, RatingSystem

EMPTY = "TRUNCATE petard.ledger, petard.change, petard.rating, petard.open_period, petard.pool CASCADE"


class Drawn(NamedTuple):
    """A game as it is drawn: names and ranks of the sides, hours since the game before, and the rest."""

    sides: list[list[str]]
    ranks: list[int]
    points: list[int]
    hours: int
    facts: dict[str, object]


class Variant(NamedTuple):
    system: str
    parameters: Mapping[str, ParameterValue]
    most_sides: int
    most_players: int


FIDE = {"expectation": "fide_table", "difference_cap": 400, "k_rule": "fide"}
NFL = {"k": 20, "home_advantage": 65, "margin": "fivethirtyeight_nfl", "carry": 2 / 3, "season_month": 8}
VARIANTS = {
    "glicko": Variant("glicko", {}, 4, 3),
    "glicko2": Variant("glicko2", {"tau": 0.75}, 4, 3),
    "elo": Variant("elo", {}, 2, 3),
    "elo as fide": Variant("elo", FIDE, 2, 1),
    "elo as us chess": Variant("elo", {"k_rule": "uscf", "floor": "uscf"}, 2, 1),
    "elo as fivethirtyeight's nfl": Variant("elo", NFL, 2, 1),
    "elo as dwz": Variant("elo", {"k_rule": "dwz"}, 2, 1),
    "fifa": Variant("fifa", {}, 2, 1),
    "world_rugby": Variant("world_rugby", {}, 2, 1),
    "weng_lin": Variant("weng_lin", {}, 4, 3),
}
PLAYERS = [f"player-{number}" for number in range(6)]


@st.composite
def games(draw: st.DrawFn, variant: Variant) -> list[Drawn]:
    """A season of up to a dozen games of shapes that the system can rate."""
    drawn = []
    for _ in range(draw(st.integers(1, 12))):
        names = draw(st.permutations(PLAYERS))
        sizes = draw(st.lists(st.integers(1, variant.most_players), min_size=2, max_size=variant.most_sides))
        sides = []
        for size in sizes:
            side, names = names[:size], names[size:]
            sides += [side] if side else []
        count = len(sides)
        ranks = draw(st.lists(st.integers(1, count), min_size=count, max_size=count))
        margin = draw(st.sampled_from([0, 1, 3, 20]))
        facts = {
            "home": draw(st.integers(0, count)),
            "importance": draw(st.sampled_from([None, 1, 2.5, 60])),
            "decided_by": draw(st.sampled_from(["play", "play", "forfeit"])),
            "knockout": draw(st.booleans()),
        }
        drawn.append(
            Drawn(
                sides,
                ranks,
                [margin * (count - rank) for rank in ranks],
                draw(st.sampled_from([0, 1, 30, 24 * 45, 24 * 400])),
                facts,
            )
        )
    return drawn


def pushed(drawn: list[Drawn]) -> list[bytes]:
    """The games as a game server reports them."""
    found, hours = [], 0
    for number, game in enumerate(drawn):
        hours += game.hours
        sides = [
            {"players": names, "rank": rank, "points": points, "home": at == game.facts["home"]}
            for at, (names, rank, points) in enumerate(zip(game.sides, game.ranks, game.points, strict=True))
        ]
        data = {"pool": "p", "game": f"g-{number}", "sides": sides, **game.facts}
        del data["home"]
        if data["importance"] is None:
            del data["importance"]
        time = format_time(START - timedelta(days=12 * 400) + timedelta(hours=hours))
        found.append(event("finished", f"e-{number}", data, time=time))
    return found


def rated(system: RatingSystem, drawn: list[Drawn], season_month: int) -> dict[str, PlayerState]:
    """The same games, one after the other by the system alone."""
    start = START - timedelta(days=12 * 400)
    now = start
    states: dict[str, PlayerState] = {}
    last: dict[str, object] = {}
    for game in drawn:
        now += timedelta(hours=game.hours)
        sides = []
        for at, names in enumerate(game.sides):
            players = []
            for name in names:
                before = last.get(name, now)
                first = now.replace(month=season_month or 1, day=1, hour=0)
                season = first if first <= now else first.replace(year=first.year - 1)
                players.append(
                    states.get(name, system.initial())._replace(
                        days=(now - before).total_seconds() / 86_400,  # type: ignore[operator]
                        new_season=bool(season_month) and before < season <= now,  # type: ignore[operator]
                    )
                )
                last[name] = now
            sides.append(GameSide(players, game.ranks[at], float(game.points[at]), at == game.facts["home"]))
        how = (game.facts["importance"], game.facts["decided_by"], game.facts["knockout"])
        outcomes = iter(system.rate(Game(sides, *how)))  # type: ignore[arg-type]
        best = min(game.ranks)
        for side, names in zip(sides, game.sides, strict=True):
            won = side.rank == best
            for name, state in zip(names, side.players, strict=True):
                result = next(outcomes)
                peak = result.rating if state.peak is None else max(state.peak, result.rating)
                provisional = state.games < system.provisional_games
                states[name] = state._replace(
                    rating=result.rating,
                    rd=result.rd,
                    volatility=result.volatility,
                    games=state.games + 1,
                    peak=result.rating if provisional else max(peak, system.initial().rating),
                    wins=state.wins + (won and game.ranks.count(best) == 1),
                    draws=state.draws + (won and game.ranks.count(best) > 1),
                )
    return states


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_pipeline_rates_as_the_system_alone_does(
    connection: Connection,
    client: Redis,
    keys: Keys,
    owner: psycopg.Connection,
    variant: Variant,
    data: st.DataObject,
) -> None:
    drawn = data.draw(games(variant))
    limit = data.draw(st.sampled_from([1, 3, 500]))
    rules = pool_rules(variant.system, variant.parameters)
    owner.execute(EMPTY)
    make_pool(connection, system=variant.system, parameters=variant.parameters)

    apply_all(connection, client, keys, pushed(drawn), limit=limit)

    assert dead_letters(owner) == []
    expected = rated(rules.system, drawn, rules.system.season_month)
    found = records(owner)
    assert found.keys() == expected.keys()
    for name, state in expected.items():
        one = found[name]
        assert (one.rating, one.rd, one.volatility) == (state.rating, state.rd, state.volatility), name
        assert (one.games, one.wins, one.draws, one.peak) == (
            state.games, state.wins, state.draws, state.peak,
        ), name  # fmt: skip


def test_every_system_has_a_variant_here() -> None:
    assert {variant.system for variant in VARIANTS.values()} == SYSTEMS.keys()


def four_abandons() -> list[bytes]:
    """Four abandons of one player, of which the fourth is punished."""
    sides = [{"players": ["ann"]}, {"players": ["bob"]}]
    return [
        event(
            "abandoned",
            f"a-{number}",
            {"pool": "p", "game": f"a-{number}", "sides": sides, "abandoned_by": ["ann"]},
            time=format_time(START + timedelta(minutes=number)),
        )
        for number in range(4)
    ]


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_punished_abandon_is_a_loss_against_the_lowest_player_in_every_system(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection, variant: Variant
) -> None:
    system = pool_rules(variant.system, variant.parameters).system
    make_pool(connection, system=variant.system, parameters=variant.parameters)

    apply_all(connection, client, keys, four_abandons())

    lost = GameSide([system.initial()._replace(peak=system.rating)], 2)
    due = system.rate(Game([lost, GameSide([system.lowest()], 1)], decided_by="forfeit"))[0]
    ann = records(owner)["ann"]
    assert (ann.rating, ann.rd, ann.penalties, ann.bomb) == (due.rating, due.rd, 1, 40)
    assert ann.rating < system.rating
    assert records(owner).keys() == {"ann"}
    assert dead_letters(owner) == []


def test_what_a_system_cannot_rate_is_a_dead_letter_that_says_what_it_can(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, system="elo")
    sides = [{"players": [name], "rank": rank} for rank, name in enumerate(("ann", "bob", "cid"), 1)]

    apply_all(connection, client, keys, [event("finished", "e", {"pool": "p", "game": "g", "sides": sides})])

    assert [reason for _, reason in dead_letters(owner)] == ["unsupported_game"]
    (detail,) = owner.execute("SELECT detail FROM petard.dead_letter").fetchone() or ("",)
    assert detail == "elo rates games of two sides; this one has 3"


def test_weights_of_an_event_reach_the_system(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, system="weng_lin")
    sides = [
        {"players": ["ann", "bob"], "weights": [1, 0], "rank": 1},
        {"players": ["cid"], "rank": 2},
    ]
    raw = event("finished", "e", {"pool": "p", "game": "g", "sides": sides})

    apply_all(connection, client, keys, [raw, raw])

    standing = records(owner)
    assert standing["bob"].rating == 25
    assert standing["ann"].rating == 50 - standing["cid"].rating
    assert json.loads(raw)["data"]["sides"][0]["weights"] == [1, 0]


def test_who_stayed_wins_with_the_part_that_was_played(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, system="weng_lin", parameters={"award_win": True})
    sides = [{"players": ["ann", "bob"], "weights": [1, 0]}, {"players": ["cid"]}]
    data = {"pool": "p", "game": "g", "sides": sides, "abandoned_by": ["cid"]}

    apply_all(connection, client, keys, [event("abandoned", "e", data)])

    assert records(owner)["ann"].rating > 25
    assert records(owner)["bob"].rating == 25


@pytest.mark.parametrize("again", [{}, {"weights": [1, 1.0]}])
def test_the_whole_game_is_the_same_outcome_however_it_is_said(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection, again: dict[str, object]
) -> None:
    make_pool(connection, system="weng_lin")

    def report(event_id: str, facts: Mapping[str, object]) -> bytes:
        sides = [{"players": ["ann", "bob"], "rank": 1, **facts}, {"players": ["cid"], "rank": 2}]
        return event("finished", event_id, {"pool": "p", "game": "g", "sides": sides})

    apply_all(connection, client, keys, [report("e-1", {"weights": [1, 1]}), report("e-2", again)])

    reasons = owner.execute("SELECT reason FROM petard.ledger ORDER BY seq").fetchall()
    assert reasons == [(None,), ("duplicate_game",)]
    apply_all(connection, client, keys, [report("e-3", {"weights": [1, 0.5]})])
    assert [reason for _, reason in dead_letters(owner)] == ["conflicting_game"]
