from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from petard_schema import GameAbandoned, GameEvent, GameFinished, IgnoredReason
from petard_worker.fold import (
    PlayerChange,
    PlayerRecord,
    Verdict,
    When,
    best_rank,
    finish_duel,
    finish_field,
    fold_event,
    new_record,
    outcome_of,
    players_of,
)
from petard_worker.ratings.glicko import aged_rd
from petard_worker.ratings.pool_rules import SYSTEMS, PoolRules, pool_rules

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)
RULES = PoolRules()
WINNERS_STAY = pool_rules("glicko", {"award_win": True})

# Two unknown players, one wins: a worked number of Glicko.
WON, LOST, RD_AFTER = 1662.2120026057648, 1337.7879973942352, 290.2305060910912


def sided(*sides: Any) -> list[dict[str, Any]]:
    """Sides from (rank, players…); a rank of None is left out."""
    return [
        {"players": list(players)} if rank is None else {"players": list(players), "rank": rank}
        for rank, *players in sides
    ]


def finished(*sides: Any, time: datetime = NOON, **data: Any) -> GameFinished:
    body = {"pool": "p", "game": "g", "sides": sided(*sides), **data}
    return GameFinished.model_validate({"id": "1", "source": "/s", "time": time, "data": body})


def abandoned(by: list[str], *sides: Any, time: datetime = NOON, **data: Any) -> GameAbandoned:
    body = {"pool": "p", "game": "g", "sides": sided(*sides), "abandoned_by": by, **data}
    return GameAbandoned.model_validate({"id": "1", "source": "/s", "time": time, "data": body})


def fold(event: GameEvent, rules: PoolRules = RULES, **known: PlayerRecord) -> Verdict:
    """Fold an event of players who are new where nothing is known of them."""
    records = {player: known.get(player) or new_record(rules) for player in players_of(event)}
    return fold_event(rules, records, event)


def by_player(verdict: Verdict) -> dict[str, PlayerChange]:
    assert verdict.ignored is None
    changes = {change.player: change for change in verdict.changes}
    assert len(changes) == len(verdict.changes), "somebody is changed twice"
    return changes


def record(**changed: Any) -> PlayerRecord:
    return new_record(RULES)._replace(**changed)


DUEL = ((1, "alice"), (2, "bob"))
ALICE_LEFT = abandoned(["alice"], (None, "alice"), (None, "bob"))


# --- Finished games -----------------------------------------------------------------------------------------


def test_unknown_player_has_played_nothing() -> None:
    assert new_record(RULES) == PlayerRecord(
        rating=1500.0,
        rd=350.0,
        volatility=None,
        bomb=0,
        abandons=0,
        penalties=0,
        games=0,
        wins=0,
        draws=0,
        losses=0,
        peak=1500.0,
        last_played=None,
        player_seq=0,
    )


def test_finished_game_rates_both_players() -> None:
    verdict = fold(finished(*DUEL))

    changes = by_player(verdict)
    assert changes["alice"].after.rating == pytest.approx(WON, abs=1e-9)
    assert changes["bob"].after.rating == pytest.approx(LOST, abs=1e-9)
    assert changes["alice"].after.rd == changes["bob"].after.rd == pytest.approx(RD_AFTER, abs=1e-9)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_duel_is_rated_as_any_game_is(system: str) -> None:
    rules, chance = pool_rules(system, {}), Random(7)
    records: dict[str, PlayerRecord] = {}
    names = [f"player-{number}" for number in range(9)]
    for _ in range(500):
        one, other = chance.sample(names, 2)
        rank, points = chance.choice([(1, (3.0, 1.0)), (2, (0.0, 2.0)), (1, (1.0, 1.0))])
        sides = [
            {"players": [one], "rank": rank, "points": points[0], "home": chance.random() < 0.5},
            {
                "players": [other],
                "rank": 2 if points[0] > points[1] else 1,
                "points": points[1],
                "weights": [1],
            },
        ]
        game = finished(
            time=NOON + timedelta(hours=chance.randint(0, 9_000)),
            sides=sides,
            importance=chance.choice([1, 20, 35, 60]),
            knockout=chance.random() < 0.5,
        )
        current = {name: records.get(name) or new_record(rules) for name in players_of(game)}
        when = When(game.time, None)

        changes = finish_duel(rules, current, game, when)

        assert changes == finish_field(rules, current, game, when)
        records.update({change.player: change.after for change in changes})


