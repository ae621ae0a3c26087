import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from petard_producer import SpoolBusy, SpoolFull, SpoolUnusable
from petard_producer.file_lock import FileLock
from petard_producer.spool import ElementsByPool, Spool
from petard_producer.spool_file import check_place, make_file
from petard_producer.waker import Waker
from petard_producer.write_spool import SpoolWriter

LIMIT = 1_000
REAL_CONNECT = sqlite3.connect


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spool.db"


@pytest.fixture
def spool(path: Path) -> Iterator[Spool]:
    spool = Spool(path, prefix="petard", limit=LIMIT)
    yield spool
    spool.close()


@pytest.fixture
def writer(spool: Spool) -> Iterator[SpoolWriter]:
    writer = SpoolWriter(spool)
    writer.start()
    yield writer
    writer.stop(5)


def add(spool: Spool, elements: ElementsByPool) -> None:
    with spool.adding() as put:
        put(elements)


def elements(spool: Spool, count: int = 500, without: tuple[str, ...] = ()) -> dict[str, list[bytes]]:
    found = spool.oldest(count, without=without)
    return {pool: [event.element for event in events] for pool, events in found.items()}


def test_events_come_out_in_the_order_of_their_pool_and_the_oldest_pool_first(spool: Spool) -> None:
    add(spool, {"z": [b"z1"]})
    add(spool, {"a": [b"a1", b"a2"], "m": [b"m1"]})
    add(spool, {"a": [b"a3"]})

    found = elements(spool)

    assert list(found.items()) == [("z", [b"z1"]), ("a", [b"a1", b"a2", b"a3"]), ("m", [b"m1"])]


