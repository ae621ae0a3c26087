"""From bytes to a JSON value, read as I-JSON (RFC 7493), or to a reason why not.

UTF-8, no duplicate names, no lone surrogates, integers within +-(2^53 - 1), floats that a double can hold.
NUL is refused too: Postgres cannot store it. How long the text may be is for the caller to say and check.
"""

import json
import math
import re
from itertools import accumulate, pairwise
from typing import NoReturn

from petard_schema.envelope import MAX_SAFE_INTEGER

MAX_DEPTH = 16
MAX_NUMBER_LENGTH = 64


class NotIJsonError(ValueError):
    """The text is no I-JSON; the message says what and where."""


class TooDeepError(NotIJsonError):
    """Brackets are nested deeper than MAX_DEPTH."""


def decode(raw: bytes) -> object:
    """Return the JSON value in `raw`, or raise NotIJsonError, or UnicodeDecodeError where it is not UTF-8."""
    # A text with few brackets cannot be deep, and one without escapes cannot hide a surrogate or a NUL: the
    # usual event is never walked.
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH:
        check_depth(raw)
    text = raw.decode()
    try:
        value: object = _decoder.decode(text)
    except ValueError as error:  # JSONDecodeError, and those that are raised at the end of this file
        raise NotIJsonError(str(error)) from None
    if b"\\u" in raw:
        check_storable(value)
    return value


def check_depth(raw: bytes) -> None:
    """Raise TooDeepError where brackets are nested too deep.

    The decoder is not asked: how deep it goes depends on the version of Python and on the caller's stack, and
    Python 3.13 crashes in a thread with a small one.
    """
    brackets = _texts.sub(b"", raw).translate(None, delete=_NO_BRACKETS)
    depths = accumulate(1 if bracket in b"[{" else -1 for bracket in brackets)
    if any(depth > MAX_DEPTH for depth in depths):
        raise TooDeepError(f"nested deeper than {MAX_DEPTH} levels")


def check_storable(value: object) -> None:
    """Raise NotIJsonError where a text holds what Postgres cannot store."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, str) and (bad := _unstorable.search(item)):
            raise NotIJsonError(f"a text holds U+{ord(bad.group()):04X}")


def shorten(value: object) -> str:
    """Return a printable ASCII form of any value that is short enough for a log line."""
    text = ascii(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError(f"an object names {shorten(_repeated(pairs))} twice")
    return result


def _repeated(pairs: list[tuple[str, object]]) -> str:
    names = sorted(name for name, _ in pairs)
    return next(name for name, following in pairwise(names) if name == following)


def _int(digits: str) -> int:
    if len(digits) < 16:  # the usual one; below 10^15 whatever its sign
        return int(digits)
    if len(digits) <= 17 and -MAX_SAFE_INTEGER <= (value := int(digits)) <= MAX_SAFE_INTEGER:
        return value
    raise ValueError(f"the integer {shorten(digits)} is beyond 2^53 - 1")


def _float(digits: str) -> float:
    if len(digits) <= MAX_NUMBER_LENGTH and math.isfinite(value := float(digits)):
        if value or _zero.match(digits):
            return value
        raise ValueError(f"the number {shorten(digits)} is too small")
    raise ValueError(f"the number {shorten(digits)} is too large or too long")


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_texts = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # the last one may be cut off
_unstorable = re.compile("[\x00\ud800-\udfff]")
_zero = re.compile(r"-?0(\.0+)?([eE][+-]?[0-9]{1,3})?\Z")  # 0e-99999 is zero too, but not to Postgres
_decoder = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_int, parse_float=_float, parse_constant=_constant
)