def test_change_tells_what_was_before_and_why() -> None:
    verdict = fold(finished(*DUEL))

    alice, bob = verdict.changes
    assert alice.before == bob.before == new_record(RULES)
    assert (alice.expected, alice.actual, alice.rd_aged) == (0.5, 1.0, 350.0)
    assert (bob.expected, bob.actual, bob.rd_aged) == (0.5, 0.0, 350.0)
    assert not alice.penalty
    assert not alice.late


@pytest.mark.parametrize(
    ("ranks", "tallies"),
    [
        ((1, 2), ("win", "loss")),
        ((2, 1), ("loss", "win")),
        ((1, 1), ("draw", "draw")),
        ((5, 9), ("win", "loss")),
        ((7, 7), ("draw", "draw")),
        ((1, 2, 3), ("win", "loss", "loss")),
        ((1, 1, 2), ("draw", "draw", "loss")),
        ((1, 2, 2), ("win", "loss", "loss")),
        ((3, 3, 3), ("draw", "draw", "draw")),
    ],
)
def test_best_alone_wins_and_best_shared_draws(ranks: tuple[int, ...], tallies: tuple[str, ...]) -> None:
    sides = [(rank, f"player-{i}") for i, rank in enumerate(ranks)]

    verdict = fold(finished(*sides))

    after = [change.after for change in verdict.changes]
    assert [(player.wins, player.draws, player.losses) for player in after] == [
        (tally == "win", tally == "draw", tally == "loss") for tally in tallies
    ]
    assert all(player.games == 1 for player in after)


def test_everybody_of_a_team_gets_the_result_of_the_team() -> None:
    verdict = fold(finished((1, "alice", "anna"), (2, "bob", "ben")))

    changes = by_player(verdict)
    assert [*changes] == ["alice", "anna", "bob", "ben"]
    assert [change.after.wins for change in changes.values()] == [1, 1, 0, 0]
    assert [change.after.losses for change in changes.values()] == [0, 0, 1, 1]
    assert changes["alice"].after.rating == changes["anna"].after.rating > 1500


def test_counters_go_on_from_where_they_were() -> None:
    alice = record(
        games=10, wins=4, draws=3, losses=3, abandons=2, penalties=1, bomb=17, player_seq=13, peak=1800.0
    )

    verdict = fold(finished(*DUEL), alice=alice)

    after = by_player(verdict)["alice"].after
    assert (after.games, after.wins, after.draws, after.losses) == (11, 5, 3, 3)
    assert (after.abandons, after.penalties, after.bomb) == (2, 1, 16)
    assert after.player_seq == 14


def test_finished_game_takes_one_off_every_bomb_and_never_below_zero() -> None:
    verdict = fold(finished(*DUEL), alice=record(bomb=30), bob=record(bomb=0))

    changes = by_player(verdict)
    assert changes["alice"].after.bomb == 29
    assert changes["bob"].after.bomb == 0


def test_peak_rises_with_the_rating_and_never_falls() -> None:
    verdict = fold(finished(*DUEL), alice=record(peak=1600.0), bob=record(peak=1700.0))

    changes = by_player(verdict)
    assert changes["alice"].after.peak == changes["alice"].after.rating > 1600
    assert changes["bob"].after.peak == 1700


@pytest.mark.parametrize("decided_by", ["play", "shootout", "forfeit"])
def test_how_a_game_was_decided_makes_no_difference_to_glicko(decided_by: str) -> None:
    verdict = fold(finished(*DUEL, decided_by=decided_by, importance=20.0))

    assert verdict == fold(finished(*DUEL))


# --- Time ---------------------------------------------------------------------------------------------------


def test_idle_player_ages_by_the_days_since_their_last_game() -> None:
    alice = record(rd=60.0, last_played=NOON - 365 * DAY)

    verdict = fold(finished(*DUEL), alice=alice)

    assert by_player(verdict)["alice"].rd_aged == pytest.approx(110, abs=0.01)


