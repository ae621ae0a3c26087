"""What games do to given players, without a pool: by the functions that rate the games of pools.

Games are rated one after the other, each from what the one before it made of the players; or all as one
period, from the states at its start.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, cast

from petard_worker.fold import best_rank
from petard_worker.periods import OpenPeriod, Period, rate_in_period
from petard_worker.rate_request import (
    BadRequestError,
    GivenGame,
    GivenPlayer,
    RateRequest,
    place,
    shorten_name,
)
from petard_worker.ratings.exact_sums import totals
from petard_worker.ratings.parameters import BadParameterError, ParameterValue, build
from petard_worker.ratings.pool_rules import SYSTEMS, pool_rules
from petard_worker.ratings.system import (
    Game,
    GameSide,
    GameUnsupportedError,
    PeriodSystem,
    PlayerState,
    Rated,
    RatingSystem,
)

THE_PERIOD = Period(0, 1)
"""Which one it is does not matter: there is no other."""
LEAST_RD = 0.001
"""Systems that use deviations divide by them."""

States = dict[str, PlayerState]


class Scores(NamedTuple):
    """What a player was expected to score in one game, and scored; summed over the opponents."""

    player: str
    expected: float
    actual: float


class RatedChange(NamedTuple):
    """A player before and after a game or a period, and why."""

    player: str
    before: PlayerState
    after: PlayerState
    result: Rated


@dataclass(frozen=True)
class RatedInOrder:
    """Games rated one after the other: the players after the last one, and what each game changed."""

    system: RatingSystem
    players: States
    games: list[list[RatedChange]]


@dataclass(frozen=True)
class RatedTogether:
    """Games rated as one period: the players after it, what it changed, and the scores of each game."""

    system: RatingSystem
    players: States
    changes: list[RatedChange]
    games: list[list[Scores]]


def rate(request: RateRequest) -> RatedInOrder | RatedTogether:
    """Return what the games do to the players.

    Raises BadRequestError where the parameters, a player's state or a game is none that the system knows.
    """
    system = chosen_system(request)
    states = start_states(system, request.players)
    for game in request.games:
        for name in game.players():
            states.setdefault(name, state_of(system, GivenPlayer()))
    if not request.simultaneous:
        return rate_in_order(system, states, request.games)
    if not isinstance(system, PeriodSystem):
        others = ", ".join(name for name, one in SYSTEMS.items() if isinstance(build(one, {}), PeriodSystem))
        raise BadRequestError(f"simultaneous: {system.name} rates game after game; true is for {others}")
    return rate_together(system, states, request.games)


def chosen_system(request: RateRequest) -> RatingSystem:
    """Return the system with its parameters; those of bombs are checked too, and do nothing here."""
    if request.system not in SYSTEMS:
        known = ", ".join(sorted(SYSTEMS))
        raise BadRequestError(f"system: no system {shorten_name(request.system)}; there are {known}")
    try:
        return pool_rules(request.system, cast("Mapping[str, ParameterValue]", request.parameters)).system
    except BadParameterError as error:
        raise BadRequestError(f"parameters: {error}") from None


def start_states(system: RatingSystem, players: Mapping[str, GivenPlayer]) -> States:
    """Return where the given players stand before the games."""
    least = LEAST_RD if system.initial().rd > 0 else 0
    states = {name: state_of(system, given) for name, given in players.items()}
    for name, state in states.items():
        if state.rd < least:
            raise BadRequestError(
                f"{place('players', name)}.rd: must be at least {least}; it is {state.rd:g}"
            )
    return states


def state_of(system: RatingSystem, given: GivenPlayer) -> PlayerState:
    """Return the state of a player, that of a new one where nothing is given."""
    state = system.initial()._replace(**given.model_dump(exclude_none=True))
    return state if given.peak is not None else state._replace(peak=state.rating)


def rate_in_order(system: RatingSystem, states: States, games: Sequence[GivenGame]) -> RatedInOrder:
    """Return the players after the last game, each game rated from what the one before it has left."""
    players = dict(states)
    changes = []
    for number, given in enumerate(games):
        with refusing(system, f"games[{number}]"):
            rated = check_finite(system.rate(as_game(players, given, given.days)))
        changes.append(
            [
                RatedChange(name, players[name], moved(system, counted, result), result)
                for (name, counted), result in zip(counted_in(players, given), rated, strict=True)
            ]
        )
        players.update((change.player, change.after) for change in changes[-1])
    return RatedInOrder(system, players, changes)


def rate_together(system: PeriodSystem, states: States, games: Sequence[GivenGame]) -> RatedTogether:
    """Return the players after a period, all its games rated from the states at its start."""
    days = {name: since for given in games for name, since in given.days.items()}
    start = {name: aged(states, name, days) for name in states}
    counted = dict(states)
    running: dict[str, OpenPeriod] = {}
    scores: list[list[Scores]] = []
    for number, given in enumerate(games):
        scores.append([])
        with refusing(system, f"games[{number}]"):
            results = system.results(as_game(states, given, days))
            for name, of_game in zip(given.players(), results, strict=True):
                rated, running[name] = rate_in_period(
                    system, THE_PERIOD, running.get(name), start[name], of_game
                )
                check_finite([rated])
                scores[-1].append(Scores(name, rated.expected, rated.actual))
        counted.update(counted_in(counted, given))
    changes = []
    for name, period in running.items():
        result = system.rate_period(start[name], totals(period.sums))
        changes.append(RatedChange(name, states[name], moved(system, counted[name], result), result))
    after = {change.player: change.after for change in changes}
    return RatedTogether(system, states | after, changes, scores)


def as_game(states: Mapping[str, PlayerState], given: GivenGame, days: Mapping[str, float]) -> Game:
    """Return the game as rating systems see it."""
    sides = [
        GameSide(
            [aged(states, name, days) for name in side.players],
            side.rank,
            side.points,
            side.home,
            side.weights,
        )
        for side in given.sides
    ]
    return Game(sides, given.importance, given.decided_by, given.knockout)


def aged(states: Mapping[str, PlayerState], name: str, days: Mapping[str, float]) -> PlayerState:
    """Return the player as of the days since the last game."""
    return states[name]._replace(days=days.get(name, 0.0))


def counted_in(states: Mapping[str, PlayerState], given: GivenGame) -> list[tuple[str, PlayerState]]:
    """Return everybody in the game with it counted: best alone is a win, best shared a draw, as in pools."""
    best, shared = best_rank([side.rank for side in given.sides])
    return [
        (
            name,
            states[name]._replace(
                games=states[name].games + 1,
                wins=states[name].wins + (side.rank == best and not shared),
                draws=states[name].draws + (side.rank == best and shared),
                new_season=False,
            ),
        )
        for side in given.sides
        for name in side.players
    ]


def moved(system: RatingSystem, counted: PlayerState, result: Rated) -> PlayerState:
    """Return a player whose games have been counted with the new rating; a provisional one is no peak."""
    peak = result.rating
    if counted.peak is not None and counted.games > system.provisional_games:
        peak = max(counted.peak, peak)
    return counted._replace(rating=result.rating, rd=result.rd, volatility=result.volatility, peak=peak)


def check_finite(rated: list[Rated]) -> list[Rated]:
    """Return what a system has computed, or raise OverflowError where some of it is no number."""
    for result in rated:
        if not all(math.isfinite(value) for value in result if value is not None):
            raise OverflowError
    return rated


@contextmanager
def refusing(system: RatingSystem, where: str) -> Iterator[None]:
    """Turn what a system cannot rate or compute into BadRequestError."""
    try:
        yield
    except GameUnsupportedError as error:
        raise BadRequestError(f"{where}: {error}") from None
    except (ArithmeticError, ValueError):
        # Whatever the parameters, numbers can be given that are too far apart for floats.
        raise BadRequestError(
            f"{where}: these ratings, deviations and parameters are too far apart for {system.name}"
        ) from None


def out_of_range(rated: RatedInOrder | RatedTogether, request: RateRequest) -> Iterator[str]:
    """Yield where given players stand as nobody in such a pool can, and what becomes of it."""
    system = rated.system
    low, high, rd = system.rating_min, system.rating_max, system.initial().rd
    for name, given in request.players.items():
        if given.rating is not None and not low <= given.rating <= high:
            yield (
                f"{name!r} is rated {given.rating:g}, outside rating_min {low:g} to rating_max {high:g}:"
                " games bring the rating inside"
            )
        if given.rd is not None and given.rd > rd > 0:
            yield f"{name!r} has rd {given.rd:g}, above the parameter rd {rd:g}, the highest there is"


def as_answer(rated: RatedInOrder | RatedTogether) -> dict[str, object]:
    """Return the answer as plain objects: changes look as in rating-changed events, numbers are unrounded.

    The players can be given again in a later request.
    """
    head = {
        "system": rated.system.name,
        "parameters": asdict(cast("Any", rated.system)),
        "simultaneous": isinstance(rated, RatedTogether),
        "players": {name: as_player(state) for name, state in rated.players.items()},
    }
    if isinstance(rated, RatedInOrder):
        games = [{"changes": [as_change(change) for change in game]} for game in rated.games]
        return {**head, "games": games}
    scores = [{"scores": [one._asdict() for one in game]} for game in rated.games]
    return {**head, "changes": [as_change(change) for change in rated.changes], "games": scores}


def as_player(state: PlayerState) -> dict[str, object]:
    """Return a player in the fields of a request, without those that say nothing."""
    facts = {**state._asdict(), "days": None, "new_season": state.new_season or None}
    return {name: value for name, value in facts.items() if value is not None}


def as_change(change: RatedChange) -> dict[str, object]:
    """Return what happened to one player, as a rating-changed event would tell it."""
    result = change.result
    return {
        "player": change.player,
        "before": as_standing(change.before),
        "after": as_standing(change.after),
        "explanation": {
            "expected": result.expected,
            "actual": result.actual,
            "rd_aged": result.rd_aged,
        },
    }


def as_standing(state: PlayerState) -> dict[str, object]:
    """Return where a player stands, as rating-changed events say it."""
    facts = {
        "rating": state.rating,
        "rd": state.rd,
        "volatility": state.volatility,
        "games": state.games,
    }
    return {name: value for name, value in facts.items() if value is not None}
