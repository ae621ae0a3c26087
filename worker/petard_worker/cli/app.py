"""`petard`: all commands under one name."""

import typer

from petard_worker.cli import pools, roles

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A rating service for online games: exactly-once ratings, bombs for those who leave, no gaps.",
)
app.command()(roles.migrate)
app.add_typer(pools.app, name="pool")
app.command()(roles.worker)
app.command()(roles.publisher)
