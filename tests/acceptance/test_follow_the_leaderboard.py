"""A live leaderboard: built from nothing but the change stream, it is the board that Postgres has."""

import threading
from collections.abc import Iterator

import pytest

from petard_producer import Follower, Position, Producer, draw, duel, without_result
from petard_schema import RatingChanged
from petard_worker.settings import Settings

EVENTS = 2_000
PLAYERS = [f"player-{number}" for number in range(40)]


@pytest.fixture
def producer(settings: Settings) -> Iterator[Producer]:
    url = settings.redis_url.get_secret_value()
    with Producer.from_url(url, source="/servers/test", prefix=settings.key_prefix) as producer:
        yield producer


@pytest.fixture
def follower(settings: Settings, pool: str) -> Iterator[Follower]:
    url = settings.redis_url.get_secret_value()
    with Follower.from_url(url, pool=pool, prefix=settings.key_prefix) as follower:
        yield follower


def push_everything(producer: Producer, pool: str) -> None:
    """Push wins, draws, abandons, unrated games and repeats, one by one."""
    for number in range(EVENTS):
        game = f"g-{number}"
        first, second = PLAYERS[number % 40], PLAYERS[(number * 7 + number // 40) % 39]
        if first == second:
            second = PLAYERS[39]
        if number % 10 == 3:
            producer.finished(pool=pool, game=game, sides=draw(first, second))
        elif number % 10 == 6:
            sides = without_result(first, second)
            producer.abandoned(pool=pool, game=game, sides=sides, abandoned_by=[first])
        else:
            sides = duel(winner=first, loser=second)
            producer.push(producer.finished(pool=pool, game=game, sides=sides, rated=number % 50 != 0))


def listen(follower: Follower, heard: list[RatingChanged], after: Position | None, last: int) -> None:
    for change in follower.follow(after=after):
        heard.append(change)
        if change.data.seq == last:
            return


def test_follower_sees_every_entry_and_builds_the_same_board(petard, run, pool, producer, follower):
    petard.start("worker")
    petard.start("publisher")
    heard: list[RatingChanged] = []
    listener = threading.Thread(target=listen, args=(follower, heard, None, EVENTS), daemon=True)
    listener.start()

    push_everything(producer, pool)
    listener.join(60)

    assert [change.data.seq for change in heard] == list(range(1, EVENTS + 1))
    assert {change.data.outcome for change in heard} == {"rated", "ignored"}
    assert run("dead", "list", "--json").json == []
    assert run("leaderboard", pool, "--top", "1000", "--json").json == board_of(heard)


def test_follower_that_was_away_goes_on_where_it_was(petard, run, pool, producer, follower, settings):
    petard.start("worker")
    petard.start("publisher")
    before: list[RatingChanged] = []
    after: list[RatingChanged] = []
    for number in range(100):
        producer.finished(pool=pool, game=f"g-{number}", sides=duel(winner="alice", loser="bob"))
    listen(follower, before, None, 60)
    follower.close()
    url = settings.redis_url.get_secret_value()

    with Follower.from_url(url, pool=pool, prefix=settings.key_prefix) as again:
        listen(again, after, Position.parse(str(Position.of(before[-1]))), 100)

    assert [change.data.seq for change in before + after] == list(range(1, 101))
    assert run("leaderboard", pool, "--json").json == board_of(before + after)


def board_of(changes: list[RatingChanged]) -> list[dict[str, object]]:
    """Return the leaderboard as the changes alone tell it."""
    standing = {change.player: change.after for entry in changes for change in entry.data.changes}
    # An unpunished abandon is no rated event: alone, it puts nobody on the board.
    listed = {
        change.player
        for entry in changes
        for change in entry.data.changes
        if change.explanation.rd_aged is not None
    }
    order = sorted(listed, key=lambda name: (-standing[name].rating, name))
    return [
        {
            "rank": 1 + sum(standing[other].rating > standing[name].rating for other in listed),
            "player": name,
            **{key: getattr(standing[name], key) for key in ("rating", "rd", "bomb", "games")},
        }
        for name in order
    ]
