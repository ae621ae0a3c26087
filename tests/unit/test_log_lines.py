"""One event is one line, whatever strangers have put into its fields, and no terminal obeys it."""

import json
import os
import pty
import subprocess
import sys

HOSTILE = (
    '\x1b]0;pwned\x07\x1b[2J\r\n{"event": "forged", "level": "info"}\n2026-01-01 [info     ] forged'
    "\u2028\u202egnp\u2066\x9b31m\u200b\x00[red]%s{}%(x)s"
)
PROGRAM = f"""
import logging, structlog
from petard_worker.log_format import configure_logging
configure_logging("info")
hostile = {HOSTILE!r}
log = structlog.get_logger()
log.info("told", pool=hostile, players=[hostile], by={{hostile: hostile}}, error=ValueError(hostile))
try:
    raise ValueError(hostile)
except ValueError:
    log.exception("failed", game=hostile)
    logging.getLogger("rq").exception("job %s", hostile)
logging.getLogger("rq").warning(hostile)
"""


def run_program() -> list[str]:
    """Return the lines that the program logs where stderr is a file."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    return result.stderr.split("\n")[:-1]


def run_on_a_terminal() -> str:
    """Return what the program shows on a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while chunk := read(ours):
            shown += chunk
        assert process.wait(60) == 0
    os.close(ours)
    return shown.decode()


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # nobody has it open any more
        return b""


def test_every_event_is_one_line_of_json() -> None:
    lines = run_program()

    events = [json.loads(line) for line in lines[:2]]

    assert [event["event"] for event in events] == ["told", "failed"]
    assert events[0]["pool"] == HOSTILE
    assert events[0]["players"] == [HOSTILE]
    assert events[0]["by"] == {HOSTILE: HOSTILE}
    assert HOSTILE in events[1]["exception"]
    assert [line for line in lines if not line.isprintable()] == []


def test_other_loggers_say_a_message_on_one_line() -> None:
    lines = run_program()[2:]

    assert lines[0].startswith("ERROR rq job ")
    assert lines[1].startswith("  Traceback")
    assert all(line.startswith("  ") for line in lines[1:-1])
    assert lines[-1].startswith("WARNING rq ")
    assert "forged" in lines[-1]


def test_a_terminal_gets_nothing_to_obey_but_colours_of_ours() -> None:
    shown = run_on_a_terminal()

    for colour in ("0", "1", "2", "31", "32", "33", "34", "35", "36"):
        shown = shown.replace(f"\x1b[{colour}m", "")
    lines = shown.split("\r\n")
    assert [line for line in lines if not line.isprintable()] == []
    assert [line for line in lines if line.startswith(("2026-01-01", "{"))] == []
    assert len([line for line in lines if "told" in line]) == 1
    assert len([line for line in lines if line.startswith("  ValueError: ")]) == 2
