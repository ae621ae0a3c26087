"""Exit codes, and the one place where exceptions become a line for people."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from petard_worker.printable import printable_lines

FAILED = 1
USAGE = 2
UNAVAILABLE = 69
BAD_CONFIGURATION = 78
INTERRUPTED = 130

CONNECTION_LOST = {None, "57P01", "57P02", "57P03", "53300", "08000", "08001", "08003", "08004", "08006"}
"""What Postgres says, or that nothing came from it, when there is no connection: not up, going down, full."""


class CommandFailed(Exception):  # noqa: N818 - a command that failed, said in one line
    """The command could not do what was asked; the message says why and what to do."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn what can go wrong outside our code into one clear line on stderr and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        leave("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has gone (`petard … | head`): nothing to say and nobody to say it to.
        sys.stderr.close()
        raise SystemExit(FAILED) from None
    except CommandFailed as failed:
        leave(str(failed), failed.code)
    except Exception as error:
        known = explain(error)
        if known is None:
            raise
        leave(*known)


def explain(error: Exception) -> tuple[str, int] | None:  # noqa: PLR0911, PLR0912 - one line a kind
    """Return line and exit code of an error whose cause is outside our code."""
    # Imported here: a command that fails early should not have paid for drivers it never used.
    import sqlite3  # noqa: PLC0415

    import psycopg  # noqa: PLC0415
    import redis  # noqa: PLC0415

    from petard_worker.embedded import EmbeddedServersUnavailable  # noqa: PLC0415
    from petard_worker.postgres.connect import RoleMissingError  # noqa: PLC0415
    from petard_worker.postgres.migrate import SchemaMismatchError  # noqa: PLC0415
    from petard_worker.ratings.parameters import BadParameterError  # noqa: PLC0415
    from petard_worker.server_function import FunctionMissingError  # noqa: PLC0415
    from petard_worker.settings import BadSettingError  # noqa: PLC0415

    match error:
        case BadSettingError() | SchemaMismatchError() | RoleMissingError():
            return str(error), BAD_CONFIGURATION
        case BadParameterError():
            return str(error), USAGE
        case UnicodeEncodeError(reason="surrogates not allowed"):
            # Only arguments can hold such text: it is how Python hands on bytes that are no UTF-8.
            return "an argument is not UTF-8 text", USAGE
        case EmbeddedServersUnavailable():
            return str(error), UNAVAILABLE
        case sqlite3.Error():
            return f"cannot write a temporary file (TMPDIR says where): {first_line(error)}", FAILED
        case psycopg.errors.LockNotAvailable():
            return f"somebody else holds what this needs; try again: {first_line(error)}", FAILED
        case psycopg.errors.QueryCanceled():
            return f"Postgres gave up a statement: {first_line(error)}", FAILED
        case psycopg.errors.CheckViolation():
            return f"Postgres holds what must not be: {first_line(error)}", FAILED
        case psycopg.errors.ReadOnlySqlTransaction():
            return (
                "Postgres is read-only (PETARD_DATABASE_URL): a standby that was not promoted, or a primary"
                f" that was demoted: {first_line(error)}"
            ), UNAVAILABLE
        case psycopg.OperationalError() if error.sqlstate in CONNECTION_LOST:
            return f"cannot reach Postgres (PETARD_DATABASE_URL): {first_line(error)}", UNAVAILABLE
        case psycopg.OperationalError():
            return f"Postgres failed (PETARD_DATABASE_URL): {first_line(error)}", FAILED
        case FunctionMissingError():
            return str(error), UNAVAILABLE
        case redis.ConnectionError() | redis.TimeoutError():
            return f"cannot reach Redis (PETARD_REDIS_URL): {first_line(error)}", UNAVAILABLE
        case redis.ResponseError():
            return f"Redis refused (PETARD_REDIS_URL): {first_line(error)}", FAILED
        case psycopg.errors.InsufficientPrivilege():
            return f"Postgres refused (PETARD_DATABASE_URL): {first_line(error)}", BAD_CONFIGURATION
        case OSError():
            return f"{error.strerror}: {error.filename}" if error.filename else error.strerror or str(
                error
            ), FAILED
    return None


def first_line(error: Exception) -> str:
    """Return the first line of the message: drivers add hints and addresses below it."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def leave(message: str, code: int) -> None:
    """Say it on stderr and exit."""
    print(f"petard: {printable_lines(message)}", file=sys.stderr)  # noqa: T201 - this is the command line's voice
    raise SystemExit(code)
