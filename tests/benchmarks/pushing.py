"""How fast events get onto the list: by a producer, by `petard push`, and by `petard import` from a table."""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from benchmarks.games import POOL, season
from benchmarks.lines import RATE, Line, Measured, at_least, at_most
from benchmarks.pipeline import producing
from benchmarks.plan import Plan
from benchmarks.pokes import chunks_of, poking, rate_by_pokes
from benchmarks.processes import resident_mb
from benchmarks.servers import Place, Servers
from petard_producer.rpush import CHUNK
from petard_schema import Keys, parse_event
from petard_schema.times import format_time
from petard_worker.redis_client import connect_redis

LONG = 5
"""Files are as many times as long as what is pushed: a command has to run for some seconds."""
SETTLED_SHARE = 0.05
"""After so much of a file an import holds what it will ever hold."""
HEADER = "white,black,end,result"
COLUMNS = ("--first", "white", "--second", "black", "--time", "end", "--result", "result")
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)

LINES = (
    Line("push_floor", "Redis alone, ready bytes by RPUSH", RATE),
    Line("push_many_json", "Producer.push_many_json", RATE, at_least(50_000)),
    Line("push_many", "Producer.push_many", RATE, at_least(50_000)),
    Line("push_file", "petard push, from a file", RATE, at_least(50_000)),
    Line("import_rows", "petard import, a table without names of games", "rows/s"),
    Line("import_early_mb", "import, early in the file", "MB"),
    Line("import_late_mb", "import, at the end of the file", "MB"),
    Line("import_growth", "import, at the end / early", "", at_most(1.1)),
)


def lines(_plan: Plan) -> Sequence[Line]:
    return LINES


def measure(servers: Servers, plan: Plan) -> Measured:
    """Push the same events in each way, then import a table."""
    texts = season(plan.events, plan.players)
    events = [parse_event(text) for text in texts]
    with servers.place() as place, producing(place) as producer, tempfile.TemporaryDirectory() as folder:
        yield "push_floor", rate_of(place, lambda: push_ready(place, texts), len(texts))
        yield "push_many_json", rate_of(place, lambda: producer.push_many_json(texts), len(texts))
        yield "push_many", rate_of(place, lambda: producer.push_many(events), len(texts))
        yield "push_file", rate_of_file(place, Path(folder) / "events.ndjson", texts)
        yield from measure_import(place, Path(folder) / "games.csv", LONG * plan.events, plan.players)


def rate_of(place: Place, push: Callable[[], object], count: int) -> float:
    """Return how many events a second are pushed onto an empty list."""
    with connect_redis(place.redis_url) as client:
        client.flushdb()
    started = time.perf_counter()
    push()
    return count / (time.perf_counter() - started)


def push_ready(place: Place, texts: Sequence[bytes]) -> None:
    """Push what is ready, in chunks like a producer's, and do nothing else."""
    rest = iter(texts)
    with connect_redis(place.redis_url) as client:
        while chunk := list(islice(rest, CHUNK)):
            client.rpush(Keys().events(POOL), *chunk)


def rate_of_file(place: Place, file: Path, texts: Iterable[bytes]) -> float:
    """Return how many lines a second `petard push` validates and pushes, start-up not counted."""
    lines_of_file = [text + b"\n" for text in texts] * LONG
    file.write_bytes(b"".join(lines_of_file))
    total = len(lines_of_file)
    with poking(place, Keys().pushed(), "push", str(file)) as (_, moments):
        return rate_by_pokes(list(islice(moments, chunks_of(total, CHUNK))), total, CHUNK)


def measure_import(place: Place, file: Path, total: int, players: int) -> Measured:
    """Yield rows a second, and the memory of the import early in the file and near its end."""
    file.write_text("\n".join((HEADER, *table(total, players))), encoding="utf-8")
    chunks = chunks_of(total, CHUNK)
    early = late = None
    heard = []
    command = ("import", "csv", str(file), "--pool", POOL, *COLUMNS, "--push")
    with poking(place, Keys().pushed(), *command) as (role, moments):
        for number, moment in enumerate(islice(moments, chunks), 1):
            heard.append(moment)
            if early is None and number >= SETTLED_SHARE * chunks:
                early = resident_mb(role.pid)
            if number == chunks - 1:  # after the last one it ends
                late = resident_mb(role.pid)
    yield "import_rows", rate_by_pokes(heard, total, CHUNK)
    yield "import_early_mb", early
    yield "import_late_mb", late
    yield "import_growth", late / early if early and late else None


def table(total: int, players: int) -> Iterator[str]:
    """Yield so many games, one a minute; no two of them are the same meeting."""
    for number in range(total):
        first = number % players
        second = (first + 1 + number // players % (players - 1)) % players
        end = format_time(BEGIN + timedelta(minutes=number))
        yield f"player {first},player {second},{end},{('1-0', '0-1', '1/2-1/2')[number % 3]}"
