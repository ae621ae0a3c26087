"""Parameters as data: systems and rule sets are frozen dataclasses whose fields declare their range."""

import math
import re
from collections.abc import Mapping
from dataclasses import Field, field, fields
from typing import Any, NamedTuple, TypeVar

ParameterValue = float | int | bool | str
T = TypeVar("T")

PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""What a text may be to be a number; `float` alone takes " 5", "1_0" and digits of other scripts."""


class Limits(NamedTuple):
    """What a parameter may be: a range of numbers or a choice of words."""

    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    meaning: str = ""


class BadParameterError(ValueError):
    """A parameter that does not exist or is out of range; the message names it, its range, its default."""


def number(default: float, low: float, high: float, meaning: str) -> Any:
    """Declare a real parameter between low and high, both included."""
    return field(default=float(default), metadata={"limits": Limits(low, high, meaning=meaning)})


def integer(default: int, low: int, high: int, meaning: str) -> Any:
    """Declare a whole parameter between low and high, both included."""
    return field(default=default, metadata={"limits": Limits(low, high, meaning=meaning)})


def switch(default: bool, meaning: str) -> Any:
    """Declare a parameter that is true or false."""
    return field(default=default, metadata={"limits": Limits(meaning=meaning)})


def choice(default: str, choices: tuple[str, ...], meaning: str) -> Any:
    """Declare a parameter that is one of some words."""
    return field(default=default, metadata={"limits": Limits(choices=choices, meaning=meaning)})


def build(
    rules: type[T], given: Mapping[str, ParameterValue], prefix: str = "", what: str = "parameter"
) -> T:
    """Return the rules with the given parameters in place of the defaults, or raise BadParameterError.

    prefix: what public names begin with; what: what they are called.
    """
    known: dict[str, Field[Any]] = {prefix + f.name: f for f in fields(rules)}  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            raise BadParameterError(f"no {what} {name!r}; there are {', '.join(known)}")
    return rules(**{known[name].name: check(name, known[name], value) for name, value in given.items()})


def check(name: str, declared: Field[Any], value: ParameterValue) -> ParameterValue:
    """Return the value in the parameter's own type, or raise BadParameterError."""
    limits: Limits = declared.metadata["limits"]
    default = declared.default
    expectation = describe(declared)
    if isinstance(default, bool):
        words = {"true": True, "false": False, True: True, False: False}
        if isinstance(value, (bool, str)) and value in words:
            return words[value]
    elif isinstance(default, str):
        if value in limits.choices:
            return value
    else:
        converted = as_number(value, whole=isinstance(default, int))
        if converted is not None and limits.low <= converted <= limits.high:
            return converted
    raise BadParameterError(f"{name} is {value!r}, but must be {expectation} (default {default})")


def as_number(value: ParameterValue, *, whole: bool) -> float | int | None:
    """Return the value as a number, or None when it is none."""
    if isinstance(value, bool) or (isinstance(value, str) and not PLAIN_NUMBER.fullmatch(value)):
        return None
    try:
        converted = float(value)
    except (TypeError, ValueError, OverflowError):  # TypeError: JSON brings null and lists
        return None
    if not math.isfinite(converted) or (whole and not converted.is_integer()):
        return None
    return int(converted) if whole else converted


def describe(declared: Field[Any]) -> str:
    """Return in words what the parameter may be."""
    limits: Limits = declared.metadata["limits"]
    if isinstance(declared.default, bool):
        return "true or false"
    if limits.choices:
        return "one of " + ", ".join(limits.choices)
    kind = "a whole number" if isinstance(declared.default, int) else "a number"
    return f"{kind} from {limits.low:g} to {limits.high:g}"