def test_hours_count_as_parts_of_a_day() -> None:
    alice = record(rd=60.0, last_played=NOON - timedelta(hours=6))

    verdict = fold(finished(*DUEL), alice=alice)

    assert by_player(verdict)["alice"].rd_aged == aged_rd(60, 4.826, 0.25, 350)


def test_last_played_becomes_the_time_of_the_game() -> None:
    verdict = fold(finished(*DUEL), alice=record(last_played=NOON - DAY))

    assert all(change.after.last_played == NOON for change in verdict.changes)


def test_late_event_ages_nobody_and_never_moves_last_played_back() -> None:
    alice = record(rd=60.0, last_played=NOON + 300 * DAY)
    bob = record(rd=60.0, last_played=NOON - 365 * DAY)

    verdict = fold(finished(*DUEL), alice=alice, bob=bob)

    changes = by_player(verdict)
    assert changes["alice"].late
    assert changes["alice"].rd_aged == 60
    assert changes["alice"].after.last_played == NOON + 300 * DAY
    assert changes["alice"].after.rating > 1500
    # It is late for her only.
    assert not changes["bob"].late
    assert changes["bob"].rd_aged == pytest.approx(110, abs=0.01)
    assert changes["bob"].after.last_played == NOON


def test_two_games_at_the_same_time_are_not_late() -> None:
    verdict = fold(finished(*DUEL), alice=record(rd=60.0, last_played=NOON))

    alice = by_player(verdict)["alice"]
    assert not alice.late
    assert alice.rd_aged == 60


# --- Abandoned games ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bomb", [0, 10, 20])
def test_unpunished_abandon_changes_bomb_and_abandons_and_nothing_else(bomb: int) -> None:
    before = record(bomb=bomb, rd=60.0, last_played=NOON - DAY, player_seq=7, games=3, abandons=2)

    verdict = fold(ALICE_LEFT, alice=before)

    assert verdict.changes == [
        PlayerChange("alice", before, before._replace(bomb=bomb + 10, abandons=3, player_seq=8))
    ]


@pytest.mark.parametrize(("bomb", "after"), [(21, 31), (30, 40), (40, 50), (45, 50), (50, 50)])
def test_punished_abandon_is_a_rated_event_but_no_game(bomb: int, after: int) -> None:
    before = record(bomb=bomb, games=3, wins=1, draws=1, losses=1, abandons=4, penalties=1, player_seq=7)

    verdict = fold(ALICE_LEFT, alice=before)

    (change,) = verdict.changes
    assert change.penalty
    assert change.after.rating == pytest.approx(1500 - 701.3, abs=0.05)
    assert change.after.rd < 350
    assert change.after == before._replace(
        rating=change.after.rating,
        rd=change.after.rd,
        bomb=after,
        abandons=5,
        penalties=2,
        last_played=NOON,
        player_seq=8,
    )


def test_penalty_ages_the_player_and_explains_itself() -> None:
    alice = record(bomb=30, rd=60.0, last_played=NOON - 365 * DAY)

    verdict = fold(ALICE_LEFT, alice=alice)

    (change,) = verdict.changes
    assert change.rd_aged == pytest.approx(110, abs=0.01)
    assert change.actual == 0.0
    assert change.expected == pytest.approx(0.9998, abs=1e-4)


def test_late_penalty_never_moves_last_played_back() -> None:
    alice = record(bomb=30, rd=60.0, last_played=NOON + DAY)

    verdict = fold(ALICE_LEFT, alice=alice)

    (change,) = verdict.changes
    assert change.late
    assert change.rd_aged == 60
    assert change.after.last_played == NOON + DAY


def test_penalty_leaves_the_peak_where_it_was() -> None:
    verdict = fold(ALICE_LEFT, alice=record(bomb=30, peak=1500.0))

    assert verdict.changes[0].after.peak == 1500


def test_those_who_stay_keep_rating_and_bomb() -> None:
    event = abandoned(["alice"], (1, "alice", "anna"), (2, "bob"))

    verdict = fold(event, bob=record(bomb=30), anna=record(bomb=30))

    assert [change.player for change in verdict.changes] == ["alice"]


