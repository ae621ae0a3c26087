"""Who meets whom in the next round of a Swiss system: a simple pairing, not the Dutch one of FIDE.

Players stand by points, then rating, then lots that hold for all rounds. From the top, everyone gets the best
placed opponent of the lower half of those with the same points, then the others of them, then those below:
whom they have not met. Two who are left over and have met change opponents with the first pair that makes it
possible, from the bottom.

While the rounds are at most half the players nobody meets anybody twice: each of two left over then has
opponents not met, all of them in pairs, and together more than two a pair on average; so that some pair is
one to change with. In longer tournaments two meet again when no such change helps.

Of an odd number one has a bye, a round without a game for a full point: the last, by points, then rating,
then lots, who has had none yet. Colours, the choice of floaters and accelerated rounds, which the real rules
weigh, are left out.
"""

from collections.abc import Iterator, Sequence

Pairs = list[tuple[int, int]]
Met = Sequence[set[int]]
"""Of every player, those met before."""


def pair_round(
    order: Sequence[int], points: Sequence[int], met: Met, sat_out: set[int]
) -> tuple[Pairs, int | None]:
    """Return who meets whom, and who sits out; `order` is that of points, rating, lots."""
    waiting = list(order)
    bye = None
    if len(waiting) % 2:
        bye = next((player for player in reversed(waiting) if player not in sat_out), waiting[-1])
        waiting.remove(bye)
    pairs: Pairs = []
    left_over: list[int] = []
    while waiting:
        player = waiting.pop(0)
        opponent = next(
            (other for other in candidates(player, waiting, points) if other not in met[player]), None
        )
        if opponent is None:
            left_over.append(player)
        else:
            waiting.remove(opponent)
            pairs.append((player, opponent))
    while left_over:
        second, first = left_over.pop(), left_over.pop()
        pair_left_over(first, second, pairs, met)
    return pairs, bye


def candidates(player: int, waiting: Sequence[int], points: Sequence[int]) -> Iterator[int]:
    """Yield the opponents in the order in which they are wished for."""
    level = points[player]
    same = 0
    while same < len(waiting) and points[waiting[same]] == level:
        same += 1
    half = same // 2
    yield from waiting[half:same]
    yield from reversed(waiting[:half])
    yield from waiting[same:]


def pair_left_over(a: int, b: int, pairs: Pairs, met: Met) -> None:
    """Add the pairs of two who have met: with another pair's players if that avoids it."""
    for index in range(len(pairs) - 1, -1, -1):
        c, d = pairs[index]
        if c not in met[a] and d not in met[b]:
            pairs[index] = (a, c)
            pairs.append((b, d))
            return
        if d not in met[a] and c not in met[b]:
            pairs[index] = (a, d)
            pairs.append((b, c))
            return
    pairs.append((a, b))
