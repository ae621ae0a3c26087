"""Each named constraint refuses what its name says."""

import hashlib
from collections.abc import Iterator
from itertools import product

import psycopg
import pytest
from psycopg import sql

RATING = {
    "pool": "p", "player": "ann", "rating": 1500.0, "rd": 350.0, "volatility": None, "bomb": 0,
    "bomb_cap": 50, "abandons": 0, "penalties": 0, "games": 0, "wins": 0, "draws": 0, "losses": 0,
    "peak": 1500.0,
    "last_played": None, "player_seq": 1,
}  # fmt: skip
CHANGE = {
    "pool": "p", "player": "ann", "player_seq": 1, "seq": 1, "rating_before": 1500.0, "rating_after": 1500.0,
    "rd_before": 350.0, "rd_after": 350.0, "bomb_before": 0, "bomb_after": 0, "games_before": 0,
    "games_after": 0, "penalty": False, "late": False,
}  # fmt: skip
LEDGER = {
    "pool": "p", "seq": 1, "source": "/s", "event_id": "e", "type": "t", "game": "g",
    "time": "2026-01-01T00:00:00Z", "outcome": "rated", "reason": None, "counts": True, "late": False,
    "version": 1, "body": "{}",
}  # fmt: skip
LETTER = {
    "pool": "p", "digest": hashlib.sha256(b"").digest(), "body": b"", "reason": "not_json", "detail": "",
}  # fmt: skip
ATTEMPT = {
    "pool": "p", "letter": 1, "slot": 1, "attempt": 1, "at": "2026-01-01T00:00:00Z", "reason": "not_json",
    "detail": "", "state": "open",
}  # fmt: skip
RUN = {
    "pool": "p", "run": 1, "actor": "ann", "chosen": "all", "rate": 100, "letters": 1,
    "token": "00000000-0000-4000-8000-000000000000",
}  # fmt: skip
TURN = {"pool": "p", "letter": 1, "run": 1}
EDIT = {
    "edited_body": b"", "edited_digest": b"\1" * 32, "edited_by": "ann",
    "edited_at": "2026-01-01T00:00:00Z",
}  # fmt: skip
POOL = {"name": "q", "system": "glicko", "parameters": "{}"}
PERIOD = {"pool": "p", "player": "ann", "player_seq": 1, "period": "[]"}
VERSION = {"pool": "p", "version": 2, "system": "glicko", "parameters": "{}", "since_seq": 1}

GOOD: dict[str, dict[str, object]] = {
    "rating": RATING,
    "change": CHANGE,
    "ledger": LEDGER,
    "dead_letter": LETTER,
    "dead_letter_attempt": ATTEMPT,
    "replay_run": RUN,
    "replay_letter": TURN,
    "pool": POOL,
    "pool_version": VERSION,
    "open_period": PERIOD,
}
INFINITE = (float("nan"), float("inf"), float("-inf"))
NUMBERS = ("rating", "rd", "peak", "volatility")
WHY = ("volatility_before", "volatility_after", "expected", "actual", "rd_aged")
BEFORE_AFTER = ("rating_before", "rating_after", "rd_before", "rd_after")

