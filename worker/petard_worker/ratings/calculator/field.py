"""Who wins a tournament of these players: it is played many times by chance (Monte Carlo).

A game ends by the logistic expected score E of its two ratings. P(draw) = 2 d min(E, 1 - E), where d is the
share of games that equals draw, and P(win) = E - P(draw) / 2: the mean score is E whatever d is. These are
probabilities for every d from 0 to 1, since P(draw) <= 2 min(E, 1 - E) leaves P(win) >= 0 and
P(loss) = 1 - E - P(draw) / 2 >= 0. Nobody gets stronger or tired, and no colours are dealt.

Equal points share the places they cover: two first are half a time first and half a time second each. So the
chances of a place add up to 1 over the players, and those of a player to 1 over the places.

Randomness comes in as a function that returns numbers from 0 up to 1; the same numbers, the same forecast, in
whatever order the players are named.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from petard_worker.ratings.calculator.accepted import (
    CalculatorInputError,
    check_count,
    check_range,
    check_rating,
    shortened,
)
from petard_worker.ratings.calculator.expected import SCALE
from petard_worker.ratings.calculator.swiss import pair_round
from petard_worker.ratings.elo import logistic

Uniform = Callable[[], float]
"""Returns the next random number, from 0 up to 1."""
Report = Callable[[int], None]
"""Is told how many tournaments have been played."""

MOST_PLAYERS = 256
MOST_RUNS = 10_000_000
USUAL_RUNS = 10_000
USUAL_DRAWS = 0.3
REPORTS = 100
WIN, DRAW, LOSS = 2, 1, 0
"""Half points: whole numbers add up exactly."""


class Entrant(NamedTuple):
    """Somebody who takes part."""

    name: str
    rating: float


AnyEntrant = Entrant | tuple[str, float]


class Chances(NamedTuple):
    """What the tournaments gave one player."""

    name: str
    rating: float
    points: float
    """Mean of all tournaments."""
    places: tuple[float, ...]
    """The chance of every place, from the first."""
    mean_place: float
    """The place to expect, from 1."""


class Forecast(NamedTuple):
    """What the tournaments gave, the highest mean of points first."""

    rounds: int
    runs: int
    draws: float
    margin: float
    """How far chance may take a chance from its true value, 19 times in 20: at most so much."""
    players: tuple[Chances, ...]


class Thresholds(NamedTuple):
    """Of a random number: below `win` the first wins, else below `draw` it is a draw, else a loss."""

    win: float
    draw: float


class Setting(NamedTuple):
    """How often to play, how often equals draw, and for how many points the odds are ten to one."""

    runs: int = USUAL_RUNS
    draws: float = USUAL_DRAWS
    scale: float = SCALE


def unheard(_done: int) -> None:
    """Tell nobody how many tournaments have been played."""


Tally = Counter[tuple[int, int, int]]
"""How often a player shared places: player, first of the places from 0, how many players shared them."""


def simulate_round_robin(
    players: Iterable[AnyEntrant],
    setting: Setting,
    uniform: Uniform,
    report: Report = unheard,
    *,
    games: int = 1,
) -> Forecast:
    """Return what happens when all play all, `games` times (1 or 2). Raises CalculatorInputError."""
    entrants = check_field(players, setting, uniform)
    check_count(games, 1, 2, "the number of games against each other")
    pairs = [
        (a, b, thresholds(entrants[a].rating, entrants[b].rating, setting))
        for a in range(len(entrants))
        for b in range(a + 1, len(entrants))
    ] * games

    def play() -> list[int]:
        points = [0] * len(entrants)
        for a, b, chances in pairs:
            play_game(points, a, b, chances, uniform())
        return points

    rounds = games * (len(entrants) - 1 + len(entrants) % 2)
    return forecast(entrants, setting, rounds, play, report)


def simulate_swiss(
    players: Iterable[AnyEntrant],
    rounds: int,
    setting: Setting,
    uniform: Uniform,
    report: Report = unheard,
) -> Forecast:
    """Return what happens in so many rounds of a Swiss system (swiss.py). Raises CalculatorInputError.

    In every tournament lots decide the order of those who are rated the same.
    """
    entrants = check_field(players, setting, uniform)
    check_count(rounds, 1, len(entrants) - 1 + len(entrants) % 2, "the number of rounds")
    equals = [
        list(group) for _, group in groupby(range(len(entrants)), key=lambda player: entrants[player].rating)
    ]
    table = [[thresholds(a.rating, b.rating, setting) for b in entrants] for a in entrants]

    def play() -> list[int]:
        points = [0] * len(entrants)
        met: list[set[int]] = [set() for _ in entrants]
        sat_out: set[int] = set()
        ranked = [player for group in equals for player in drawn_by_lot(group, uniform)]
        for _ in range(rounds):
            # Sorting keeps the order of ratings, and of the lots, among equal points.
            order = sorted(ranked, key=points.__getitem__, reverse=True)
            pairs, bye = pair_round(order, points, met, sat_out)
            if bye is not None:
                points[bye] += WIN
                sat_out.add(bye)
            for a, b in pairs:
                met[a].add(b)
                met[b].add(a)
                play_game(points, a, b, table[a][b], uniform())
        return points

    return forecast(entrants, setting, rounds, play, report)


def drawn_by_lot(players: Sequence[int], uniform: Uniform) -> list[int]:
    """Return the players in an order by chance; one alone takes no random number."""
    order = list(players)
    for last in range(len(order) - 1, 0, -1):
        other = int(uniform() * (last + 1))
        order[last], order[other] = order[other], order[last]
    return order


def play_game(points: list[int], a: int, b: int, chances: Thresholds, u: float) -> None:
    """Add to the points of two players what the random number u makes of their game."""
    win, draw = chances
    if u < win:
        points[a] += WIN
    elif u < draw:
        points[a] += DRAW
        points[b] += DRAW
    else:
        points[b] += WIN


def thresholds(rating: float, opponent: float, setting: Setting) -> Thresholds:
    """Return the thresholds of a game: P(win), and P(win) + P(draw)."""
    E, E_other = (logistic(D, setting.scale) for D in (rating - opponent, opponent - rating))
    P_draw = 2 * setting.draws * min(E, E_other)
    P_win = E - P_draw / 2
    return Thresholds(P_win, P_win + P_draw)


def forecast(
    entrants: Sequence[Entrant], setting: Setting, rounds: int, play: Callable[[], list[int]], report: Report
) -> Forecast:
    """Play the tournament again and again, and return what came of it."""
    tally: Tally = Counter()
    totals = [0] * len(entrants)
    every = max(1, setting.runs // REPORTS)
    for run in range(1, setting.runs + 1):
        points = play()
        for player, gained in enumerate(points):
            totals[player] += gained
        place(points, tally)
        if run % every == 0 or run == setting.runs:
            report(run)
    chances = [
        Chances(name, rating, total / (2 * setting.runs), places, mean_place(places))
        for (name, rating), total, places in zip(
            entrants, totals, chances_of_places(tally, len(entrants), setting.runs), strict=True
        )
    ]
    chances.sort(key=lambda player: (-player.points, player.name))
    margin = 0.98 / math.sqrt(setting.runs)  # 1.96 standard deviations of a share of one half
    return Forecast(rounds, setting.runs, setting.draws, margin, tuple(chances))


def place(points: Sequence[int], tally: Tally) -> None:
    """Count which places the players share."""
    order = sorted(range(len(points)), key=points.__getitem__, reverse=True)
    first = 0
    while first < len(order):
        level = points[order[first]]
        end = first + 1
        while end < len(order) and points[order[end]] == level:
            end += 1
        for player in order[first:end]:
            tally[player, first, end - first] += 1
        first = end


def chances_of_places(tally: Tally, players: int, runs: int) -> list[tuple[float, ...]]:
    """Return for every player the chance of every place."""
    shares: list[list[list[float]]] = [[[] for _ in range(players)] for _ in range(players)]
    for (player, first, sharing), times in tally.items():
        for covered in range(first, first + sharing):
            shares[player][covered].append(times / sharing)
    return [tuple(math.fsum(share) / runs for share in of_player) for of_player in shares]


def mean_place(places: Sequence[float]) -> float:
    """Return the place to expect, by the chance of every place from the first."""
    return math.fsum(place * chance for place, chance in enumerate(places, 1))


def check_field(entrants: Iterable[AnyEntrant], setting: Setting, uniform: Uniform) -> list[Entrant]:
    """Return the players, the best first, or refuse what cannot be played.

    Equals stand by name: so nothing depends on the order in which they were given.
    """
    if not isinstance(entrants, Iterable):
        raise CalculatorInputError(f"the players are {shortened(entrants)}, but must be a list of them")
    field = [check_entrant(entrant) for entrant in entrants]
    check_count(len(field), 2, MOST_PLAYERS, "the number of players")
    check_setting(setting)
    if not callable(uniform):
        raise CalculatorInputError(
            f"uniform is {shortened(uniform)}, but must be a function that returns numbers from 0 up to 1,"
            " such as random.Random(1).random"
        )
    names = set()
    for name, _ in field:
        if name in names:
            raise CalculatorInputError(f"player {shortened(name)} is there twice: names must differ")
        names.add(name)
    return sorted(field, key=lambda entrant: (-entrant.rating, entrant.name))


def check_entrant(entrant: AnyEntrant) -> Entrant:
    """Return the player if there can be one; a pair of name and rating is one too."""
    if not isinstance(entrant, tuple) or len(entrant) != 2:
        raise CalculatorInputError(
            f"player is {shortened(entrant)}, but must be Entrant(name, rating), such as Entrant('Ann', 1850)"
        )
    name, rating = entrant
    if not isinstance(name, str) or not name or not name.isprintable():
        raise CalculatorInputError(
            f"player is named {shortened(name)}, but needs a name in printable letters"
        )
    return Entrant(name, check_rating(rating, f"the rating of {shortened(name)}"))


def check_setting(setting: Setting) -> Setting:
    """Return the setting if it can be played."""
    if not isinstance(setting, Setting):
        raise CalculatorInputError(f"setting is {shortened(setting)}, but must be a Setting(runs, draws)")
    check_count(setting.runs, 1, MOST_RUNS, "the number of runs")
    check_range(setting.draws, 0, 1, "the share of draws")
    if not 0 < setting.scale < math.inf:
        raise CalculatorInputError(f"the scale is {setting.scale!r}, but must be above 0")
    return setting
