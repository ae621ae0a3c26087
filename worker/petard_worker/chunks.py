"""Many things a few at a time."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of `size`, the last one shorter."""
    # itertools.batched comes with Python 3.12.
    rest = iter(items)
    return iter(lambda: list(islice(rest, size)), [])
