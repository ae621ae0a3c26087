"""Hostile draws for rating systems: parameters, players and games where formulas break first.

Everything comes from a `random.Random`, a hundred times faster than drawing each number with Hypothesis,
which then only has to choose the seeds. The ends of every range, and the floats next to them, are drawn as
often as all the numbers between.
"""

import math
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import Field, fields
from random import Random
from types import FrameType
from typing import Any

from petard_worker.ratings.parameters import BadParameterError, ParameterValue
from petard_worker.ratings.pool_rules import SYSTEMS, pool_rules
from petard_worker.ratings.system import (
    Game,
    GameSide,
    GameUnsupportedError,
    PeriodSystem,
    PlayerState,
    Rated,
    RatingSystem,
    sum_terms,
)

MOST_PLAYERS = 64
"""What the parser lets through, as all the limits of this module are."""
MOST_POINTS = 2**53 - 1
MOST_IMPORTANCE = 1_000_000
TEN_THOUSAND_YEARS = 3_652_425.0
ORDERED = (("rating_min", "rating", "rating_max"), ("volatility_min", "volatility", "volatility_max"))
"""Parameters that contradict each other unless they rise."""
ENDLESS = 5.0
"""Seconds of computing after which a handful of games is taken for an endless loop."""


# --- Numbers ------------------------------------------------------------------------------------------------


def hostile(random: Random, low: float, high: float) -> float:
    """Draw a number from the range, half of the time from its edges."""
    kind = random.randrange(8)
    if kind < 2:
        return low if kind else high
    if kind == 2:
        return min(math.nextafter(low, math.inf), high)
    if kind == 3:
        return max(math.nextafter(high, -math.inf), low)
    if kind == 4:
        # Near the lower end on all scales.
        return min(low + (high - low) * 10 ** random.uniform(-12, 0), high)
    return min(max(random.uniform(low, high), low), high)


def hostile_days(random: Random) -> float:
    days = (0.0, 1e-9, 1.0, 1e6, TEN_THOUSAND_YEARS, random.uniform(0, 400), random.expovariate(1))
    return random.choice(days)


# --- Systems ------------------------------------------------------------------------------------------------


def hostile_parameter(random: Random, declared: Field[Any]) -> ParameterValue:
    """Draw a value from all of a parameter's range; a third of the time its default."""
    limits, default = declared.metadata["limits"], declared.default
    if random.randrange(3) == 0:
        return default
    if isinstance(default, bool):
        return random.random() < 0.5
    if isinstance(default, str):
        return random.choice(limits.choices)
    value = hostile(random, limits.low, limits.high)
    return round(value) if isinstance(default, int) else value


def hostile_parameters(random: Random, name: str) -> dict[str, ParameterValue]:
    """Draw every parameter of a system, and put in order what has to rise."""
    declared = fields(SYSTEMS[name])  # type: ignore[arg-type]
    drawn = {each.name: hostile_parameter(random, each) for each in declared}
    for names in ORDERED:
        if drawn.keys() >= set(names):
            drawn |= zip(names, sorted(float(drawn[each]) for each in names), strict=True)
    if "rd_floor" in drawn:
        drawn["rd_floor"], drawn["rd"] = sorted((float(drawn["rd_floor"]), float(drawn["rd"])))
    return drawn


def hostile_system(random: Random, name: str) -> RatingSystem:
    """Draw a system with parameters that do not contradict each other."""
    for _ in range(100):
        try:
            return pool_rules(name, hostile_parameters(random, name)).system
        except BadParameterError:
            continue
    raise AssertionError(f"100 draws of parameters of {name} contradict themselves")


# --- Games --------------------------------------------------------------------------------------------------


def hostile_player(random: Random, system: RatingSystem) -> PlayerState:
    """Draw a player of the pool: as the system itself could have left one."""
    rating = hostile(random, system.rating_min, system.rating_max)
    games = random.choice((0, 1, 8, 9, 29, 30, random.randrange(2000), MOST_POINTS))
    wins = random.randint(0, games)
    return PlayerState(
        rating,
        drawn_between(random, system, "rd_floor", "rd", 0.0),
        drawn_between(random, system, "volatility_min", "volatility_max", None),
        games,
        random.choice((None, rating, hostile(random, rating, system.rating_max))),
        hostile_days(random),
        wins,
        random.randint(0, games - wins),
        random.random() < 0.1,
        random.choice((None, 0.0, 18.0, 20.5, 26.0, random.uniform(0, 120))),
    )


def drawn_between(
    random: Random, system: RatingSystem, low: str, high: str, otherwise: float | None
) -> float | None:
    """Draw from the range that two parameters give, or return what holds where there are none."""
    if not hasattr(system, low):
        return otherwise
    return hostile(random, getattr(system, low), getattr(system, high))


def stranger(random: Random, system: RatingSystem) -> PlayerState:
    """Draw a player whom other parameters of the pool have left anywhere in the declared ranges."""
    limits = {each.name: each.metadata["limits"] for each in fields(system)}  # type: ignore[arg-type]
    player = hostile_player(random, system)
    rating = hostile(random, limits["rating_min"].low, limits["rating_max"].high)
    strange = player._replace(rating=rating, peak=random.choice((None, rating)))
    if "rd_floor" in limits:
        strange = strange._replace(rd=hostile(random, limits["rd_floor"].low, limits["rd"].high))
    if "volatility_min" in limits:
        volatility = hostile(random, limits["volatility_min"].low, limits["volatility_max"].high)
        strange = strange._replace(volatility=random.choice((None, volatility)))
    return strange


