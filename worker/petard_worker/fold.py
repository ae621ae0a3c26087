"""What one event does to the players of a pool: pure, so that replaying the ledger gives the same bits.

`fold_event` gets the rules, the records of the players and one event, and returns the verdict. It never looks
at a clock and never remembers anything: the caller carries the records from one event to the next.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from typing import NamedTuple, cast

from petard_schema import (
    FINISHED,
    AnyAbandoned,
    AnyFinished,
    AnyGameEvent,
    AnySide,
    DeadReason,
    EventRefused,
    IgnoredReason,
)
from petard_worker.periods import OpenPeriod, Period, first_day, rate_in_period, start_of
from petard_worker.ratings.named_tuples import maker
from petard_worker.ratings.pool_rules import PoolRules
from petard_worker.ratings.system import (
    Game,
    GameSide,
    GameUnsupportedError,
    PeriodSystem,
    PlayerState,
    Rated,
    score,
)
from petard_worker.seasons import has_started

SECONDS_PER_DAY = 86_400


class PlayerRecord(NamedTuple):
    """Where a player stands in a pool; one row of the rating table."""

    rating: float
    rd: float
    volatility: float | None
    bomb: int
    abandons: int
    penalties: int
    games: int
    wins: int
    draws: int
    losses: int
    peak: float
    last_played: datetime | None
    player_seq: int
    period: OpenPeriod | None = None
    """The last rating period the player has played in, where the pool has periods."""


class When(NamedTuple):
    """When a game is rated: its time, and the open rating period where the pool has them."""

    time: datetime
    period: Period | None


class PlayerChange(NamedTuple):
    """One player before and after one event, and why; one row of the change table."""

    player: str
    before: PlayerRecord
    after: PlayerRecord
    expected: float | None = None
    actual: float | None = None
    rd_aged: float | None = None
    penalty: bool = False
    late: bool = False


class Verdict(NamedTuple):
    """What became of an accepted event: rated with its changes, or ignored with a reason."""

    ignored: IgnoredReason | None
    changes: Sequence[PlayerChange] = ()


_record, _change, _state = maker(PlayerRecord), maker(PlayerChange), maker(PlayerState)
_side, _game, _when, _verdict = maker(GameSide), maker(Game), maker(When), maker(Verdict)

Records = Mapping[str, PlayerRecord]
Outcome = tuple[Rated, OpenPeriod | None]
"""A player after a game, and the open rating period where the pool has them."""


def new_record(rules: PoolRules) -> PlayerRecord:
    """Return the record of a player who has played nothing in the pool."""
    state = rules.system.initial()
    return PlayerRecord(state.rating, state.rd, state.volatility, 0, 0, 0, 0, 0, 0, 0, state.rating, None, 0)


def players_of(event: AnyGameEvent) -> list[str]:
    """Return the names of everybody in the game, in the order of its sides."""
    return [player for side in event.data.sides for player in side.players]


def fold_event(
    rules: PoolRules, records: Records, event: AnyGameEvent, period: Period | None = None
) -> Verdict:
    """Return what the event does, given the record of every player in it.

    `period` is the open rating period, where the pool has them. Raises EventRefused where the pool's system
    cannot rate such a game.
    """
    if not event.data.rated:
        return Verdict(IgnoredReason.UNRATED)
    when = _when((event.time, period))
    try:
        if event.type == FINISHED:
            return _verdict((None, finish(rules, records, event, when)))
        if event.data.fault == "server":
            return Verdict(IgnoredReason.SERVER_FAULT)
        return Verdict(None, abandon(rules, records, event, when))
    except GameUnsupportedError as error:
        raise EventRefused(DeadReason.UNSUPPORTED_GAME, str(error)) from None


def finish(rules: PoolRules, records: Records, event: AnyFinished, when: When) -> list[PlayerChange]:
    """Rate a finished game: new ratings for all, one step off every bomb."""
    sides = event.data.sides
    if len(sides) == 2 and len(sides[0].players) == len(sides[1].players) == 1 and when.period is None:
        return finish_duel(rules, records, event, when)
    return finish_field(rules, records, event, when)


def finish_field(rules: PoolRules, records: Records, event: AnyFinished, when: When) -> list[PlayerChange]:
    """Rate a finished game of any sides."""
    sides = event.data.sides
    game = Game(
        [played_side(rules, records, side, side.rank, when) for side in sides],
        event.data.importance,
        event.data.decided_by,
        event.data.knockout,
    )
    rated = rate(rules, records, (side.players for side in sides), game, when)
    best, shared = best_rank([side.rank for side in sides])
    return [
        played(rules, player, records[player], next(rated), when, best=side.rank == best, shared=shared)
        for side in sides
        for player in side.players
    ]


def finish_duel(rules: PoolRules, records: Records, event: AnyFinished, when: When) -> list[PlayerChange]:
    """Rate a finished game of one against one, in a pool without periods.

    The usual case, and `finish_field` written out: the tests hold the two to the same bits.
    """
    data = event.data
    first, second = data.sides
    (name,), (other_name,) = first.players, second.players
    record, other = records[name], records[other_name]
    rank, other_rank = first.rank, second.rank
    state, other_state = state_at(rules, record, when), state_at(rules, other, when)
    if rules.rate_by_rank is not None:
        rated, other_rated = rules.rate_by_rank(state, other_state, score(rank, other_rank))
    else:
        sides = (
            _side(((state,), rank, first.points, first.home, first.weights)),
            _side(((other_state,), other_rank, second.points, second.home, second.weights)),
        )
        game = _game((sides, data.importance, data.decided_by, data.knockout))
        rated, other_rated = rules.system.rate(game)
    shared = rank == other_rank
    return [
        played(rules, name, record, (rated, None), when, best=rank <= other_rank, shared=shared),
        played(rules, other_name, other, (other_rated, None), when, best=other_rank <= rank, shared=shared),
    ]


def abandon(rules: PoolRules, records: Records, event: AnyAbandoned, when: When) -> list[PlayerChange]:
    """Count an abandon for everybody who left; those who stayed keep everything, or win (`award_win`)."""
    changes = [left(rules, player, records[player], when) for player in event.data.abandoned_by]
    if rules.abandons.award_win:
        changes.extend(award_win(rules, records, event, when))
    return changes


def left(rules: PoolRules, player: str, before: PlayerRecord, when: When) -> PlayerChange:
    """Add to the bomb of a player who left; punish by a loss against the lowest possible opponent."""
    bomb, punished = rules.bombs.abandon(before.bomb)
    counted = before._replace(bomb=bomb, abandons=before.abandons + 1, player_seq=before.player_seq + 1)
    if not punished:
        return PlayerChange(player, before, counted)
    phantom = GameSide((rules.system.lowest(),), 1)
    loser = GameSide((state_at(rules, before, when),), 2)
    game = Game((loser, phantom), decided_by="forfeit")
    result, period = next(rate(rules, {player: before}, [[player]], game, when))
    late = is_late(before, when)
    after = counted._replace(
        rating=result.rating,
        rd=result.rd,
        volatility=result.volatility,
        penalties=before.penalties + 1,
        peak=peak(rules, before, result, period),
        last_played=before.last_played if late else when.time,
        period=period,
    )
    return PlayerChange(player, before, after, result.expected, result.actual, result.rd_aged, True, late)


def award_win(rules: PoolRules, records: Records, event: AnyAbandoned, when: When) -> list[PlayerChange]:
    """Rate the sides nobody left as winners over the sides somebody left, and over nobody else."""
    leavers = set(event.data.abandoned_by)
    stayed = [side for side in event.data.sides if leavers.isdisjoint(side.players)]
    deserted = [side for side in event.data.sides if not leavers.isdisjoint(side.players)]
    losers = [played_side(rules, records, side, 2, when) for side in deserted]
    changes: list[PlayerChange] = []
    for side in stayed:
        winners = played_side(rules, records, side, 1, when)
        game = Game((winners, *losers), event.data.importance, decided_by="forfeit")
        rated = rate(rules, records, [side.players], game, when)
        changes.extend(
            played(rules, player, records[player], result, when, best=True, shared=False)
            for player, result in zip(side.players, rated, strict=False)
        )
    return changes


def played(
    rules: PoolRules,
    player: str,
    before: PlayerRecord,
    outcome: Outcome,
    when: When,
    *,
    best: bool,
    shared: bool,
) -> PlayerChange:
    """Return a player's change by a game played to its end: best alone is a win, best shared a draw."""
    result, period = outcome
    rating, rd, volatility, expected, actual, rd_aged = result
    late = is_late(before, when)
    after = _record(
        (
            rating,
            rd,
            volatility,
            rules.bombs.finish(before.bomb),
            before.abandons,
            before.penalties,
            before.games + 1,
            before.wins + (best and not shared),
            before.draws + (best and shared),
            before.losses + (not best),
            peak(rules, before, result, period),
            before.last_played if late else when.time,
            before.player_seq + 1,
            period,
        )
    )
    return _change((player, before, after, expected, actual, rd_aged, False, late))


