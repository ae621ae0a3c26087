"""Commands that look: what they say to programs is exactly what is documented, and true."""

from datetime import UTC, datetime, timedelta

import pytest

from integration.arena import START, abandoned, event, finished
from petard_schema.times import format_time

PLAYER_FIELDS = (
    *("pool", "player", "rating", "rd", "volatility", "bomb", "abandons", "penalties", "games"),
    *("wins", "draws", "losses", "peak", "last_played", "player_seq", "rank", "percentile"),
)
LINE_FIELDS = ("rank", "player", "rating", "rd", "bomb", "games")
EVENT_FIELDS = ("source", "id", "pool", "seq", "outcome", "reason", "changes")
STATUS_FIELDS = (
    *("pool", "backlog", "head_age_s", "seq", "published_seq", "stopped", "stopped_at", "stops"),
    *("dead_letters", "recent_age_s", "recent_bytes"),
)


def drawn(number: int, first: str, second: str) -> bytes:
    """Return the report of a game without a winner."""
    return finished(number, sides=[{"players": [first], "rank": 1}, {"players": [second], "rank": 1}])


def test_player_has_the_documented_fields(run, play):
    play(finished(1), drawn(2, "alice", "bob"), finished(3, "bob", "alice"), abandoned(4, "alice", "bob"))

    alice = run("player", "p", "alice", "--json").json

    assert tuple(alice) == PLAYER_FIELDS
    assert (alice["pool"], alice["player"], alice["volatility"]) == ("p", "alice", None)
    assert (alice["games"], alice["wins"], alice["draws"], alice["losses"]) == (3, 1, 1, 1)
    assert (alice["bomb"], alice["abandons"], alice["penalties"]) == (10, 1, 0)
    assert alice["last_played"] == format_time(START + timedelta(minutes=3))
    assert alice["player_seq"] == 4
    assert alice["peak"] >= alice["rating"]


def test_first_game_of_two_new_players_is_that_of_the_published_example(run, play):
    # Glicko's formulas for two players at 1500/350, recomputed by hand: see Glickman (1999).
    play(finished(1))

    alice, bob = (run("player", "p", name, "--json").json for name in ("alice", "bob"))

    assert (alice["rating"], bob["rating"]) == pytest.approx((1662.2120026, 1337.7879974), abs=1e-7)
    assert (alice["rd"], bob["rd"]) == pytest.approx((290.2305060, 290.2305060), abs=1e-7)


def test_player_at_a_time_is_as_that_event_left_them(run, play):
    play(finished(1), finished(2), finished(3))
    during = format_time(START + timedelta(minutes=2, seconds=30))

    then = run("player", "p", "alice", "--at", during, "--json").json
    after_two = run("event", "e-2", "--json").json["changes"]
    before = run("player", "p", "alice", "--at", format_time(START))

    (alice,) = [change["after"] for change in after_two if change["player"] == "alice"]
    assert {name: then[name] for name in alice} == alice
    assert (then["games"], then["player_seq"]) == (2, 2)
    assert then["time"] == format_time(START + timedelta(minutes=2))
    assert (before.code, before.stdout) == (1, "")
    assert "had played nothing" in before.stderr


def test_player_at_a_time_never_includes_a_later_game(run, play):
    # In the order in which they are applied; the game of minute 2 comes after that of minute 5.
    play(finished(1), finished(5), finished(2), finished(6))

    found = {
        minute: run(
            "player", "p", "alice", "--at", format_time(START + timedelta(minutes=minute)), "--json"
        ).json
        for minute in (3, 5, 7)
    }
    (first,) = (
        change for change in run("event", "e-1", "--json").json["changes"] if change["player"] == "alice"
    )

    assert {minute: then["games"] for minute, then in found.items()} == {3: 1, 5: 3, 7: 4}
    assert found[3]["rating"] == first["after"]["rating"]


def test_equal_ratings_share_a_rank_and_stand_by_name(run, play):
    play(finished(1, "winner", "loser"), drawn(2, "equal-b", "Equal-a"))

    board = run("leaderboard", "p", "--json").json
    places = {name: run("player", "p", name, "--json").json for name in ("winner", "equal-b", "loser")}

    assert [tuple(line) for line in board] == [LINE_FIELDS] * 4
    ranked = [(line["rank"], line["player"]) for line in board]
    assert ranked == [(1, "winner"), (2, "Equal-a"), (2, "equal-b"), (4, "loser")]
    assert {name: (place["rank"], place["percentile"]) for name, place in places.items()} == {
        "winner": (1, 87.5),
        "equal-b": (2, 50.0),
        "loser": (4, 12.5),
    }


