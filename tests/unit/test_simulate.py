import math
import time
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from typing import Any

import pytest

from petard_schema import DeadReason, EventRefused, GameAbandoned, GameEvent, GameFinished, parse_event
from petard_schema.names import check_printable
from petard_worker.simulate import LIES, Season, simulate, simulate_with_labels, strengths

SMALL = Season(players=50, games=2000)
ONLY_THE_DRAIN_CAN_TELL = {
    DeadReason.WRONG_POOL,
    DeadReason.FROM_THE_FUTURE,
    DeadReason.CONFLICTING_GAME,
    DeadReason.ID_REUSED,
}
NOT_FROM_A_LINE = {
    DeadReason.UNKNOWN_POOL,
    DeadReason.BAD_SIGNATURE,
    DeadReason.UNSUPPORTED_GAME,
    DeadReason.INTERNAL_ERROR,
}


def true_events(season: Season) -> list[GameEvent]:
    return [parse_event(line) for line, label in simulate_with_labels(season) if label == "rated"]


def without_mischief(season: Season) -> Season:
    return replace(season, late_share=0.0, repeat_share=0.0, hostile_share=0.0)


def test_same_season_gives_the_same_bytes_on_every_machine() -> None:
    digest = sha256(b"\n".join(simulate(Season(games=1000)))).hexdigest()

    # Written down once: another version or platform must come to the same.
    assert digest == "cde470a5a73a1f22302e0f20d6e90795e0ea747f45df5735c596b865e4afc150"


def test_strengths_are_the_same_bits_everywhere() -> None:
    strength = strengths(Season(players=4))

    assert {name: value.hex() for name, value in strength.items()} == {
        "bold-badger-0": "0x1.00e649bf28d04p+10",
        "brisk-badger-1": "0x1.e8d7db4bd279fp+9",
        "calm-badger-2": "0x1.62d3bb23496b5p+10",
        "Zoë": "0x1.5f87999aed2d7p+10",
    }


def test_two_runs_agree() -> None:
    assert list(simulate(SMALL)) == list(simulate(SMALL))


def test_equal_seasons_written_differently_give_the_same_bytes() -> None:
    elsewhere = SMALL.start.astimezone(timezone(timedelta(hours=5)))

    assert list(simulate(replace(SMALL, mean=1500, spread=300, start=elsewhere))) == list(simulate(SMALL))


def test_another_seed_gives_other_games() -> None:
    one, two = true_events(SMALL), true_events(replace(SMALL, seed=2))

    assert {event.id for event in one}.isdisjoint(event.id for event in two)
    assert [event.data.sides for event in one] != [event.data.sides for event in two]


def test_two_seasons_of_one_seed_share_no_id_and_no_game() -> None:
    one, two = true_events(SMALL), true_events(replace(SMALL, spread=200.0))

    assert {event.id for event in one}.isdisjoint(event.id for event in two)
    assert {event.data.game for event in one}.isdisjoint(event.data.game for event in two)


def test_mischief_leaves_the_games_as_they_were() -> None:
    with_it = sorted((event.time, event.data.sides) for event in true_events(SMALL))
    without = [(event.time, event.data.sides) for event in true_events(without_mischief(SMALL))]

    assert repr(with_it) == repr(without)


def test_every_game_is_told_once_and_in_full() -> None:
    events = true_events(SMALL)

    assert len(events) == SMALL.games
    assert len({event.id for event in events}) == SMALL.games
    assert len({event.data.game for event in events}) == SMALL.games
    assert sorted(event.time for event in events) == [
        SMALL.start + timedelta(seconds=60 * number) for number in range(SMALL.games)
    ]


def test_players_are_unique_printable_and_partly_foreign() -> None:
    names = list(strengths(Season(players=1000)))

    assert len(set(names)) == 1000
    assert [check_printable(name) for name in names] == names
    assert {"Zoë", "李雷"} < set(names)


def test_strengths_have_the_mean_and_spread_asked_for() -> None:
    values = list(strengths(Season(players=20_000, mean=1200.0, spread=250.0)).values())

    mean = sum(values) / len(values)
    assert mean == pytest.approx(1200, abs=8)
    assert math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)) == pytest.approx(250, abs=6)


def test_results_follow_the_logistic_expected_score_draws_included() -> None:
    season = replace(without_mischief(Season()), draw_share=0.5, abandon_share=0.0)
    strength = strengths(season)
    actual: dict[int, list[float]] = defaultdict(list)
    expected: dict[int, list[float]] = defaultdict(list)
    for event in true_events(season):
        first, second = event.data.sides
        assert first.rank is not None
        assert second.rank is not None
        win = 1 / (1 + 10 ** ((strength[second.players[0]] - strength[first.players[0]]) / 400))
        expected[int(win * 5)].append(win)
        actual[int(win * 5)].append((1 + (second.rank > first.rank) - (second.rank < first.rank)) / 2)

    assert set(actual) == {0, 1, 2, 3, 4}
    for share, scores in actual.items():
        tolerance = 4 * 0.5 / math.sqrt(len(scores))
        assert sum(scores) / len(scores) == pytest.approx(sum(expected[share]) / len(scores), abs=tolerance)


