"""Games rated from given states: the shared vectors, the pipeline's own fold, what is refused."""

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_schema import GameFinished
from petard_schema.game_events import FinishedGame, Side
from petard_worker.fold import PlayerRecord, fold_event, new_record
from petard_worker.rate import RatedInOrder, RatedTogether, as_answer, rate
from petard_worker.rate_request import EXAMPLE, MAX_RATING, BadRequestError, read_request
from petard_worker.ratings.parameters import build
from petard_worker.ratings.pool_rules import SYSTEMS, pool_rules
from petard_worker.ratings.system import PeriodSystem
from vector_runners.near import check_near

PERIOD_SYSTEMS = [name for name, system in SYSTEMS.items() if isinstance(build(system, {}), PeriodSystem)]
WIDE = {"rd_floor": 1, "rating_min": -10_000, "rating_max": 10_000}
"""Parameters that leave the formulas alone."""

Request = dict[str, Any]


def ask(request: Request) -> dict[str, Any]:
    """The answer to a request, as a program gets it."""
    answer = as_answer(rate(read_request(json.dumps(request).encode())))
    return json.loads(json.dumps(answer, allow_nan=False))


def refusal(request: object) -> str:
    """Why a request is refused."""
    raw = request if isinstance(request, bytes) else json.dumps(request).encode()
    with pytest.raises(BadRequestError) as refused:
        rate(read_request(raw))
    message = str(refused.value)
    assert "\n" not in message
    assert len(message) < 600
    return message


def duel(first: str, second: str, score: float = 1, **rest: object) -> Request:
    """A game of the first against the second; the score is that of the first."""
    ranks = {1: (1, 2), 0.5: (1, 1), 0: (2, 1)}[score]
    sides = [{"players": [name], "rank": rank} for name, rank in zip((first, second), ranks, strict=True)]
    return {"sides": sides, **rest}


def asked(*games: Request, system: str = "glicko", **rest: object) -> Request:
    return {"system": system, "games": list(games), **rest}


# --- The shared vectors -------------------------------------------------------------------------------------

NAMES = {"glicko1": "glicko", "glicko2": "glicko2"}


def parameters_of(case: dict[str, Any]) -> Request:
    """The parameters of a case, and wide limits."""
    ours = {"c": "c", "tau": "tau", "first_advantage": "home_advantage"}
    kept = {ours[name]: value for name, value in case["params"].items() if name in ours}
    wider = {"rd": 1000, "volatility_min": 0.001, "volatility_max": 10} if case["system"] == "glicko2" else {}
    return WIDE | wider | kept


def given_player(inputs: dict[str, float]) -> Request:
    return {"rd" if name == "deviation" else name: value for name, value in inputs.items()}


def check_player(case: dict[str, Any], expected: dict[str, float], got: Request) -> None:
    for name, value in expected.items():
        check_near(case, name, got["rd" if name == "deviation" else name], value)


def cases(shared_data: Path, system: str, kind: str) -> list[dict[str, Any]]:
    """The vectors of a kind; a system that is not registered has none to run."""
    vectors = json.loads((shared_data / "vectors.json").read_text())
    found = [case for case in vectors if (case["system"], case["kind"]) == (system, kind)]
    assert found
    return found


registered = [system for system, ours in NAMES.items() if ours in SYSTEMS]


@pytest.mark.parametrize("system", registered)
def test_simultaneous_games_are_a_period_of_the_vectors(system: str, shared_data: Path) -> None:
    for case in cases(shared_data, system, "period_update"):
        games = case["inputs"]["games"]
        players = {f"o{i}": given_player(game["opponent"]) for i, game in enumerate(games)}
        request = asked(
            *(duel("p", f"o{i}", game["score"], days={"p": 1}) for i, game in enumerate(games)),
            system=NAMES[system],
            parameters=parameters_of(case),
            players={"p": given_player(case["inputs"]["player"])} | players,
            simultaneous=True,
        )

        answer = ask(request)

        check_player(case, case["expected"], answer["players"]["p"])


def test_simultaneous_games_move_everybody_as_in_the_vectors(shared_data: Path) -> None:
    (case,) = cases(shared_data, "glicko1", "period_update_all")
    request = asked(
        *(duel(first, second, score) for first, second, score in case["inputs"]["games"]),
        parameters=parameters_of(case),
        players={name: given_player(player) for name, player in case["inputs"]["players"].items()},
        simultaneous=True,
    )

    answer = ask(request)

    assert answer["players"].keys() == case["expected"].keys()
    for name, expected in case["expected"].items():
        check_player(case, expected, answer["players"][name])


