"""The calculator asked about a pool: where a rating stands in it, who of it would win a tournament."""

import math

import pytest

from integration.arena import finished

PLAYERS = ("ann", "bob", "cem", "dan", "eve")
UNKNOWN_POOL = "petard: there is no pool 'nope': 'petard pool list' shows them\n"


@pytest.fixture
def games(play):
    """Games of five players, of whom ann and cem, bob and dan have equal ratings, and eve a lower one."""
    play(
        finished(1, "ann", "bob"),
        finished(2, "cem", "dan"),
        finished(3, "ann", "eve"),
        finished(4, "cem", "eve"),
    )


def ratings_of(run):
    """Return what JSON says of all players' ratings, best first."""
    return {line["player"]: line["rating"] for line in run("leaderboard", "p", "--json").json}


# --- percentile ---------------------------------------------------------------------------------------------


def test_rating_of_a_player_has_the_percentile_of_the_player(run, games):
    players = [run("player", "p", name, "--json").json for name in PLAYERS]

    found = [run("elo", "percentile", "p", repr(player["rating"]), "--json").json for player in players]

    assert [place["percentile"] for place in found] == [player["percentile"] for player in players]
    assert len({place["percentile"] for place in found}) > 2
    assert {place["listed"] for place in found} == {5}


def test_rating_beyond_all_has_everybody_on_one_side(run, games):
    lowest, highest = (run("elo", "percentile", "p", rating, "--json").json for rating in ("0", "3000"))

    assert (lowest["percentile"], lowest["lower"]) == (0, 0)
    assert (highest["percentile"], highest["lower"], highest["estimate"]) == (100, 5, False)


def test_rating_is_typed_as_the_pool_shows_it(run, games):
    between = math.fsum(sorted(ratings_of(run).values())[:2]) / 2
    before = run("elo", "percentile", "p", repr(between), "--json").json
    run("pool", "set", "p", "--setting", "display_high=10000")

    shown = run("elo", "percentile", "p", repr(between * 10 / 3))
    found = run("elo", "percentile", "p", repr(between * 10 / 3), "--json").json

    assert (found["rating"], found["rating_points"]) == pytest.approx((between * 10 / 3, between))
    assert (found["percentile"], found["lower"]) == (before["percentile"], before["lower"])
    assert before["rating"] == before["rating_points"]
    assert f"{between * 10 / 3:.2f}" in shown.stdout


def test_rating_beyond_ten_thousand_is_one_where_a_pool_shows_such(run, games):
    run("pool", "set", "p", "--setting", "display_high=1000000")

    found = run("elo", "percentile", "p", "900000", "--json").json

    assert (found["percentile"], found["rating_points"]) == (100, pytest.approx(2700))


def test_pool_without_players_says_so(run, pool):
    ended = run("elo", "percentile", pool, "1500")

    assert (ended.code, ended.stdout) == (1, "")
    assert ended.stderr == (
        "petard: nobody is on the board of 'p', so there is nobody to compare with:"
        " leave the pool out for an estimate\n"
    )


def test_pool_that_is_not_there_is_named(run):
    ended = [run("elo", "percentile", "nope", "1500"), run("elo", "simulate-field", "--pool", "nope")]

    assert [(one.code, one.stdout, one.stderr) for one in ended] == [(1, "", UNKNOWN_POOL)] * 2


# --- simulate-field -----------------------------------------------------------------------------------------


def test_field_of_a_pool_is_the_top_of_its_board(run, games):
    ratings = ratings_of(run)
    typed = [
        word for name, rating in list(ratings.items())[:3] for word in ("--player", f"{name}:{rating!r}")
    ]

    found = run("elo", "simulate-field", "--pool", "p", "--top", "3", "--runs", "500", "--json").json
    same = run("elo", "simulate-field", *typed, "--runs", "500", "--json").json
    everybody = run("elo", "simulate-field", "--pool", "p", "--runs", "10", "--json").json

    assert (found["pool"], found["elo_point"]) == ("p", 1)
    assert found["players"] == same["players"]
    assert {line["name"] for line in everybody["players"]} == set(PLAYERS)


