"""Every read finds what it asks for by an index, however much there is: a look at how Postgres answers.

On tables of some thousands of rows with statistics, and the planner as it is everywhere.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import cast

import pytest

from benchmarks.big_ledger import CHUNK, Tape, new_ledger, settle
from benchmarks.busy_season import busy_season, two_years
from benchmarks.reads import BIG_TABLES, READS, Asked, Watched, draw, find_plans, looking
from petard_worker.chunks import chunks
from petard_worker.postgres.connect import Connection, connect_worker

ENTRIES, PLAYERS = 10_000, 500
MOST_ROWS = 60
"""That one scan of a big table may have in hand, what it throws away included."""
CROWD = 20_000
SAMPLE = 1_000
"""Of how many players a look at the board makes itself a picture first."""
WHOLE_BOARD = {"player", "leaderboard", "leaderboard --around", "elo percentile --pool"}
"""These count who stands higher, and the ratings have no index on purpose: see the comment of the table."""
FIVE_HUNDRED_ENTRIES = "publisher, 500 entries"


@pytest.fixture(scope="module")
def looked_at(shared_database: str) -> Iterator[tuple[Connection, list[Asked]]]:
    """A connection to a pool with a past, and what there is to ask: of the busiest first, and as of now."""
    season = two_years("p", PLAYERS, 2 * ENTRIES)
    with connect_worker(shared_database, "test") as connection:
        new_ledger(connection, "p").grow(
            connection, Tape(chunks(busy_season(season, "ulid"), CHUNK)), ENTRIES
        )
    settle(shared_database)
    with looking(shared_database) as connection:
        busiest, *others = draw(shared_database, "p", 6)
        yield connection, [busiest._replace(time=busiest.now), *others]


@pytest.fixture
def crowded(database_url: str) -> Iterator[tuple[Connection, Asked]]:
    """A connection to a pool of many players, and somebody in the middle to ask about."""
    crowd = """
        INSERT INTO petard.rating
        SELECT 'p', 'player-' || number, 1000 + number * 7919 %% 20011 * 0.05, 100,
               NULL, 0, 50, 0, 0, 1, 1, 0, 0, 1500, now(), 1
        FROM generate_series(1, %(crowd)s) AS number
    """
    with connect_worker(database_url, "test") as connection:
        pool = new_ledger(connection, "p").pool
        connection.execute(crowd, {"crowd": CROWD})
    settle(database_url)
    now = datetime.now(UTC)
    with looking(database_url) as connection:
        yield connection, Asked(pool, "player-10000", "player-1", "e-1", None, now, 1, now)


@pytest.mark.parametrize("name", READS)
def test_no_read_goes_through_a_table(looked_at: tuple[Connection, list[Asked]], name: str) -> None:
    connection, about = looked_at
    whole = {"rating"} if name in WHOLE_BOARD else set()
    most = 1_100 if name == FIVE_HUNDRED_ENTRIES else MOST_ROWS

    for asked in about:
        scans = [
            scan for scan in find_plans(connection, READS[name], asked).scans if scan.table in BIG_TABLES
        ]
        assert not [scan for scan in scans if scan.is_whole and scan.table not in whole]
        assert all(scan.rows <= most for scan in scans if scan.table not in whole), scans


def test_whatever_asks_for_one_player_asks_for_no_other(looked_at: tuple[Connection, list[Asked]]) -> None:
    """The board is gone through once to count, and never to find somebody."""
    connection, (asked, *_) = looked_at

    scans = find_plans(connection, READS["player"], asked).scans

    assert [scan.index for scan in scans if not scan.is_whole] == ["rating_pkey", "rating_pkey"]
    assert [scan.rows for scan in scans if scan.is_whole] == [PLAYERS]


@pytest.mark.parametrize("name", sorted(WHOLE_BOARD))
def test_a_board_is_gone_through_once(crowded: tuple[Connection, Asked], name: str) -> None:
    connection, asked = crowded

    scans = find_plans(connection, READS[name], asked).scans

    assert [scan.rows for scan in scans if scan.is_whole] == [CROWD]
    assert all(scan.rows <= SAMPLE for scan in scans if not scan.is_whole), scans


def test_the_first_of_a_board_are_found_among_few(crowded: tuple[Connection, Asked]) -> None:
    """Of those who are better than most of the sample; all others are not even sorted."""
    connection, asked = crowded

    scans = find_plans(connection, READS["leaderboard"], asked).scans

    assert next(scan.kept for scan in scans if scan.is_whole) < CROWD // 20


def test_a_condition_that_a_pool_has_not_set_is_asked_of_nobody(crowded: tuple[Connection, Asked]) -> None:
    connection, asked = crowded

    plans = {name: texts_of(connection, name, asked) for name in WHOLE_BOARD}

    assert all("last_played IS NOT NULL" in plan for plan in plans.values())
    assert not any("rd <=" in plan or "last_played >=" in plan for plan in plans.values())


def texts_of(connection: Connection, name: str, asked: Asked) -> str:
    """Return the plans of all statements of a read as Postgres prints them."""
    watched = Watched(connection)
    READS[name](cast("Connection", watched), asked)
    plans = [
        connection.execute(b"EXPLAIN " + sql.encode(), values).fetchall()
        for sql, values in watched.statements
    ]
    return "\n".join(cast("str", line) for plan in plans for (line,) in plan)
