"""What is counted of a pool's history: by hand where it is small, by plain Python where it is random."""

import random
import statistics
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple, cast

import psycopg
import pytest
from redis import Redis

from integration.arena import POOL, START, apply_all, event, finished, make_pool
from petard_schema import Keys
from petard_schema.times import format_time
from petard_worker.pool_stats import (
    PoolStats,
    StatsQuestion,
    Trend,
    find_stats,
    spread_times,
)
from petard_worker.postgres import boards, pool_stats
from petard_worker.postgres.connect import Connection, connect_reader, connect_worker
from petard_worker.postgres.pool_stats import Established, History, RatingsAt, WindowCounts
from petard_worker.postgres.pools import Pool, get_pool
from petard_worker.redis_client import connect_redis

ALL = 10**9
NOW = START + timedelta(days=1000)


class Step(NamedTuple):
    """A change as it is written by hand: a rating reached so many days after the start of time."""

    player: str
    day: float
    rating: float
    rd: float = 60.0
    played: bool = True
    penalty: bool = False


class Row(NamedTuple):
    """A change as it is exported."""

    player: str
    player_seq: int
    time: datetime
    rating: float
    rd: float
    games: int
    penalty: bool
    rated: bool


def on(day: float) -> datetime:
    return START + timedelta(days=day)


def write_history(owner: psycopg.Connection, steps: Sequence[Step], pool: str = POOL) -> None:
    """Write an entry and a change for every step, in the order in which they are given."""
    entry = """
        INSERT INTO petard.ledger
            (pool, seq, source, event_id, type, game, time, outcome, counts, late, version, body)
        VALUES (%(pool)s, %(seq)s, '/test', %(id)s, 'test', %(id)s, %(time)s, 'rated', true, false, 1, '{}')
    """
    change = """
        INSERT INTO petard.change
            (pool, player, player_seq, seq, rating_before, rating_after, rd_before, rd_after,
             volatility_before, volatility_after, bomb_before, bomb_after, games_before, games_after,
             expected, actual, rd_aged, penalty, late)
        VALUES (%(pool)s, %(player)s, %(player_seq)s, %(seq)s, %(before)s, %(rating)s, %(rd)s, %(rd)s, NULL,
                NULL, 0, 0, %(games_before)s, %(games)s, NULL, NULL, NULL, %(penalty)s, false)
    """
    seen: dict[str, tuple[int, float, int]] = {}
    for seq, step in enumerate(steps, 1):
        player_seq, before, games = seen.get(step.player, (0, 1500.0, 0))
        seen[step.player] = (player_seq + 1, step.rating, games + step.played)
        values = {
            **step._asdict(),
            "pool": pool,
            "seq": seq,
            "id": f"e-{seq}",
            "time": on(step.day),
            "player_seq": player_seq + 1,
            "before": before,
            "games_before": games,
            "games": games + step.played,
        }
        owner.execute(entry, values)
        owner.execute(change, values)


def list_player(
    owner: psycopg.Connection, player: str, rating: float, rd: float = 60.0, last: datetime | None = START
) -> None:
    """Write where a player stands now."""
    sql = """
        INSERT INTO petard.rating (pool, player, rating, rd, bomb, bomb_cap, abandons, penalties, games, wins,
                                   draws, losses, peak, last_played, player_seq)
        VALUES (%(pool)s, %(player)s, %(rating)s, %(rd)s, 0, 50, 0, 0, 1, 1, 0, 0, %(rating)s, %(last)s, 1)
    """
    owner.execute(sql, {"pool": POOL, "player": player, "rating": rating, "rd": rd, "last": last})


def looked_at(
    connection: Connection, question: StatsQuestion | None = None, **at: datetime | None
) -> PoolStats:
    """Return what there is to tell of the pool."""
    return find_stats(connection, pool_in(connection), question or StatsQuestion(), at.get("until"), NOW)


