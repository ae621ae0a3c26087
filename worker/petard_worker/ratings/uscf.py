"""US Chess: how many games a rating stands for, and what the games of one event make of it.

Source: Mark E. Glickman and Thomas Doan, "The US Chess Rating system" (2017 and later), and Mark E. Glickman,
"Approximating Formulas for the US Chess Rating System" (April 2017, glicko.net/ratings/approx.pdf); their
symbols: N games before the event, m games in it (here n), S the score, E the expected one. The standard
formula is the real one. The special formula of the first games is the approximating one: the real one is a
numerical search, which does not raise a player who loses to somebody much stronger, as this one can. It is a
mean over all games, so a loss that counts as no game (the penalty for an abandon) is gone after the next one.
"""

import math

SPECIAL_UP_TO = 8
"""A rating of so few games is updated by the special formula."""
BONUS = 14.0
"""B, the threshold of the bonus, since May 2017; it was 12 before."""
BONUS_FROM = 3
"""An event of fewer games brings no bonus."""
PROVISIONAL_GAMES = 25
"""A rating of so few games is provisional: it earns no floor."""
LOWEST = 100.0
"""The absolute floor of a player without a won or drawn game."""


def effective_games(rating: float, games: int) -> float:
    """Return N', the number of games that the rating is worth: at most the games played, at most 50."""
    most = 50.0
    if rating < 2355:
        most = 50 / math.sqrt(0.662 + 0.00000739 * (2569 - rating) ** 2)
    return min(float(games), most)


def rate(  # noqa: PLR0917 - what both formulas need
    rating: float,
    games: int,
    mean_opponent: float,
    expected: float,
    actual: float,
    n: int,
    wins_minus_losses: float,
    bonus: float = BONUS,
) -> float:
    """Return the rating after an event of n games; `floor` is left to the caller.

    games: rated before the event. mean_opponent: mean rating of the opponents, and wins_minus_losses: what
    only the special formula needs. expected and actual: sums over the games, by the logistic curve of 400
    points. bonus: B. That no bonus is due to who met somebody more than twice is not looked at.
    """
    if n == 0:
        return rating
    if games <= SPECIAL_UP_TO:
        return (games * rating + n * mean_opponent + 400 * wins_minus_losses) / (games + n)
    K = 800 / (effective_games(rating, games) + n)
    change = K * (actual - expected)
    return rating + change + bonus_points(change, n, bonus)


def bonus_points(change: float, n: int, B: float = BONUS) -> float:
    """Return what is added to K(S - E): all of it above the threshold B sqrt(max(n, 4))."""
    if n < BONUS_FROM:
        return 0.0
    return max(0.0, change - B * math.sqrt(max(n, 4)))


def floor(peak: float, wins: int, draws: int) -> float:
    """Return the rating that a player cannot fall below, 100 to 2100.

    The absolute floor is 100 and 4 for every win and 2 for every draw, at most 150; a peak of 1400 or more
    protects what is 200 points below it, rounded down to a hundred. Approximated: events of three games, each
    worth one point of the absolute floor, are not counted; and there are no titles and no money prizes. The
    peak is that of ratings of more than 25 games: 0 for who has none.
    """
    absolute = min(LOWEST + 4 * wins + 2 * draws, 150.0)
    if peak < 1400:
        return absolute
    return min(math.floor((peak - 200) / 100) * 100.0, 2100.0)
