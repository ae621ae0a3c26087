import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import NoneType
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_schema import (
    DeadReason,
    EventRefused,
    GameEvent,
    IgnoredReason,
    parse_event,
    read_counted,
    read_event,
)
from petard_schema.times import format_time
from petard_worker.batch import Batch, EventKey, History, affordable, read_arrival
from petard_worker.fold import PlayerRecord, fold_event, new_record, outcome_of, players_of
from petard_worker.ratings.glicko import Glicko
from petard_worker.ratings.pool_rules import PoolRules
from petard_worker.ratings.system import PlayerState, Rated

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RULES = PoolRules()
NOTHING = History({}, {}, {})


def event(number: int, *ranked: str, time: datetime = NOON, **changed: Any) -> bytes:
    """The text of a finished game with a number of its own: who stands first has won."""
    sides = [{"players": [player], "rank": rank} for rank, player in enumerate(ranked or ("alice", "bob"), 1)]
    data = {"pool": "p", "game": f"game-{number}", "sides": sides}
    document = {
        "specversion": "1.0",
        "id": f"event-{number}",
        "source": "/s",
        "type": "petard.game.finished.v1",
        "time": format_time(time),
        "data": {**data, **{name: value for name, value in changed.items() if name not in ENVELOPE}},
        **{name: value for name, value in changed.items() if name in ENVELOPE},
    }
    return json.dumps(document, separators=(",", ":")).encode()


ENVELOPE = ("id", "source", "type")


def left(number: int, *leavers: str, **changed: Any) -> bytes:
    return event(number, type="petard.game.abandoned.v1", abandoned_by=leavers, **changed)


def fold(
    *texts: bytes,
    history: History = NOTHING,
    rules: PoolRules = RULES,
    seq: int = 0,
    newest: datetime | None = None,
) -> Batch:
    batch = Batch("p", rules, NOON, seq, newest, history)
    batch.fold(map(read_arrival, texts))
    return batch


def counted(*texts: bytes) -> History:
    """What Postgres would know after these events."""
    return remembered(NOTHING, fold(*texts))


def remembered(history: History, batch: Batch) -> History:
    """What Postgres would know after one batch more."""
    events = {EventKey(entry.event.id, entry.event.source): entry.body for entry in batch.entries}
    games = {entry.event.data.game: entry.body for entry in batch.entries if entry.verdict.ignored is None}
    return History(
        {**history.events, **events}, {**history.games, **games}, {**history.records, **batch.records}
    )


def reasons(batch: Batch) -> list[str]:
    return [refusal.refused.reason for refusal in batch.refusals]


def ids(batch: Batch) -> list[str]:
    return [entry.event.id for entry in batch.entries]


def spaced(text: bytes) -> bytes:
    """The same event written down by somebody with other habits."""
    return json.dumps(json.loads(text), indent=2, sort_keys=True).encode()


# --- Order and seq ------------------------------------------------------------------------------------------


def test_each_event_sees_what_the_one_before_it_did() -> None:
    batch = fold(event(1), event(2))

    first, second = (entry.verdict.changes for entry in batch.entries)
    assert [change.before for change in second] == [change.after for change in first]
    assert batch.records == {change.player: change.after for change in second}
    assert batch.records["alice"].games == 2


def test_batch_begins_where_the_pool_was_left() -> None:
    batch = fold(event(2), history=counted(event(1)), seq=41)

    (entry,) = batch.entries
    assert entry.seq == batch.seq == 42
    assert entry.verdict.changes[0].before.games == 1


def test_seq_counts_accepted_events_without_a_gap() -> None:
    batch = fold(
        event(1),
        b"junk",
        event(2, rated=False),
        event(1),
        event(3, pool="elsewhere"),
        event(4, game="game-1"),
        event(5),
        seq=7,
    )

    assert [entry.seq for entry in batch.entries] == [8, 9, 10, 11]
    assert ids(batch) == ["event-1", "event-2", "event-4", "event-5"]
    assert batch.seq == 11