WINDOW_OF_90_DAYS = [
    Step("unpunished", 2, 1500, played=False),
    Step("idle", 1, 1400),
    Step("punished", 3, 1450, 100, played=False, penalty=True),
    Step("steady", 5, 1600),
    Step("excursion", 5, 1600),
    Step("provisional", 5, 1600, 200),
    Step("late", 5, 1600),
    Step("afterwards", 5, 1500),
    Step("edge", 10, 1500),
    Step("newcomer", 10.001, 1500),
    Step("excursion", 20, 1760),
    Step("late", 20, 1650),
    Step("late", 8, 1800),
    Step("punished", 30, 1250, 100, played=False, penalty=True),
    Step("steady", 50, 1700),
    Step("edge", 60, 1350),
    Step("provisional", 60, 1900),
    Step("newcomer", 61, 1900),
    Step("excursion", 90, 1610),
    Step("steady", 100, 1750),
    Step("afterwards", 100.001, 1900),
]
"""
Established on day 10: idle, punished, steady, excursion, late, afterwards, edge. Of them steady and edge went
150 and stayed, idle and afterwards did nothing until day 100; excursion came back from 160, punished fell by
200, and late was 1600 until it went to 1800 by a game of day 8 that came after one of day 20.
"""


def test_who_stayed_is_counted_over_the_whole_window(
    connection: Connection, owner: psycopg.Connection
) -> None:
    write_history(owner, WINDOW_OF_90_DAYS)
    history = History(POOL, ALL, highest_rd=110, fewest_games=0)

    counts = pool_stats.count_window(connection, history, on(10), on(100), 150)

    assert counts == WindowCounts(established=7, stayed=4, active=5, active_stayed=2)


@pytest.mark.parametrize(
    ("width", "stayed"), [(149.9, 2), (150.0, 4), (160.0, 5), (200.0, 7), (0.001, 2)], ids=str
)
def test_width_counts_what_lies_on_it_as_stayed(
    connection: Connection, owner: psycopg.Connection, width: float, stayed: int
) -> None:
    write_history(owner, WINDOW_OF_90_DAYS)
    history = History(POOL, ALL, highest_rd=110, fewest_games=0)

    counts = pool_stats.count_window(connection, history, on(10), on(100), width)

    assert (counts.established, counts.stayed) == (7, stayed)


@pytest.mark.parametrize(
    ("highest_rd", "fewest_games", "established"),
    [
        (110, 0, 7),
        (99.9, 0, 6),
        (100, 0, 7),
        (200, 0, 8),
        (None, 0, 8),
        (None, 1, 7),
        (110, 1, 6),
        (110, 2, 0),
    ],
)
def test_established_are_those_within_both_bounds_when_the_window_begins(
    connection: Connection,
    owner: psycopg.Connection,
    highest_rd: float | None,
    fewest_games: int,
    established: int,
) -> None:
    write_history(owner, WINDOW_OF_90_DAYS)
    history = History(POOL, ALL, highest_rd, fewest_games)

    counts = pool_stats.count_window(connection, history, on(10), on(100), 150)

    assert counts.established == established


def test_other_pools_and_later_entries_are_left_out(
    connection: Connection, owner: psycopg.Connection
) -> None:
    write_history(owner, WINDOW_OF_90_DAYS)
    write_history(owner, WINDOW_OF_90_DAYS, pool="other")
    before_late_moved = History(POOL, 12, highest_rd=110, fewest_games=0)

    counts = pool_stats.count_window(connection, before_late_moved, on(10), on(100), 150)

    assert counts == WindowCounts(established=7, stayed=6, active=2, active_stayed=1)


