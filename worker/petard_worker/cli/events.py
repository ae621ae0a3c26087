"""Commands that bring events: push, simulate, import."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, BinaryIO, TypeAlias, TypeVar

import typer

from petard_producer import Producer
from petard_schema import AnyGameEvent, EventRefused, GameEvent, Keys, read_event
from petard_schema.names import check_pool
from petard_worker.chunks import chunks
from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import ProgressBar, progress, talk
from petard_worker.cli.servers import redis_client
from petard_worker.import_games import BadRow, CsvColumns, read_csv, read_pgn
from petard_worker.push import push_lines
from petard_worker.settings import load_settings
from petard_worker.signing_keys import SigningKeys, read_signing_keys, sign_if_known
from petard_worker.simulate import Season
from petard_worker.simulate import simulate as simulate_season

T = TypeVar("T")
CHUNK = 500  # events per step; more would only make the progress jump
COMMAND_SOURCE = "/petard/command"
USUAL = Season()

Element: TypeAlias = tuple[str, bytes]
"""What is pushed, and the pool it is for."""

import_app = typer.Typer(no_args_is_help=True, help="Turn other people's files into events.")

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="`-` reads standard input.")]
PoolOption = Annotated[str, typer.Option("--pool", help="The pool the games belong to.")]
SourceOption = Annotated[str, typer.Option("--source", help="The source that stands in the events.")]
PushOption = Annotated[bool, typer.Option("--push", help="Push straight to the queue instead of printing.")]


def push(
    file: FileArgument = Path("-"),
    unchecked: Annotated[
        bool,
        typer.Option("--unchecked", help="Push lines as they are; the workers judge."),
    ] = False,
    pool: Annotated[str | None, typer.Option("--pool", help="With --unchecked: the pool's list.")] = None,
) -> None:
    """Push events, one JSON object a line; wrong lines are named and left out.

    With PETARD_SIGNING_KEYS, events of a source that has keys are signed in its name.
    """
    if unchecked != (pool is not None):
        raise CommandFailed(
            "--unchecked and --pool go together: a line that is not read names no pool", USAGE
        )
    if pool is not None:
        usage_errors(lambda: check_pool(pool))
    total = count_lines(file)
    with opened(file) as lines, progress("pushed") as bar:
        signer = Signer.from_settings()
        if pool is not None:
            pushed, bad = push_unchecked(lines, pool, bar, total), 0
        else:
            pushed, bad = push_checked(lines, signer, bar, total)
    talk(f"pushed {pushed} events{signer.remark()}")
    if bad:
        raise CommandFailed(f"{bad} bad lines were left out, the rest was pushed")


@dataclass
class Signer:
    """Signs what commands push in the name of those sources whose keys are set."""

    keys: SigningKeys
    count: int = 0

    @classmethod
    def from_settings(cls) -> "Signer":
        """Return a signer with the keys of the settings."""
        return cls(read_signing_keys(load_settings().signing_keys.get_secret_value()))

    def element(self, text: bytes, event: AnyGameEvent) -> bytes:
        """Return what is pushed of an event."""
        if not self.keys:
            return text
        element = sign_if_known(text, event, self.keys, datetime.now(UTC))
        self.count += element is not text
        return element

    def remark(self) -> str:
        """Say how many were signed, if any."""
        return f", {self.count} of them signed" if self.count else ""


def push_checked(
    lines: Iterable[bytes], signer: Signer, bar: ProgressBar, total: int | None
) -> tuple[int, int]:
    """Push the lines that are events, name what is wrong with the others; return how many of each."""
    bad = 0

    def elements() -> Iterator[Element]:
        nonlocal bad
        for number, line in enumerate(lines, 1):
            raw = line.strip()
            if not raw:
                continue
            try:
                event = read_event(raw)
            except EventRefused as refused:
                talk(f"line {number}: {refused}")
                bad += 1
            else:
                yield event.data.pool, signer.element(raw, event)

    pushed = 0
    for pushed in push_elements(elements()):
        bar.show(pushed, total)
    return pushed, bad


def push_elements(elements: Iterable[Element]) -> Iterator[int]:
    """Push elements that were checked, some at a time, and yield how many that makes so far."""
    pushed = 0
    with producer() as sender:
        for chunk in chunks(elements, CHUNK):
            by_pool: dict[str, list[bytes]] = {}
            for pool, element in chunk:
                by_pool.setdefault(pool, []).append(element)
            sender.push_checked(by_pool)
            pushed += len(chunk)
            yield pushed


def push_unchecked(lines: Iterable[bytes], pool: str, bar: ProgressBar, total: int | None) -> int:
    """Push lines to one list without reading them and return how many."""
    settings = load_settings()
    keys = Keys(settings.key_prefix)
    pushed = 0
    with redis_client(settings) as client:
        for chunk in chunks((line.rstrip(b"\r\n") for line in lines), CHUNK):
            push_lines(client, keys, pool, chunk)
            pushed += len(chunk)
            bar.show(pushed, total)
    return pushed


def simulate(
    pool: PoolOption = "demo",
    players: Annotated[int, typer.Option(min=2)] = 200,
    games: Annotated[int, typer.Option(min=0)] = 20_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 1,
    draws: Annotated[float, typer.Option(min=0, max=1, help="Share of draws.")] = USUAL.draw_share,
    abandons: Annotated[float, typer.Option(min=0, max=1, help="Share of abandons.")] = USUAL.abandon_share,
    late: Annotated[float, typer.Option(min=0, max=1, help="Share that comes late.")] = USUAL.late_share,
    repeats: Annotated[float, typer.Option(min=0, max=1, help="Share sent twice.")] = USUAL.repeat_share,
    hostile: Annotated[float, typer.Option(min=0, max=1, help="Share of hostile lines.")] = 0.0,
) -> None:
    """Print a season of simulated games as events, one a line.

    Players have known strengths: the ratings of a pool that plays the season must find them again.
    """
    season = usage_errors(
        lambda: Season(
            pool=pool,
            players=players,
            games=games,
            seed=seed,
            draw_share=draws,
            abandon_share=abandons,
            late_share=late,
            repeat_share=repeats,
            hostile_share=hostile,
        )
    )
    with progress("simulated") as bar:
        for count, line in enumerate(simulate_season(season), 1):
            sys.stdout.buffer.write(line + b"\n")
            bar.show(count, None)
    sys.stdout.flush()


@import_app.command("csv")
def import_csv(
    file: FileArgument,
    pool: PoolOption,
    first: Annotated[str, typer.Option(help="Column of the first player (White, home team).")],
    second: Annotated[str, typer.Option(help="Column of the second player.")],
    time: Annotated[str, typer.Option(help="Column of the time the game ended.")],
    result: Annotated[str | None, typer.Option(help="Column of the result: 1-0, 0-1, 1/2-1/2, …")] = None,
    first_score: Annotated[str | None, typer.Option(help="Column of the first player's points.")] = None,
    second_score: Annotated[str | None, typer.Option(help="Column of the second player's points.")] = None,
    time_format: Annotated[str | None, typer.Option(help="strptime format of the time.")] = None,
    game: Annotated[str | None, typer.Option(help="Column that names the game.")] = None,
    neutral: Annotated[str | None, typer.Option(help="Column that says there was no home side.")] = None,
    first_at_home: Annotated[bool, typer.Option(help="The first player is the home side.")] = False,
    delimiter: str = ",",
    source: SourceOption = COMMAND_SOURCE,
    push_them: PushOption = False,
) -> None:
    """Turn a table of games into events; bad rows are named and left out."""
    columns = usage_errors(
        lambda: CsvColumns(
            first=first,
            second=second,
            time=time,
            result=result,
            first_score=first_score,
            second_score=second_score,
            time_format=time_format,
            game=game,
            neutral=neutral,
            first_at_home=first_at_home,
            delimiter=delimiter,
        )
    )
    with opened_text(file) as lines:
        deliver(usage_errors(lambda: read_csv(lines, columns, pool, source)), push_them, count_lines(file))


@import_app.command("pgn")
def import_pgn(
    file: FileArgument, pool: PoolOption, source: SourceOption = COMMAND_SOURCE, push_them: PushOption = False
) -> None:
    """Turn the headers of a PGN file into events; games that cannot be used are named and left out."""
    with opened_text(file) as lines:
        deliver(usage_errors(lambda: read_pgn(lines, pool, source)), push_them, None)


def deliver(found: Iterable[GameEvent | BadRow], push_them: bool, total: int | None) -> None:
    """Push or print the events, name the bad rows, and fail at the end if there were any."""
    bad = 0

    def events() -> Iterator[GameEvent]:
        nonlocal bad
        for item in found:
            if isinstance(item, BadRow):
                talk(f"line {item.line}: {item.reason}")
                bad += 1
            else:
                yield item

    with progress("imported") as bar:
        if push_them:
            signer = Signer.from_settings()
            elements = ((event.data.pool, signer.element(event.to_json(), event)) for event in events())
            count = 0
            for count in push_elements(elements):
                bar.show(count, total)
            talk(f"pushed {count} events{signer.remark()}")
        else:
            for count, event in enumerate(events(), 1):
                sys.stdout.buffer.write(event.to_json() + b"\n")
                if count % CHUNK == 0:
                    bar.show(count, total)
            sys.stdout.flush()
    if bad:
        raise CommandFailed(f"{bad} rows were left out, the rest was kept")


@contextmanager
def producer() -> Iterator[Producer]:
    """Open a producer to the configured Redis."""
    settings = load_settings()
    url = settings.redis_url.get_secret_value()
    with Producer.from_url(url, source=COMMAND_SOURCE, prefix=settings.key_prefix) as sender:
        yield sender


@contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """Open the file, or standard input for -."""
    if file == Path("-"):
        yield sys.stdin.buffer
        return
    with file.open("rb") as stream:
        yield stream


@contextmanager
def opened_text(file: Path) -> Iterator[Iterable[str]]:
    """Open the file as text, UTF-8 or, where it is none, Latin-1."""
    with opened(file) as stream:
        yield (decoded(line) for line in stream)


def decoded(line: bytes) -> str:
    """Return the line as text; old chess files are Latin-1."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


def count_lines(file: Path) -> int | None:
    """Return how many lines the file has, for the progress bar; None for standard input."""
    if not file.is_file():
        return None
    with file.open("rb") as stream:
        return sum(1 for _ in stream)


def usage_errors(make: Callable[[], T]) -> T:
    """Return what `make` makes; what it finds wrong with its arguments is a usage error."""
    try:
        return make()
    except ValueError as error:
        raise CommandFailed(str(error), USAGE) from None
