"""Pools with rating periods: what is simultaneous, what a period's end is, and that a replay is exact."""

import json
from datetime import datetime, timedelta
from itertools import permutations

import psycopg
import pytest
from redis import Redis

from integration.arena import START, abandoned, apply_all, dead_letters, event, make_pool, outcomes, records
from petard_schema import GameEvent, Keys, PeriodClosed, parse_event
from petard_schema.times import format_time
from petard_worker.fold import PlayerRecord, fold_event, new_record, players_of
from petard_worker.periods import Period, first_day, period_at
from petard_worker.pool_changes import PoolChange, change_pool
from petard_worker.postgres.connect import Connection
from petard_worker.postgres.pools import get_pool
from petard_worker.preview import find_preview
from petard_worker.publish import Publisher
from petard_worker.ratings.glicko import E, Result, g, update
from petard_worker.ratings.pool_rules import pool_rules

WEEK = {"period": 7}
"""START is the first day of such a period."""
EMPTY = "TRUNCATE petard.ledger, petard.change, petard.rating, petard.open_period, petard.pool CASCADE"
SYSTEMS = ("glicko", "glicko2", "elo")


def game(number: int, winner: str, loser: str, days: float) -> bytes:
    sides = [{"players": [winner], "rank": 1}, {"players": [loser], "rank": 2}]
    data = {"pool": "p", "game": f"g-{number}", "sides": sides}
    return event("finished", f"e-{number}", data, time=format_time(START + timedelta(days=days)))


FIRST_WEEK = [
    game(1, "ann", "bob", 0.5),
    game(2, "bob", "cid", 1.5),
    game(3, "cid", "ann", 3.25),
    game(4, "ann", "dan", 6.75),
]
SECOND_WEEK = [game(5, "bob", "ann", 8), game(6, "dan", "cid", 9)]


def replay(owner: psycopg.Connection, system: str, **parameters: int) -> dict[str, PlayerRecord]:
    """Fold the ledger as it stands; where a period ends is taken from the ledger and from no clock."""
    rules = pool_rules(system, dict(parameters))
    standing: dict[str, PlayerRecord] = {}
    period = None
    rows = owner.execute("SELECT type, body::text FROM petard.ledger WHERE outcome = 'rated' ORDER BY seq")
    for kind, body in rows:
        if kind == "petard.period.closed.v1":
            first = PeriodClosed.model_validate_json(body).data.next_first_day
            period = Period(first.toordinal() - START.date().toordinal() + first_day(START, 7), 7)
            continue
        entry: GameEvent = parse_event(body.encode())
        period = period_at(entry.time, rules.system.period, 1) if period is None else period
        before = {player: standing.get(player, new_record(rules)) for player in players_of(entry)}
        verdict = fold_event(rules, before, entry, period)
        standing |= {change.player: change.after for change in verdict.changes}
    return standing


def without_periods(standing: dict[str, PlayerRecord]) -> dict[str, PlayerRecord]:
    return {player: record._replace(period=None) for player, record in standing.items()}


def rating_and_rd(owner: psycopg.Connection) -> dict[str, tuple[float, float, float | None]]:
    return {player: (one.rating, one.rd, one.volatility) for player, one in records(owner).items()}


def test_running_ratings_are_those_of_all_games_of_the_period_so_far(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, parameters=WEEK)

    apply_all(connection, client, keys, FIRST_WEEK)

    # Everybody began the week at 1500 +- 350, and so did all of their opponents.
    even = E(1500, 1500, g(350))
    three = [Result(g(350), even, s) for s in (1, 0, 1)]
    assert rating_and_rd(owner)["ann"][:2] == pytest.approx(update(1500, 350, three), abs=1e-9)
    one = [Result(g(350), even, 0)]
    assert rating_and_rd(owner)["dan"][:2] == pytest.approx(update(1500, 350, one), abs=1e-9)


@pytest.mark.parametrize("system", SYSTEMS)
def test_order_within_a_period_does_not_matter_to_the_bit(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection, system: str
) -> None:
    found = []

    for order in list(permutations(FIRST_WEEK))[::5]:
        owner.execute(
            "TRUNCATE petard.ledger, petard.change, petard.rating, petard.open_period, petard.pool CASCADE"
        )
        make_pool(connection, system=system, parameters=WEEK)
        apply_all(connection, client, keys, [*order, *SECOND_WEEK], limit=2)
        found.append(rating_and_rd(owner))

    assert len(found) == 5
    assert all(one == found[0] for one in found)