@pytest.mark.parametrize("system", registered)
@pytest.mark.parametrize("name", ["a", "b"])
def test_one_game_is_that_of_the_vectors(system: str, name: str, shared_data: Path) -> None:
    for case in cases(shared_data, system, "game_update"):
        # In these cases a player is aged by a period for their own update and not for that of the opponent.
        alone = case["params"].get("inflate_periods") != 0
        game = duel("a", "b", case["inputs"]["score_a"], days={name: 1} if alone else {})
        game["sides"][0]["home"] = True
        players = {player: given_player(case["inputs"][player]) for player in ("a", "b")}
        request = asked(
            game,
            system=NAMES[system],
            parameters=parameters_of(case),
            players=players,
            simultaneous=alone,
        )

        answer = ask(request)

        check_player(case, case["expected"][name], answer["players"][name])


def test_fifa_sequence_is_that_of_the_vectors(shared_data: Path) -> None:
    if "fifa" not in SYSTEMS:
        pytest.skip("fifa is not registered")
    (case,) = cases(shared_data, "fifa_sum", "sequence")
    games = []
    for number, game in enumerate(case["inputs"]["games"]):
        won = {"won": 1, "lost": 0}.get(game.get("shootout"), game["score"])
        decided_by = "shootout" if "shootout" in game else "play"
        extra = {"importance": game["importance"], "knockout": game.get("knockout", False)}
        games.append(duel("p", f"o{number}", won, decided_by=decided_by, **extra))
    opponents = {f"o{i}": game["opponent"] for i, game in enumerate(case["inputs"]["games"])}

    answer = ask(asked(*games, system="fifa", players={"p": case["inputs"]["player"]} | opponents))

    check_near(case, "rating", answer["players"]["p"]["rating"], case["expected"]["rating"])


# --- What pools do ------------------------------------------------------------------------------------------

START = datetime(2026, 1, 1, tzinfo=UTC)
names = st.permutations(["a", "b", "c", "d"])
seasons = st.lists(
    st.tuples(names, st.lists(st.integers(1, 3), min_size=2, max_size=4), st.floats(0, 50)),
    min_size=1,
    max_size=8,
)


@given(seasons)
def test_games_in_order_come_to_what_a_pool_makes_of_them(
    season: list[tuple[list[str], list[int], float]],
) -> None:
    rules = pool_rules("glicko", {})
    records: dict[str, PlayerRecord] = {}
    games, time = [], START
    for number, (players, ranks, days) in enumerate(season):
        time += timedelta(days=days)
        paired = list(zip(players, ranks, strict=False))
        event = GameFinished(
            id=str(number),
            source="/test",
            time=time,
            data=FinishedGame(
                pool="p",
                game=str(number),
                sides=tuple(Side(players=(player,), rank=rank) for player, rank in paired),
            ),
        )
        known = {player: records.get(player, new_record(rules)) for player, _ in paired}
        idle = {
            player: (time - record.last_played).total_seconds() / 86_400
            for player, record in known.items()
            if record.last_played is not None
        }
        sides = [{"players": [player], "rank": rank} for player, rank in paired]
        games.append({"sides": sides, "days": idle})
        records.update((change.player, change.after) for change in fold_event(rules, known, event).changes)

    answer = ask(asked(*games))

    kept = ("rating", "rd", "games", "peak", "wins", "draws")
    expected = {player: {name: getattr(record, name) for name in kept} for player, record in records.items()}
    assert answer["players"] == expected


# --- Every system -------------------------------------------------------------------------------------------

FULL_SIDES = [
    {"players": ["alice"], "rank": 1, "points": 3, "home": True},
    {"players": ["bob"], "rank": 2, "points": 1},
]


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_rates_two_new_players(system: str) -> None:
    answer = ask(asked({"sides": FULL_SIDES}, system=system))

    start = pool_rules(system, {}).system.initial()
    ((alice, bob),) = (game["changes"] for game in answer["games"])
    assert alice["before"] == bob["before"]
    assert alice["before"]["rating"] == start.rating
    assert alice["after"]["rating"] > start.rating > bob["after"]["rating"]
    assert answer["players"]["alice"]["wins"] == 1
    assert answer["players"]["bob"]["wins"] == 0