def test_body_is_kept_as_it_came() -> None:
    text = spaced(event(1, meta={"straße": "ü", "n": 1.50}))

    batch = fold(text)

    assert batch.entries[0].body.encode() == text


def test_changes_carry_the_seq_of_their_event() -> None:
    batch = fold(event(1), event(2, rated=False), left(3, "bob"))

    changes = [
        (entry.seq, change.player, change.after.player_seq)
        for entry in batch.entries
        for change in entry.verdict.changes
    ]

    assert changes == [(1, "alice", 1), (1, "bob", 1), (3, "bob", 2)]


def test_ignored_event_gets_an_entry_and_touches_nobody() -> None:
    batch = fold(event(1, rated=False), left(2, "alice", fault="server"))

    assert [entry.verdict.ignored for entry in batch.entries] == [
        IgnoredReason.UNRATED,
        IgnoredReason.SERVER_FAULT,
    ]
    assert batch.records == {}


# --- Second deliveries (rule 2 of the pipeline) -------------------------------------------------------------


def test_second_delivery_in_a_batch_changes_nothing() -> None:
    batch = fold(event(1), event(2), event(1), event(1))

    assert batch.repeats == 2
    assert ids(batch) == ["event-1", "event-2"]
    assert batch.records == fold(event(1), event(2)).records
    assert batch.refusals == []


def test_second_delivery_in_a_later_batch_changes_nothing() -> None:
    batch = fold(event(1), history=counted(event(1)), seq=1)

    assert (batch.repeats, batch.entries, batch.refusals, batch.seq) == (1, [], [], 1)


@pytest.mark.parametrize("later_batch", [False, True])
def test_second_delivery_of_an_ignored_event_changes_nothing(later_batch: bool) -> None:
    text = event(1, rated=False)

    batch = fold(text, history=counted(text)) if later_batch else fold(text, text)

    assert batch.repeats == 1
    assert batch.refusals == []


@pytest.mark.parametrize("later_batch", [False, True])
def test_same_event_in_other_writing_is_a_second_delivery(later_batch: bool) -> None:
    first, again = event(1), spaced(event(1))
    assert first != again

    batch = fold(again, history=counted(first)) if later_batch else fold(first, again)

    assert batch.repeats == 1
    assert batch.refusals == []


@pytest.mark.parametrize("later_batch", [False, True])
@pytest.mark.parametrize(
    "other",
    [
        event(1, "bob", "alice"),
        event(1, game="another"),
        event(1, time=NOON - MINUTE),
        event(1, meta={"note": "added"}),
        left(1, "alice"),
    ],
)
def test_known_id_with_another_body_is_refused(other: bytes, later_batch: bool) -> None:
    batch = fold(other, history=counted(event(1))) if later_batch else fold(event(1), other)

    assert reasons(batch) == ["id_reused"]
    assert batch.refusals[0].raw == other
    assert batch.repeats == 0


def test_same_id_of_another_source_is_another_event() -> None:
    batch = fold(event(1), event(1, source="/t", game="another"))

    assert [entry.event.source for entry in batch.entries] == ["/s", "/t"]
    assert batch.repeats == 0


def test_refused_event_leaves_its_id_free() -> None:
    batch = fold(event(1, time=NOON + 6 * MINUTE), event(1))

    assert reasons(batch) == ["from_the_future"]
    assert ids(batch) == ["event-1"]


# --- One game, one result (rule 3 of the pipeline) ----------------------------------------------------------


@pytest.mark.parametrize("later_batch", [False, True])
def test_same_game_with_the_same_outcome_is_ignored(later_batch: bool) -> None:
    report = event(2, game="game-1", time=NOON - MINUTE, meta={"from": "the other server"})

    batch = fold(report, history=counted(event(1))) if later_batch else fold(event(1), report)

    assert batch.entries[-1].verdict.ignored == IgnoredReason.DUPLICATE_GAME
    assert ids(batch)[-1] == "event-2"
    assert batch.refusals == []
    assert later_batch or batch.records == fold(event(1)).records