def test_everybody_who_left_is_counted() -> None:
    event = abandoned(["bob", "alice"], (None, "alice"), (None, "bob"))

    verdict = fold(event, alice=record(bomb=30))

    changes = by_player(verdict)
    assert (changes["alice"].after.bomb, changes["alice"].penalty) == (40, True)
    assert (changes["bob"].after.bomb, changes["bob"].penalty) == (10, False)


def test_ranks_of_an_abandoned_game_rate_nobody() -> None:
    ranked = abandoned(["alice"], (2, "alice"), (1, "bob"))

    assert fold(ranked) == fold(ALICE_LEFT)


# --- Those who stayed are winners ---------------------------------------------------------------------------


def test_who_stayed_wins_against_who_left() -> None:
    verdict = fold(ALICE_LEFT, WINNERS_STAY, bob=record(bomb=5))

    changes = by_player(verdict)
    bob = changes["bob"].after
    assert bob.rating == pytest.approx(WON, abs=1e-9)
    assert (bob.games, bob.wins, bob.losses, bob.bomb, bob.last_played) == (1, 1, 0, 4, NOON)
    # She is not rated by it: her abandon was free.
    assert changes["alice"].after == new_record(RULES)._replace(bomb=10, abandons=1, player_seq=1)


def test_penalty_comes_on_top_of_the_awarded_win_and_does_not_touch_it() -> None:
    verdict = fold(ALICE_LEFT, WINNERS_STAY, alice=record(bomb=30))

    changes = by_player(verdict)
    assert changes["alice"].after.rating == pytest.approx(1500 - 701.3, abs=0.05)
    # Bob won against her as she was before the game.
    assert changes["bob"].after.rating == pytest.approx(WON, abs=1e-9)


def test_win_is_awarded_to_the_team_that_nobody_left() -> None:
    event = abandoned(["alice"], (None, "alice", "anna"), (None, "bob", "ben"))

    verdict = fold(event, WINNERS_STAY)

    changes = by_player(verdict)
    assert [*changes] == ["alice", "bob", "ben"]
    assert changes["bob"].after.wins == changes["ben"].after.wins == 1
    won = by_player(fold(finished((2, "alice", "anna"), (1, "bob", "ben"))))
    assert changes["bob"].after == won["bob"].after


def test_nobody_wins_a_game_that_every_side_deserted() -> None:
    event = abandoned(["alice", "ben"], (None, "alice", "anna"), (None, "bob", "ben"))

    verdict = fold(event, WINNERS_STAY)

    assert [*by_player(verdict)] == ["alice", "ben"]


def test_two_sides_that_stayed_both_win_and_not_from_each_other() -> None:
    event = abandoned(["alice"], (None, "alice"), (None, "bob"), (None, "carol"))

    verdict = fold(event, WINNERS_STAY, carol=record(rating=1700.0, rd=100.0))

    changes = by_player(verdict)
    assert [*changes] == ["alice", "bob", "carol"]
    assert changes["bob"].after.rating == pytest.approx(WON, abs=1e-9)
    assert changes["bob"].actual == changes["carol"].actual == 1.0
    assert changes["carol"].after.rating > 1700


def test_one_side_that_stayed_wins_from_both_that_left() -> None:
    event = abandoned(["alice", "bob"], (None, "alice"), (None, "bob"), (None, "carol"))

    verdict = fold(event, WINNERS_STAY)

    changes = by_player(verdict)
    assert changes["carol"].actual == 2.0
    assert changes["carol"].after.rating > WON
    assert (changes["carol"].after.games, changes["carol"].after.wins) == (1, 1)


# --- Nothing happens ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (finished(*DUEL, rated=False), IgnoredReason.UNRATED),
        (abandoned(["alice"], *DUEL, rated=False), IgnoredReason.UNRATED),
        (abandoned(["alice"], *DUEL, fault="server"), IgnoredReason.SERVER_FAULT),
        (abandoned(["alice"], *DUEL, fault="server", rated=False), IgnoredReason.UNRATED),
    ],
)
@pytest.mark.parametrize("rules", [RULES, WINNERS_STAY])
def test_event_that_counts_for_nobody_is_ignored_with_the_reason(
    event: GameEvent, reason: IgnoredReason, rules: PoolRules
) -> None:
    verdict = fold(event, rules, alice=record(bomb=30))

    assert verdict == Verdict(reason, ())


