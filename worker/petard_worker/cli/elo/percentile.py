"""`petard elo percentile`."""

from typing import Annotated

import typer

from petard_worker.cli.elo.arguments import calculator_errors
from petard_worker.cli.elo.facts import as_facts, note, percent, rating, wrapped
from petard_worker.cli.output import JsonOption, print_json, print_table
from petard_worker.ratings.calculator import check_range, estimated_percentile, read_number, read_rating

HIGHEST_SHOWN = 1e6
"""A display range may end there."""


def percentile(
    first: Annotated[
        str, typer.Argument(metavar="POOL|RATING", help="The pool to compare with; alone it is a rating.")
    ],
    second: Annotated[
        str | None, typer.Argument(metavar="RATING", help="The rating to be placed in that pool.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show which share of players is rated lower, in a pool or, without one, by an estimate.

    In a pool: of its listed players those rated lower, and half of those rated the same. The rating is one as
    it is seen, in the pool's display range (JSON: `rating`; `rating_points` is the same in the pool's own
    points), and is taken as known exactly, with an RD of 0. Without a pool it is an estimate only, from one
    published distribution, which is named with it, and needs no servers.

    Example: petard elo percentile chess-blitz 1800, or without a pool: petard elo percentile 1800
    """
    if second is None:
        show_estimate(first, json=json)
    else:
        show_place(first, second, json=json)


def show_estimate(text: str, *, json: bool) -> None:
    """Print the estimate for a rating."""
    with calculator_errors():
        value = read_rating(text)
        found = estimated_percentile(value)
    reference = found.reference
    if json:
        facts = {"rating": value, "percentile": found.percentile, "estimate": True}
        print_json({**facts, "reference": as_facts(reference)})
        return
    print_table(
        ("", "estimate"),
        [
            ("rating", rating(value)),
            ("rated lower, estimated", percent(found.percentile / 100)),
        ],
    )
    typer.echo()
    normal = f"normal, mean {reference.mean:g}, standard deviation {reference.deviation:g}"
    typer.echo(wrapped(f"compared with {reference.population}, taken as {normal}"))
    typer.echo(wrapped(f"but: {reference.caveat}"))
    typer.echo(wrapped(f"source: {reference.source} {reference.url}"))
    note("an estimate, no count: name a pool to be compared with its players")


def show_place(pool: str, text: str, *, json: bool) -> None:
    """Print where a rating stands in a pool."""
    with calculator_errors():
        value = check_range(read_number(text, "rating"), -HIGHEST_SHOWN, HIGHEST_SHOWN, "rating")
    from petard_worker.cli.elo.in_pool import place_in_pool  # noqa: PLC0415

    points, found = place_in_pool(pool, value)
    if json:
        facts = {"pool": pool, "rating": value, "rating_points": points}
        print_json({**facts, **found._asdict(), "estimate": False})
        return
    print_table(
        ("", pool),
        [
            ("rating", rating(value)),
            ("percentile", percent(found.percentile / 100)),
            ("rated lower", found.lower),
            ("rated the same", found.equal),
            ("listed players", found.listed),
        ],
    )
