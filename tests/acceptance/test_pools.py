"""`petard pool`: made with checked parameters, changed under a new version, resumed when it was stopped."""

import math

import pytest

from integration.arena import finished
from petard_worker.ratings.pool_rules import SYSTEMS, PoolRules, pool_rules

STOP = """
    UPDATE petard.pool
    SET stopped = 'too many failures', stopped_at = '2026-01-02T03:04:05Z', stops = 3
"""


def test_new_pool_has_every_parameter_and_setting(run):
    created = run(
        "pool",
        "create",
        "chess-blitz",
        "-p",
        "rating=1200",
        "-p",
        "bomb_threshold=10",
        "-s",
        "ranked_by=conservative",
    )
    shown = run("pool", "show", "chess-blitz", "--json").json
    listed = run("pool", "list", "--json").json

    assert (created.code, created.stderr) == (0, "created pool chess-blitz (glicko)\n")
    assert shown["parameters"] == PoolRules().parameters() | {"rating": 1200.0, "bomb_threshold": 10}
    assert shown["settings"]["ranked_by"] == "conservative"
    assert (shown["version"], shown["seq"], shown["epoch"], shown["stopped"]) == (1, 0, 1, None)
    assert listed == [shown]


def test_show_for_people_explains_every_parameter(run, pool):
    shown = run("pool", "show", pool).stdout

    for parameter in PoolRules().parameters():
        assert parameter in shown
    assert "a bomb above it is punished (a whole number from 0 to 10000)" in shown


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_makes_a_pool_that_says_whose_formulas_it_uses(run, system):
    created = run("pool", "create", f"pool-{system}", "--system", system)
    shown = run("pool", "show", f"pool-{system}", "--json").json

    assert created.code == 0
    assert (shown["system"], shown["citation"]) == (system, SYSTEMS[system].citation)
    assert shown["parameters"] == pool_rules(system, {}).parameters()


def test_systems_are_listed_with_what_their_parameters_mean(run):
    people, programs = run("pool", "systems").stdout, run("pool", "systems", "--json").json

    assert [one["system"] for one in programs] == [*SYSTEMS]
    for one in programs:
        assert one["system"] in people
        for name, told in one["parameters"].items():
            assert name in people
            assert told["meaning"].endswith(")")
    assert run("pool", "systems", "elo", "--json").json == [programs[[*SYSTEMS].index("elo")]]
    assert run("pool", "systems", "chess").code == 2


def test_pool_that_exists_is_a_failure_unless_that_is_fine(run, pool):
    again = run("pool", "create", pool)
    fine = run("pool", "create", pool, "--exist-ok")

    assert (again.code, fine.code) == (1, 0)
    assert "exists already" in again.stderr


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("c=-1", "c is '-1', but must be a number from 0 to 1000 (default 4.826)"),
        ("rd=0", "rd is '0', but must be a number from 1 to 1000 (default 350.0)"),
        ("rd=nan", "rd is 'nan', but must be a number from 1 to 1000 (default 350.0)"),
        ("bomb_step=1.5", "bomb_step is '1.5', but must be a whole number from 0 to 10000 (default 10)"),
        ("bomb_check=never", "bomb_check is 'never', but must be one of before, after (default before)"),
        ("award_win=yes", "award_win is 'yes', but must be true or false (default False)"),
        ("rating=9000", "rating 9000 is not between rating_min 0 and rating_max 3000"),
        ("kfactor=32", "no parameter 'kfactor'; there are rating, rd, c, "),
    ],
)
def test_bad_parameter_is_refused_with_value_range_and_default(run, pool, given, words):
    created = run("pool", "create", "q", "--param", given)
    changed = run("pool", "set", pool, "--param", given)

    assert (created.code, changed.code) == (2, 2)
    assert words in created.stderr
    assert words in changed.stderr
    assert [one["pool"] for one in run("pool", "list", "--json").json] == [pool]
    assert run("pool", "show", pool, "--json").json["version"] == 1


def test_unknown_parameter_is_answered_with_all_there_are(run):
    ended = run("pool", "create", "q", "--param", "kfactor=32")

    assert all(name in ended.stderr for name in PoolRules().parameters())


