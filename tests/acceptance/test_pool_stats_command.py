"""`petard pool stats`: numbers for programs, tables with bars for people, words where there is nothing."""

import json
import math
from datetime import timedelta

import pytest

from integration.arena import START, event, finished
from petard_schema.times import format_time


def game(day, winner="alice", loser="bob"):
    """Return a game that ended so many days after the start of time."""
    sides = [{"players": [winner], "rank": 1}, {"players": [loser], "rank": 2}]
    facts = {"pool": "p", "game": f"g-{day}", "sides": sides}
    return event("finished", f"e-{day}", facts, time=format_time(START + timedelta(days=day)))


@pytest.fixture
def season(play):
    """Games of two players: twenty on the first day, by which they are established, and ten months later."""
    even = [game(n / 100, *(("alice", "bob"), ("bob", "alice"))[n % 2]) for n in range(20)]
    play(*even, *(game(200 + n) for n in range(10)))


def refuse_constants(name):
    raise AssertionError(f"{name} is not JSON")


def test_numbers_for_programs_are_those_of_the_ratings(run, season):
    found = run("pool", "stats", "p", "--width", "1000", "--json").json
    before = [
        run("player", "p", name, "--at", "2026-02-01T00:00:00Z", "--json").json for name in ("alice", "bob")
    ]
    now = [run("player", "p", name, "--json").json for name in ("alice", "bob")]

    drift, spread = found["drift"], found["distribution"]
    assert found["established"] == {"highest_rd": 110.0, "fewest_games": 0}
    assert found["fluctuation"] == {
        "since": "2026-04-30T00:00:00Z",
        "until": "2026-07-29T00:00:00Z",
        "width": 1000.0,
        "established": 2,
        "stayed": 2,
        "share": 1.0,
        "active": 2,
        "active_stayed": 2,
        "active_share": 1.0,
    }
    assert found["fluctuation"]["until"] == now[0]["last_played"]
    assert len(drift["points"]) == 12
    assert drift["points"][3]["mean"] == pytest.approx((before[0]["rating"] + before[1]["rating"]) / 2)
    assert drift["points"][-1]["mean"] == pytest.approx((now[0]["rating"] + now[1]["rating"]) / 2)
    assert (spread["players"], spread["summary"]["highest"]) == (2, now[0]["rating"])
    assert sum(part["players"] for part in spread["bins"]) == 2


def test_whoever_waits_for_a_long_history_is_told(run, season, owner):
    soon = run("pool", "stats", "p", "--json")
    owner.execute("UPDATE petard.pool SET seq = 2000000 WHERE name = 'p'")
    later = run("pool", "stats", "p", "--json")

    assert soon.stderr == ""
    assert later.stderr == "going through all 2,000,000 entries of the ledger: this takes a while\n"
    assert later.json == soon.json


def test_who_moved_further_than_asked_did_not_stay(run, season):
    alice = [
        run("player", "p", "alice", "--at", f"2026-0{month}-01T00:00:00Z", "--json").json["rating"]
        for month in (2, 9)
    ]
    moved = alice[1] - alice[0]

    narrow, wide = (
        run("pool", "stats", "p", "--width", str(moved + beside), "--json").json["fluctuation"]
        for beside in (-0.01, 0.01)
    )

    # They were equally sure of both, so what one has won the other has lost.
    assert (narrow["stayed"], wide["stayed"]) == (0, 2)


def test_people_see_tables_with_bars_and_words(run, season):
    shown = run("pool", "stats", "p")

    assert shown.code == 0
    assert shown.stderr == ""
    assert "RD ≤ 110" in shown.stdout
    assert "stayed within ±150" in shown.stdout
    assert "█" in shown.stdout
    assert "steady: no more than 10)" in shown.stdout
    assert "provisional" in shown.stdout


def test_people_see_the_display_range_and_programs_rating_points(run, season):
    run("pool", "set", "p", "--setting", "display_high=30000")

    shown = run("pool", "stats", "p").stdout
    found = run("pool", "stats", "p", "--json").json

    assert "stayed within ±1500 " in shown
    assert "RD ≤ 1100" in shown
    assert "no more than 100)" in shown
    assert found["fluctuation"]["width"] == 150
    highest = found["distribution"]["summary"]["highest"]
    assert highest < 3000
    assert f"{highest * 10:.1f}" in shown


