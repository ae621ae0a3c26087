"""What strangers wrote is shown so that no terminal obeys it, and JSON still says the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petard_worker.printable import printable, printable_json, printable_lines

HOSTILE = {
    "title of the window": ("\x1b]0;pwned\x07", r"\x1b]0;pwned\x07"),
    "colour": ("\x1b[31mred", r"\x1b[31mred"),
    "control sequence in one character": ("\x9b31m", r"\x9b31m"),
    "line over the last one": ("ok\rbad", r"ok\rbad"),
    "another line": ("ok\nbad", r"ok\nbad"),
    "line separator": ("ok\u2028bad", r"ok\u2028bad"),
    "right to left": ("a\u202egnp", r"a\u202egnp"),
    "isolate": ("\u2066a", r"\u2066a"),
    "nothing to see": ("a\u200bb\u00ad", r"a\u200bb\xad"),
    "tag": ("a\U000e0041", r"a\U000e0041"),
    "half a character": ("\ud800", r"\ud800"),
    "NUL": ("\0", r"\x00"),
}


@pytest.mark.parametrize(("text", "shown"), HOSTILE.values(), ids=HOSTILE)
def test_what_a_terminal_would_obey_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize("text", ["", "alice", "Zoë 美咲 🎮", "[red]%s{}\\x1b", "'; DROP TABLE ledger; --"])
def test_what_shows_as_itself_is_left_alone(text: str) -> None:
    assert printable(text) == printable_lines(text) == printable_json(text) == text


def test_ends_of_lines_are_kept_where_lines_are_meant() -> None:
    assert printable_lines("Traceback\n  \x1b[2J\r\n") == "Traceback\n  \\x1b[2J\\r\n"


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_says_the_same_and_is_one_printable_line(value: object) -> None:
    text = printable_json(json.dumps(value, ensure_ascii=False))

    assert text.isprintable()
    assert json.loads(text) == value
