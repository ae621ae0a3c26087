"""Scripts that a full Redis runs too.

At `maxmemory` Redis refuses every script that would write. But what fills it are waiting events, which leave
through drains that hold a bell: if that were refused too, Redis would stay full for ever. Since Redis 7 a
script may say that it has to run all the same. Older servers know no such word and get the plain script.
"""

import re
from collections.abc import Sequence

from redis import Redis
from redis.exceptions import ResponseError

ALLOW_OOM = "#!lua flags=allow-oom\n"

_not_understood = re.compile("compiling|loading code|shebang")


class UrgentScript:
    """A script that is called like redis-py's; only for those that write a few bytes at most."""

    def __init__(self, redis: Redis, text: str) -> None:
        """Register nothing yet: that is done with the first call."""
        self._plain = redis.register_script(text)
        self._script = redis.register_script(ALLOW_OOM + text)

    def __call__(self, keys: Sequence[str], args: Sequence[str | int]) -> object:
        """Run it; raises what redis-py raises."""
        try:
            return self._script(keys=keys, args=args)
        except ResponseError as error:
            if self._script is self._plain or not _not_understood.search(str(error)):
                raise
        self._script = self._plain
        return self._script(keys=keys, args=args)
