"""Everything on this machine from one command: demo and up."""

import signal
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from petard_worker.cli.errors import CommandFailed
from petard_worker.cli.output import JsonOption, print_json, print_table, progress, talk
from petard_worker.cli.roles import stop_event
from petard_worker.settings import PREFIX, load_settings


def demo(
    players: Annotated[int, typer.Option(min=2, max=100_000)] = 200,
    games: Annotated[int, typer.Option(min=1, max=10_000_000)] = 20_000,
    seed: Annotated[int, typer.Option(help="The same seed plays the same games.")] = 1,
    workers: Annotated[int, typer.Option(min=1, max=64)] = 1,
    patience: Annotated[float, typer.Option(min=1, help="Give up when nothing moves for so many s.")] = 60.0,
    json: JsonOption = False,
) -> None:
    """Play a simulated season through the whole pipeline and print the board.

    Players have known strengths; the season has draws, abandons, late and repeated events, and hostile lines.
    Servers are those of PETARD_DATABASE_URL and PETARD_REDIS_URL, else embedded ones that leave nothing.
    """
    from petard_schema import Keys  # noqa: PLC0415
    from petard_worker import demo as season_demo  # noqa: PLC0415
    from petard_worker.fleet import fleet, servers  # noqa: PLC0415
    from petard_worker.log_format import configure_logging  # noqa: PLC0415
    from petard_worker.postgres.connect import connect_worker  # noqa: PLC0415
    from petard_worker.postgres.migrate import migrate  # noqa: PLC0415
    from petard_worker.redis_client import connect_redis  # noqa: PLC0415

    settings = load_settings()
    configure_logging("warning")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C, leaving nothing either
    talk("starting the servers")
    with (
        tempfile.TemporaryFile("w+") as log,
        servers(settings, None) as (urls, _),
        connect_redis(urls.redis_url) as client,
    ):
        client.ping()
        migrate(urls.database_url)
        with connect_worker(urls.database_url, "demo") as connection:
            stage = season_demo.Stage(connection, client, Keys(settings.key_prefix))
            season = season_demo.season_until_now(season_demo.free_pool(connection), players, games, seed)
            talk(f"playing {games} games of {players} players in pool {season.pool}")
            with fleet(urls, log, workers=workers) as roles, progress("applied") as bar:

                def report(moment: season_demo.Moment) -> None:
                    bar.show(moment.applied, moment.pushed)

                def check() -> None:
                    if ended := roles.ended():
                        log.seek(0)
                        tail = "".join(log.readlines()[-10:])
                        raise CommandFailed(f"{', '.join(ended)} ended early:\n{tail}")

                try:
                    audience = season_demo.Audience(report, check, patience)
                    found = season_demo.play(stage, season, audience)
                except season_demo.DemoFailedError as failed:
                    raise CommandFailed(str(failed)) from None
    if json:
        print_json({**found._asdict(), "top": [line._asdict() for line in found.top]})
    else:
        print_report(found)


def print_report(found: "season_demo.Report") -> None:  # type: ignore[name-defined]  # noqa: F821
    """Print the board, the dead letters and the figures."""
    columns = ("rank", "player", "rating", "rd", "bomb", "games")
    print_table(columns, ([getattr(line, column) for column in columns] for line in found.top))
    print_table(("dead letters of the hostile lines, by reason", "count"), sorted(found.dead.items()))
    print_table(
        ("", ""),
        [
            ("lines pushed", str(found.lines)),
            ("ledger entries (without repeats and hostile lines)", str(found.entries)),
            ("applied/s", f"{found.applied_per_second:.0f}"),
            ("rank correlation with the true strengths", f"{found.spearman:.3f}"),
        ],
    )


def up(
    data: Annotated[
        Path | None, typer.Option(help="Where embedded servers keep their data.", show_default=False)
    ] = None,
    ephemeral: Annotated[bool, typer.Option("--ephemeral", help="Keep no data.")] = False,
    workers: Annotated[int, typer.Option(min=1, max=64)] = 2,
) -> None:
    """Run servers, workers and a publisher on this machine until Ctrl-C.

    Servers are those of PETARD_DATABASE_URL and PETARD_REDIS_URL, else embedded ones that keep their data.
    """
    from petard_worker.embedded import default_data_folder  # noqa: PLC0415
    from petard_worker.fleet import fleet, servers, unset_urls  # noqa: PLC0415
    from petard_worker.log_format import configure_logging  # noqa: PLC0415
    from petard_worker.postgres.migrate import migrate  # noqa: PLC0415
    from petard_worker.redis_client import connect_redis  # noqa: PLC0415

    settings = load_settings()
    configure_logging(settings.log_level)
    stop = stop_event()
    with servers(settings, None if ephemeral else data or default_data_folder()) as (
        urls,
        revive,
    ):
        with connect_redis(urls.redis_url) as client:
            client.ping()
        for name in migrate(urls.database_url):
            talk(f"applied {name}")
        with fleet(urls, None, workers=workers) as roles:
            missing = unset_urls(settings)
            talk(
                "up; other terminals reach the same servers with"
                if missing
                else "up, on the servers of the settings"
            )
            for name in missing:
                talk(f"  export {PREFIX}{name.upper()}={getattr(urls, name)}")
            roles.keep_running(stop, revive, talk)
            talk("stopping")