def test_a_running_rating_is_no_peak_before_its_period_has_closed(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, system="elo", parameters=WEEK)

    apply_all(connection, client, keys, [game(1, "ann", "bob", 1), game(2, "bob", "ann", 2)])

    assert records(owner)["ann"].rating == records(owner)["ann"].peak == 1500
    apply_all(connection, client, keys, [game(3, "ann", "bob", 8), game(4, "bob", "ann", 16)])
    assert records(owner)["ann"].peak == 1516
    assert records(owner)["ann"].rating < 1516


def test_without_periods_order_does_matter(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection)
    apply_all(connection, client, keys, FIRST_WEEK)
    in_order = rating_and_rd(owner)

    owner.execute(EMPTY)
    make_pool(connection)
    apply_all(connection, client, keys, FIRST_WEEK[::-1])

    assert rating_and_rd(owner) != in_order


def test_a_period_ends_by_a_ledger_entry_before_the_first_game_of_a_later_one(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, parameters=WEEK)

    apply_all(connection, client, keys, [*FIRST_WEEK, *SECOND_WEEK, game(7, "ann", "bob", 30)])

    assert [reason for _, reason in outcomes(owner)] == ["rated"] * 9
    ids = [event_id for event_id, _ in outcomes(owner)]
    assert ids == ["e-1", "e-2", "e-3", "e-4", "p/period-closed/5", "e-5", "e-6", "p/period-closed/8", "e-7"]
    row = owner.execute(
        "SELECT source, type, game, counts, time, body::text FROM petard.ledger WHERE seq = 8"
    ).fetchone()
    assert row is not None
    source, kind, its_game, counts, time, body = row
    assert (source, kind, its_game, counts) == ("/petard", "petard.period.closed.v1", None, False)
    assert time == START + timedelta(days=28)
    assert json.loads(body)["data"] == {
        "pool": "p", "days": 7, "first_day": "2026-01-08", "next_first_day": "2026-01-29",
    }  # fmt: skip


@pytest.mark.parametrize("limit", [1, 3, 500])
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_replay_of_the_ledger_gives_the_same_bits(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection, system: str, limit: int
) -> None:
    make_pool(connection, system=system, parameters=WEEK)
    late = game(8, "cid", "bob", 2)
    abandons = [abandoned(number, "ann", "bob") for number in range(100, 106)]

    apply_all(connection, client, keys, [*FIRST_WEEK, *abandons, *SECOND_WEEK, late], limit=limit)
    apply_all(connection, client, keys, [game(9, "dan", "ann", 16), game(10, "dan", "ann", 17)], limit=limit)

    assert records(owner) == without_periods(replay(owner, system, period=7))
    assert records(owner)["ann"].penalties > 0


def test_the_next_period_starts_where_the_last_one_ended(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, parameters={**WEEK, "c": 10})
    apply_all(connection, client, keys, FIRST_WEEK)
    closed = rating_and_rd(owner)

    apply_all(connection, client, keys, [game(5, "bob", "ann", 15)])

    # Two periods later: 14 days of ageing for everybody, whatever the hour of their games.
    (r, RD, _), (r_j, RD_j, _) = closed["bob"], closed["ann"]
    aged, aged_j = ((rd * rd + 100 * 14) ** 0.5 for rd in (RD, RD_j))
    expected = update(r, aged, [Result(g(aged_j), E(r, r_j, g(aged_j)), 1)])
    assert rating_and_rd(owner)["bob"][:2] == pytest.approx(expected, abs=1e-9)


def test_a_late_game_counts_in_the_open_period(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, parameters=WEEK)

    apply_all(connection, client, keys, [*FIRST_WEEK, *SECOND_WEEK, game(7, "eve", "bob", 1)])

    assert [event_id for event_id, _ in outcomes(owner)].count("p/period-closed/5") == 1
    assert len(outcomes(owner)) == 8


SEASONS = {"carry": 0.5, "carry_mean": 1500, "season_month": 8}


def on(number: int, winner: str, loser: str, time: str) -> bytes:
    return game(number, winner, loser, (datetime.fromisoformat(time) - START).total_seconds() / 86_400)


def changed(owner: psycopg.Connection, game_: str, player: str) -> tuple[float, float]:
    """The player's rating before and after a game."""
    sql = """
        SELECT rating_before, rating_after FROM petard.change JOIN petard.ledger USING (pool, seq)
        WHERE game = %(game)s AND player = %(player)s
    """
    row = owner.execute(sql, {"game": game_, "player": player}).fetchone()
    assert row is not None
    return row


