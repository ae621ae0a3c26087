"""A season as a popular game has it: some play every hour, most a few games, many one.

How active the player of rank r is goes by 1 / (r + 100): among 50,000 players with five million games the
busiest has some sixteen thousand and the one in the middle sixty. Everything else is as in `simulate`:
strengths, draws, abandons, games that come late. A hundredth of the events is ignored (half of them not
rated, half a second report of the same game), and lies are mixed in as often as the season says; nothing is
delivered twice.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Literal
from uuid import UUID

from petard_producer.event_ids import RANDOM_BITS, crockford, successor
from petard_schema import DeadReason
from petard_worker.simulate import (
    Game,
    Liar,
    Lie,
    Season,
    chances_to_leave,
    encode,
    endless_lies,
    leaver,
    out_of_order,
    player_name,
    score,
    strengths,
    teller_of,
)

Ids = Literal["ulid", "uuid"]
"""How events and games are named: in ascending order, as the Producer and counters do, or at random."""

YEARS = timedelta(days=730)
HEAD = 100
UNRATED_SHARE = SECOND_REPORT_SHARE = 0.005
OF_WHAT_WAS_TOLD = (DeadReason.CONFLICTING_GAME, DeadReason.ID_REUSED)


def two_years(pool: str, players: int, games: int, seed: int = 1) -> Season:
    """Return a season of so many games that began two years before 2026."""
    return Season(
        pool=pool,
        seed=seed,
        players=players,
        games=games,
        repeat_share=0,
        hostile_share=0.001,
        start=datetime(2024, 1, 1, tzinfo=UTC),
        seconds_between_games=YEARS.total_seconds() / games,
    )


def busy_season(season: Season, ids: Ids) -> Iterator[bytes]:
    """Yield the lines of the wire in the order of delivery."""
    rng = Random(f"{season.seed}/busy mischief")
    teller = teller_of(season)
    new_id = NEW_ID[ids](season)
    lies = lies_about_nobody(season)
    told: Game | None = None
    for game in out_of_order(season, play(season)):
        name = f"{teller.prefix}-{game.number}" if ids == "ulid" else new_id(game)
        data = teller.data(name, game)
        if rng.random() < UNRATED_SHARE:
            data["rated"] = False
        elif rng.random() < SECOND_REPORT_SHARE:
            yield encode(teller.envelope(new_id(game), game, data))
        yield encode(teller.envelope(new_id(game), game, data))
        if game.left is None:
            told = game
        if told is not None and rng.random() < season.hostile_share:
            yield next(lies)(Liar(teller, new_id(game), game, told))


def play(season: Season) -> Iterator[Game]:
    """Yield the games in the order in which they ended."""
    rng = Random(f"{season.seed}/busy games")
    strength = strengths(season)
    chances = chances_to_leave(season)
    names = [player_name(number) for number in range(season.players)]
    step = timedelta(seconds=season.seconds_between_games)
    for number in range(season.games):
        first, second = meet(rng, names, strength)
        ranks = score(rng, strength[first] - strength[second], season.draw_share)
        left = leaver(rng, chances, first, second)
        yield Game(number, season.start + number * step, first, second, ranks, left)


def meet(rng: Random, names: list[str], strength: dict[str, float]) -> tuple[str, str]:
    """Return somebody and the nearest in strength of three others, all of them drawn by their activity."""
    spread = (len(names) + HEAD) / HEAD

    def somebody() -> str:
        return names[int(HEAD * spread ** rng.random() - HEAD)]

    first = somebody()
    own = strength[first]
    rivals = [rival for rival in (somebody(), somebody(), somebody()) if rival != first]
    if not rivals:
        return meet(rng, names, strength)
    return first, min(rivals, key=lambda rival: abs(strength[rival] - own))


def lies_about_nobody(season: Season) -> Iterator[Lie]:
    """Yield lies that rest on no game told before: those are named otherwise here."""
    return (lie for reason, lie in endless_lies(season) if reason not in OF_WHAT_WAS_TOLD)


def ulids(season: Season) -> Callable[[Game], str]:
    """Return a function that names events as the Producer does, at the times of their games."""
    rng = Random(f"{season.seed}/ids")
    last = 0

    def new_id(game: Game) -> str:
        nonlocal last
        now_ms = int(game.time.timestamp() * 1000)
        last = successor(last, now_ms, rng.getrandbits(RANDOM_BITS))
        return crockford(last)

    return new_id


def uuids(season: Season) -> Callable[[Game], str]:
    """Return a function that names events and games at random."""
    rng = Random(f"{season.seed}/ids")
    return lambda _: str(UUID(int=rng.getrandbits(128), version=4))


NEW_ID: dict[Ids, Callable[[Season], Callable[[Game], str]]] = {"ulid": ulids, "uuid": uuids}
