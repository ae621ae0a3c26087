"""Every read finds what it asks for by an index, however much there is: a look at how Postgres answers.

On tables of some thousands of rows with statistics, and the planner as it is everywhere.
"""

from collections.abc import Iterator

import pytest

from benchmarks.big_ledger import CHUNK, Tape, new_ledger, settle
from benchmarks.busy_season import busy_season, two_years
from benchmarks.reads import BIG_TABLES, READS, Asked, draw, find_plans, looking
from petard_worker.chunks import chunks
from petard_worker.postgres.connect import Connection, connect_worker

ENTRIES, PLAYERS = 10_000, 500
MOST_ROWS = 60
"""That one scan of a big table may have in hand, what it throws away included."""
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