@pytest.mark.parametrize("system", SYSTEMS)
def test_players_of_an_answer_are_players_of_the_next_request(system: str) -> None:
    game = {"sides": FULL_SIDES}
    both = ask(asked(game, game, system=system))

    first = ask(asked(game, system=system))
    second = ask(
        asked(game, system=system, players=first["players"], parameters=first["parameters"]),
    )

    assert second["players"] == both["players"]
    assert second["parameters"] == both["parameters"]
    assert second["games"] == both["games"][1:]


@pytest.mark.parametrize("system", SYSTEMS)
def test_ratings_of_a_pool_can_all_be_given(system: str) -> None:
    widest = pool_rules(system, {"rating_min": -MAX_RATING, "rating_max": MAX_RATING}).system

    assert (widest.rating_min, widest.rating_max) == (-MAX_RATING, MAX_RATING)


far = st.sampled_from([-MAX_RATING, 0, MAX_RATING])
extreme_players = st.fixed_dictionaries(
    {},
    optional={
        "rating": far | st.floats(-MAX_RATING, MAX_RATING),
        "rd": st.sampled_from([0.001, 1, 350, 10_000]),
        "volatility": st.sampled_from([1e-6, 0.06, 100]),
        "games": st.sampled_from([0, 7, 2**52 - 1]),
        "age": st.sampled_from([0, 17, 150]),
        "new_season": st.booleans(),
    },
)
extreme_sides = st.fixed_dictionaries(
    {"rank": st.sampled_from([1, 2, 2**53 - 1])},
    optional={"points": st.sampled_from([-(2**53) + 1, 0, 2**53 - 1]), "home": st.booleans()},
)
extreme_games = st.fixed_dictionaries(
    {
        "sides": st.tuples(extreme_sides, extreme_sides).map(
            lambda sides: [side | {"players": [name]} for side, name in zip(sides, "ab", strict=True)]
        )
    },
    optional={
        "days": st.fixed_dictionaries({}, optional={"a": st.sampled_from([0, 1e-300, 1_000_000])}),
        "importance": st.sampled_from([0, 1, 1_000_000]),
        "knockout": st.booleans(),
        "decided_by": st.sampled_from(["play", "shootout", "forfeit"]),
    },
)


@pytest.mark.parametrize("system", SYSTEMS)
@given(
    players=st.fixed_dictionaries({"a": extreme_players, "b": extreme_players}),
    game=extreme_games,
    simultaneous=st.booleans(),
)
def test_extreme_numbers_are_rated_finitely_or_refused(
    system: str, players: Request, game: Request, simultaneous: bool
) -> None:
    request = asked(game, game, system=system, players=players, simultaneous=simultaneous)

    try:
        answer = ask(request)  # it fails on what is not finite
    except BadRequestError as refused:
        assert str(refused).startswith(("games[", "players.", "simultaneous: "))  # noqa: PT017 - either will do
    else:
        assert all(math.isfinite(player["rating"]) for player in answer["players"].values())


# --- What is asked ------------------------------------------------------------------------------------------


def test_what_is_left_out_of_a_player_is_as_in_a_new_one() -> None:
    answer = ask(asked(duel("alice", "bob"), players={"alice": {"rating": 1700}, "bob": {}}))

    (alice, bob) = answer["games"][0]["changes"]
    assert alice["before"] == {"rating": 1700, "rd": 350, "games": 0}
    assert bob["before"] == {"rating": 1500, "rd": 350, "games": 0}
    assert answer["players"]["bob"]["peak"] == 1500


def test_player_who_plays_no_game_comes_back_unchanged() -> None:
    idle = {"rating": 1612.5, "rd": 77.0, "games": 9, "wins": 4, "draws": 2, "peak": 1700.0, "age": 17.0}
    games = (duel("alice", "bob"), duel("bob", "alice"))

    one = ask(asked(*games, players={"zoe": idle | {"new_season": True}}))
    other = ask(asked(*games, players={"zoe": idle | {"new_season": True}}, simultaneous=True))

    assert one["players"]["zoe"] == other["players"]["zoe"] == idle | {"new_season": True}


def test_game_ends_the_start_of_a_season() -> None:
    answer = ask(asked(duel("alice", "bob"), players={"alice": {"new_season": True}}))

    assert "new_season" not in answer["players"]["alice"]


