"""What log lines look like: JSON for machines, colours on a terminal, always on stderr.

Fields can hold what strangers wrote: names, ids, what Postgres says of them. Whatever it is, an event stays
one line, and no terminal that shows it obeys it.
"""

import json
import logging
import sys
from collections.abc import MutableMapping
from io import StringIO
from textwrap import indent
from typing import Any, TextIO

import structlog
from structlog.typing import ExcInfo

from petard_worker.printable import printable, printable_json, printable_lines


def configure_logging(level: str) -> None:
    """Send structlog and the standard library's loggers to stderr, at this level and above."""
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Plain tracebacks: the rich ones show locals, and locals hold secrets.
    renderers: list[Any] = (
        [show_texts, structlog.dev.ConsoleRenderer(exception_formatter=write_traceback)]
        if sys.stderr.isatty()
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(dump)]
    )
    structlog.configure(
        processors=[*shared, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLineFormatter("%(levelname)s %(name)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=max(number, logging.WARNING))


class OneLineFormatter(logging.Formatter):
    """Of the standard library's loggers: a message is one line, only a traceback below it has more."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name it has there
        """Return the line without the traceback."""
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """Return the traceback."""
        return indented(super().formatException(ei))


def dump(event: object, **options: Any) -> str:
    """Return a log event as JSON."""
    return printable_json(json.dumps(event, ensure_ascii=False, **options))


def show_texts(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape texts for a terminal; it gets everything else as repr() has it, which escapes too."""
    return {key: printable(value) if isinstance(value, str) else value for key, value in event.items()}


def write_traceback(stream: TextIO, error: ExcInfo) -> None:
    """Write a traceback for a terminal."""
    text = StringIO()
    structlog.dev.plain_traceback(text, error)
    stream.write("\n" + indented(text.getvalue().lstrip("\n")))


def indented(traceback: str) -> str:
    """Return a traceback none of whose lines looks like a line of the log: its message can have any."""
    return indent(printable_lines(traceback), "  ")