@pytest.mark.parametrize("later_batch", [False, True])
@pytest.mark.parametrize(
    "report",
    [
        event(2, "bob", "alice", game="game-1"),
        event(2, "alice", "carol", game="game-1"),
        event(2, game="game-1", rated=False),
        left(2, "bob", game="game-1"),
    ],
)
def test_same_game_with_another_outcome_is_refused(report: bytes, later_batch: bool) -> None:
    batch = fold(report, history=counted(event(1))) if later_batch else fold(event(1), report)

    assert reasons(batch) == ["conflicting_game"]
    assert "event-1" in batch.refusals[0].refused.detail
    assert "event-2" not in ids(batch)


UNPRINTABLE_TODAY = "a\u0378"
"""A name with a character that this Python's Unicode does not know: another one's may."""


def test_report_is_judged_by_itself_though_the_counted_one_would_be_refused_today() -> None:
    counted_by_another_python = event(1, UNPRINTABLE_TODAY, "bob")
    assert reasons(fold(counted_by_another_python)) == ["bad_field:data.sides.0.players.0"]
    history = History({}, {"game-1": counted_by_another_python.decode()}, {})

    batch = fold(event(2, "alice", "bob", game="game-1"), history=history)

    assert reasons(batch) == ["conflicting_game"]
    assert "event-1" in batch.refusals[0].refused.detail


@pytest.mark.parametrize(
    "text",
    [
        event(1, sides=[{"players": ["a", "b"], "rank": 1, "points": 2}, {"players": ["c"], "rank": 4}]),
        event(1, importance=2, decided_by="shootout", _fields_set=["x"], cls=1, self=2, meta={"x": [1]}),
        event(1, sides=[{"players": ["a"], "rank": 1, "home": True}, {"players": ["b"], "rank": 1}]),
        left(1, "alice"),
        left(1, "alice", fault="server", rated=False, importance=0.5),
    ],
)
def test_counted_event_is_read_again_with_the_outcome_it_had(text: bytes) -> None:
    read = read_counted(text.decode())

    assert read.id == "event-1"
    assert outcome_of(read) == outcome_of(parse_event(text))


def test_ignored_report_does_not_count_for_its_game() -> None:
    batch = fold(event(1, rated=False), event(2, "bob", "alice", game="game-1"))

    assert [entry.verdict.ignored for entry in batch.entries] == [IgnoredReason.UNRATED, None]
    assert batch.records["bob"].wins == 1


def test_abandon_counts_for_its_game() -> None:
    batch = fold(left(1, "alice"), left(2, "alice", game="game-1"), left(3, "bob", game="game-1"))

    assert [entry.verdict.ignored for entry in batch.entries] == [None, IgnoredReason.DUPLICATE_GAME]
    assert reasons(batch) == ["conflicting_game"]
    assert batch.records["alice"].bomb == 10


# --- Refusals -----------------------------------------------------------------------------------------------


def test_unreadable_text_is_refused_for_the_parsers_reason() -> None:
    batch = fold(b"junk", event(1), b"{}")

    assert reasons(batch) == ["not_json", "not_an_event"]
    assert [refusal.raw for refusal in batch.refusals] == [b"junk", b"{}"]
    assert ids(batch) == ["event-1"]


def test_event_of_another_pool_is_refused() -> None:
    batch = fold(event(1, pool="q"))

    assert reasons(batch) == ["wrong_pool"]
    assert "'p'" in batch.refusals[0].refused.detail
    assert "'q'" in batch.refusals[0].refused.detail


@pytest.mark.parametrize("ahead", [timedelta(0), MINUTE, 5 * MINUTE])
def test_clock_may_be_five_minutes_ahead(ahead: timedelta) -> None:
    batch = fold(event(1, time=NOON + ahead))

    assert ids(batch) == ["event-1"]


@pytest.mark.parametrize("ahead", [5 * MINUTE + timedelta(microseconds=1), 6 * MINUTE, timedelta(days=999)])
def test_event_from_further_ahead_is_refused(ahead: timedelta) -> None:
    batch = fold(event(1, time=NOON + ahead))

    assert reasons(batch) == ["from_the_future"]
    assert f"{round(ahead.total_seconds())} s ahead" in batch.refusals[0].refused.detail