CHECKS: list[tuple[str, str, dict[str, object]]] = [
    ("pool_name_is_a_pool_name", "pool", {"name": "Not a pool"}),
    ("pool_name_is_a_pool_name", "pool", {"name": ""}),
    ("pool_name_is_a_pool_name", "pool", {"name": "x" * 65}),
    ("pool_name_is_a_pool_name", "pool", {"name": "p\n"}),
    ("pool_version_starts_at_one", "pool", {"version": 0}),
    ("pool_seq_is_not_negative", "pool", {"seq": -1}),
    ("pool_epoch_starts_at_one", "pool", {"epoch": 0}),
    ("pool_that_runs_is_not_stopped_since", "pool", {"stopped_at": "2026-01-01"}),
    ("pool_stops_are_not_negative", "pool", {"stops": -1}),
    ("pool_version_belongs_to_a_pool", "pool_version", {"pool": "nowhere"}),
    ("ledger_seq_starts_at_one", "ledger", {"seq": 0}),
    ("ledger_ends_rated_or_ignored", "ledger", {"outcome": "ignored", "counts": False}),
    ("ledger_ends_rated_or_ignored", "ledger", {"reason": "unrated"}),
    ("ledger_ends_rated_or_ignored", "ledger", {"outcome": "dead", "counts": False}),
    ("ledger_counts_rated_games_only", "ledger", {"outcome": "ignored", "reason": "unrated"}),
    ("ledger_counts_rated_games_only", "ledger", {"game": None}),
    ("ledger_own_source_reports_no_game", "ledger", {"source": "/petard"}),
    *(("rating_is_finite", "rating", {name: value}) for name, value in product(NUMBERS, INFINITE)),
    ("rating_is_finite", "rating", {"rd": -1.0}),
    ("rating_bomb_is_within_its_cap", "rating", {"bomb": 51}),
    ("rating_bomb_is_within_its_cap", "rating", {"bomb": -1}),
    ("rating_counters_are_not_negative", "rating", {"abandons": -1, "penalties": -1}),
    ("rating_counters_are_not_negative", "rating", {"penalties": -1}),
    ("rating_counters_are_not_negative", "rating", {"wins": -1, "games": -1}),
    ("rating_counters_are_not_negative", "rating", {"draws": -1, "games": -1}),
    ("rating_counters_are_not_negative", "rating", {"losses": -1, "games": -1}),
    ("rating_counters_are_not_negative", "rating", {"player_seq": 0}),
    ("rating_games_are_wins_draws_losses", "rating", {"games": 1}),
    ("rating_penalties_are_abandons", "rating", {"penalties": 1}),
    ("change_belongs_to_a_ledger_entry", "change", {"seq": 0}),
    ("change_belongs_to_a_ledger_entry", "change", {"player_seq": 0}),
    *(("change_is_finite", "change", {name: value}) for name, value in product(BEFORE_AFTER, INFINITE)),
    ("change_is_finite", "change", {"rd_after": -1.0}),
    ("change_counters_are_not_negative", "change", {"bomb_before": -1}),
    ("change_counters_are_not_negative", "change", {"bomb_after": -1}),
    ("change_counters_are_not_negative", "change", {"games_before": -1}),
    ("change_counters_are_not_negative", "change", {"games_after": -1}),
    *(("change_explanation_is_finite", "change", {name: value}) for name, value in product(WHY, INFINITE)),
    ("change_explanation_is_finite", "change", {"rd_aged": -1.0}),
    ("dead_letter_digest_is_that_of_the_body", "dead_letter", {"body": b"x"}),
    ("dead_letter_digest_is_that_of_the_body", "dead_letter", {"body": b"x" * 65_537}),
    ("dead_letter_digest_is_sha256", "dead_letter", {"digest": b"short"}),
    ("dead_letter_attempts_are_counted", "dead_letter", {"attempts": 0}),
    ("dead_letter_state_is_known", "dead_letter", {"state": "lost"}),
    ("dead_letter_reason_is_a_code", "dead_letter", {"reason": "Not a code"}),
    ("dead_letter_reason_is_a_code", "dead_letter", {"reason": ""}),
    *(("dead_letter_edit_is_whole", "dead_letter", {**EDIT, name: None}) for name in EDIT),
    ("dead_letter_edited_digest_is_sha256", "dead_letter", {**EDIT, "edited_digest": b"short"}),
    ("dead_letter_traceback_has_a_hash", "dead_letter", {"traceback": "Traceback"}),
    ("dead_letter_traceback_has_a_hash", "dead_letter", {"traceback_hash": "0123"}),
    ("dead_letter_attempt_log_is_bounded", "dead_letter_attempt", {"slot": 0}),
    ("dead_letter_attempt_log_is_bounded", "dead_letter_attempt", {"slot": 21}),
    ("replay_run_has_a_rate", "replay_run", {"rate": 0}),
    ("replay_run_has_letters", "replay_run", {"letters": 0}),
    ("replay_letter_state_is_known", "replay_letter", {"state": "lost"}),
]  # fmt: skip