def peak(rules: PoolRules, before: PlayerRecord, result: Rated, period: OpenPeriod | None) -> float:
    """Return the player's highest rating.

    A running one is none until its period has closed, and a provisional one is never.
    """
    if before.games < rules.system.provisional_games:
        return result.rating
    peak = before.peak if period is None or period.start.peak is None else period.start.peak
    return max(peak, result.rating)


def is_late(before: PlayerRecord, when: When) -> bool:
    """Return whether the player has played later than this: `last_played` never moves back."""
    return before.last_played is not None and when.time < before.last_played


def rate(
    rules: PoolRules, records: Records, sides: Iterable[Sequence[str]], game: Game, when: When
) -> Iterator[Outcome]:
    """Return what the game makes of the players of its first sides, whose names are given."""
    if when.period is None:
        return zip(rules.system.rate(game), repeat(None))
    system = cast("PeriodSystem", rules.system)
    players = (
        (records[name], state)
        for names, side in zip(sides, game.sides, strict=False)
        for name, state in zip(names, side.players, strict=True)
    )
    return (
        rate_in_period(system, when.period, record.period, state, results)
        for (record, state), results in zip(players, system.results(game), strict=False)
    )


def played_side(rules: PoolRules, records: Records, side: AnySide, rank: int, when: When) -> GameSide:
    """Return a side of a game as the rating system sees it."""
    states = [state_at(rules, records[player], when) for player in side.players]
    return GameSide(states, rank, side.points, side.home, side.weights)