def test_bad_setting_and_unknown_system_are_refused(run):
    setting = run("pool", "create", "q", "--setting", "stream_length=1")
    system = run("pool", "create", "q", "--system", "elo9")

    assert (setting.code, system.code) == (2, 2)
    assert "stream_length is '1', but must be a whole number from 100" in setting.stderr
    assert "no system 'elo9'; there are elo, fifa, glicko, " in system.stderr


def test_new_parameters_are_a_new_version_from_the_next_event_on(run, play, owner):
    play(finished(1), finished(2))

    changed = run("pool", "set", "p", "--param", "bomb_forgive=2")
    play(finished(3))
    shown = run("pool", "show", "p", "--json").json

    assert changed.stderr == "p: parameters version 2, in force from ledger entry 3 on\n"
    assert (shown["version"], shown["parameters"]["bomb_forgive"]) == (2, 2)
    versions = owner.execute("SELECT version FROM petard.ledger ORDER BY seq").fetchall()
    assert versions == [(1,), (1,), (2,)]
    since = owner.execute("SELECT version, since_seq FROM petard.pool_version ORDER BY version").fetchall()
    assert since == [(1, 1), (2, 3)]


def test_new_settings_are_no_new_version(run, pool):
    changed = run("pool", "set", pool, "--setting", "provisional_rd=80")
    shown = run("pool", "show", pool, "--json").json

    assert changed.code == 0
    assert (shown["version"], shown["settings"]["provisional_rd"]) == (1, 80.0)


def test_stopped_pool_says_so_and_goes_on_when_it_is_resumed(run, play, owner):
    play(finished(1))
    owner.execute(STOP)
    run("push", stdin=finished(2))

    (stopped,) = run("status", "--json").json["pools"]
    told = run("status").stdout
    resumed = run("pool", "resume", "p")
    run("worker", "--burst")
    (after,) = run("status", "--json").json["pools"]
    again = run("pool", "resume", "p")

    assert (stopped["stopped"], stopped["backlog"], stopped["seq"]) == ("too many failures", 1, 1)
    assert (stopped["stopped_at"], stopped["stops"]) == ("2026-01-02T03:04:05Z", 3)
    assert "too many failures" in told
    assert "2026-01-02T03:04:05Z" in told
    assert resumed.stderr == "p: resumed; it was stopped because too many failures\n"
    assert (after["stopped_at"], after["stops"]) == (None, 3)
    assert (again.code, again.stderr) == (0, "p: was not stopped\n")
    assert (after["stopped"], after["backlog"], after["seq"]) == (None, 0, 2)


def test_who_is_provisional_goes_by_the_size_of_a_systems_points(run):
    run("pool", "create", "small", "--system", "weng_lin")
    run("pool", "create", "own", "--system", "weng_lin", "--setting", "provisional_rd=2")
    run("pool", "create", "huge", "--system", "weng_lin", "-p", "beta=10000", "-p", "rating_max=10000")
    run("pool", "create", "glicko")

    shown = [run("pool", "show", name, "--json").json for name in ("small", "own", "huge", "glicko")]
    told = run("pool", "show", "small").stdout

    # 110 points of Elo, of which each is sqrt(2) beta ln(10) / 400; settings end at 1000.
    point = math.sqrt(2) * (25 / 6) * math.log(10) / 400
    found = [pool["settings"]["provisional_rd"] for pool in shown]
    assert found == [pytest.approx(110 * point), 2, 1000, 110]
    assert str(found[0]) in told


def test_newcomer_of_weng_lin_is_provisional_and_after_forty_games_not(run):
    run("pool", "create", "p", "--system", "weng_lin")

    boards = []
    for games in (range(1), range(1, 20), range(20, 40)):
        sides = [("alice", "bob")[:: 1 if number % 2 else -1] for number in games]
        run("push", stdin=b"\n".join(finished(n, *two) for n, two in zip(games, sides, strict=True)))
        run("worker", "--burst")
        boards.append(run("pool", "stats", "p", "--json").json["distribution"])

    assert [(board["players"], board["provisional"]) for board in boards] == [(2, 2), (2, 2), (2, 0)]