def test_pool_of_long_ago_is_looked_at_until_its_own_end(run, season):
    found = run("pool", "stats", "p", "--until", "2026-01-10T00:00:00Z", "--days", "5", "--json").json

    fluctuation = found["fluctuation"]
    assert (fluctuation["since"], fluctuation["until"]) == ("2026-01-05T00:00:00Z", "2026-01-10T00:00:00Z")
    assert (fluctuation["established"], fluctuation["active"], fluctuation["active_share"]) == (2, 0, None)
    assert found["drift"]["players"] == {"change_per_year": None, "verdict": None}


def test_empty_pool_is_said_to_be_empty(run, pool):
    shown = run("pool", "stats", pool)
    found = run("pool", "stats", pool, "--json")

    assert (shown.code, found.code) == (0, 0)
    assert "nothing was rated yet" in shown.stdout
    assert "nobody is on the board" in shown.stdout
    facts = json.loads(found.stdout, parse_constant=refuse_constants)
    assert (facts["fluctuation"], facts["drift"]["points"]) == (None, [])


def test_pool_of_one_game_has_nobody_established_and_no_trend(run, play):
    play(finished(1))

    shown = run("pool", "stats", "p")
    found = run("pool", "stats", "p", "--json")

    assert "nobody (RD ≤ 110)" in shown.stdout
    assert "too short to say" in shown.stdout
    assert json.loads(found.stdout, parse_constant=refuse_constants)["fluctuation"]["share"] is None


def test_time_before_all_events_is_answered_in_words(run, season):
    shown = run("pool", "stats", "p", "--until", "2020-01-01T00:00:00Z")

    assert shown.code == 0
    assert "nobody had played by then" in shown.stdout


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--days", "0", "--days is 0.0, but must be a number from 0.001 to 100000"),
        ("--width", "nan", "--width is nan, but must be a number from 0.001 to 1e+06"),
        ("--points", "1", "--points is 1, but must be a whole number from 2 to 200"),
        ("--established", "-1", "--established is -1.0, but must be a number from 0 to 1000"),
        ("--games", "-1", "--games is -1, but must be a whole number from 0 to 100000"),
        ("--drift", "ages", "--drift is 'ages', but must be one of life, window"),
        ("--until", "yesterday", "--until 'yesterday' is not an RFC 3339 time with a zone"),
    ],
)
def test_option_out_of_limits_is_refused_with_value_and_limits(run, pool, option, value, words):
    ended = run("pool", "stats", pool, option, value)

    assert (ended.code, ended.stdout) == (2, "")
    assert words in ended.stderr


def test_refusal_names_what_is_usual_in_this_pool(run, pool):
    run("pool", "set", pool, "--setting", "provisional_rd=95")

    ended = run("pool", "stats", pool, "--established", "-1")

    assert "must be a number from 0 to 1000 (default 95.0)" in ended.stderr


def test_pool_of_small_points_has_small_widths(run):
    run("pool", "create", "rugby", "--system", "world_rugby")
    match = {
        "sides": [{"players": ["a"], "rank": 1, "points": 20}, {"players": ["b"], "rank": 2, "points": 3}]
    }
    facts = [{"pool": "rugby", "game": f"g-{day}", **match} for day in (0, 200)]
    events = [
        event("finished", data["game"], data, time=format_time(START + timedelta(days=day)))
        for day, data in zip((0, 200), facts, strict=True)
    ]
    run("push", stdin=b"\n".join(events))
    run("worker", "--burst")

    found = run("pool", "stats", "rugby", "--games", "1", "--days", "30", "--json").json
    shown = run("pool", "stats", "rugby", "--games", "1", "--days", "30").stdout

    # A point of Elo is 20 ln(10) / 1600 here.
    assert found["fluctuation"]["width"] == pytest.approx(150 * 20 * math.log(10) / 1600)
    assert found["drift"]["steady_per_year"] == pytest.approx(10 * 20 * math.log(10) / 1600)
    assert "stayed within ±4.317" in shown
    assert "steady: no more than 0.2878" in shown


def test_unknown_pool_is_a_failure(run):
    ended = run("pool", "stats", "nope")

    assert (ended.code, ended.stderr) == (
        1,
        "petard: there is no pool 'nope': 'petard pool list' shows them\n",
    )