def test_what_is_added_is_synced_to_the_disk_by_its_commit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    class Recorded(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            said.append(sql)
            return super().execute(sql, *arguments)

    monkeypatch.setattr(sqlite3, "connect", partial(REAL_CONNECT, factory=Recorded))
    spool = Spool(path, prefix="petard", limit=LIMIT)
    said.clear()

    add(spool, {"a": [b"a1"]})

    spool.close()
    assert said[:2] == ["PRAGMA synchronous = FULL", "BEGIN IMMEDIATE"]
    assert said[-1] == "COMMIT"


def test_only_so_many_are_read(spool: Spool) -> None:
    add(spool, {"a": [b"a1", b"a2", b"a3"], "b": [b"b1", b"b2"]})

    assert elements(spool, 2) == {"a": [b"a1", b"a2"]}
    assert elements(spool, 4) == {"a": [b"a1", b"a2", b"a3"], "b": [b"b1"]}


def test_pool_that_is_left_out_hides_no_other(spool: Spool) -> None:
    add(spool, {"a": [b"a1"], "b": [b"b1"], "c": [b"c1"]})

    assert elements(spool, without=("a", "c")) == {"b": [b"b1"]}


def test_pool_that_another_process_has_emptied_meanwhile_is_not_there(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(spool, {"a": [b"a1"]})
    monkeypatch.setattr("petard_producer.spool.read_pools", lambda _: ["emptied", "a"])

    assert elements(spool) == {"a": [b"a1"]}


def test_events_are_removed_up_to_a_place_of_their_pool(spool: Spool) -> None:
    add(spool, {"a": [b"a1", b"a2"], "b": [b"b1"]})
    last = spool.oldest(500)["a"][-1].place
    add(spool, {"a": [b"a3"]})

    spool.remove({"a": last})

    assert elements(spool) == {"b": [b"b1"], "a": [b"a3"]}


def test_place_is_never_used_twice(spool: Spool) -> None:
    add(spool, {"a": [b"a1"]})
    first = spool.last_place()
    spool.remove({"a": first})

    add(spool, {"a": [b"a2"]})

    assert spool.last_place() > first
    assert not spool.is_waiting(first)
    assert spool.is_waiting(spool.last_place())


def test_what_is_held_is_counted(spool: Spool) -> None:
    before = time.time()
    add(spool, {"a": [b"12345", b"1234"], "b": [b"123"]})
    held = spool.held()
    spool.remove({"a": spool.oldest(500)["a"][-1].place})

    assert (held.events, held.bytes) == (3, 12)
    assert held.oldest_at is not None
    assert before <= held.oldest_at <= time.time()
    assert spool.held()[:2] == (1, 3)


def test_empty_spool_holds_nothing(spool: Spool) -> None:
    assert spool.held() == (0, 0, None)
    assert spool.last_place() == 0


def test_next_process_finds_what_was_added(spool: Spool, path: Path) -> None:
    add(spool, {"a": [b"a1"]})
    spool.close()

    heir = Spool(path, prefix="petard", limit=LIMIT)

    assert elements(heir) == {"a": [b"a1"]}
    heir.close()


def test_adding_writes_to_the_disk_before_it_ends(spool: Spool) -> None:
    with spool.adding():
        assert spool._connection is not None
        assert spool._connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert spool._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_adding_that_fails_adds_nothing(spool: Spool) -> None:
    def fail() -> None:
        with spool.adding() as put:
            put({"a": [b"a1"]})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()

    assert spool.held().events == 0


def test_full_spool_refuses_a_call_as_a_whole_and_names_what_can_be_done(spool: Spool, path: Path) -> None:
    add(spool, {"a": [b"x" * 600]})

    with pytest.raises(SpoolFull) as full:
        add(spool, {"a": [b"y", b"z" * 400]})

    assert elements(spool) == {"a": [b"x" * 600]}
    assert (full.value.limit, full.value.held, full.value.asked) == (LIMIT, 600, 401)
    for words in (str(path), "600 of at most 1000 bytes", "401 more", "not kept", "raise spool_limit"):
        assert words in str(full.value)


def test_spool_is_full_at_its_limit_and_not_before(spool: Spool) -> None:
    add(spool, {"a": [b"x" * LIMIT]})
    spool.remove({"a": spool.last_place()})
    add(spool, {"a": [b"x" * LIMIT]})

    with pytest.raises(SpoolFull):
        add(spool, {"a": [b"y"]})


def test_only_the_owner_may_read_the_files(spool: Spool, path: Path) -> None:
    Waker(path).close()
    add(spool, {"a": [b"a1"]})

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}

    names = ["spool.db", "spool.db-shm", "spool.db-wal", "spool.db.wake", "spool.db.writing"]
    assert modes == dict.fromkeys(names, 0o600)


def test_file_that_others_may_read_is_closed_to_them(path: Path) -> None:
    path.touch(0o666)

    Spool(path, prefix="petard", limit=LIMIT).close()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def other_program(path: Path) -> None:
    with REAL_CONNECT(path) as connection:
        connection.execute("CREATE TABLE mine (what TEXT)")
    connection.close()


def text(path: Path) -> None:
    path.write_text("This is a text, and no database at all, however long one makes it. " * 100)


def newer_release(path: Path) -> None:
    Spool(path, prefix="petard", limit=LIMIT).close()
    with REAL_CONNECT(path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()


def other_prefix(path: Path) -> None:
    Spool(path, prefix="another", limit=LIMIT).close()


def damaged(path: Path) -> None:
    spool = Spool(path, prefix="petard", limit=1 << 20)
    add(spool, {"a": [b"x" * 1_000] * 100})
    spool.close()
    content = bytearray(path.read_bytes())
    content[200:8_000] = b"\xff" * 7_800
    path.write_bytes(content)


def folder(path: Path) -> None:
    path.mkdir()


def file_for_fifo(path: Path) -> None:
    path.with_name("spool.db.wake").touch()
    Waker(path)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (other_program, "another program"),
        (text, "no SQLite database"),
        (newer_release, "version 2"),
        (other_prefix, "'another', not 'petard'"),
        (damaged, "is damaged"),
        (folder, "no regular file"),
        (file_for_fifo, "something else than a FIFO"),
    ],
)
def test_file_that_is_no_spool_is_refused(path: Path, spoil: Any, words: str) -> None:
    with pytest.raises(SpoolUnusable, match=words) as refusal:  # noqa: PT012 - one case fails in its preparation
        spoil(path)
        Spool(path, prefix="petard", limit=LIMIT)

    assert str(path) in str(refusal.value)


