"""Named tuples made fast: every event makes a dozen."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

Made = TypeVar("Made", bound=tuple[object, ...])


def maker(cls: type[Made]) -> Callable[[tuple[object, ...]], Made]:
    """Return what makes this named tuple from a tuple of all its fields, whose number is not checked.

    To call the class, or its `_make`, takes twice as long.
    """
    return partial(tuple.__new__, cls)