def test_matchmaking_brings_closer_players_together_than_chance() -> None:
    strength = strengths(SMALL)

    def gap(one: str, two: str) -> float:
        return abs(strength[one] - strength[two])

    met = [gap(*(side.players[0] for side in event.data.sides)) for event in true_events(SMALL)]
    any_two = [gap(one, two) for one in strength for two in strength if one != two]
    assert sum(met) / len(met) < 0.7 * sum(any_two) / len(any_two)


def test_shares_are_kept() -> None:
    season = Season(abandon_share=0.05, repeat_share=0.04, hostile_share=0.03)

    labels = Counter(
        label if isinstance(label, str) and label in {"rated", "repeat"} else "hostile"
        for _, label in simulate_with_labels(season)
    )
    abandoned = sum(isinstance(event, GameAbandoned) for event in true_events(season))

    assert labels["rated"] == season.games
    assert labels["repeat"] == pytest.approx(0.04 * season.games, rel=0.15)
    assert labels["hostile"] == pytest.approx(0.03 * season.games, rel=0.15)
    assert abandoned == pytest.approx(0.05 * season.games, rel=0.15)


def test_abandoned_games_have_no_ranks_and_one_leaver() -> None:
    abandoned = [event for event in true_events(SMALL) if isinstance(event, GameAbandoned)]

    assert abandoned
    assert {side.rank for event in abandoned for side in event.data.sides} == {None}
    assert {len(event.data.abandoned_by) for event in abandoned} == {1}


def test_some_players_abandon_often_enough_to_be_punished() -> None:
    bombs: Counter[str] = Counter()
    punished = 0
    for event in true_events(Season()):
        if isinstance(event, GameAbandoned):
            punished += bombs[event.data.abandoned_by[0]] > 20
            bombs[event.data.abandoned_by[0]] = min(bombs[event.data.abandoned_by[0]] + 10, 50)
        else:
            for side in event.data.sides:
                bombs[side.players[0]] = max(bombs[side.players[0]] - 1, 0)

    assert punished >= 10


def test_late_events_arrive_after_a_newer_game_of_their_players() -> None:
    late = 0
    last_played: dict[str, datetime] = {}
    for event in true_events(Season(late_share=0.05)):
        players = [side.players[0] for side in event.data.sides]
        late += any(event.time < last_played.get(player, event.time) for player in players)
        if isinstance(event, GameFinished):
            last_played |= {
                player: max(event.time, last_played.get(player, event.time)) for player in players
            }

    assert late == pytest.approx(0.05 * 20_000, rel=0.15)


def test_without_late_events_time_never_goes_back() -> None:
    times = [event.time for event in true_events(replace(SMALL, late_share=0.0))]

    assert times == sorted(times)


def test_repeats_are_the_bytes_of_an_earlier_line() -> None:
    told: set[bytes] = set()
    repeats = 0
    for line, label in simulate_with_labels(SMALL):
        if label == "rated":
            assert line not in told
            told.add(line)
        if label == "repeat":
            assert line in told
            repeats += 1

    assert repeats


def test_a_hostile_season_tells_every_lie_in_its_first_round() -> None:
    season = Season(games=len(LIES) + 50, hostile_share=1.0, abandon_share=0.0)

    labels = [label for line, label in simulate_with_labels(season) if isinstance(label, DeadReason)]

    assert Counter(labels[: len(LIES)]) == Counter(reason for reason, _ in LIES)
    assert set(labels) == set(DeadReason) - NOT_FROM_A_LINE


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_line_is_refused_for_the_reason_on_its_label(seed: int) -> None:
    for line, label in simulate_with_labels(replace(SMALL, seed=seed, hostile_share=0.5)):
        if label in {"rated", "repeat"} or label in ONLY_THE_DRAIN_CAN_TELL:
            parse_event(line)
        else:
            with pytest.raises(EventRefused) as refused:
                parse_event(line)
            assert refused.value.reason.split(":")[0] == label


def test_lies_that_only_the_drain_can_tell_are_what_they_claim() -> None:
    bodies: dict[str, GameEvent] = {}
    games: dict[str, GameEvent] = {}
    found: Counter[DeadReason] = Counter()
    for line, label in simulate_with_labels(replace(SMALL, hostile_share=0.5)):
        if isinstance(label, DeadReason) and label not in ONLY_THE_DRAIN_CAN_TELL:
            continue
        event = parse_event(line)
        if label == "rated":
            bodies[event.id] = games[event.data.game] = event
        elif label == DeadReason.WRONG_POOL:
            assert event.data.pool != SMALL.pool
            assert event.id not in bodies
        elif label == DeadReason.FROM_THE_FUTURE:
            assert event.time > datetime(9000, 1, 1, tzinfo=UTC)
            assert event.id not in bodies
        elif label == DeadReason.CONFLICTING_GAME:
            assert event.id not in bodies
            assert event.data.sides != games[event.data.game].data.sides
        elif label == DeadReason.ID_REUSED:
            assert event.data.game not in games
            assert event != bodies[event.id]
        if isinstance(label, DeadReason):
            found[label] += 1

    assert set(found) == ONLY_THE_DRAIN_CAN_TELL


