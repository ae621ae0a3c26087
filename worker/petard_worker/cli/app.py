"""`petard`: all commands under one name."""

from typing import Annotated

import typer

from petard_worker.cli import (
    bench,
    chaos,
    dead,
    elo,
    events,
    local,
    pools,
    rate,
    reads,
    reingest,
    roles,
    schema_files,
)
from petard_worker.cli.verify import verify

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="A rating service for online games: exactly-once ratings, bombs for those who leave, no gaps.",
)

TRY, RUN, BRING, LOOK, REPAIR = "Try it", "Run it", "Bring events", "Look", "Repair"
CALCULATE = "Calculate (no servers)"

app.command(rich_help_panel=TRY)(local.demo)
app.command(rich_help_panel=TRY)(local.up)
app.command(rich_help_panel=TRY)(chaos.chaos)
app.command(rich_help_panel=TRY)(bench.bench)
app.command(rich_help_panel=RUN)(roles.migrate)
app.add_typer(pools.app, name="pool", rich_help_panel=RUN)
app.command(rich_help_panel=RUN)(roles.worker)
app.command(rich_help_panel=RUN)(roles.publisher)
app.command(rich_help_panel=BRING)(events.push)
app.command(rich_help_panel=BRING)(events.simulate)
app.add_typer(events.import_app, name="import", rich_help_panel=BRING)
app.add_typer(schema_files.app, name="schema", rich_help_panel=BRING)
app.command(rich_help_panel=LOOK)(reads.status)
app.command(rich_help_panel=LOOK)(reads.player)
app.command(rich_help_panel=LOOK)(reads.leaderboard)
app.command(rich_help_panel=LOOK)(reads.event)
app.command(rich_help_panel=LOOK)(reads.preview)
app.command(rich_help_panel=LOOK)(verify)
app.add_typer(dead.app, name="dead", rich_help_panel=REPAIR)
app.command(rich_help_panel=REPAIR)(reingest.reingest)
app.command(rich_help_panel=CALCULATE)(rate.rate)
app.add_typer(elo.app, name="elo", rich_help_panel=CALCULATE)


def print_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415

        typer.echo(f"petard {version('petard')}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Rate games."""
