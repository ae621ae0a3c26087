"""Who is listed, in which order and at what place: the one rule of all boards."""

from datetime import UTC, datetime, timedelta
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql as sql_text

from petard_worker.pool_settings import PoolSettings
from petard_worker.postgres import boards
from petard_worker.postgres.boards import BoardLine, Listing, Place, list_by
from petard_worker.postgres.connect import Connection

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LAST_PLAYED = {
    "first": NOW - timedelta(days=1),
    "second": NOW - timedelta(days=7),
    "third": NOW - timedelta(days=8),
    "never": None,
}
STANDINGS = {
    "first": (1800.0, 200.0),
    "second": (1700.0, 110.0),
    "third": (1600.0, 40.0),
    "never": (1900, 30),
}


@pytest.fixture(autouse=True)
def players(owner: psycopg.Connection) -> None:
    """Four players with what they differ in; one of them has only left games."""
    sql = """
        INSERT INTO petard.rating
        SELECT %(pool)s, %(player)s, %(rating)s, %(rd)s, NULL, 0, 50, 0, 0, 1, 1, 0, 0, %(rating)s,
               %(last)s, 1
    """
    for player, (rating, rd) in STANDINGS.items():
        for pool in ("p", "other"):
            values = {"pool": pool, "player": player, "rating": rating, "rd": rd, "last": LAST_PLAYED[player]}
            owner.execute(sql, values)


def listing(**settings: object) -> Listing:
    return list_by("p", PoolSettings(**settings), NOW)  # type: ignore[arg-type]


def everywhere(connection: Connection, listing: Listing) -> list[str]:
    """Return who is listed, in order, and check that every look at the board says the same."""
    top = [line.player for line in boards.board_top(connection, listing, 10)]
    for player in STANDINGS:
        around = boards.board_around(connection, listing, player)
        assert [line.player for line in around] == (top if player in top else [])
        assert (boards.find_place(connection, listing, player) is not None) == (player in top)
    scores = boards.read_scores(connection, listing, STANDINGS)
    with connection.transaction():
        chunks = list(boards.read_board(connection, listing, 2))
    assert [len(chunk) for chunk in chunks[:-1]] == [2] * (len(chunks) - 1)
    assert {player: score for chunk in chunks for player, score in chunk.items()} == scores
    assert sorted(scores, key=scores.__getitem__, reverse=True) == top
    return top


@pytest.mark.parametrize(
    ("settings", "listed"),
    [
        ({}, ["first", "second", "third"]),
        ({"ranked_by": "conservative"}, ["third", "second", "first"]),
        ({"hide_provisional": True}, ["second", "third"]),
        ({"hide_provisional": True, "provisional_rd": 109.9}, ["third"]),
        ({"hide_inactive_days": 7.0}, ["first", "second"]),
        ({"hide_inactive_days": 0.5}, []),
        ({"hide_provisional": True, "hide_inactive_days": 7.5, "ranked_by": "conservative"}, ["second"]),
    ],
)
def test_every_look_at_the_board_lists_the_same_players(
    connection: Connection, settings: dict[str, object], listed: list[str]
) -> None:
    assert everywhere(connection, listing(**settings)) == listed


def test_who_is_inactive_depends_on_the_time_handed_in_and_not_on_a_clock(connection: Connection) -> None:
    settings = PoolSettings(hide_inactive_days=7)

    week_before, week_after = (
        everywhere(connection, list_by("p", settings, NOW + timedelta(days=days))) for days in (-7, 7)
    )

    assert week_before == ["first", "second", "third"]
    assert week_after == []


def test_place_and_percentile_count_those_who_are_listed(connection: Connection) -> None:
    place = boards.find_place(connection, listing(hide_provisional=True), "second")

    assert place == Place(1, 75.0)


def test_scores_of_players_nobody_knows_are_none(connection: Connection) -> None:
    assert boards.read_scores(connection, listing(), ["first", "nobody"]) == {"first": 1800.0}
    assert boards.read_scores(connection, listing(), []) == {}


def test_a_whole_board_is_scanned_and_single_scores_are_looked_up(
    connection: Connection, owner: psycopg.Connection
) -> None:
    """A publisher's session reads by keys alone; through an index a board of millions would take for ever."""
    owner.execute("""
        INSERT INTO petard.rating
        SELECT 'p', 'many-' || number, 1500, 100, NULL, 0, 50, 0, 0, 1, 1, 0, 0, 1500, now(), 1
        FROM generate_series(1, 5000) AS number
    """)
    owner.execute("ANALYZE petard.rating")
    scans = "SELECT seq_scan, idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'rating'"

    with connection.transaction():
        boards.read_scores(connection, listing(), ["many-1", "many-2"])
        looked_up = connection.execute(scans).fetchone()
        list(boards.read_board(connection, listing(), 1000))
        scanned = connection.execute(scans).fetchone()

    assert looked_up == (0, 2)
    assert scanned == (1, 2)
    assert connection.execute("SHOW enable_seqscan").fetchone() == ("off",)