def test_refused_event_touches_nobody() -> None:
    batch = fold(event(1, pool="q"), event(2, time=NOON + 6 * MINUTE), b"junk")

    assert (batch.entries, batch.records, batch.seq, batch.newest) == ([], {}, 0, None)


# --- Late events --------------------------------------------------------------------------------------------


def test_event_older_than_the_newest_is_marked_late() -> None:
    batch = fold(event(1), event(2, time=NOON - MINUTE), event(3), event(4, time=NOON + MINUTE))

    assert [entry.late for entry in batch.entries] == [False, True, False, False]
    assert batch.newest == NOON + MINUTE


def test_event_can_be_late_for_an_earlier_batch() -> None:
    batch = fold(event(1), event(2, time=NOON + MINUTE), newest=NOON + MINUTE)

    assert [entry.late for entry in batch.entries] == [True, False]
    assert batch.newest == NOON + MINUTE


def test_ignored_event_makes_nothing_late() -> None:
    batch = fold(event(1, rated=False, time=NOON + MINUTE), event(2))

    assert [entry.late for entry in batch.entries] == [False, False]
    assert batch.newest == NOON


# --- Our own mistakes (rule 6 of the pipeline) --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GlickoThatFails(Glicko):
    """Glicko, but with a mistake in it: it cannot bear a player rated 666."""

    name: ClassVar[str] = "failing"

    def rate_by_rank(self, a: PlayerState, b: PlayerState, s: float) -> list[Rated]:
        if 666 in {a.rating, b.rating}:
            raise ZeroDivisionError("float division by zero")
        return Glicko.rate_by_rank(self, a, b, s)


FAILING = PoolRules(system=GlickoThatFails())
CURSED = History({}, {}, {"mallory": new_record(RULES)._replace(rating=666.0)})


def test_mistake_of_ours_costs_one_event_and_the_rest_is_applied_in_order() -> None:
    good = [event(1), event(3, "bob", "carol"), event(4, "carol", "alice")]
    bad = event(2, "alice", "mallory")

    batch = fold(good[0], bad, *good[1:], history=CURSED, rules=FAILING)

    assert reasons(batch) == ["internal_error"]
    assert batch.refusals[0].raw == bad
    assert batch.refusals[0].refused.detail == "ZeroDivisionError: float division by zero"
    assert [(entry.seq, entry.event.id) for entry in batch.entries] == [
        (1, "event-1"), (2, "event-3"), (3, "event-4"),
    ]  # fmt: skip
    assert batch.records == fold(*good).records


def test_failed_event_leaves_its_id_and_its_game_free() -> None:
    batch = fold(
        event(1, "alice", "mallory"),
        event(1, "alice", "bob"),
        event(2, "alice", "mallory"),
        event(3, "alice", "bob", game="game-2"),
        history=CURSED,
        rules=FAILING,
    )

    assert reasons(batch) == ["internal_error"] * 2
    assert ids(batch) == ["event-1", "event-3"]


def test_breaker_is_told_of_our_mistakes_only() -> None:
    batch = fold(
        event(1),
        event(1),
        b"junk",
        event(2, "alice", "mallory"),
        event(3, rated=False),
        event(4, pool="q"),
        history=CURSED,
        rules=FAILING,
    )

    # One for each event, the repeat left out.
    assert batch.outcomes == [False, False, True, False, False]
    assert [type(refusal.ours) for refusal in batch.refusals] == [NoneType, ZeroDivisionError, NoneType]


# --- Any order of deliveries, any cut into batches ----------------------------------------------------------

PLAYERS = ("alice", "bob", "carol", "dave")