@pytest.mark.parametrize("simultaneous", [False, True])
def test_best_rank_alone_is_a_win_and_shared_a_draw(simultaneous: bool) -> None:
    won = {"sides": [{"players": [name], "rank": rank} for name, rank in (("a", 1), ("b", 2), ("c", 2))]}
    drawn = {"sides": [{"players": [name], "rank": rank} for name, rank in (("a", 4), ("b", 4), ("c", 9))]}
    before = {"games": 10, "wins": 5, "draws": 2}

    answer = ask(asked(won, drawn, players={"a": before, "c": before}, simultaneous=simultaneous))

    counted = {
        name: (player["games"], player["wins"], player["draws"]) for name, player in answer["players"].items()
    }
    assert counted == {"a": (12, 6, 3), "b": (2, 0, 1), "c": (12, 5, 2)}


def test_peak_stays_where_it_was_after_a_loss() -> None:
    players = {"alice": {"rating": 1500, "peak": 1600}, "bob": {"rating": 1500}}

    answer = ask(asked(duel("alice", "bob", 0), players=players))

    assert answer["players"]["alice"]["peak"] == 1600
    assert answer["players"]["bob"]["peak"] == answer["players"]["bob"]["rating"] > 1500


def test_days_age_the_one_they_are_given_for() -> None:
    players = {"alice": {"rd": 60}, "bob": {"rd": 60}}

    answer = ask(asked(duel("alice", "bob", days={"alice": 365}), players=players, parameters={"c": 4}))

    aged = {change["player"]: change["explanation"]["rd_aged"] for change in answer["games"][0]["changes"]}
    assert aged == {"alice": pytest.approx(math.sqrt(60**2 + 16 * 365), abs=1e-12), "bob": 60}


def test_days_of_simultaneous_games_may_be_given_once() -> None:
    players = {"alice": {"rd": 60}}
    games = [duel("alice", "bob", days={"alice": 30}), duel("carol", "alice")]

    once = ask(asked(*games, players=players, simultaneous=True))
    games[1]["days"] = {"alice": 30.0}
    twice = ask(asked(*games, players=players, simultaneous=True))

    assert once == twice
    assert once["changes"][0]["explanation"]["rd_aged"] > 60


def test_simultaneous_games_come_to_the_same_bits_in_any_order() -> None:
    games = [duel("a", "b"), duel("c", "a", 0.5), duel("b", "c", 0), duel("a", "b", 0)]
    players = {"a": {"rating": 1733.3, "rd": 71}, "b": {"rating": 1299.9}, "c": {"rd": 222.2}}

    one = ask(asked(*games, players=players, simultaneous=True))
    other = ask(asked(*reversed(games), players=players, simultaneous=True))

    assert one["players"] == other["players"]


def test_scores_of_simultaneous_games_add_up_to_those_of_the_period() -> None:
    answer = ask(
        asked(duel("a", "b"), duel("a", "c", 0.5), players={"a": {"rating": 1700}}, simultaneous=True)
    )

    of_a = [score for game in answer["games"] for score in game["scores"] if score["player"] == "a"]
    period = next(change for change in answer["changes"] if change["player"] == "a")["explanation"]
    assert [score["actual"] for score in of_a] == [1, 0.5]
    assert period["actual"] == 1.5
    assert period["expected"] == pytest.approx(of_a[0]["expected"] + of_a[1]["expected"], abs=1e-12)


def test_parameters_in_force_are_told_without_those_of_bombs() -> None:
    answer = ask(asked(duel("a", "b"), parameters={"c": 0, "bomb_step": 5, "award_win": True}))

    assert answer["parameters"] == {
        "rating": 1500,
        "rd": 350,
        "c": 0,
        "rd_floor": 30,
        "rating_min": 0,
        "rating_max": 3000,
        "period": 0,
    }


def test_example_is_a_request() -> None:
    example = read_request(EXAMPLE.encode())

    rated = rate(example)

    assert isinstance(rated, RatedInOrder)
    assert isinstance(rate(example.model_copy(update={"simultaneous": True})), RatedTogether)


# --- What is refused ----------------------------------------------------------------------------------------

ONE = {"players": ["alice"], "rank": 1}
TWO = {"players": ["bob"], "rank": 2}


def two(**rest: object) -> Request:
    return asked({"sides": [ONE, TWO], **rest})


