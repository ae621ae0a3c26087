"""`petard dead …`: look at dead letters, put them right, replay them, discard them, purge them."""

import typer

from petard_worker.cli.dead import close, edit, look, replay

app = typer.Typer(
    no_args_is_help=True,
    help="Events that could not be accepted: inspect, edit, replay, discard.",
)
app.command("list")(look.list_command)
app.command()(look.show)
app.command()(edit.edit)
app.command()(replay.replay)
app.command()(replay.runs)
app.command()(close.discard)
app.command()(close.purge)