@pytest.mark.parametrize("ranked_by", ["rating", "conservative"])
def test_ranks_and_order_are_those_of_the_whole_board_wherever_it_is_looked_at(
    connection: Connection, owner: psycopg.Connection, ranked_by: str
) -> None:
    """Few scores for many players: ties that begin or end outside the lines shown, and several scripts."""
    owner.execute("""
        INSERT INTO petard.rating
        SELECT 'p', (ARRAY['a', 'B', 'é', 'Ж', '李'])[1 + number % 5] || number, 1500 + number * number % 7,
               100, NULL, 0, 50, 0, 0, 1, 1, 0, 0, 1500, now(), 1
        FROM generate_series(1, 60) AS number
    """)
    board = listing(ranked_by=ranked_by)
    scores = boards.read_scores(connection, board, [line.player for line in all_of(connection, board)])
    ordered = sorted(scores, key=lambda player: (-scores[player], player.encode()))
    ranks = [1 + sum(score > scores[player] for score in scores.values()) for player in ordered]
    places = list(zip(ranks, ordered, strict=True))

    assert len(places) == 63
    assert [(line.rank, line.player) for line in all_of(connection, board)] == places
    for count in (1, 4, 30):
        top = boards.board_top(connection, board, count)
        assert [(line.rank, line.player) for line in top] == places[:count]
    for place, player in enumerate(ordered):
        around = boards.board_around(connection, board, player)
        shown = places[max(0, place - boards.AROUND) : place + boards.AROUND + 1]
        assert [(line.rank, line.player) for line in around] == shown


CROWD = 2_500
"""More than the sample of players that a look at the board begins with."""


@pytest.mark.parametrize("ranked_by", ["rating", "conservative"])
@pytest.mark.parametrize(
    "rating",
    [
        pytest.param("1500 + (number * 7919 % 2500) * 0.3", id="no ties"),
        pytest.param("1500 + number * number % 40", id="more ties than lines shown"),
        pytest.param("1500 + number % 2", id="two scores for all"),
        pytest.param("1500 + number", id="the sample is at the bottom"),
        pytest.param("1500 - number", id="the sample is at the top"),
        pytest.param(
            "CASE WHEN number < 1250 THEN 1500 ELSE 1500 + number % 600 END", id="the sample is tied"
        ),
    ],
)
def test_a_crowd_has_the_ranks_and_the_order_of_the_whole_board(
    connection: Connection, owner: psycopg.Connection, rating: LiteralString, ranked_by: str
) -> None:
    add_players(owner, rating, CROWD)
    board = listing(ranked_by=ranked_by, hide_provisional=True)
    standings = all_listed(owner, ranked_by, highest_rd=110.0)
    places = places_of(standings)

    for count in (1, 7, 999, 1000, 1001, len(places), 1_000_000):
        top = boards.board_top(connection, board, count)
        assert [(line.rank, line.player) for line in top] == places[:count]
    for place in {*range(13), *range(0, len(places), 67), *range(len(places) - 7, len(places))}:
        rank, player = places[place]
        around = boards.board_around(connection, board, player)
        assert [(line.rank, line.player) for line in around] == places[max(0, place - 5) : place + 6]
        assert boards.find_place(connection, board, player) == Place(rank, percentile_in(standings, player))


@pytest.mark.parametrize("hidden", ["player-0011", "player-0002", "nobody"])
def test_nothing_is_around_somebody_whom_the_board_leaves_out(
    connection: Connection, owner: psycopg.Connection, hidden: str
) -> None:
    """Who never played, who is provisional, and who is no player at all."""
    add_players(owner, "1500 + number", 40)
    board = listing(hide_provisional=True)

    assert boards.board_around(connection, board, "player-0001") != []
    assert boards.board_around(connection, board, hidden) == []
    assert boards.find_place(connection, board, hidden) is None


def test_lines_say_what_the_table_says_of_their_players(connection: Connection) -> None:
    lines = [BoardLine(2, "third", 1600.0, 40.0, 0, 1), BoardLine(1, "second", 1700.0, 110.0, 0, 1)]
    board = listing(hide_provisional=True)

    assert boards.board_top(connection, board, 5) == lines[::-1]
    assert boards.board_around(connection, board, "third") == lines[::-1]


def add_players(owner: psycopg.Connection, rating: LiteralString, count: int) -> None:
    """Add players with a rating by their number, of whom a third is provisional and some have not played."""
    sql = sql_text.SQL("""
        INSERT INTO petard.rating
        SELECT 'p', 'player-' || to_char(number, 'FM0000'), {rating}, (ARRAY[60, 100, 111])[1 + number % 3],
               NULL, 0, 50, 0, 0, 1, 1, 0, 0, 1500, CASE WHEN number % 11 > 0 THEN now() END, 1
        FROM generate_series(1, {count}) AS number
    """)
    owner.execute(sql.format(rating=sql_text.SQL(rating), count=sql_text.Literal(count)))


def all_listed(owner: psycopg.Connection, ranked_by: str, highest_rd: float) -> dict[str, float]:
    """Return the scores of all who have played, with an RD up to this."""
    rows = owner.execute(
        "SELECT player, rating, rd, last_played FROM petard.rating WHERE pool = 'p'"
    ).fetchall()
    return {
        player: rating - 2 * rd if ranked_by == "conservative" else rating
        for player, rating, rd, last_played in rows
        if last_played is not None and rd <= highest_rd
    }


def places_of(standings: dict[str, float]) -> list[tuple[int, str]]:
    """Return rank and name of everybody in the order of the board."""
    ordered = sorted(standings, key=lambda player: (-standings[player], player.encode()))
    first = {standings[player]: number for number, player in reversed(list(enumerate(ordered, 1)))}
    return [(first[standings[player]], player) for player in ordered]


def percentile_in(standings: dict[str, float], player: str) -> float:
    own = standings[player]
    lower = sum(score < own for score in standings.values())
    equal = sum(score == own for score in standings.values())
    return 100 * (lower + 0.5 * equal) / len(standings)


def all_of(connection: Connection, board: Listing) -> list[boards.BoardLine]:
    return boards.board_top(connection, board, 1_000)
