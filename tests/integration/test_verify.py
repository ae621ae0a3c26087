"""The self-audit: a sound pool passes, every damage is found and named, and traffic is no damage."""

import json
import math
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import cast

import psycopg
import pytest
from redis import Redis

from conftest import Petard
from integration.arena import START, abandoned, apply_all, event, finished, games, make_pool, push
from integration.test_rating_periods import FIRST_WEEK, SECOND_WEEK, WEEK, game
from integration.test_systems_in_the_pipeline import VARIANTS, Drawn, Variant, four_abandons, pushed
from petard_schema import Keys
from petard_schema.times import format_time
from petard_worker.pool_changes import PoolChange, change_pool
from petard_worker.postgres.connect import Connection, connect_reader
from petard_worker.publish import Publisher
from petard_worker.settings import Settings
from petard_worker.verify import board
from petard_worker.verify.audit import Audit, PoolReport

AT = 12
"""The entry that is damaged: an ordinary game."""


class Place:
    """A pool with its servers, and the hands of somebody who may do anything."""

    def __init__(self, url: str, owner: psycopg.Connection, client: Redis, keys: Keys) -> None:
        self.url = url
        self.owner = owner
        self.client = client
        self.keys = keys
        self.stream = keys.changes("p")
        self.board = keys.leaderboard("p")

    def audit(self, *, with_redis: bool = True) -> PoolReport:
        with connect_reader(self.url, "test verify") as connection:
            audit = Audit(connection, 20, lambda *_: None)
            if with_redis:
                return audit.of_everything(["p"], self.client, self.keys)[0]
            return audit.of_postgres(["p"])[0]

    def sql(self, statement: str, *values: object) -> None:
        """Change what constraints let pass, and what they do not."""
        assert self.owner.execute(statement, values).rowcount != 0, "the damage hit nothing"  # type: ignore[call-overload]

    def drop(self, table: str, *constraints: str) -> None:
        for constraint in constraints:
            self.owner.execute(f"ALTER TABLE petard.{table} DROP CONSTRAINT {constraint}")  # type: ignore[call-overload]

    def value(self, statement: str) -> object:
        row = self.owner.execute(statement).fetchone()  # type: ignore[call-overload]
        assert row is not None
        return row[0]

    def nudge(self, table: str, column: str, where: str) -> None:
        """Move a number by one bit."""
        value = cast("float", self.value(f"SELECT {column} FROM petard.{table} WHERE {where}"))
        self.sql(f"UPDATE petard.{table} SET {column} = %s WHERE {where}", math.nextafter(value, math.inf))

    def told(self) -> list[tuple[str, dict[bytes, bytes]]]:
        found = cast("list[tuple[bytes, dict[bytes, bytes]]]", self.client.xrange(self.stream))
        return [(stream_id.decode(), fields) for stream_id, fields in found]

    def tell(self, told: list[tuple[str, dict[bytes, bytes]]]) -> None:
        """Write the stream anew."""
        self.client.delete(self.stream)
        for stream_id, fields in told:
            self.client.xadd(self.stream, fields, id=stream_id)  # type: ignore[arg-type]