def with_side(**fields: object) -> Request:
    return asked({"sides": [TWO, ONE | fields]})


def with_player(**fields: object) -> Request:
    return asked(duel("alice", "bob"), players={"alice": fields})


REFUSED = [
    ([], "the request is not a JSON object; it is []"),
    ({}, "system: is missing"),
    ({"system": "glicko"}, "games: is missing"),
    (asked(), "games: is empty"),
    (asked(system="chess"), "games: is empty"),
    (two() | {"system": "chess"}, 'system: no system "chess"; there are '),
    (two() | {"system": 5}, "system: must be a valid string; it is 5"),
    (two() | {"pool": "p"}, "the request: no field 'pool'; there are system, parameters, players, games"),
    (two() | {"parameters": {"d": 1}}, "parameters: no parameter 'd'; there are rating, rd, c"),
    (two() | {"parameters": {"c": -1}}, "parameters: c is -1, but must be a number from 0 to 1000"),
    (two() | {"parameters": {"c": [1]}}, "parameters.c: must be a number, true, false or a word"),
    (
        two() | {"parameters": {"c": "x" * 9999}},
        "true, false or a word; it is 'xxx",
    ),
    (two() | {"parameters": {"rd_floor": 400}}, "parameters: rd_floor 400 is above rd 350"),
    (two() | {"simultaneous": 1}, "simultaneous: must be a valid boolean; it is 1"),
    (asked(5), "games[0]: is not an object; it is 5"),
    (two(dais={}), "games[0]: no field 'dais'; there are sides, days, importance, decided_by, knockout"),
    (two(importance=-1), "games[0].importance: must be greater than or equal to 0; it is -1"),
    (two(decided_by="luck"), "games[0].decided_by: must be 'play', 'shootout' or 'forfeit'; it is 'luck'"),
    (two(days={"alice": -1}), "games[0].days.alice: must be greater than or equal to 0; it is -1"),
    (two(days={"alice": True}), "games[0].days.alice: must be a valid number; it is True"),
    (two(days={"carol": 1}), "games[0].days: must be of players in the game: 'alice', 'bob'; 'carol' is not"),
    (asked({"sides": []}), "games[0].sides: must be at least two; there are 0"),
    (asked({"sides": [ONE]}), "games[0].sides: must be at least two; there are 1"),
    (asked({"sides": [ONE, ONE]}), "games[0].sides: must name a player once; 'alice' stands there 2 times"),
    (with_side(rank=0), "games[0].sides[1].rank: must be greater than or equal to 1; it is 0"),
    (with_side(rank=1.5), "games[0].sides[1].rank: must be a valid integer; it is 1.5"),
    (with_side(rank=True), "games[0].sides[1].rank: must be a valid integer; it is True"),
    (with_side(players=[]), "games[0].sides[1].players: is empty"),
    (with_side(players=["a\n"]), "games[0].sides[1].players[0]: holds U+000A (Cc), which is not printable"),
    (with_side(players=["x" * 65]), "games[0].sides[1].players[0]: "),
    (
        with_side(players=[f"p{i}" for i in range(64)]),
        "games[0].sides: must have at most 64 players; 65 play",
    ),
    (with_side(weights=[1, 1]), "games[0].sides[1].weights: 2 weights for 1 players"),
    (with_side(weights=[0]), "games[0].sides[1].weights: all are 0: nobody took part in the game"),
    (with_side(weights=[2]), "games[0].sides[1].weights[0]: must be less than or equal to 1; it is 2"),
    (with_side(result=1), "games[0].sides[1]: no field 'result'; there are players, rank, points"),
    (
        with_player(deviation=1),
        "players.alice: no field 'deviation'; there are rating, rd, volatility, games",
    ),
    (with_player(rating=10_001), "players.alice.rating: must be less than or equal to 10000; it is 10001"),
    (with_player(rating="1500"), "players.alice.rating: must be a valid number; it is '1500'"),
    (with_player(rd=0), "players.alice.rd: must be at least 0.001; it is 0"),
    (with_player(rd=-1), "players.alice.rd: must be greater than or equal to 0; it is -1"),
    (with_player(games=1.5), "players.alice.games: must be a valid integer; it is 1.5"),
    (
        with_player(wins=2, draws=1, games=2),
        "players.alice.games: must be at least 2 wins and 1 draws; it is 2",
    ),
    (
        with_player(volatility=0),
        "players.alice.volatility: must be greater than or equal to 0.000001",
    ),
    (two() | {"players": {"a b": 5}}, 'players["a b"]: is not an object; it is 5'),
    (two() | {"players": {"a\n": {}}}, 'players["a\\n"]: holds U+000A (Cc), which is not printable'),
    (two() | {"x" * 9999: 1}, "the request: no field 'xxx"),
    (two() | {"parameters": {"x" * 9999: 1}}, 'parameters["xxx'),
    (two() | {"players": {"x" * 9999: {}}}, 'players["xxx'),
    (two() | {"players": []}, "players: is not an object"),
    (b"", "the request is empty; 'petard rate --example' prints one"),
    (b"{", "the request is not JSON that can be read: "),
    (b'{"system": NaN}', "the request is not JSON that can be read: NaN is not JSON"),
    (b'{"system": -Infinity}', "-Infinity is not JSON"),
    (b'{"system": 1e999}', "the number '1e999' is too large or too long"),
    (b'{"system": 9007199254740992}', "the integer '9007199254740992' is beyond 2^53 - 1"),
    (b'{"system": ' + b"9" * 5000 + b"}", "is beyond 2^53 - 1"),
    (b'{"system": "glicko", "system": "elo"}', "an object names 'system' twice"),
    (b'{"system": 1e-400}', "the request is not JSON that can be read: the number '1e-400' is too small"),
    (b'{"system": "\\ud800"}', "the request is not JSON that can be read: a text holds U+D800"),
    (b'{"system": "\\u0000"}', "the request is not JSON that can be read: a text holds U+0000"),
    (
        two() | {"players": {f"p{i}": 1 for i in range(100_001)}},
        "the request: players has 100001 names, the limit is 100000",
    ),
    (
        two(days={f"p{i}": 1 for i in range(100_001)}),
        "games[0]: days has 100001 names, the limit is 100000",
    ),
    (b'{"system": "\xff"}', "the request is not UTF-8: invalid start byte at byte 12"),
    (b"[" * 100_000, "the request is nested deeper than 16 levels"),
    (b" " * (16 * 1024 * 1024 + 1), "the request is longer than the limit of 16777216 bytes"),
]


