"""Pairings of a Swiss system: who must meet whom, and that nobody meets anybody twice without need."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from petard_worker.ratings.calculator.swiss import pair_round

Round = tuple[list[tuple[int, int]], int | None]


def play(players: int, rounds: int, seed: int) -> list[Round]:
    """Play a Swiss of players who are numbered by rating, with results by chance."""
    random = Random(seed)
    points = [0] * players
    met: list[set[int]] = [set() for _ in range(players)]
    sat_out: set[int] = set()
    played: list[Round] = []
    for _ in range(rounds):
        order = sorted(range(players), key=lambda player: (-points[player], player))
        pairs, bye = pair_round(order, points, met, sat_out)
        played.append((list(pairs), bye))
        if bye is not None:
            points[bye] += 2
            sat_out.add(bye)
        for a, b in pairs:
            gained = random.randrange(3)
            points[a] += gained
            points[b] += 2 - gained
            met[a].add(b)
            met[b].add(a)
    return played


def pairs_of(played: list[Round]) -> list[frozenset[int]]:
    return [frozenset(pair) for pairs, _ in played for pair in pairs]


def test_upper_half_meets_lower_half_first() -> None:
    pairs, bye = pair_round(range(8), [0] * 8, [set() for _ in range(8)], set())

    assert (pairs, bye) == ([(0, 4), (1, 5), (2, 6), (3, 7)], None)


def test_winners_meet_winners() -> None:
    points = [2, 2, 2, 2, 0, 0, 0, 0]
    met = [{4}, {5}, {6}, {7}, {0}, {1}, {2}, {3}]

    pairs, _ = pair_round(range(8), points, met, set())

    assert pairs == [(0, 2), (1, 3), (4, 6), (5, 7)]


def test_last_without_a_bye_sits_out() -> None:
    met: list[set[int]] = [set() for _ in range(5)]

    assert pair_round(range(5), [0] * 5, met, set())[1] == 4
    assert pair_round(range(5), [0] * 5, met, {4})[1] == 3


def test_two_left_over_change_opponents_with_another_pair() -> None:
    # 0 would get 2, the first of the lower half, and 1 and 3, who have met, would be left over.
    met = [set(), {3}, set(), {1}]

    pairs, _ = pair_round(range(4), [0] * 4, met, set())

    assert {frozenset(pair) for pair in pairs} == {frozenset({0, 1}), frozenset({2, 3})}


def test_two_meet_again_when_nothing_else_is_left() -> None:
    pairs, _ = pair_round(range(2), [0, 0], [{1}, {0}], set())

    assert pairs == [(0, 1)]


@given(st.integers(2, 25), st.integers(0, 10**6))
def test_nobody_meets_anybody_twice_in_rounds_up_to_half_the_players(players: int, seed: int) -> None:
    played = play(players, players // 2, seed)

    met = pairs_of(played)
    assert len(met) == len(set(met))
    byes = [bye for _, bye in played if bye is not None]
    assert len(byes) == len(set(byes)) == (len(played) if players % 2 else 0)


@given(st.integers(2, 25), st.integers(0, 10**6), st.data())
def test_everybody_plays_or_sits_out_in_every_round(players: int, seed: int, data: st.DataObject) -> None:
    rounds = data.draw(st.integers(1, players))

    for pairs, bye in play(players, rounds, seed):
        busy = [player for pair in pairs for player in pair] + ([] if bye is None else [bye])
        assert sorted(busy) == list(range(players))