def test_means_and_medians_at_given_times(connection: Connection, owner: psycopg.Connection) -> None:
    write_history(
        owner,
        [
            Step("a", 1, 1600, 200),
            Step("ghost", 1, 1500, 50, played=False),
            Step("b", 2, 1400, 200),
            Step("c", 2, 1420, 60),
            Step("a", 4, 1700, 100),
            Step("b", 6, 1300, 110),
            Step("a", 3, 1900, 90),
        ],
    )
    times = [on(day) for day in (0, 1, 2, 4, 5, 6, 60)]
    history = History(POOL, ALL, highest_rd=110, fewest_games=0)

    read = pool_stats.read_ratings_at(connection, history, times)

    # The game of day 3 came after that of day 4: it holds from day 4 on, on which nothing else is left of a.
    assert read == [
        RatingsAt(on(0), 0, None, None, 0, None, None),
        RatingsAt(on(1), 1, 1600, 1600, 0, None, None),
        RatingsAt(on(2), 3, pytest.approx((1600 + 1400 + 1420) / 3), 1420, 1, 1420, 1420),
        RatingsAt(on(4), 3, pytest.approx((1900 + 1400 + 1420) / 3), 1420, 2, 1660, 1660),
        RatingsAt(on(5), 3, pytest.approx((1900 + 1400 + 1420) / 3), 1420, 2, 1660, 1660),
        RatingsAt(on(6), 3, pytest.approx((1900 + 1300 + 1420) / 3), 1420, 3, pytest.approx(1540), 1420),
        RatingsAt(on(60), 3, pytest.approx((1900 + 1300 + 1420) / 3), 1420, 3, pytest.approx(1540), 1420),
    ]


