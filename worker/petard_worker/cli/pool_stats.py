"""`petard pool stats`: fluctuation, drift and distribution of a pool, with bars."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from petard_worker.cli.output import JsonOption, print_json, print_table, talk
from petard_worker.cli.reads import read_time
from petard_worker.cli.servers import reading, require_pool
from petard_worker.display import displayed, displayed_width
from petard_worker.distribution import Bin, Distribution
from petard_worker.pool_stats import FEWEST_PLAYERS, Drift, Fluctuation, PoolStats, Trend, ask, find_stats
from petard_worker.postgres.pool_stats import Established
from petard_worker.postgres.pools import Pool

EIGHTHS = " ▏▎▍▌▋▊▉"
LONGEST_BAR, SHORTEST_BAR = 60, 10
LONG_HISTORY = 200_000
"""So many ledger entries are gone through in seconds: whoever waits should know for what."""
BESIDE_BARS = 45  # columns of a histogram's other cells


def stats(
    name: str,
    days: Annotated[
        float | None, typer.Option(help="How long the window of the fluctuation is (default: 90).")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The end of everything (RFC 3339; default: the newest event)."),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(help="How far a rating may move in it, and stay (default: 150 points of Elo)."),
    ] = None,
    established: Annotated[
        float | None,
        typer.Option(
            metavar="RD", help="Established: an RD up to this (default: the pool's provisional_rd)."
        ),
    ] = None,
    games: Annotated[
        int | None,
        typer.Option(help="Established: at least so many games (default: 0; 20 where a system has no RD)."),
    ] = None,
    points: Annotated[
        int | None, typer.Option(help="At how many times the drift is measured (default: 12).")
    ] = None,
    drift: Annotated[
        str | None,
        typer.Option(metavar="life|window", help="Drift over the pool's life (default) or the window."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show how much ratings fluctuate, whether their level drifts, and how they are spread.

    A player has stayed who was never further than --width from where they stood when the window began. Where
    a player stood at some time is what `petard player --at` says. Options and JSON are in rating points,
    tables in the pool's display range. A mean is steady that moves by no more than 10 points of Elo a year;
    what a point of Elo comes to in the pool's own points follows from its system and parameters.

    Everything that was ever rated is read and sorted, which takes seconds with hundreds of thousands of
    events and a minute or more with millions; what has not come to an end after ten minutes is given up.
    """
    options = {
        "--days": days,
        "--width": width,
        "--established": established,
        "--games": games,
        "--points": points,
        "--drift": drift,
    }
    end = None if until is None else read_time("--until", until)
    with reading() as connection:
        pool = require_pool(connection, name)
        question = ask(pool, {key: value for key, value in options.items() if value is not None}, "--")
        if pool.seq >= LONG_HISTORY:
            talk(f"going through all {pool.seq:,} entries of the ledger: this takes a while")
        found = find_stats(connection, pool, question, end, datetime.now(UTC))
    if json:
        print_json(asdict(found))
    else:
        print_stats(pool, found)


def print_stats(pool: Pool, found: PoolStats) -> None:
    """Print everything as people read it."""
    if found.fluctuation is None:
        print_table(("fluctuation and drift", ""), [("nothing was rated yet", "")])
    else:
        print_fluctuation(pool, found.established, found.fluctuation)
        print_drift(pool, found.drift)
    print_distribution(pool, found.distribution)


def print_fluctuation(pool: Pool, rule: Established, found: Fluctuation) -> None:
    """Print how many of the established players stayed near their rating."""
    window = f"from {cell_time(found.since)} to {cell_time(found.until)}"
    if not found.established:
        print_table(("fluctuation", window), [("established", f"nobody ({rule_in_words(pool, rule)})")])
        return
    near = f"stayed within ±{plain_number(abs(displayed_width(pool, found.width)))}"
    facts = [("established", rule_in_words(pool, rule)), ("window", window)]
    print_table(("fluctuation", ""), facts)
    rows = [
        ("established at its start", found.established, found.stayed, found.share),
        ("of these, who played in it", found.active, found.active_stayed, found.active_share),
    ]
    shown = [(*row[:3], percent(row[3]), bar(row[3] or 0.0)) for row in rows]
    print_table(("", "players", near, "share", ""), shown)


