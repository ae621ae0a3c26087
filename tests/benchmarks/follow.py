"""`python -m benchmarks.follow COUNT…`: a follower that tells when it saw each change, COUNT in a line."""

import json
import os
import sys
import time
from itertools import islice

from benchmarks.games import POOL
from petard_producer import Follower


def main() -> None:
    """Follow the pool from its beginning until everything was seen."""
    with Follower.from_url(os.environ["PETARD_REDIS_URL"], pool=POOL) as follower:
        changes = follower.follow()
        for count in map(int, sys.argv[1:]):
            seen = [time.monotonic() for _ in islice(changes, count)]
            sys.stdout.write(json.dumps(seen) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