# --- When two reports agree ---------------------------------------------------------------------------------


def assert_same(first: GameEvent, second: GameEvent) -> None:
    assert outcome_of(first) == outcome_of(second)


def assert_different(first: GameEvent, second: GameEvent) -> None:
    assert outcome_of(first) != outcome_of(second)


def test_only_the_order_of_the_ranks_matters() -> None:
    assert_same(finished((1, "alice"), (3, "bob")), finished(*DUEL))
    assert_same(finished((5, "a"), (5, "b"), (9, "c")), finished((1, "a"), (1, "b"), (2, "c")))
    assert_different(finished(*DUEL), finished((2, "alice"), (1, "bob")))
    assert_different(finished(*DUEL), finished((1, "alice"), (1, "bob")))


def test_order_of_sides_and_of_mates_does_not_matter() -> None:
    assert_same(finished(*DUEL), finished((2, "bob"), (1, "alice")))
    assert_same(finished((1, "a", "b"), (2, "c")), finished((2, "c"), (1, "b", "a")))
    assert_different(finished((1, "a", "b"), (2, "c")), finished((1, "a"), (2, "b", "c")))


def test_time_id_and_meta_may_differ() -> None:
    again = finished(*DUEL, time=NOON + DAY, meta={"x": 1}, started=NOON)
    again = again.model_copy(update={"id": "2", "source": "/elsewhere"})

    assert_same(finished(*DUEL), again)


def pointed(points: float | None, home: bool | None = None) -> GameFinished:
    sides = [
        {"players": ["alice"], "rank": 1, "points": points, "home": home},
        {"players": ["bob"], "rank": 2},
    ]
    return finished(sides=sides)


def test_points_must_agree() -> None:
    assert_same(pointed(3.0), pointed(3.0))
    assert_different(pointed(3.0), pointed(2.0))
    assert_different(pointed(0.0), pointed(None))


def test_side_that_says_nothing_of_home_is_not_at_home() -> None:
    assert_same(pointed(1.0, home=None), pointed(1.0, home=False))
    assert_different(pointed(1.0, home=None), pointed(1.0, home=True))


@pytest.mark.parametrize(
    "data", [{"rated": False}, {"decided_by": "shootout"}, {"decided_by": "forfeit"}, {"importance": 2.0}]
)
def test_what_can_change_the_rating_must_agree(data: dict[str, Any]) -> None:
    assert_same(finished(*DUEL, **data), finished(*DUEL, **data))
    assert_different(finished(*DUEL), finished(*DUEL, **data))


def test_finished_and_abandoned_never_agree() -> None:
    assert_different(finished(*DUEL), abandoned(["alice"], *DUEL))


def test_who_left_and_whose_fault_it_was_must_agree() -> None:
    assert_same(abandoned(["alice", "bob"], *DUEL), abandoned(["bob", "alice"], *DUEL))
    assert_different(abandoned(["alice"], *DUEL), abandoned(["bob"], *DUEL))
    assert_different(abandoned(["alice"], *DUEL), abandoned(["alice"], *DUEL, fault="server"))
    assert_different(abandoned(["alice"], *DUEL), abandoned(["alice"], *DUEL, rated=False))


def test_missing_rank_is_another_outcome_than_a_given_one() -> None:
    assert_different(ALICE_LEFT, abandoned(["alice"], *DUEL))
    assert_same(
        abandoned(["alice"], (None, "alice"), (1, "bob")), abandoned(["alice"], (4, "bob"), (None, "alice"))
    )


@pytest.mark.parametrize(
    ("ranks", "best"), [([1, 2], (1, False)), ([2, 2], (2, True)), ([3, 2, 3], (2, False)), ([9], (9, False))]
)
def test_best_rank_is_the_lowest_and_may_be_shared(ranks: list[int], best: tuple[int, bool]) -> None:
    assert best_rank(ranks) == best
