"""Put the functions of this release into Redis, so that whoever calls them need not be allowed to."""

import redis
from redis import Redis
from redis.exceptions import NoPermissionError

from petard_worker.bell import HOLD_FUNCTION, RELEASE_FUNCTION
from petard_worker.board import PLACE_BOARD_FUNCTION
from petard_worker.change_stream import APPEND_FUNCTION, CHANGED_FUNCTION
from petard_worker.dispatch import LEAD_FUNCTION, RING_FUNCTION
from petard_worker.intake import PEEK_FUNCTION, TRIM_FUNCTION
from petard_worker.replay import SEND_FUNCTION

FUNCTIONS = (
    PEEK_FUNCTION,
    TRIM_FUNCTION,
    HOLD_FUNCTION,
    RELEASE_FUNCTION,
    LEAD_FUNCTION,
    RING_FUNCTION,
    APPEND_FUNCTION,
    CHANGED_FUNCTION,
    PLACE_BOARD_FUNCTION,
    SEND_FUNCTION,
)

LOADED = "Redis has the functions of this release"


def load_functions(client: Redis) -> str:
    """Load what Redis lacks, and return a sentence about it for people, whatever came of it.

    It is never a failure: workers and publishers load what they miss if they may, and wait if they may not.
    """
    try:
        for function in FUNCTIONS:
            function.load(client)
    except NoPermissionError:
        return not_loaded("the user of PETARD_REDIS_URL may not (FUNCTION LOAD)")
    except redis.RedisError as error:
        if "unknown command" in str(error):
            return (
                "Redis is older than 7 and knows no functions:"
                " workers and publishers need EVALSHA and SCRIPT LOAD"
            )
        return not_loaded(str(error).strip())
    return LOADED


def not_loaded(reason: str) -> str:
    """Return the sentence that says why not, and what to do."""
    return (
        f"Redis was given no functions: {reason}. Workers and publishers whose user may load them do so"
        " themselves; if theirs may not, run 'petard migrate' again with a PETARD_REDIS_URL whose user may"
    )