KEYS: list[tuple[str, str, dict[str, object]]] = [
    ("pool_pkey", "pool", {}),
    ("pool_version_pkey", "pool_version", {"since_seq": 9}),
    ("ledger_pkey", "ledger", {"event_id": "other", "game": "other"}),
    ("ledger_counts_an_event_once", "ledger", {"seq": 2, "game": "other"}),
    ("ledger_counts_a_game_once", "ledger", {"seq": 2, "event_id": "other"}),
    ("rating_pkey", "rating", {"rating": 1.0}),
    ("change_pkey", "change", {"seq": 2}),
    ("dead_letter_keeps_a_body_once", "dead_letter", {"reason": "too_large"}),
    ("open_period_pkey", "open_period", {"player_seq": 2}),
    ("dead_letter_attempt_pkey", "dead_letter_attempt", {"attempt": 2}),
    ("replay_run_pkey", "replay_run", {"finished": "2026-01-01T00:00:00Z"}),
    ("replay_run_one_at_a_time", "replay_run", {"run": 2}),
    ("replay_letter_pkey", "replay_letter", {"state": "sent"}),
]


@pytest.fixture
def owner(shared_database: str) -> Iterator[psycopg.Connection]:
    """May do everything, in a transaction that is rolled back; there is a pool."""
    with psycopg.connect(shared_database) as connection, connection.transaction(force_rollback=True):
        insert(connection, "pool", POOL | {"name": "p"})
        yield connection


def insert(owner: psycopg.Connection, table: str, row: dict[str, object]) -> None:
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier("petard", table),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join(map(sql.Placeholder, row)),
    )
    owner.execute(statement, row)


@pytest.mark.parametrize("table", GOOD)
def test_a_good_row_is_accepted(owner: psycopg.Connection, table: str) -> None:
    """Without this the refusals below would prove nothing."""
    insert(owner, table, GOOD[table])


@pytest.mark.parametrize(("name", "table", "changes"), CHECKS)
def test_a_bad_row_is_refused(
    owner: psycopg.Connection, name: str, table: str, changes: dict[str, object]
) -> None:
    with pytest.raises(psycopg.errors.IntegrityError) as refused:
        insert(owner, table, GOOD[table] | changes)

    assert refused.value.diag.constraint_name == name


@pytest.mark.parametrize(("name", "table", "changes"), KEYS)
def test_a_second_row_of_the_same_is_refused(
    owner: psycopg.Connection, name: str, table: str, changes: dict[str, object]
) -> None:
    insert(owner, table, GOOD[table])

    with pytest.raises(psycopg.errors.UniqueViolation) as refused:
        insert(owner, table, GOOD[table] | changes)

    assert refused.value.diag.constraint_name == name


def test_two_letters_of_a_pool_are_not_edited_into_the_same(owner: psycopg.Connection) -> None:
    insert(owner, "dead_letter", LETTER | EDIT)

    with pytest.raises(psycopg.errors.UniqueViolation) as refused:
        insert(owner, "dead_letter", LETTER | EDIT | {"digest": hashlib.sha256(b"x").digest(), "body": b"x"})

    assert refused.value.diag.constraint_name == "dead_letter_keeps_an_edited_body_once"


def test_a_game_may_be_ignored_as_often_as_it_is_reported(owner: psycopg.Connection) -> None:
    insert(owner, "ledger", LEDGER)
    for seq in (2, 3):
        ignored = {
            "seq": seq,
            "event_id": f"e{seq}",
            "outcome": "ignored",
            "reason": "duplicate_game",
            "counts": False,
        }

        insert(owner, "ledger", LEDGER | ignored)


def test_a_later_entry_may_correct_a_game_that_has_counted(owner: psycopg.Connection) -> None:
    insert(owner, "ledger", LEDGER)

    insert(owner, "ledger", LEDGER | {"seq": 2, "event_id": "e2", "counts": False})
    insert(owner, "change", CHANGE | {"seq": 2, "games_before": 3, "games_after": 2})


def test_every_named_constraint_is_tested(owner: psycopg.Connection) -> None:
    rows = owner.execute("""
        SELECT conname FROM pg_constraint
        WHERE connamespace = 'petard'::regnamespace AND contype IN ('c', 'f', 'p', 'u', 'x')
        UNION
        SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE relnamespace = 'petard'::regnamespace AND indisunique
    """)
    # The identity column and the migrations' own bookkeeping: nothing of ours to refuse.
    untested = {"dead_letter_pkey", "migration_pkey"}
    # And one with a test of its own above.
    untested |= {"dead_letter_keeps_an_edited_body_once"}

    tested = {name for name, _, _ in (*CHECKS, *KEYS)}

    assert {name for (name,) in rows} - untested == tested