def random_events(seed: int, count: int) -> Iterator[bytes]:
    """Yield games of 13 players over 200 days: one in eight comes late, one in five is left by somebody."""
    choose = random.Random(seed)
    players = [f"player-{number}" for number in range(13)]
    for number in range(count):
        day = 200 * number / count - (choose.uniform(1, 60) if choose.random() < 0.125 else 0)
        first, second = choose.sample(players[: 2 + 12 * number // count], 2)
        sides = [{"players": [first], "rank": 1}, {"players": [second], "rank": choose.choice((1, 2, 2))}]
        facts: dict[str, object] = {"pool": POOL, "game": f"g-{number}", "sides": sides}
        kind = "finished"
        if choose.random() < 0.2:
            kind, facts = "abandoned", facts | {"abandoned_by": [first]}
        yield event(kind, f"e-{number}", facts, time=format_time(on(max(day, 0))))


@pytest.fixture(scope="module")
def played(servers: Any, shared_database: str) -> Iterator[Connection]:
    """A reader's connection to a pool through which random events went."""
    keys = Keys(f"test-{uuid.uuid4().hex[:8]}")
    with connect_worker(shared_database, "test") as writer, connect_redis(servers.redis_url) as client:
        make_pool(writer)
        apply_all(writer, client, keys, random_events(20_26, 700))
    with connect_reader(shared_database, "test") as connection:
        yield connection


def pool_in(connection: Connection) -> Pool:
    """Return the pool as it is now."""
    pool = get_pool(connection, POOL)
    assert pool is not None
    return pool


def exported(connection: Connection) -> dict[str, list[Row]]:
    """Return the changes of every player in the order in which they were applied."""
    sql = """
        SELECT player, player_seq, time, rating_after, rd_after, games_after, penalty,
               games_after > games_before OR penalty
        FROM petard.change JOIN petard.ledger USING (pool, seq) ORDER BY player, player_seq
    """
    rows = [Row(*cast("Row", row)) for row in connection.execute(sql, binary=True)]
    return {player: list(group) for player, group in groupby(rows, lambda row: row.player)}


def before_later(rows: Sequence[Row], time: datetime) -> list[Row]:
    """Return a player's changes up to the first with a later time."""
    cut = next((number for number, row in enumerate(rows) if row.time > time), len(rows))
    return list(rows[:cut])


def stood(rows: Sequence[Row], time: datetime) -> Row | None:
    """Return where a player stood who had played by then."""
    held = before_later(rows, time)
    return held[-1] if any(row.rated for row in held) else None


def is_established(row: Row, rule: Established) -> bool:
    return (rule.highest_rd is None or row.rd <= rule.highest_rd) and row.games >= rule.fewest_games


RULES = [Established(75, 0), Established(68, 30), Established(None, 40), Established(500, 0)]


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize(
    ("begin", "end"), [(40, 130), (110, 200), (0, 200), (199, 300), (-10, -1), (60, 60.5)]
)
def test_window_of_a_random_pool_agrees_with_plain_python(
    played: Connection,
    rule: Established,
    begin: float,
    end: float,
) -> None:
    history = History(POOL, pool_in(played).seq, rule.highest_rd, rule.fewest_games)
    moves: list[tuple[float, bool]] = []
    for rows in exported(played).values():
        opening = stood(rows, on(begin))
        if opening is None or not is_established(opening, rule):
            continue
        inside = [row for row in before_later(rows, on(end)) if row.player_seq > opening.player_seq]
        furthest = max((abs(row.rating - opening.rating) for row in inside), default=0.0)
        moves.append((furthest, any(row.rated for row in inside)))
    width = statistics.median([move for move, _ in moves]) if moves else 1.0

    counts = pool_stats.count_window(played, history, on(begin), on(end), width)

    active = [move for move, played in moves if played]
    assert counts == WindowCounts(
        len(moves),
        sum(move <= width for move, _ in moves),
        len(active),
        sum(move <= width for move in active),
    )


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_points_of_a_random_pool_agree_with_plain_python(played: Connection, rule: Established) -> None:
    history = History(POOL, pool_in(played).seq, rule.highest_rd, rule.fewest_games)
    of_players = exported(played)
    # Some of the times are those of entries, to the microsecond.
    entries = sorted(row.time for rows in of_players.values() for row in rows)
    times = sorted([*spread_times(on(-5), on(210), 40), *entries[::50]])

    read = pool_stats.read_ratings_at(played, history, times)

    assert [point.time for point in read] == times
    for point in read:
        standing = [row for rows in of_players.values() if (row := stood(rows, point.time)) is not None]
        everybody = [row.rating for row in standing]
        established = [row.rating for row in standing if is_established(row, rule)]
        assert (point.players, point.established) == (len(everybody), len(established))
        assert (point.mean, point.median) == middle_of(everybody)
        assert (point.established_mean, point.established_median) == middle_of(established)


def middle_of(ratings: Sequence[float]) -> tuple[object, object]:
    """Return mean and median to many digits, or nothing of nobody."""
    if not ratings:
        return None, None
    mean, median = statistics.fmean(ratings), statistics.median(ratings)
    return pytest.approx(mean, rel=1e-12), pytest.approx(median, rel=1e-12)


def test_where_players_stood_is_what_their_past_standing_says(played: Connection) -> None:
    history = History(POOL, pool_in(played).seq, None, 0)
    players = list(exported(played))
    times = spread_times(on(0), on(200), 15)

    read = pool_stats.read_ratings_at(played, history, times)

    for point in read:
        found = [boards.find_past_standing(played, POOL, player, point.time) for player in players]
        # Nobody in this pool did nothing but leave for long: whoever stood by a time had played by it.
        ratings = [
            standing.rating for standing in found if standing and (standing.games or standing.rd < 350)
        ]
        assert point.players == len(ratings)
        assert point.mean == (pytest.approx(statistics.fmean(ratings), rel=1e-12) if ratings else None)


def test_history_reaches_from_its_first_event_to_its_newest(played: Connection) -> None:
    found = looked_at(played, StatsQuestion(points=5))

    entries = [row.time for rows in exported(played).values() for row in rows]
    assert found.fluctuation is not None
    assert found.fluctuation.until == max(entries)
    assert found.fluctuation.until - found.fluctuation.since == timedelta(days=90)
    assert [point.time for point in found.drift.points][::4] == [on(0), max(entries)]


def test_drift_over_the_window_begins_with_it(played: Connection) -> None:
    found = looked_at(played, StatsQuestion(days=20, points=3, drift="window"), until=on(100))

    assert [point.time for point in found.drift.points] == [on(80), on(90), on(100)]


def test_rising_established_players_are_inflation(connection: Connection, owner: psycopg.Connection) -> None:
    make_pool(connection)
    levels = [
        Step(f"player-{player}", 73.05 * number, 1500 + 20 * number, 60)
        for number in range(6)
        for player in range(20)
    ]
    write_history(owner, levels)
    owner.execute("UPDATE petard.pool SET seq = 120, newest = %s", [on(365.25)])

    found = looked_at(connection, StatsQuestion(points=6))

    assert found.drift.established == Trend(pytest.approx(100), "inflation")
    assert found.drift.players == found.drift.established


def test_pool_in_which_nothing_happened_has_nothing_to_tell(connection: Connection) -> None:
    make_pool(connection)

    found = looked_at(connection)

    assert (found.fluctuation, found.drift.points, found.distribution.players) == (None, [], 0)
    assert found.drift.established == Trend(None, None)


def test_pool_of_which_only_unpunished_abandons_are_known_has_no_players(
    connection: Connection, client: Redis, keys: Keys
) -> None:
    make_pool(connection)
    facts = {
        "pool": POOL,
        "game": "g",
        "abandoned_by": ["a"],
        "sides": [{"players": ["a"]}, {"players": ["b"]}],
    }
    apply_all(connection, client, keys, [event("abandoned", "e", facts)])

    found = looked_at(connection)

    assert found.fluctuation is not None
    assert (found.fluctuation.established, found.fluctuation.share) == (0, None)
    assert [(point.players, point.mean) for point in found.drift.points] == [(0, None)]
    assert found.distribution.summary is None


def test_pool_with_only_penalties_has_players_without_games(
    connection: Connection, client: Redis, keys: Keys
) -> None:
    make_pool(connection)
    sides = [{"players": ["a"]}, {"players": ["b"]}]
    apply_all(
        connection,
        client,
        keys,
        [
            event(
                "abandoned", f"e-{n}", {"pool": POOL, "game": f"g-{n}", "abandoned_by": ["a"], "sides": sides}
            )
            for n in range(5)
        ],
    )

    found = looked_at(connection, StatsQuestion(established=400))

    assert found.distribution.players == 1
    assert [point.players for point in found.drift.points] == [1]
    assert found.fluctuation is not None
    assert found.fluctuation.established == 0


def test_end_before_all_events_finds_nobody(played: Connection) -> None:
    found = looked_at(played, until=on(-1))

    assert found.fluctuation is not None
    assert (found.fluctuation.established, found.fluctuation.share, found.fluctuation.active_share) == (
        0,
        None,
        None,
    )
    assert found.drift.points == []


def test_one_game_is_one_point_of_two_players(connection: Connection, client: Redis, keys: Keys) -> None:
    make_pool(connection)
    apply_all(connection, client, keys, [finished(1)])

    found = looked_at(connection)

    (point,) = found.drift.points
    assert (point.players, point.mean, point.established_mean) == (2, pytest.approx(1500), None)


def test_distribution_is_that_of_the_board(connection: Connection, owner: psycopg.Connection) -> None:
    make_pool(connection, hide_inactive_days=1000.0)
    for player, rating, rd in (("a", 1400, 60), ("b", 1500, 110), ("c", 1700, 111), ("d", 1600, 300)):
        list_player(owner, player, rating, rd)
    list_player(owner, "never", 3000, last=None)
    list_player(owner, "long ago", 3000, last=on(-1))

    found = looked_at(connection).distribution

    assert (found.players, found.provisional, found.provisional_share) == (4, 2, 0.5)
    assert found.summary is not None
    assert (found.summary.lowest, found.summary.mean, found.summary.highest) == (1400, 1550, 1700)
    assert (found.summary.lower_quartile, found.summary.median, found.summary.upper_quartile) == (
        1475,
        1550,
        1625,
    )
    assert found.summary.sd == pytest.approx(12_500**0.5)


def test_a_long_history_is_given_minutes_and_nothing_else_is(connection: Connection) -> None:
    shown = "SHOW statement_timeout"

    with pool_stats.patience(connection):
        inside = connection.execute(shown).fetchone()

    assert inside == ("10min",)
    assert connection.execute(shown).fetchone() == ("1min",)


def test_nothing_is_compiled_for_statistics(connection: Connection) -> None:
    """Whatever they are guessed to cost: for a small pool it would take longer than all the rest."""
    connection.execute("SET jit = on")
    connection.execute("SET jit_above_cost = 0")

    with pool_stats.patience(connection):
        plan = connection.execute("EXPLAIN (ANALYZE) SELECT count(*) FROM petard.change").fetchall()

    assert not [line for (line,) in plan if "JIT" in cast("str", line)]
    assert connection.execute("SHOW jit").fetchone() == ("on",)