def test_no_line_holds_a_newline_or_is_empty() -> None:
    assert all(line and b"\n" not in line for line in simulate(replace(SMALL, hostile_share=1.0)))


def test_a_season_without_games_is_silent() -> None:
    assert list(simulate(Season(games=0, hostile_share=1.0))) == []


def test_two_players_make_a_season() -> None:
    events = true_events(Season(players=2, games=50))

    assert {player for event in events for side in event.data.sides for player in side.players} == set(
        strengths(Season(players=2))
    )


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"players": 1}, "two players"),
        ({"games": -1}, "fewer than no games"),
        ({"draw_share": 1.5}, "draw_share is a share"),
        ({"late_share": -0.1}, "late_share is a share"),
        ({"hostile_share": math.nan}, "hostile_share is a share"),
        ({"start": datetime(2024, 1, 1)}, "start needs a zone"),  # noqa: DTZ001
        ({"seconds_between_games": 0.0}, "must be positive"),
        ({"pool": "Not A Pool"}, "a pool is"),
        ({"source": ""}, "source has"),
        ({"seed": 2**63}, "63 bits"),
    ],
)
def test_a_season_that_cannot_be_played_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        replace(SMALL, **changes)


def test_a_full_season_takes_less_than_a_second() -> None:
    started = time.process_time()

    lines = sum(1 for _ in simulate(Season()))

    assert lines > 20_000
    assert time.process_time() - started < 1


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_glicko_with_bombs_finds_the_true_order(seed: int) -> None:
    season = Season(seed=seed)
    strength = strengths(season)

    rating = glicko(true_events(season))

    assert spearman([strength[name] for name in rating], [rating[name] for name in rating]) >= 0.9


def test_spearman_knows_order_from_disorder() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert spearman([1, 2, 3, 4], [40, 30, 20, 10]) == -1


def glicko(events: list[GameEvent]) -> dict[str, float]:
    """Play the events after Glickman's Glicko, one game at a time, with the bombs of the service."""
    states: dict[str, tuple[float, float, datetime | None]] = defaultdict(lambda: (1500.0, 350.0, None))
    bombs: Counter[str] = Counter()

    def aged(player: str, now: datetime) -> tuple[float, float]:
        r, RD, last = states[player]
        days = max((now - last).total_seconds() / 86400, 0) if last else 0
        return r, min(math.sqrt(RD**2 + 4.826**2 * days), 350)

    def played(
        player: str, now: datetime, own: tuple[float, float], rival: tuple[float, float], s: float
    ) -> None:
        q = math.log(10) / 400
        g = 1 / math.sqrt(1 + 3 * q**2 * rival[1] ** 2 / math.pi**2)
        E = 1 / (1 + 10 ** (-g * (own[0] - rival[0]) / 400))
        precision = 1 / own[1] ** 2 + q**2 * g**2 * E * (1 - E)
        r = min(max(own[0] + q / precision * g * (s - E), 0), 3000)
        states[player] = (r, max(math.sqrt(1 / precision), 30), max(now, states[player][2] or now))

    for event in events:
        one, two = (side.players[0] for side in event.data.sides)
        if isinstance(event, GameAbandoned):
            leaver = event.data.abandoned_by[0]
            if bombs[leaver] > 20:
                played(leaver, event.time, aged(leaver, event.time), (0.0, 30.0), 0.0)
            bombs[leaver] = min(bombs[leaver] + 10, 50)
            continue
        ranks = [side.rank for side in event.data.sides]
        s = {(1, 2): 1.0, (1, 1): 0.5, (2, 1): 0.0}[ranks[0], ranks[1]]
        before = aged(one, event.time), aged(two, event.time)
        played(one, event.time, before[0], before[1], s)
        played(two, event.time, before[1], before[0], 1 - s)
        for player in (one, two):
            bombs[player] = max(bombs[player] - 1, 0)
    return {player: state[0] for player, state in states.items()}


def spearman(one: list[float], two: list[float]) -> float:
    """Return the rank correlation of two lists without ties."""
    n = len(one)
    first = {value: rank for rank, value in enumerate(sorted(one))}
    second = {value: rank for rank, value in enumerate(sorted(two))}
    assert len(first) == len(second) == n
    distance = sum((first[a] - second[b]) ** 2 for a, b in zip(one, two, strict=True))
    return 1 - 6 * distance / (n * (n * n - 1))