def test_a_season_that_starts_within_a_period_starts_with_the_next_one(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    # The period from 11 July to 9 August holds the start of the season.
    make_pool(connection, system="elo", parameters={"period": 30, "k": 1, "rating": 2000, **SEASONS})
    days = ("2025-07-01", "2025-08-02", "2025-09-10", "2025-11-11")

    apply_all(
        connection,
        client,
        keys,
        [on(n, "ann", f"new-{n}", f"{day}T12:00:00+00:00") for n, day in enumerate(days)],
    )

    steps = [changed(owner, f"g-{n}", "ann") for n in range(4)]
    assert [after < before for before, after in steps] == [False, False, True, False]
    before, after = steps[2]
    assert after == pytest.approx((before + 1500) / 2, abs=1)


def test_a_late_game_carries_nobody_over_twice(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, system="elo", parameters={"period": 1, "k": 1, "rating": 2000, **SEASONS})

    apply_all(
        connection,
        client,
        keys,
        [
            on(1, "ann", "bob", "2025-07-30T12:00:00+00:00"),
            on(2, "cid", "dan", "2025-08-01T00:00:01+00:00"),
            on(3, "ann", "bob", "2025-07-31T23:59:59+00:00"),  # late: it counts in August, and in its season
            on(4, "ann", "bob", "2025-08-03T12:00:00+00:00"),
        ],
    )

    assert changed(owner, "g-3", "ann")[1] == pytest.approx(1750, abs=2)
    before, after = changed(owner, "g-4", "ann")
    assert after == pytest.approx(before, abs=2)


def test_a_late_game_ages_nobody_twice(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, parameters={**WEEK, "c": 10})
    apply_all(connection, client, keys, [game(1, "ann", "bob", 1), game(2, "cid", "dan", 50)])
    apply_all(connection, client, keys, [game(3, "ann", "bob", 8)])  # counts in the week of day 49
    (r, RD, _), (r_j, RD_j, _) = rating_and_rd(owner)["ann"], rating_and_rd(owner)["bob"]

    apply_all(connection, client, keys, [game(4, "ann", "bob", 57)])

    aged, aged_j = ((rd * rd + 100 * 7) ** 0.5 for rd in (RD, RD_j))
    expected = update(r, aged, [Result(g(aged_j), E(r, r_j, g(aged_j)), 1)])
    assert rating_and_rd(owner)["ann"][:2] == pytest.approx(expected, abs=1e-9)


def test_another_length_of_periods_takes_nothing_back(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, parameters=WEEK)
    apply_all(connection, client, keys, [game(1, "ann", "bob", 1), game(2, "cid", "dan", 8)])
    (r, RD, _), (r_j, RD_j, _) = rating_and_rd(owner)["ann"], rating_and_rd(owner)["bob"]
    change_pool(connection, "p", PoolChange({"period": 14}, {}))

    apply_all(connection, client, keys, [game(3, "bob", "ann", 9)])

    # The first day of the new period is that of ann's old one, whose rating was final.
    expected = update(r, RD, [Result(g(RD_j), E(r, r_j, g(RD_j)), 0)])
    assert rating_and_rd(owner)["ann"][:2] == pytest.approx(expected, abs=1e-9)
    assert records(owner)["ann"].peak == r


def test_other_parameters_rate_no_game_again(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, system="elo", parameters={**WEEK, "k": 20})
    apply_all(connection, client, keys, [game(1, "ann", "bob", 1)])
    change_pool(connection, "p", PoolChange({"k": 100}, {}))

    apply_all(connection, client, keys, [game(2, "cid", "ann", 2)])

    assert (rating_and_rd(owner)["bob"][0], changed(owner, "g-2", "ann")[0]) == (1490, 1510)
    chance = 1 / (1 + 10 ** ((1500 - 1510) / 400))
    assert rating_and_rd(owner)["ann"][0] == pytest.approx(1510 - 100 * chance, abs=1e-9)


def test_an_ignored_event_ends_no_period(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, parameters=WEEK)
    unrated = event(
        "finished", "e-9",
        {"pool": "p", "game": "g-9", "rated": False, "sides": [
            {"players": ["ann"], "rank": 1}, {"players": ["bob"], "rank": 2}]},
        time=format_time(START + timedelta(days=10)),
    )  # fmt: skip

    apply_all(connection, client, keys, [*FIRST_WEEK, unrated])

    assert outcomes(owner)[-1] == ("e-9", "unrated")
    assert len(outcomes(owner)) == 5


def test_a_free_abandon_within_a_period_forgets_no_game(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, parameters=WEEK)
    apply_all(connection, client, keys, [FIRST_WEEK[0]])

    apply_all(connection, client, keys, [abandoned(100, "ann", "bob")])
    apply_all(connection, client, keys, [FIRST_WEEK[2]])

    even = E(1500, 1500, g(350))
    both = [Result(g(350), even, s) for s in (1, 0)]
    assert rating_and_rd(owner)["ann"][:2] == pytest.approx(update(1500, 350, both), abs=1e-9)


def test_a_penalty_is_one_more_result_of_the_period(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, parameters=WEEK)

    apply_all(
        connection, client, keys, [FIRST_WEEK[0], *(abandoned(n, "ann", "bob") for n in range(100, 104))]
    )

    results = [Result(g(350), E(1500, 1500, g(350)), 1), Result(g(30), E(1500, 0, g(30)), 0)]
    assert rating_and_rd(owner)["ann"][:2] == pytest.approx(update(1500, 350, results), abs=1e-9)
    assert records(owner)["ann"].penalties == 1


def test_switching_periods_off_and_on_rates_no_game_again(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, parameters=WEEK)
    apply_all(connection, client, keys, [FIRST_WEEK[0]])
    change_pool(connection, "p", PoolChange({"period": 0}, {}))
    apply_all(connection, client, keys, [FIRST_WEEK[1]])
    between = rating_and_rd(owner)
    change_pool(connection, "p", PoolChange({"period": 7}, {}))

    apply_all(connection, client, keys, [game(5, "bob", "ann", 6)])

    # Both go on from their running ratings: what was rated before a change of parameters stays as it was.
    (r, RD, _), (r_j, RD_j, _) = between["bob"], between["ann"]
    bob = update(r, RD, [Result(g(RD_j), E(r, r_j, g(RD_j)), 1)])
    assert rating_and_rd(owner)["bob"][:2] == pytest.approx(bob, abs=1e-9)
    ann = update(r_j, RD_j, [Result(g(RD), E(r_j, r, g(RD)), 0)])
    assert rating_and_rd(owner)["ann"][:2] == pytest.approx(ann, abs=1e-9)


def test_preview_says_what_one_more_game_of_the_period_would_do(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, parameters=WEEK)
    apply_all(connection, client, keys, FIRST_WEEK[:2])
    pool = get_pool(connection, "p")
    assert pool is not None

    preview = find_preview(connection, pool, "ann", "bob", START + timedelta(days=5))
    outlook = preview.outlooks[0]
    apply_all(connection, client, keys, [game(7, "ann", "bob", 5)])

    assert outlook.first_rating == rating_and_rd(owner)["ann"][0]
    assert outlook.second_rating == rating_and_rd(owner)["bob"][0]


def test_preview_counts_in_a_period_that_is_ahead_of_now(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, parameters={**WEEK, "c": 100})
    apply_all(connection, client, keys, [*FIRST_WEEK, game(5, "cid", "dan", 7)])
    pool = get_pool(connection, "p")
    assert pool is not None

    outlook = find_preview(connection, pool, "ann", "bob", START + timedelta(days=6.999)).outlooks[0]
    apply_all(connection, client, keys, [game(7, "ann", "bob", 6.999)])

    assert outlook.first_rating == rating_and_rd(owner)["ann"][0]


def test_the_end_of_a_period_is_published_without_a_gap(
    connection: Connection, client: Redis, keys: Keys
) -> None:
    make_pool(connection, parameters=WEEK)
    apply_all(connection, client, keys, [*FIRST_WEEK, *SECOND_WEEK])

    Publisher(connection, client, keys).publish_once()

    told = [json.loads(fields[b"event"]) for _, fields in client.xrange(keys.changes("p"))]
    assert [one["data"]["seq"] for one in told] == [1, 2, 3, 4, 5, 6, 7]
    assert told[4]["data"]["cause"] == {
        "id": "p/period-closed/5", "source": "/petard", "type": "petard.period.closed.v1",
    }  # fmt: skip
    assert told[4]["data"]["changes"] == []


def test_nobody_can_speak_as_petard(
    connection: Connection, client: Redis, keys: Keys, owner: psycopg.Connection
) -> None:
    make_pool(connection, parameters=WEEK)
    forged = FIRST_WEEK[0].replace(b'"/test"', b'"/petard"').replace(b'"e-1"', b'"p/period-closed/5"')

    apply_all(connection, client, keys, [forged, *FIRST_WEEK, *SECOND_WEEK])

    assert [reason for _, reason in dead_letters(owner)] == ["bad_field:source"]
    assert len(outcomes(owner)) == 7