def test_leaderboard_shows_the_top_or_the_lines_around_a_player(run, play):
    names = [f"player-{number:02}" for number in range(20)]
    play(*(drawn(number, *names[2 * number : 2 * number + 2]) for number in range(10)))

    top = run("leaderboard", "p", "--top", "3", "--json").json
    around = run("leaderboard", "p", "--around", "player-10", "--json").json
    at_the_end = run("leaderboard", "p", "--around", "player-19", "--json").json

    assert [line["player"] for line in top] == names[:3]
    assert [line["player"] for line in around] == names[5:16]
    assert [line["player"] for line in at_the_end] == names[14:]


def test_board_for_people_marks_the_provisional(run, play):
    play(finished(1))

    shown = run("leaderboard", "p").stdout.splitlines()

    assert shown[0].split() == ["rank", "player", "rating", "rd", "bomb", "games"]
    assert shown[1].split() == ["1", "alice", "1662.2", "290.2", "?", "0", "1"]


def test_display_range_is_for_people_and_not_for_programs(run, play):
    play(drawn(1, "alice", "bob"))
    run("pool", "set", "p", "--setting", "display_high=10000")

    shown = run("leaderboard", "p").stdout.splitlines()
    (first, _) = run("leaderboard", "p", "--json").json

    assert shown[1].split()[2] == "5000.0"
    assert first["rating"] == 1500.0


def test_every_command_shows_ratings_and_their_widths_in_the_display_range(run, play):
    # 0-3000 as 0-10000: the published example's 1662.2 ± 290.2, 162.2 above where it began, times 10/3.
    play(finished(1))
    run("pool", "set", "p", "--setting", "display_high=10000")

    board = run("leaderboard", "p").stdout.splitlines()
    alice = dict(line.split() for line in run("player", "p", "alice").stdout.splitlines()[1:])
    change = next(line for line in run("event", "e-1").stdout.splitlines() if line.startswith("alice"))
    win = next(line for line in run("preview", "p", "x", "y").stdout.splitlines() if line.startswith("win"))

    assert board[1].split()[2:4] == ["5540.7", "967.4"]
    assert (alice["rating"], alice["rd"], alice["peak"]) == ("5540.7", "967.4", "5540.7")
    assert change.split()[1:4] == ["5000.0", "5540.7", "967.4"]
    assert win.split() == ["win", "5540.7", "+540.7", "4459.3", "-540.7"]


def test_event_that_was_rated_says_what_it_did(run, play):
    play(finished(1))

    fate = run("event", "e-1", "--json").json

    assert tuple(fate) == EVENT_FIELDS
    assert {name: fate[name] for name in EVENT_FIELDS[:-1]} == {
        "source": "/test",
        "id": "e-1",
        "pool": "p",
        "seq": 1,
        "outcome": "rated",
        "reason": None,
    }
    alice, bob = fate["changes"]
    assert (alice["player"], bob["player"]) == ("alice", "bob")
    assert alice["before"]["rating"] == 1500.0
    assert alice["explanation"] == {
        "expected": 0.5,
        "actual": 1.0,
        "rd_aged": 350.0,
        "penalty": False,
        "late": False,
    }


def test_event_that_was_ignored_says_why(run, play):
    play(finished(1, rated=False))

    fate = run("event", "e-1", "--json").json

    assert tuple(fate) == EVENT_FIELDS
    assert (fate["outcome"], fate["reason"], fate["seq"], fate["changes"]) == ("ignored", "unrated", 1, [])


def test_event_that_is_a_dead_letter_says_why(run, play):
    play(finished(1, "alice", "alice"))

    fate = run("event", "e-1", "--json").json

    assert tuple(fate) == EVENT_FIELDS
    assert (fate["outcome"], fate["reason"], fate["seq"]) == ("dead", "self_match", None)


@pytest.mark.parametrize("pool_of_the_event", ["p", "no-such-pool"])
def test_event_that_waits_is_found_in_its_list(run, pool, pool_of_the_event):
    name = 'e-"ü"'
    sides = [{"players": ["alice"], "rank": 1}, {"players": ["bob"], "rank": 2}]
    line = event("finished", name, {"pool": pool_of_the_event, "game": "g", "sides": sides})
    run("push", stdin=b"\n".join([*(finished(n, pool=pool_of_the_event) for n in range(1500)), line]))

    fate = run("event", name, "--json").json

    assert tuple(fate) == EVENT_FIELDS
    assert (fate["outcome"], fate["pool"], fate["source"]) == ("waiting", pool_of_the_event, "/test")


def test_event_nobody_has_seen_is_unknown(run, play):
    play(finished(1))

    fate = run("event", "e-2", "--json").json

    assert tuple(fate) == EVENT_FIELDS
    assert (fate["outcome"], fate["source"], fate["pool"]) == ("unknown", None, None)