def rule_in_words(pool: Pool, rule: Established) -> str:
    """Return who is established."""
    parts = [] if rule.highest_rd is None else [f"RD ≤ {abs(displayed_width(pool, rule.highest_rd)):.4g}"]
    if rule.fewest_games:
        parts.append(f"{rule.fewest_games} games or more")
    return ", ".join(parts) or "all who have played"


def print_drift(pool: Pool, found: Drift) -> None:
    """Print the means over time and what they come to."""
    columns = ("drift", "players", "mean", "median", "established", "mean", "median")
    rows = [
        (
            point.time,
            point.players,
            as_shown(pool, point.mean),
            as_shown(pool, point.median),
            point.established,
            as_shown(pool, point.established_mean),
            as_shown(pool, point.established_median),
        )
        for point in found.points
    ]
    if not rows:
        print_table(("drift", ""), [("nobody had played by then", "")])
        return
    print_table(columns, rows)
    steady = f"{abs(displayed_width(pool, found.steady_per_year)):.4g}"
    print_table(
        ("mean rating of", "change a year", f"(steady: no more than {steady})"),
        [trend_row(pool, "all players", found.players), trend_row(pool, "established", found.established)],
    )


def trend_row(pool: Pool, who: str, trend: Trend) -> tuple[str, str, str]:
    """Return a line that says how a mean moves."""
    if trend.change_per_year is None:
        return who, "-", "too short to say: it takes two points with players, 30 days apart"
    verdict = trend.verdict or f"fewer than {FEWEST_PLAYERS} players: no drift of the pool, whatever it is"
    return who, f"{displayed_width(pool, trend.change_per_year):+.1f}", verdict


def print_distribution(pool: Pool, found: Distribution) -> None:
    """Print the summary and the histogram of those on the board."""
    summary = found.summary
    if summary is None:
        print_table(("distribution", ""), [("nobody is on the board", "")])
        return
    provisional = f"{found.provisional} ({percent(found.provisional_share)})"
    values = [(key, displayed(pool, value)) for key, value in asdict(summary).items() if key != "sd"]
    values.insert(1, ("sd", abs(displayed_width(pool, summary.sd))))
    print_table(
        ("players", "provisional", *(key.replace("_", " ") for key, _ in values)),
        [(found.players, provisional, *(value for _, value in values))],
    )
    print_histogram(pool, found.bins)


def print_histogram(pool: Pool, bins: Sequence[Bin]) -> None:
    """Print a line and a bar for every bin; the longest bar is that of the fullest."""
    most = max(part.players for part in bins)
    rows = (
        (
            *(plain_number(edge) for edge in sorted(displayed(pool, edge) for edge in (part.low, part.high))),
            part.players,
            bar(part.players / most),
        )
        for part in bins
    )
    print_table(("from", "below", "players", ""), rows)


def bar(part: float) -> str:
    """Return a bar of a length between nothing (0) and all there is room for (1), in eighths of a column."""
    room = shutil.get_terminal_size().columns - BESIDE_BARS
    eighths = round(part * min(LONGEST_BAR, max(SHORTEST_BAR, room)) * 8)
    if part > 0:
        eighths = max(1, eighths)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip()


def percent(share: float | None) -> str:
    """Return a share of 0 to 1 as people read it."""
    return "-" if share is None else f"{100 * share:.1f} %"


def as_shown(pool: Pool, rating: float | None) -> float | None:
    """Return a rating in the display range, if there is one."""
    return None if rating is None else displayed(pool, rating)


def plain_number(value: float) -> str:
    """Return a number without digits that say nothing."""
    return f"{value:.7g}"


def cell_time(time: datetime) -> str:
    """Return a time to the minute."""
    return f"{time:%Y-%m-%d %H:%M}"
