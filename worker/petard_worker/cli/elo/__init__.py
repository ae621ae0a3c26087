"""`petard elo …`: the calculator, without servers."""

import typer

from petard_worker.cli.elo import (
    change,
    cite,
    expected,
    field,
    pdf,
    percentile,
    performance,
    table,
    tournament,
)

app = typer.Typer(no_args_is_help=True)

NEGATIVE_NUMBERS = {"ignore_unknown_options": True}
"""-50 is a rating here and no option."""

app.command(context_settings=NEGATIVE_NUMBERS)(expected.expected)
app.command(context_settings=NEGATIVE_NUMBERS)(change.change)
app.command(context_settings=NEGATIVE_NUMBERS)(performance.performance)
app.command(context_settings=NEGATIVE_NUMBERS)(tournament.tournament)
app.command(context_settings=NEGATIVE_NUMBERS)(percentile.percentile)
app.command()(table.table)
app.command("simulate-field")(field.simulate_field)
app.command(context_settings=NEGATIVE_NUMBERS)(pdf.pdf)
app.command()(cite.cite)


@app.callback()
def calculator() -> None:
    """Calculate with Elo ratings: expected scores, changes, performances, tournaments.

    No servers are needed, unless a pool is named.
    """