def test_same_id_of_two_sources_shows_both(run, play):
    other = finished(2).replace(b'"/test"', b'"/other"').replace(b'"e-2"', b'"e-1"')
    play(finished(1), other)

    fate = run("event", "e-1", "--json").json

    assert fate["source"] == "/other"
    assert [one["source"] for one in fate["others"]] == ["/test"]


def test_status_tells_backlog_lag_and_dead_letters(run, play, pool):
    hour_ago = format_time(datetime.now(UTC) - timedelta(hours=1))
    late = event("finished", "e-9", {"pool": pool, "game": "g-9", "sides": []}, time=hour_ago)
    sides = [{"players": ["alice"], "rank": 1}, {"players": ["bob"], "rank": 2}]
    waits = event("finished", "e-8", {"pool": pool, "game": "g-8", "sides": sides}, time=hour_ago)
    play(finished(1), finished(2), late, b"nonsense", b"more nonsense")
    run("publisher", "--once")
    play(finished(3))
    run("push", stdin=waits)

    status = run("status", "--json").json

    assert set(status) == {"pools", "workers"}
    (found,) = status["pools"]
    assert tuple(found) == STATUS_FIELDS
    assert (found["backlog"], found["seq"], found["published_seq"]) == (1, 3, 2)
    assert 3600 <= found["head_age_s"] < 3700
    assert found["dead_letters"] == {"bad_field": 1, "not_json": 2}
    assert status["workers"] == 0


def test_status_shows_what_waits_for_a_pool_that_does_not_exist(run, pool):
    run("push", stdin=finished(1, pool="later"))
    run("worker", "--burst")
    run("push", stdin=b"\n".join([finished(2, pool="later"), finished(3, pool="never")]))

    found = {pool["pool"]: pool for pool in run("status", "--json").json["pools"]}

    assert {name: (one["backlog"], one["stopped"]) for name, one in found.items()} == {
        "p": (0, None),
        "later": (1, "no such pool"),
        "never": (1, "no such pool"),
    }
    assert found["later"]["dead_letters"] == {"unknown_pool": 1}
    assert found["never"]["head_age_s"] > 0


def test_status_counts_living_workers(run, petard, pool, wait_until):
    petard.start("worker")
    petard.start("worker")

    wait_until(lambda: run("status", "--json").json["workers"] == 2, "two workers in the status")


@pytest.mark.parametrize(("result", "winner"), [("win", "alice"), ("loss", "bob")])
def test_preview_is_what_then_happens(run, play, result, winner):
    now = datetime.now(UTC)
    play(finished(1, "alice", "carol"), finished(2, "bob", "carol"), finished(3, "alice", "carol"))

    seen = run("preview", "p", "alice", "bob", "--json").json
    sides = [{"players": [name], "rank": 1 if name == winner else 2} for name in ("alice", "bob")]
    play(event("finished", "e-4", {"pool": "p", "game": "g-4", "sides": sides}, time=format_time(now)))
    after = {name: run("player", "p", name, "--json").json for name in ("alice", "bob")}

    assert tuple(seen) == ("pool", "first", "second", "expected", "outlooks")
    (outlook,) = [outlook for outlook in seen["outlooks"] if outlook["result"] == result]
    # The preview is for a game that ends when it is asked for: a second or so of ageing lies between.
    assert outlook["first_rating"] == pytest.approx(after["alice"]["rating"], abs=1e-3)
    assert outlook["second_rating"] == pytest.approx(after["bob"]["rating"], abs=1e-3)
    assert outlook["first_change"] == pytest.approx(
        outlook["first_rating"]
        - run("player", "p", "alice", "--at", format_time(now - timedelta(days=1)), "--json").json["rating"]
    )


def test_preview_of_strangers_is_that_of_their_first_game(run, play):
    seen = run("preview", "p", "alice", "bob", "--json").json
    play(drawn(1, "alice", "bob"), finished(2, "carol", "dave"))
    carol = run("player", "p", "carol", "--json").json

    assert seen["expected"] == 0.5
    by_result = {outlook["result"]: outlook for outlook in seen["outlooks"]}
    assert by_result["draw"]["first_change"] == by_result["draw"]["second_change"] == 0
    assert by_result["win"]["first_rating"] == by_result["loss"]["second_rating"] == carol["rating"]


def test_names_from_all_over_the_world_come_out_as_they_went_in(run, play):
    names = ["Zoë", "李雷", "محمد", "O'Brien 🎲", '"; --', "<b>[red]x[/red]</b>", "%s {0}"]
    play(*(finished(number, name, "bob") for number, name in enumerate(names)))

    board = run("leaderboard", "p").stdout
    found = [run("player", "p", name, "--json").json["player"] for name in names]

    assert found == names
    assert all(name in board for name in names)