def test_named_players_bring_the_ratings_of_the_pool(run, games):
    options = ("--player", "eve", "--player", "ann", "--player", "guest:1700")

    found = run("elo", "simulate-field", "--pool", "p", *options, "--runs", "100", "--json").json

    ratings = ratings_of(run)
    assert {line["name"]: line["rating"] for line in found["players"]} == {
        "eve": ratings["eve"],
        "ann": ratings["ann"],
        "guest": 1700,
    }


def test_name_with_a_colon_is_the_player_of_that_name(run, play):
    play(finished(1, "steam:1", "steam:2"))

    found = run(
        "elo", "simulate-field", "--pool", "p", "--player", "steam:1", "--player", "steam:2", "--json"
    ).json

    assert {line["name"] for line in found["players"]} == {"steam:1", "steam:2"}


def test_people_see_the_display_range_and_programs_rating_points(run, games):
    run("pool", "set", "p", "--setting", "display_high=30000")
    best = max(ratings_of(run).values())
    options = ("simulate-field", "--pool", "p", "--top", "2", "--player", "x:20000")

    shown = run("elo", *options[:5], "--runs", "100")
    guest = run("elo", *options[:3], *options[5:], "--player", "ann", "--runs", "100", "--json").json

    assert f"{best * 10:.2f}" in shown.stdout
    assert {line["name"]: line["rating"] for line in guest["players"]}["x"] == pytest.approx(2000)


def test_points_of_another_size_are_turned_into_points_of_elo(run):
    # World Rugby: 10 points ahead is certain, 1 point expects 0.55. Elo expects that of about 34.9 points.
    run("pool", "create", "rugby", "--system", "world_rugby")
    rugby = ("--pool", "rugby", "--player", "home:31", "--player", "away:30")
    ahead = 1600 / math.log(10) / 20

    found = run("elo", "simulate-field", *rugby, "--runs", "2000", "--json").json
    same = run(
        *("elo", "simulate-field", "--player", f"home:{ahead!r}", "--player", "away:0"),
        *("--runs", "2000", "--json"),
    ).json

    assert found["elo_point"] == pytest.approx(20 * math.log(10) / 1600)
    assert [line["places"] for line in found["players"]] == [line["places"] for line in same["players"]]
    assert [line["rating"] for line in found["players"]] == [31, 30]


@pytest.mark.parametrize("name", ["zoe", "zoe:strong", ":1500"])
def test_player_whom_the_pool_does_not_know_is_named(run, games, name):
    ended = run("elo", "simulate-field", "--pool", "p", "--player", "ann", "--player", name)

    assert (ended.code, ended.stdout) == (1, "")
    assert f"the pool 'p' knows no player {name!r}" in ended.stderr


def test_board_of_nobody_makes_no_tournament(run, pool):
    ended = run("elo", "simulate-field", "--pool", pool)

    assert (ended.code, ended.stdout) == (1, "")
    assert "a tournament needs 2 players, but 0 are on the board of 'p'" in ended.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--top", "4", "--player", "a:1", "--player", "b:2"), "--top goes with --pool"),
        (("--pool", "p", "--csv", "-"), "--csv goes without --pool"),
        (("--pool", "p", "--top", "4", "--player", "ann"), "--top or --player, not both"),
        (("--pool", "p", "--top", "1"), "--top"),
        (("--pool", "p", "--top", "257"), "--top"),
        (("--pool", "p", "--player", "ann", "--player", "ann"), "'ann' is there twice"),
        (("--pool", "p", "--player", "ann"), "number of players is 1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run, games, options, words):
    ended = run("elo", "simulate-field", *options)

    assert (ended.code, ended.stdout) == (2, "")
    assert words in ended.stderr


@pytest.mark.parametrize("typed", ["zed:nan", "zed:inf", "zed:20000", "zed:1e300"])
def test_rating_that_cannot_be_is_refused_in_one_line(run, games, typed):
    ended = run("elo", "simulate-field", "--pool", "p", "--player", "ann", "--player", typed)

    assert (ended.code, ended.stdout) == (2, "")
    assert ended.stderr.startswith("petard: the rating of 'zed' is ")
