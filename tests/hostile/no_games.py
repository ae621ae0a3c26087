"""Well-formed events that make no game, or none that this pool may count now."""

from collections.abc import Callable

from hostile.draw import Draw, Json, change_data, data_of, names_of, players_of, sides_of

MAX_PLAYERS = 64


def one_side(draw: Draw) -> Json:
    names = draw.names(draw.size(1, 40))
    return change_data(draw.envelope(), sides=[{"players": names, "rank": 1}], abandoned_by=[draw.of(names)])


def too_many_sides(draw: Draw) -> Json:
    names = draw.names(draw.size(MAX_PLAYERS + 1, 200))
    return draw.with_data(sides=[{"players": [name], "rank": 1} for name in names])


def too_many_in_teams(draw: Draw) -> Json:
    names = draw.names(draw.size(MAX_PLAYERS + 1, 300))
    half = draw.between(1, len(names) - 1)
    return draw.with_data(sides=[{"players": names[:half], "rank": 1}, {"players": names[half:], "rank": 2}])


def too_many_times_the_same(draw: Draw) -> Json:
    """Their number is asked before who they are."""
    return draw.with_data(sides=[{"players": ["alice"], "rank": 1}] * draw.size(MAX_PLAYERS + 1, 300))


def against_oneself(draw: Draw) -> Json:
    name = draw.name()
    sides = [{"players": [name], "rank": draw.between(1, 2)} for _ in range(draw.size(2, MAX_PLAYERS))]
    return change_data(draw.envelope(), sides=sides, abandoned_by=[name])


def twice_on_a_side(draw: Draw) -> Json:
    event = draw.envelope()
    players = names_of(draw.of(sides_of(event)))
    again = draw.of(players)
    players[:0] = [again] * draw.size(1, 20)
    return event


def twice_among_the_leavers(draw: Draw) -> Json:
    event = draw.abandoned()
    leaver = draw.of(players_of(sides_of(event)))
    return change_data(event, abandoned_by=[leaver] * draw.size(2, 100))


def on_two_sides(draw: Draw) -> Json:
    """The same player on two of the sides, one of which is a team or another of which is of others."""
    event = draw.finished()
    sides = sides_of(event)
    first, second = draw.chance.sample(sides, 2)
    names_of(second).append(draw.of(names_of(first)))
    return event


def the_same_team_twice(draw: Draw) -> Json:
    team = draw.names(draw.between(2, 20))
    return change_data(draw.finished(), sides=[{"players": team, "rank": rank} for rank in (1, 2)])


def left_by_a_stranger(draw: Draw) -> Json:
    event = draw.abandoned()
    leavers = list(data_of(event)["abandoned_by"])  # type: ignore[call-overload]
    known = set(players_of(sides_of(event)))
    stranger = draw.one("nobody", leavers[0].swapcase() + "!", f"{leavers[0]}\u0323a", f"a{leavers[0]}")
    assert stranger not in known
    leavers.insert(draw.between(0, len(leavers)), stranger)
    return change_data(event, abandoned_by=leavers)


def of_another_pool(draw: Draw) -> Json:
    return draw.with_data(pool=draw.one("q", "p-", "p.p", "demo", "p" * 64, "0"))


def from_the_future(draw: Draw) -> Json:
    year = draw.one(f"9{draw.between(0, 998):03}", "9999", f"{draw.between(2100, 8999)}")
    day = f"{draw.between(1, 12):02}-{draw.between(1, 28):02}"
    return draw.envelope(
        time=f"{year}-{day}T{draw.between(0, 23):02}:59:59{draw.one('Z', '+05:45', '-00:01')}"
    )


NO_GAMES: dict[Callable[[Draw], Json], str] = {
    one_side: "one_side",
    **dict.fromkeys((too_many_sides, too_many_in_teams, too_many_times_the_same), "too_many_players"),
    against_oneself: "self_match",
    **dict.fromkeys((twice_on_a_side, twice_among_the_leavers), "player_twice"),
    **dict.fromkeys((on_two_sides, the_same_team_twice), "player_on_two_sides"),
    left_by_a_stranger: "abandoner_not_in_game",
}
"""Classes of events that no pool takes, and the reason."""

NOT_HERE_AND_NOW: dict[Callable[[Draw], Json], str] = {
    of_another_pool: "wrong_pool",
    from_the_future: "from_the_future",
}
"""Classes of events that are well-formed, but not for this pool and this time."""