@st.composite
def games(draw: st.DrawFn) -> list[bytes]:
    """Games of four players, with abandons, late ones and unrated ones among them."""
    texts = []
    for number in range(draw(st.integers(1, 12))):
        pair = draw(st.permutations(PLAYERS))[: draw(st.integers(2, 4))]
        time = NOON - draw(st.integers(0, 100)) * timedelta(hours=7)
        rated = draw(st.integers(0, 9)) > 0
        if draw(st.booleans()):
            texts.append(event(number, *pair, time=time, rated=rated))
        else:
            texts.append(left(number, *pair[:1], time=time, rated=rated, sides=sides_of(pair)))
    return texts


def sides_of(players: Sequence[str]) -> list[dict[str, Any]]:
    return [{"players": [player]} for player in players]


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[list[bytes], list[list[bytes]]]:
    """Games, and the same with second deliveries after the first ones, cut into batches."""
    texts = draw(games())
    delivered = [*texts]
    for _ in range(draw(st.integers(0, 15))):
        again = draw(st.sampled_from(texts))
        first = delivered.index(again)
        place = draw(st.integers(first + 1, len(delivered)))
        delivered.insert(place, draw(st.sampled_from([again, spaced(again)])))
    cuts = sorted(draw(st.lists(st.integers(0, len(delivered)), max_size=4)))
    ends = [0, *cuts, len(delivered)]
    return texts, [delivered[start:end] for start, end in pairwise(ends)]


def plain_fold(texts: Sequence[bytes]) -> dict[str, PlayerRecord]:
    """The records after the events, folded one by one by nobody who knows of batches."""
    records: dict[str, PlayerRecord] = {}
    for game in map(parse_event, texts):
        before = {player: records.get(player) or new_record(RULES) for player in players_of(game)}
        records.update((change.player, change.after) for change in fold_event(RULES, before, game).changes)
    return records


def in_batches(batches: Sequence[Sequence[bytes]]) -> Iterator[tuple[Batch, History]]:
    """Fold batch after batch, with what Postgres would remember of those before."""
    history, seq, newest = NOTHING, 0, None
    for texts in batches:
        batch = fold(*texts, history=history, seq=seq, newest=newest)
        history, seq, newest = remembered(history, batch), batch.seq, batch.newest
        yield batch, history


@given(deliveries())
def test_second_deliveries_and_cuts_into_batches_change_no_bit(
    delivered: tuple[list[bytes], list[list[bytes]]],
) -> None:
    texts, batches = delivered

    *_, (_, history) = folded = [*in_batches(batches)]

    assert history.records == plain_fold(texts)
    entries = [entry for batch, _ in folded for entry in batch.entries]
    assert [entry.seq for entry in entries] == [*range(1, len(texts) + 1)]
    assert [entry.body.encode() for entry in entries] == texts
    assert sum(batch.repeats for batch, _ in folded) == sum(map(len, batches)) - len(texts)
    assert not any(batch.refusals for batch, _ in folded)


def test_arrival_keeps_the_bytes_and_the_refusal() -> None:
    arrival = read_arrival(b"junk")

    assert arrival.raw == b"junk"
    assert isinstance(arrival.read, EventRefused)
    assert arrival.read.reason == DeadReason.NOT_JSON


def test_arrival_keeps_the_bytes_and_the_event() -> None:
    arrival = read_arrival(event(1))

    read: GameEvent | EventRefused = arrival.read
    assert arrival.raw == event(1)
    assert read == read_event(event(1))


def test_a_batch_ends_before_it_costs_too_much() -> None:
    crowd = [f"p{number}" for number in range(64)]
    large = read_arrival(event(1, *crowd))

    assert len(affordable([large] * 100)) == 15
    assert len(affordable([large])) == 1


def test_a_usual_batch_is_taken_whole() -> None:
    small = read_arrival(event(1))

    assert len(affordable([small] * 5_000)) == 5_000


@pytest.mark.parametrize("raw", [b"garbage", b"\xff", event(1, meta=[])], ids=["JSON", "UTF-8", "a field"])
def test_a_refusal_does_not_hold_on_to_its_arrival(raw: bytes) -> None:
    arrival = read_arrival(raw)

    assert isinstance(arrival.read, EventRefused)
    assert arrival.read.__traceback__ is None
    assert arrival.read.__context__ is None, "what was read stands in its traceback"