def state_at(rules: PoolRules, record: PlayerRecord, when: When) -> PlayerState:
    """Return the player as the rating system sees them: at the time of the game, or as its period began.

    A late event lets nothing age, and is of no new season; with periods it is one of the open period.
    """
    if when.period is not None:
        return state_in_period(rules, record, when.period)
    last, days, new_season = record.last_played, 0.0, False
    if last is not None and when.time > last:
        days = (when.time - last).total_seconds() / SECONDS_PER_DAY
        if rules.system.season_month:
            new_season = has_started(when.time, last, rules.system.season_month)
    return state_of(record, days, new_season=new_season)


def state_in_period(rules: PoolRules, record: PlayerRecord, now: Period) -> PlayerState:
    """Return the player as the period began, counted in whole periods: no game of it differs from another.

    A late game has counted in a later period than its own, so that one is looked at, too.
    """
    last, counted = record.last_played, record.period
    if counted is not None and counted.period == now:
        return counted.start
    if last is None:
        return state_of(record, 0.0, new_season=False)
    last_day = first_day(last, now.days)
    if counted is not None:
        last_day = max(last_day, counted.period.day)
    new_season = has_started(start_of(now.day), start_of(last_day), rules.system.season_month)
    return state_of(record, float(max(now.day - last_day, 0)), new_season=new_season)


def state_of(record: PlayerRecord, days: float, *, new_season: bool) -> PlayerState:
    """Return the player so many days after the last rated event."""
    return _state(
        (
            record.rating,
            record.rd,
            record.volatility,
            record.games,
            record.peak,
            days,
            record.wins,
            record.draws,
            new_season,
            None,
        )
    )


def best_rank(ranks: Sequence[int]) -> tuple[int, bool]:
    """Return the best rank and whether more than one side holds it."""
    best = min(ranks)
    return best, ranks.count(best) > 1


def outcome_of(event: AnyGameEvent) -> tuple[object, ...]:
    """Return what two reports of one game must agree on: everything that can rate, in no order.

    Ranks are compared by their order (1, 3 is 1, 2); time and meta may differ.
    """
    data = event.data
    order = sorted({side.rank for side in data.sides if side.rank is not None})
    sides = frozenset(
        (
            frozenset(side.players),
            None if side.rank is None else order.index(side.rank),
            side.points,
            bool(side.home),
            parts_played(side),
        )
        for side in data.sides
    )
    if event.type == FINISHED:
        return (event.type, data.rated, sides, event.data.decided_by, data.importance, event.data.knockout)
    leavers = frozenset(event.data.abandoned_by)
    return (event.type, data.rated, sides, leavers, event.data.fault, data.importance)


def parts_played(side: AnySide) -> frozenset[tuple[str, float]]:
    """Return how much of the game everybody took part in who did not take part in all of it."""
    if side.weights is None:
        return frozenset()
    return frozenset(
        (player, weight) for player, weight in zip(side.players, side.weights, strict=True) if weight != 1
    )