TRY_TO_LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
    except OSError:
        print("locked")
"""


def locked_for_others(path: Path) -> bool:
    told = subprocess.run([sys.executable, "-c", TRY_TO_LOCK, path], capture_output=True, check=True)
    return told.stdout == b"locked\n"


def test_look_at_a_spool_leaves_this_process_its_locks_on_it(spool: Spool, path: Path) -> None:
    add(spool, {"a": [b"a1"]})
    before = locked_for_others(path)

    check_place(path)
    make_file(path)

    assert (before, locked_for_others(path)) == (True, True)


def test_what_is_no_spool_is_left_as_it_was(tmp_path: Path) -> None:
    folder, notes, database = (tmp_path / name for name in ("folder", "notes", "database"))
    folder.mkdir()
    notes.write_text("my notes")
    other_program(database)
    for path in (folder, notes, database):
        path.chmod(0o755)
    before = database.read_bytes()

    for path in (folder, notes, database):
        with pytest.raises(SpoolUnusable):
            Spool(path, prefix="petard", limit=LIMIT)
        assert stat.S_IMODE(path.stat().st_mode) == 0o755

    assert database.read_bytes() == before


@pytest.mark.parametrize("where", ["/nowhere/spool.db", "/sys/spool.db"])
def test_folder_that_is_missing_or_cannot_be_written_is_named(where: str) -> None:
    with pytest.raises(SpoolUnusable, match=f"spool {where} cannot"):
        Spool(Path(where), prefix="petard", limit=LIMIT)


def test_file_that_another_program_has_locked_is_busy_and_free_again(spool: Spool, path: Path) -> None:
    other = REAL_CONNECT(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(SpoolBusy, match="locked by another program"):
        add(spool, {"a": [b"a1"]})

    other.execute("ROLLBACK")
    other.close()
    add(spool, {"a": [b"a2"]})
    assert elements(spool) == {"a": [b"a2"]}


def test_full_disk_is_told_and_bearable(spool: Spool) -> None:
    add(spool, {"a": [b"a1"]})
    assert spool._connection is not None
    pages = spool._connection.execute("PRAGMA page_count").fetchone()[0]
    spool._connection.execute(f"PRAGMA max_page_count = {pages}")
    spool.limit = 1 << 20

    with pytest.raises(SpoolUnusable, match="disk is full") as failure:
        add(spool, {"a": [b"x" * 100_000]})

    assert not failure.value.may_be_kept
    add(spool, {"a": [b"a2"]})
    assert elements(spool) == {"a": [b"a1", b"a2"]}


@pytest.mark.parametrize("replace", [False, True])
def test_file_that_is_taken_away_while_in_use_is_noticed(spool: Spool, path: Path, replace: bool) -> None:
    add(spool, {"a": [b"a1"]})
    path.rename(path.with_name("moved.db"))
    if replace:
        path.touch()

    for _ in range(2):  # it stays so: what was read before must remove nothing from another file
        with pytest.raises(SpoolUnusable, match="removed or replaced"):
            add(spool, {"a": [b"a2"]})
        with pytest.raises(SpoolUnusable, match="removed or replaced"):
            spool.remove({"a": 1})


def test_requests_of_the_same_time_share_one_commit(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SpoolWriter(spool)
    statements: list[str] = []
    assert spool._connection is not None
    spool._connection.set_trace_callback(statements.append)
    requests = [writer.ask({"a": [f"a{number}".encode()]}) for number in range(5)]

    writer.write_once()

    assert all(request.settled.is_set() for request in requests)
    assert statements.count("COMMIT") == 1
    assert elements(spool) == {"a": [b"a0", b"a1", b"a2", b"a3", b"a4"]}


def test_request_that_does_not_fit_fails_alone(spool: Spool) -> None:
    writer = SpoolWriter(spool)
    small, large, last = (writer.ask({"a": [b"x" * size]}) for size in (10, LIMIT, 20))

    writer.write_once()

    small.result()
    last.result()
    with pytest.raises(SpoolFull):
        large.result()
    assert spool.held()[:2] == (2, 30)


def test_caller_waits_for_a_locked_file_only_so_long_and_the_event_is_not_kept(
    spool: Spool, writer: SpoolWriter, path: Path
) -> None:
    other = REAL_CONNECT(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()

    with pytest.raises(SpoolBusy, match="was not kept") as busy:
        writer.keep({"a": [b"a1"]}, 0.2)

    assert 0.2 <= time.monotonic() - began < 1
    assert not busy.value.may_be_kept
    other.execute("ROLLBACK")
    other.close()
    writer.keep({"a": [b"a2"]}, 10)
    assert elements(spool) == {"a": [b"a2"]}


class SlowDisk(sqlite3.Connection):
    """A connection whose commits wait until the test lets them go on."""

    reached = threading.Event()
    go_on = threading.Event()

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        if sql == "COMMIT" and threading.current_thread().name == "petard-spool-writer":
            self.reached.set()
            self.go_on.wait(30)
        return super().execute(sql, *arguments)


def test_caller_waits_for_a_slow_disk_only_so_long_and_is_told_that_the_event_may_be_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "connect", partial(REAL_CONNECT, factory=SlowDisk))
    spool = Spool(path, prefix="petard", limit=LIMIT)
    writer = SpoolWriter(spool)
    writer.start()

    with pytest.raises(SpoolBusy, match="push the same event again") as first:
        writer.keep({"a": [b"a1"]}, 0.3)
    with pytest.raises(SpoolBusy, match="was not kept") as second:
        writer.keep({"a": [b"a2"]}, 0.1)
    SlowDisk.go_on.set()
    writer.keep({"a": [b"a3"]}, 10)

    assert SlowDisk.reached.is_set()
    assert (first.value.may_be_kept, second.value.may_be_kept) == (True, False)
    assert elements(spool) == {"a": [b"a1", b"a3"]}
    writer.stop(5)
    spool.close()


def test_unexpected_failure_reaches_the_caller_and_the_next_call_works(
    spool: Spool, writer: SpoolWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(spool, "_add", lambda *_: 1 / 0)
        with pytest.raises(SpoolUnusable, match="division by zero"):
            writer.keep({"a": [b"a1"]}, 10)

    writer.keep({"a": [b"a2"]}, 10)

    assert elements(spool) == {"a": [b"a2"]}


HOLDER = """
import sys
from pathlib import Path
from petard_producer.file_lock import FileLock

lock = FileLock(Path(sys.argv[1]), "sending")
print(lock.take(), flush=True)
sys.stdin.read()
"""


def test_lock_dies_with_its_process(path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(path)]
    lock = FileLock(path, "sending")

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "True\n"
            assert not lock.take()
        finally:
            holder.kill()

    assert lock.take()
    lock.close()


def test_waker_wakes_a_wait_before_and_during_it(path: Path) -> None:
    ours, theirs = Waker(path), Waker(path)
    theirs.wake()
    began = time.monotonic()

    ours.wait(30)
    threading.Timer(0.05, theirs.wake).start()
    ours.wait(30)

    assert time.monotonic() - began < 10
    for waker in (ours, theirs):
        waker.close()


def test_waker_bears_that_nobody_listens(path: Path) -> None:
    waker = Waker(path)

    for _ in range(70_000):  # more than a pipe holds
        waker.wake()

    assert os.path.lexists(path.with_name("spool.db.wake"))
    waker.close()