def hostile_sizes(random: Random) -> list[int]:
    """Draw how many players the sides have; most games are duels, and few have 64 players."""
    kind = random.randrange(20)
    if kind < 12:
        return [1, 1]
    if kind < 15:
        return [random.randint(1, 5), random.randint(1, 5)]
    if kind < 19:
        return [random.randint(1, 3) for _ in range(random.randint(2, 6))]
    return random.choice(([1] * MOST_PLAYERS, [1, MOST_PLAYERS - 1], [32, 32], [8] * 8))


def hostile_side(random: Random, players: Sequence[PlayerState], most: int) -> GameSide:
    weights = [hostile(random, 0, 1) for _ in players] if random.random() < 0.2 else None
    return GameSide(
        players,
        MOST_POINTS if random.random() < 0.1 else random.randint(1, most),
        None if random.random() < 0.1 else round(hostile(random, -MOST_POINTS, MOST_POINTS)),
        random.choice((None, True, False)),
        weights,
    )


def hostile_game(random: Random, system: RatingSystem) -> Game:
    """Draw a game that the parser would let through, of players of the pool and, seldom, strangers."""
    draw_player = stranger if random.random() < 0.1 else hostile_player
    sizes = hostile_sizes(random)
    return Game(
        [
            hostile_side(random, [draw_player(random, system) for _ in range(size)], len(sizes))
            for size in sizes
        ],
        None if random.random() < 0.7 else hostile(random, 0, MOST_IMPORTANCE),
        random.choice(("play", "play", "play", "shootout", "forfeit")),
        random.random() < 0.2,
    )


# --- What must hold -----------------------------------------------------------------------------------------


def wrongs(system: RatingSystem, rated: Rated, results: int) -> Iterator[str]:
    """Yield in words what of a player after so many results cannot be: not finite, or beyond a limit."""
    numbers = (rated.rating, rated.rd, rated.volatility or 0.0, rated.expected, rated.actual, rated.rd_aged)
    if not all(map(math.isfinite, numbers)):
        yield "not finite"
    if not system.rating_min <= rated.rating <= system.rating_max:
        yield f"rating not within {system.rating_min!r} and {system.rating_max!r}"
    lowest_rd, highest_rd = getattr(system, "rd_floor", 0.0), getattr(system, "rd", 0.0)
    if not lowest_rd <= rated.rd <= highest_rd:
        yield f"rd not within {lowest_rd!r} and {highest_rd!r}"
    if hasattr(system, "volatility_min") and not (
        system.volatility_min <= (rated.volatility or 0.0) <= system.volatility_max
    ):
        yield f"volatility not within {system.volatility_min!r} and {system.volatility_max!r}"
    if not 0 <= rated.actual <= results:
        yield f"actual score not within 0 and {results}"
    # The EGF's expected scores are that much less than others, on purpose.
    egf = getattr(system, "expectation", "") == "egf_until_2021"
    short = system.egf_epsilon / 2 * results if egf else 0.0
    if not -short <= rated.expected <= results:
        yield f"expected score not within {-short!r} and {results}"


def check_game(system: RatingSystem, game: Game) -> list[Rated]:
    """Rate a game and return the outcome; fail where it cannot be. Raises GameUnsupportedError."""
    try:
        rated = system.rate(game)
    except GameUnsupportedError:
        raise
    except Exception as error:
        raise AssertionError(f"{system!r}, {game!r}: {error!r}") from error
    assert len(rated) == sum(len(side.players) for side in game.sides), f"{system!r}, {game!r}: {rated!r}"
    for each in rated:
        wrong = [*wrongs(system, each, len(game.sides) - 1)]
        assert not wrong, f"{system!r}, {game!r}: {each!r}: {wrong}"
    return rated


def check_period(system: PeriodSystem, game: Game, times: int) -> None:
    """Rate a period in which the game was played so many times, and fail where the outcome cannot be."""
    players = [player for side in game.sides for player in side.players]
    for player, results in zip(players, system.results(game), strict=True):
        sums = sum_terms(results * times)
        try:
            rated = system.rate_period(player, sums)
        except Exception as error:
            raise AssertionError(f"{system!r}, {player!r}, {sums!r}: {error!r}") from error
        wrong = [*wrongs(system, rated, len(results) * times)]
        assert not wrong, f"{system!r}, {player!r}, {sums!r}: {rated!r}: {wrong}"


def check_prediction(system: RatingSystem, player: PlayerState, opponent: PlayerState) -> None:
    """Fail where the predicted score is none."""
    expected = system.expected(player, opponent)
    assert 0 <= expected <= 1, f"{system!r}, {player!r}, {opponent!r}: {expected!r}"


def check_draw(random: Random, system: RatingSystem) -> bool:
    """Draw a game and check all that a system can make of it; False where it does not rate such games."""
    game = hostile_game(random, system)
    check_prediction(system, game.sides[0].players[0], game.sides[1].players[0])
    try:
        check_game(system, game)
    except GameUnsupportedError:
        return False
    if isinstance(system, PeriodSystem) and random.randrange(8) == 0:
        check_period(system, game, random.choice((1, 2, 40, 1000)) if len(game.sides) == 2 else 1)
    return True


@contextmanager
def no_endless_loop(seconds: float = ENDLESS) -> Iterator[None]:
    """Fail when what is inside computes for so long; waiting for a busy machine does not count."""

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"still rating after {seconds:g} s of computing")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