@pytest.fixture
def place(database_url: str, owner: psycopg.Connection, client: Redis, keys: Keys) -> Place:
    return Place(database_url, owner, client, keys)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here no publisher is at work that would be waited for."""
    monkeypatch.setattr(board, "SECONDS_BETWEEN_LOOKS", 0.001)


def mixed_season() -> list[bytes]:
    """Games, abandons of every kind, repeats, what is ignored and what is refused, and a late game."""
    played = games(30, players=6)
    late = finished(2000, "player-1", "player-2").replace(b"2026-01-02T", b"2025-12-30T")
    return [
        *played,
        *(abandoned(number, "player-1", "player-2") for number in range(100, 105)),
        abandoned(110, "player-3", "player-4", fault="server"),
        finished(111, "player-3", "player-4", rated=False),
        played[3],
        event("finished", "again", json.loads(played[4])["data"], time=json.loads(played[4])["time"]),
        b"{rubbish",
        finished(5, "player-1", "player-2").replace(b'"e-5"', b'"conflict"'),
        late,
        *games(10, players=6, first=200),
    ]


def publish(connection: Connection, client: Redis, keys: Keys) -> None:
    publisher = Publisher(connection, client, keys)
    while publisher.publish_once():
        pass


@pytest.fixture
def season(connection: Connection, client: Redis, keys: Keys, place: Place) -> Place:
    """A pool in which everything has happened."""
    make_pool(connection)
    apply_all(connection, client, keys, mixed_season(), limit=7)
    publish(connection, client, keys)
    return place


def assert_sound(report: PoolReport) -> None:
    assert report.found.total == 0, [str(one) for one in report.found.first]


def drawn_season(variant: Variant) -> list[bytes]:
    """Forty games of shapes that the system can rate, drawn by chance."""
    chance = random.Random(1)
    drawn = []
    for _ in range(40):
        names = [f"player-{number}" for number in range(9)]
        chance.shuffle(names)
        count = chance.randint(2, variant.most_sides)
        sides = [
            [names.pop() for _ in range(chance.randint(1, min(2, variant.most_players)))]
            for _ in range(count)
        ]
        ranks = [chance.randint(1, count) for _ in sides]
        facts = {
            "home": chance.randint(0, count),
            "importance": chance.choice([None, 1, 2.5]),
            "decided_by": chance.choice(["play", "forfeit"]),
            "knockout": chance.random() < 0.5,
        }
        points = [3 * (count - rank) for rank in ranks]
        drawn.append(Drawn(sides, ranks, points, chance.choice([0, 1, 30, 24 * 45]), facts))
    return pushed(drawn)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_sound_pool_of_every_system_passes(
    connection: Connection, client: Redis, keys: Keys, place: Place, variant: Variant
) -> None:
    make_pool(connection, system=variant.system, parameters=variant.parameters)
    apply_all(connection, client, keys, [*drawn_season(variant), *four_abandons()], limit=7)
    publish(connection, client, keys)

    report = place.audit()

    assert_sound(report)
    assert report.replayed.entries == report.seq == 44
    assert report.replayed.changes > 80
    assert report.replayed.players >= 9
    assert report.stream is not None
    assert (report.stream.oldest, report.stream.newest, report.stream.lag) == ("1-1", "1-44", 0)
    assert report.board is not None
    assert report.board.players == report.replayed.players


def test_sound_pool_with_everything_in_it_passes(season: Place) -> None:
    report = season.audit()

    assert_sound(report)
    assert report.dead_letters == 2
    reasons = "SELECT count(DISTINCT reason) FROM petard.ledger"
    assert season.value(reasons) == 3
    assert season.value("SELECT count(*) FROM petard.ledger WHERE late") != 0
    assert season.value("SELECT count(*) FROM petard.change WHERE penalty") != 0


@pytest.mark.parametrize("limit", [1, 3, 500])
@pytest.mark.parametrize("system", ["glicko", "glicko2", "elo"])
def test_sound_pool_with_periods_that_come_and_go_passes(
    connection: Connection, client: Redis, keys: Keys, place: Place, system: str, limit: int
) -> None:
    make_pool(connection, system=system, parameters=WEEK)
    late = game(8, "cid", "bob", 2)

    def play(*events: bytes) -> None:
        apply_all(connection, client, keys, events, limit=limit)

    def put_in_force(**parameters: object) -> None:
        change_pool(connection, "p", PoolChange(parameters, {}))  # type: ignore[arg-type]

    play(*FIRST_WEEK, *(abandoned(number, "ann", "bob") for number in range(100, 106)), *SECOND_WEEK, late)
    put_in_force(bomb_cap=100)
    play(game(9, "dan", "ann", 16), abandoned(120, "eve", "ann"), game(10, "dan", "ann", 17))
    put_in_force(period=0)
    play(game(11, "ann", "bob", 18), abandoned(121, "cid", "ann"), abandoned(122, "eve", "ann"))
    put_in_force(period=14)
    put_in_force(period=7)
    play(game(12, "dan", "cid", 19), game(13, "cid", "dan", 30), abandoned(123, "eve", "ann"))
    publish(connection, client, keys)

    report = place.audit()

    assert_sound(report)
    assert place.value("SELECT count(*) FROM petard.ledger WHERE source = '/petard'") == 3
    stale = "SELECT count(*) FROM petard.open_period JOIN petard.rating USING (pool, player)"
    assert place.value(f"{stale} WHERE open_period.player_seq <> rating.player_seq") != 0


def test_seasons_and_wins_for_those_who_stayed_pass(
    connection: Connection, client: Redis, keys: Keys, place: Place
) -> None:
    parameters = {"carry": 0.5, "season_month": 1, "award_win": True}
    make_pool(connection, system="elo", parameters=parameters)
    apply_all(connection, client, keys, [game(n, "ann", "bob", 100 * n) for n in range(-12, 0)])
    apply_all(connection, client, keys, [abandoned(n, "ann", "bob") for n in range(100, 106)])

    assert_sound(place.audit(with_redis=False))


def test_empty_and_stopped_pools_pass(
    connection: Connection, client: Redis, keys: Keys, place: Place, owner: psycopg.Connection
) -> None:
    make_pool(connection)
    assert_sound(place.audit())
    apply_all(connection, client, keys, games(20))
    publish(connection, client, keys)
    owner.execute("UPDATE petard.pool SET stopped = 'by hand'")

    assert_sound(place.audit())


def test_entries_of_an_older_release_pass(
    connection: Connection, client: Redis, keys: Keys, place: Place, owner: psycopg.Connection
) -> None:
    """Parameters that are younger than the pool are not in its versions, nor were all fields read."""
    make_pool(connection)
    odd = finished(21, "ann", "bob", knockout="no").replace(b'"rank": 1', b'"rank": 1, "weights": "none"')
    plain = finished(21, "ann", "bob")
    apply_all(connection, client, keys, [*games(20), plain])
    owner.execute("UPDATE petard.ledger SET body = %s WHERE seq = 21", (odd.decode(),))
    for table in ("pool", "pool_version"):
        owner.execute(f"UPDATE petard.{table} SET parameters = parameters - 'award_win' - 'period'")  # type: ignore[call-overload]

    assert_sound(place.audit(with_redis=False))


def test_unpublished_entries_are_lag_and_no_difference(
    connection: Connection, client: Redis, keys: Keys, season: Place
) -> None:
    seq = season.value("SELECT seq FROM petard.pool")
    apply_all(connection, client, keys, games(50, players=6, first=3000))

    report = season.audit()

    assert_sound(report)
    assert report.stream is not None
    assert (report.stream.newest, report.stream.lag) == (f"1-{seq}", 50)
    assert report.board is not None
    assert report.board.looked_again > 0


def test_trimmed_stream_is_told_and_no_difference(
    connection: Connection, client: Redis, keys: Keys, place: Place
) -> None:
    make_pool(connection, stream_length=100)
    apply_all(connection, client, keys, games(500))
    publish(connection, client, keys)

    report = place.audit()

    assert_sound(report)
    assert report.stream is not None
    assert report.stream.oldest == place.told()[0][0] != "1-1"
    assert 100 <= report.stream.entries < 500


def test_entries_of_older_epochs_are_history(
    connection: Connection, client: Redis, keys: Keys, season: Place
) -> None:
    told = season.told()
    told[3] = (told[3][0], {b"event": b"nobody knows any more"})
    season.tell(told)
    season.sql("UPDATE petard.pool SET epoch = 2")
    publish(connection, client, keys)

    report = season.audit()

    assert_sound(report)
    assert report.stream is not None
    assert (report.stream.oldest, report.stream.entries) == ("1-1", report.seq)


@pytest.mark.parametrize(
    "settings",
    [
        {"hide_provisional": True, "provisional_rd": 200},
        {"ranked_by": "conservative"},
        {"hide_inactive_days": 1},
    ],
)
def test_board_that_leaves_players_out_or_ranks_otherwise_passes(
    connection: Connection, client: Redis, keys: Keys, place: Place, settings: dict[str, object]
) -> None:
    make_pool(connection, **settings)
    apply_all(connection, client, keys, [*mixed_season(), finished(5000, "new", "newer")])
    publish(connection, client, keys)

    assert_sound(place.audit())


@pytest.mark.parametrize(
    "settings", [{"hide_provisional": True, "provisional_rd": 200}, {"ranked_by": "conservative"}]
)
def test_such_a_board_that_is_behind_the_table_passes(
    connection: Connection, client: Redis, keys: Keys, place: Place, settings: dict[str, object]
) -> None:
    make_pool(connection, **settings)
    apply_all(connection, client, keys, mixed_season())
    publish(connection, client, keys)
    newcomers = [finished(n, f"new-{n % 3}", "player-1") for n in range(5000, 5030)]
    apply_all(connection, client, keys, [*newcomers, abandoned(6000, "nobody", "player-1")])

    report = place.audit()

    assert_sound(report)
    assert report.board is not None
    assert report.board.looked_again > 0


def body_of(seq: int) -> str:
    return f"(SELECT body FROM petard.ledger WHERE seq = {seq})"


PLAYER = "player = 'player-2'"


def rating_bit(place: Place) -> None:
    place.nudge("rating", "rating", PLAYER)


def deviation_bit(place: Place) -> None:
    place.nudge("rating", "rd", PLAYER)


def peak_bit(place: Place) -> None:
    place.nudge("rating", "peak", PLAYER)


def counter(place: Place) -> None:
    place.sql(f"UPDATE petard.rating SET games = games + 1, wins = wins + 1 WHERE {PLAYER}")


def abandons(place: Place) -> None:
    place.sql(f"UPDATE petard.rating SET abandons = abandons + 1 WHERE {PLAYER}")


def bomb(place: Place) -> None:
    place.sql(f"UPDATE petard.rating SET bomb = bomb + 1 WHERE {PLAYER}")


def bomb_cap(place: Place) -> None:
    place.sql(f"UPDATE petard.rating SET bomb_cap = 51 WHERE {PLAYER}")


def last_played(place: Place) -> None:
    place.sql(f"UPDATE petard.rating SET last_played = last_played + interval '1 microsecond' WHERE {PLAYER}")


def rating_player_seq(place: Place) -> None:
    place.sql(f"UPDATE petard.rating SET player_seq = player_seq + 1 WHERE {PLAYER}")


def rating_lost(place: Place) -> None:
    place.sql(f"DELETE FROM petard.rating WHERE {PLAYER}")


def rating_of_nobody(place: Place) -> None:
    place.sql(f"UPDATE petard.rating SET player = 'nobody' WHERE {PLAYER}")


def change_bit(place: Place) -> None:
    place.nudge("change", "rating_after", f"seq = {AT} AND player = 'player-0'")


def explanation_bit(place: Place) -> None:
    place.nudge("change", "expected", f"seq = {AT} AND player = 'player-0'")


def change_lost(place: Place) -> None:
    place.sql(f"DELETE FROM petard.change WHERE seq = {AT} AND player = 'player-0'")


def change_of_another_entry(place: Place) -> None:
    place.sql(f"UPDATE petard.change SET seq = {AT + 1} WHERE seq = {AT} AND player = 'player-0'")


def change_beyond_the_ledger(place: Place) -> None:
    place.sql(f"UPDATE petard.change SET seq = 100000 WHERE seq = {AT} AND player = 'player-0'")


def change_numbered_with_a_gap(place: Place) -> None:
    place.sql(f"UPDATE petard.change SET player_seq = 1000 WHERE seq = {AT} AND player = 'player-0'")


def chain_broken(place: Place) -> None:
    place.sql(f"UPDATE petard.change SET games_before = games_before + 1 WHERE seq = {AT}")


def penalty(place: Place) -> None:
    place.sql("UPDATE petard.change SET penalty = false WHERE penalty")


def minus_zero(place: Place) -> None:
    place.sql("UPDATE petard.change SET actual = '-0' WHERE actual = 0")


def bodies_swapped(place: Place) -> None:
    place.sql(f"""
        UPDATE petard.ledger SET body = CASE seq WHEN {AT} THEN {body_of(AT + 1)} ELSE {body_of(AT)} END
        WHERE seq IN ({AT}, {AT + 1})
    """)


def body_of_nothing(place: Place) -> None:
    place.sql(f"UPDATE petard.ledger SET body = '{{}}' WHERE seq = {AT}")


def outcome(place: Place) -> None:
    place.sql(f"""
        UPDATE petard.ledger SET outcome = 'ignored', reason = 'unrated', counts = false WHERE seq = {AT}
    """)


def reason(place: Place) -> None:
    place.sql("UPDATE petard.ledger SET reason = 'unrated' WHERE reason = 'server_fault'")


def ignored_that_is_no_repeat(place: Place) -> None:
    place.sql("UPDATE petard.ledger SET reason = 'duplicate_game' WHERE reason = 'unrated'")


def late(place: Place) -> None:
    place.sql(f"UPDATE petard.ledger SET late = true WHERE seq = {AT}")


def version(place: Place) -> None:
    place.sql(f"UPDATE petard.ledger SET version = 2 WHERE seq = {AT}")


def event_id(place: Place) -> None:
    place.sql(f"UPDATE petard.ledger SET event_id = 'other' WHERE seq = {AT}")


def entry_lost(place: Place) -> None:
    place.sql(f"DELETE FROM petard.ledger WHERE seq = {AT}")


def last_entry_lost(place: Place) -> None:
    place.sql("DELETE FROM petard.ledger WHERE seq = (SELECT max(seq) FROM petard.ledger)")


def game_twice(place: Place) -> None:
    place.owner.execute("DROP INDEX petard.ledger_counts_a_game_once")
    place.drop("ledger", "ledger_counts_an_event_once")
    place.sql(f"""
        INSERT INTO petard.ledger
            (pool, seq, source, event_id, type, game, time, outcome, counts, late, version, body)
        SELECT pool, (SELECT seq + 1 FROM petard.pool), source, event_id, type, game, time, outcome, counts,
               true, version, body
        FROM petard.ledger WHERE seq = {AT}
    """)
    place.sql("UPDATE petard.pool SET seq = seq + 1")


def pool_seq(place: Place) -> None:
    place.sql("UPDATE petard.pool SET seq = seq + 1")


def newest(place: Place) -> None:
    place.sql("UPDATE petard.pool SET newest = newest + interval '1 day'")


def parameters(place: Place) -> None:
    place.sql("""UPDATE petard.pool SET parameters = parameters || '{"c": 99}'""")


def parameters_of_the_past(place: Place) -> None:
    place.sql("""UPDATE petard.pool_version SET parameters = parameters || '{"bomb_step": 11}'""")


def parameters_of_another_release(place: Place) -> None:
    place.sql("""UPDATE petard.pool_version SET parameters = parameters || '{"tomorrow": 1}'""")


def versions_lost(place: Place) -> None:
    place.sql("DELETE FROM petard.pool_version")


def digest(place: Place) -> None:
    place.drop("dead_letter", "dead_letter_digest_is_that_of_the_body")
    place.sql("UPDATE petard.dead_letter SET digest = sha256('x') WHERE reason = 'not_json'")


def letter_body(place: Place) -> None:
    place.drop("dead_letter", "dead_letter_digest_is_that_of_the_body")
    place.sql("UPDATE petard.dead_letter SET body = body || 'x' WHERE reason = 'not_json'")


def letter_event(place: Place) -> None:
    place.sql("UPDATE petard.dead_letter SET event_id = 'x' WHERE reason = 'conflicting_game'")


def letter_reason(place: Place) -> None:
    place.sql("UPDATE petard.dead_letter SET reason = 'because' WHERE reason = 'not_json'")


def name_of(value: object) -> str:
    return getattr(value, "__name__", "")


IN_POSTGRES: list[tuple[Callable[[Place], None], str, str]] = [
    (rating_bit, "rating.rating", "p: rating 'player-2': rating is 1"),
    (deviation_bit, "rating.rd", "p: rating 'player-2': rd is "),
    (peak_bit, "rating.peak", "p: rating 'player-2': peak is "),
    (counter, "rating.games", "games is "),
    (counter, "rating.wins", "wins is "),
    (abandons, "rating.abandons", "abandons is "),
    (bomb, "rating.bomb", "bomb is "),
    (bomb_cap, "rating.bomb_cap", "bomb_cap is 51, due is 50"),
    (last_played, "rating.last_played", "is 2026-01-01T03:29:00.000001Z, due is 2026-01-01T03:29:00Z"),
    (rating_player_seq, "rating.player_seq", "player_seq is "),
    (rating_lost, "rating.row", "p: rating 'player-2': row is missing, due is {'rating': "),
    (rating_of_nobody, "rating.row", "p: rating 'nobody': row is {'rating': "),
    (change_bit, "change.rating_after", "p: change entry 12 'player-0': rating_after is "),
    (explanation_bit, "change.expected", "p: change entry 12 'player-0': expected is "),
    (change_lost, "change.row", "p: change entry 12 'player-0': row is missing"),
    (change_of_another_entry, "change.row", "p: change entry 13 'player-0': row is {'player': 'player-0'"),
    (change_beyond_the_ledger, "change.row", "p: change entry 100000 'player-0': row is {'player'"),
    (change_numbered_with_a_gap, "change.player_seq", "player_seq is 1000, due is 4"),
    (chain_broken, "change.games_before", "games_before is 4, due is 3"),
    (penalty, "change.penalty", "penalty is False, due is True"),
    (minus_zero, "change.actual", "actual is -0.0, due is 0.0"),
    (bodies_swapped, "ledger.event_id", "p: ledger entry 12: event_id is 'e-12', due is 'e-13'"),
    (body_of_nothing, "ledger.body", "p: ledger entry 12: body is '{}', due is \"a dead letter: not_an_event"),  # noqa: E501 - a row of a table
    (outcome, "ledger.outcome", "p: ledger entry 12: outcome is 'ignored', due is 'rated'"),
    (reason, "ledger.reason", "reason is 'unrated', due is 'server_fault'"),
    (ignored_that_is_no_repeat, "ledger.reason", "reason is 'duplicate_game', due is 'unrated'"),
    (late, "ledger.late", "p: ledger entry 12: late is True, due is False"),
    (version, "ledger.version", "p: ledger entry 12: version is 2, due is 1"),
    (event_id, "ledger.event_id", "p: ledger entry 12: event_id is 'other', due is 'e-12'"),
    (entry_lost, "ledger.seq", "p: ledger entry 12: seq is 13, due is 12"),
    (last_entry_lost, "pool.seq", "p: pool: seq is "),
    (game_twice, "ledger.event counts", "event counts is \"'/test e-12' 2 times, from entry 12 on\", due is 'once'"),  # noqa: E501 - a row of a table
    (game_twice, "ledger.game counts", "'g-12' 2 times"),
    (pool_seq, "pool.seq", "p: pool: seq is "),
    (newest, "pool.newest", "p: pool: newest is "),
    (parameters, "pool.parameters", "p: pool: parameters is "),
    (parameters_of_the_past, "change.bomb_after", "bomb_after is 10, due is 11"),
    (parameters_of_another_release, "pool.rules", "no parameter 'tomorrow'"),
    (versions_lost, "pool.versions", "versions is missing"),
    (digest, "dead_letter.digest", "p: dead_letter 1: digest is "),
    (letter_body, "dead_letter.digest", "p: dead_letter 1: digest is "),
    (letter_event, "dead_letter.event_id", "event_id is 'x', due is 'conflict'"),
    (letter_reason, "dead_letter.reason", "reason is 'because', due is "),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "kind", "said"), IN_POSTGRES, ids=name_of)
def test_damage_in_postgres_is_found_and_named(
    season: Place, damage: Callable[[Place], None], kind: str, said: str
) -> None:
    damage(season)

    report = season.audit(with_redis=False)

    assert report.found.counts[kind] > 0, report.found.counts
    assert [one for one in report.found.first if one.kind == kind and said in str(one)], [
        str(one) for one in report.found.first
    ]


ALONE = (
    rating_bit, deviation_bit, peak_bit, bomb_cap, last_played, rating_lost, change_bit, explanation_bit,
    change_lost, late, version, event_id, pool_seq, newest, parameters, digest, letter_event,
)  # fmt: skip


@pytest.mark.parametrize("damage", ALONE, ids=lambda damage: damage.__name__)
def test_one_damaged_value_is_one_difference(season: Place, damage: Callable[[Place], None]) -> None:
    damage(season)

    assert season.audit(with_redis=False).found.total == 1


def period_of_nobody(place: Place) -> None:
    place.sql("UPDATE petard.open_period SET player = 'nobody' WHERE player = 'ann'")


def period_lost(place: Place) -> None:
    place.sql("DELETE FROM petard.open_period WHERE player = 'ann'")


def period_moved(place: Place) -> None:
    place.sql("""
        UPDATE petard.open_period SET period = replace(period::text, '"rd":', '"rd":1')::json
        WHERE player = 'ann'
    """)


def period_of_an_older_change(place: Place) -> None:
    place.sql("UPDATE petard.open_period SET player_seq = player_seq - 1 WHERE player = 'ann'")


def ending_lost(place: Place) -> None:
    place.sql("DELETE FROM petard.ledger WHERE source = '/petard'")


def ending_moved(place: Place) -> None:
    place.sql("UPDATE petard.ledger SET body = replace(body::text, '2026-01', '2026-02')::json WHERE seq = 5")


def ending_too_early(place: Place) -> None:
    place.sql("UPDATE petard.ledger SET seq = 100 WHERE seq = 3")
    place.sql("UPDATE petard.ledger SET seq = 3 WHERE seq = 5")
    place.sql("UPDATE petard.ledger SET seq = 5 WHERE seq = 100")


@pytest.mark.parametrize(
    ("damage", "kind", "said"),
    [
        (period_of_nobody, "open_period.row", "p: open_period 'nobody': row is "),
        (period_lost, "open_period.row", "p: open_period 'ann': row is missing"),
        (period_moved, "open_period.period", "p: open_period 'ann': period is "),
        (period_of_an_older_change, "open_period.player_seq", "player_seq is 3, due is 4"),
        (ending_lost, "ledger.end of a period", "is missing, due is 'p/period-closed/6'"),
        (ending_moved, "ledger.body", "p: ledger entry 5: body is "),
        (
            ending_too_early,
            "ledger.end of a period",
            "entry 3: end of a period is 'p/period-closed/5', due is missing",
        ),
    ],
)
def test_damage_in_a_pool_with_periods_is_found_and_named(
    connection: Connection,
    client: Redis,
    keys: Keys,
    place: Place,
    damage: Callable[[Place], None],
    kind: str,
    said: str,
) -> None:
    make_pool(connection, parameters=WEEK)
    apply_all(connection, client, keys, [*FIRST_WEEK, *SECOND_WEEK])
    damage(place)

    report = place.audit(with_redis=False)

    assert [one for one in report.found.first if one.kind == kind and said in str(one)], [
        str(one) for one in report.found.first
    ]


def told_otherwise(place: Place) -> None:
    told = place.told()
    stream_id, fields = told[AT - 1]
    told[AT - 1] = (stream_id, {b"event": fields[b"event"].replace(b'"games":', b'"games":7', 1)})
    place.tell(told)


def told_of_another(place: Place) -> None:
    told = place.told()
    told[AT - 1] = (told[AT - 1][0], told[AT][1])
    place.tell(told)


def told_in_no_json(place: Place) -> None:
    told = place.told()
    told[AT - 1] = (told[AT - 1][0], {b"event": b"\xff"})
    place.tell(told)


def told_in_another_field(place: Place) -> None:
    told = place.told()
    told[AT - 1] = (told[AT - 1][0], {b"events": told[AT - 1][1][b"event"]})
    place.tell(told)


def not_told(place: Place) -> None:
    place.client.xdel(place.stream, f"1-{AT}")


def first_not_told(place: Place) -> None:
    place.client.xdel(place.stream, "1-1", "1-2")


def last_not_told(place: Place) -> None:
    place.client.xdel(place.stream, place.told()[-1][0])


def nothing_told(place: Place) -> None:
    place.client.xtrim(place.stream, maxlen=0, approximate=False)


def told_of_nothing(place: Place) -> None:
    place.client.xadd(place.stream, {b"event": b"{}"}, id="1-100000")


def told_by_a_stranger(place: Place) -> None:
    place.client.xadd(place.stream, {b"event": b"{}"})


def told_before_the_first(place: Place) -> None:
    place.tell([("1-0", {b"event": b"{}"}), *place.told()])


def score_bit(place: Place) -> None:
    score = place.client.zscore(place.board, "player-2")
    assert score is not None
    place.client.zadd(place.board, {"player-2": math.nextafter(score, math.inf)})


def not_on_the_board(place: Place) -> None:
    place.client.zrem(place.board, "player-2")


def stranger(place: Place) -> None:
    place.client.zadd(place.board, {"nobody": 1500})


def stranger_of_no_script(place: Place) -> None:
    place.client.zadd(place.board, {b"\xff\x00": 1500})


def no_board(place: Place) -> None:
    place.client.delete(place.board)


IN_REDIS: list[tuple[Callable[[Place], None], str, str]] = [
    (told_otherwise, "stream.data.changes.before.games", "p: stream entry 12: data.changes.before.games is 7"),  # noqa: E501 - a row of a table
    (told_of_another, "stream.id", "p: stream entry 12: id is 'p/1-13', due is 'p/1-12'"),
    (told_in_no_json, "stream.event", "p: stream entry 12: event is "),
    (told_in_another_field, "stream.fields", "fields is ['events'], due is ['event']"),
    (not_told, "stream.next id", "p: stream entry 12: next id is '1-13', due is '1-12'"),
    (first_not_told, "stream.first id", "first id is '1-3', due is '1-2, which somebody has deleted'"),
    (last_not_told, "stream.entry", "entry is missing, due is '1-"),
    (nothing_told, "stream.entry", "entry is missing, due is '1-"),
    (told_of_nothing, "stream.last id", "last id is '1-100000', due is 'at most 1-"),
    (told_by_a_stranger, "stream.last id", "due is 'at most 1-"),
    (told_before_the_first, "stream.entry", "p: stream entry 0: entry is '{}', due is missing"),
    (score_bit, "board.score", "p: board 'player-2': score is 1"),
    (not_on_the_board, "board.score", "p: board 'player-2': score is missing, due is 1"),
    (stranger, "board.score", "p: board 'nobody': score is 1500.0, due is missing"),
    (stranger_of_no_script, "board.score", "score is 1500.0, due is missing"),
    (no_board, "board.board", "board is 'not there: the publisher will rebuild it', due is '6 players'"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "kind", "said"), IN_REDIS, ids=name_of)
def test_damage_in_redis_is_found_and_named(
    season: Place, damage: Callable[[Place], None], kind: str, said: str
) -> None:
    damage(season)

    report = season.audit()

    found = [str(one) for one in report.found.first]
    assert any(said in one for one in found), found
    assert report.found.counts[kind] == 1
    assert {one.partition(".")[0] for one in report.found.counts} == {kind.partition(".")[0]}


def test_only_so_many_differences_are_kept_and_all_are_counted(season: Place) -> None:
    season.sql("UPDATE petard.change SET games_before = games_before + 1")

    report = season.audit(with_redis=False)

    assert len(report.found.first) == 20
    assert report.found.counts == {"change.games_before": season.value("SELECT count(*) FROM petard.change")}


def test_a_board_score_of_the_past_is_damage_once_later_ones_are_published(season: Place) -> None:
    past = cast(
        "float",
        season.value(
            f"SELECT rating_before FROM petard.change WHERE {PLAYER} ORDER BY player_seq DESC LIMIT 1"
        ),
    )
    season.client.zadd(season.board, {"player-2": past})

    assert season.audit().found.counts == {"board.score": 1}


@contextmanager
def pushing(client: Redis, keys: Keys) -> Iterator[None]:
    """Push games without a pause."""
    stop = threading.Event()

    def go_on() -> None:
        number = 10_000
        while not stop.wait(0.01):
            push(client, keys, games(20, players=8, first=number))
            number += 20

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.timeout(480)
def test_traffic_is_no_difference(
    connection: Connection,
    petard: Petard,
    client: Redis,
    settings: Settings,
    place: Place,
    wait_until: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    make_pool(connection, stream_length=300)
    keys = Keys(settings.key_prefix)
    petard.start("worker")
    petard.start("publisher")
    push(client, keys, mixed_season())
    wait_until(lambda: client.exists(place.stream), "the first entry", seconds=180)

    reports = []
    with pushing(client, keys):
        while len(reports) < 6 or reports[-1].seq < reports[0].seq + 300:
            reports.append(place.audit())
            assert_sound(reports[-1])

    found = [report.seq for report in reports]
    assert found == sorted(found)
    assert len(set(found)) > 3


def test_the_audit_sees_one_moment(season: Place, connection: Connection, client: Redis, keys: Keys) -> None:
    """Whatever is applied and published while it reads."""
    later = iter([games(30, players=6, first=7000), games(30, players=6, first=8000)])

    def meanwhile(*_: object) -> None:
        apply_all(connection, client, keys, next(later, []))
        publish(connection, client, keys)

    seq = season.value("SELECT seq FROM petard.pool")
    with connect_reader(season.url, "test verify") as reader:
        (report,) = Audit(reader, 20, meanwhile).of_everything(["p"], client, keys)

    assert_sound(report)
    assert report.seq == seq
    assert season.value("SELECT seq FROM petard.pool") != seq


def test_events_that_come_with_the_same_time_differ_in_nothing(
    connection: Connection, client: Redis, keys: Keys, place: Place
) -> None:
    make_pool(connection)
    same = [
        event(
            "finished",
            f"s-{n}",
            json.loads(finished(n, "ann", "bob"))["data"],
            time=format_time(START + timedelta(1)),
        )
        for n in range(20)
    ]
    apply_all(connection, client, keys, same)

    assert_sound(place.audit(with_redis=False))