@pytest.mark.parametrize(("request_", "words"), REFUSED, ids=[words[:40] for _, words in REFUSED])
def test_refusal_names_the_place_and_what_should_be_there(request_: object, words: str) -> None:
    assert words in refusal(request_)


def test_byte_order_mark_before_a_request_is_left_out() -> None:
    raw = json.dumps(two()).encode()

    assert read_request(b"\xef\xbb\xbf" + raw) == read_request(raw)


def test_different_days_of_simultaneous_games_are_refused() -> None:
    games = (duel("alice", "bob", days={"alice": 1}), duel("alice", "bob", days={"alice": 2.5}))

    message = refusal(asked(*games, simultaneous=True))

    assert message == ("games[1].days.alice: must be the same in all simultaneous games; it is 2.5 and was 1")


@pytest.mark.parametrize("system", [name for name in SYSTEMS if name not in PERIOD_SYSTEMS])
def test_simultaneous_games_of_a_system_without_periods_are_refused(system: str) -> None:
    message = refusal(asked({"sides": FULL_SIDES}, system=system, simultaneous=True))

    assert message.startswith(f"simultaneous: {system} rates game after game; true is for glicko")


def test_game_that_the_system_cannot_rate_is_named() -> None:
    if "fifa" not in SYSTEMS:
        pytest.skip("fifa is not registered")
    three = {"sides": [{"players": [name], "rank": 1} for name in "abc"]}

    message = refusal(asked(duel("a", "b"), three, system="fifa"))

    assert message.startswith("games[1]: ")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 2000)
    | st.floats(-1e4, 1e4)
    | st.sampled_from(["a", "glicko", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["system", "games", "players", "sides", "rank", "days", "a", "parameters"]), inner
        )
    ),
    max_leaves=12,
)


@given(json_values, st.sampled_from(["system", "games", "players", "parameters", "simultaneous"]))
def test_any_value_in_any_place_is_answered_or_refused(value: object, name: str) -> None:
    raw = json.dumps(two() | {name: value}).encode()

    try:
        answer = as_answer(rate(read_request(raw)))
    except BadRequestError as refused:
        assert str(refused)  # noqa: PT017 - either will do
    else:
        assert json.dumps(answer, allow_nan=False)
