"""`petard pool …`: make pools, look at them, change how they rate and how they are shown."""

from collections.abc import Iterable
from dataclasses import Field, fields
from datetime import timedelta
from typing import Annotated, Any, cast

import typer

from petard_worker.cli.errors import USAGE, CommandFailed
from petard_worker.cli.output import JsonOption, print_json, print_table, talk
from petard_worker.cli.pool_stats import stats
from petard_worker.cli.servers import no_pool, reading, require_pool, writing
from petard_worker.periods import first_day, start_of
from petard_worker.pool_changes import PoolChange, change_pool, make_pool, resume_pool
from petard_worker.pool_settings import PoolSettings, as_given, pool_settings
from petard_worker.postgres.pools import Pool
from petard_worker.postgres.pools import list_pools as all_pools
from petard_worker.ratings.bombs import BombRules
from petard_worker.ratings.parameters import Limits, ParameterValue, describe
from petard_worker.ratings.pool_rules import BOMB_PREFIX, SYSTEMS, AbandonRules, pool_rules

app = typer.Typer(no_args_is_help=True, help="Make pools and set how they rate.")

ParamOption = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="K=V", help="A parameter of the rating system or of the bombs."),
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option("--setting", "-s", metavar="K=V", help="How the pool is shown and published."),
]
SignatureOption = Annotated[
    bool | None,
    typer.Option(
        "--require-signature/--no-require-signature", help="Whether the pool takes signed events only."
    ),
]


@app.command()
def create(
    name: str,
    system: Annotated[str, typer.Option(help=f"The rating system: {', '.join(SYSTEMS)}.")] = "glicko",
    param: ParamOption = None,
    setting: SettingOption = None,
    require_signature: SignatureOption = None,
    exist_ok: Annotated[bool, typer.Option("--exist-ok", help="Do nothing if it exists.")] = False,
) -> None:
    """Create a pool. Parameters left out have their defaults; `petard pool systems` lists them all."""
    parameters, settings = pairs(param), settings_of(setting, require_signature)
    with writing() as connection:
        made = make_pool(connection, name, system, parameters, settings)
    if not made and not exist_ok:
        raise CommandFailed(f"the pool {name!r} exists already: 'petard pool set' changes it")
    if made:
        talk(f"created pool {name} ({system})")
    else:
        talk(f"the pool {name} exists already; it stays as it is, whatever parameters were given")


@app.command("list")
def list_pools(json: JsonOption = False) -> None:
    """List all pools."""
    with reading() as connection:
        pools = all_pools(connection)
    if json:
        print_json([summary(pool) for pool in pools])
    else:
        columns = ("pool", "system", "version", "entries", "epoch", "stopped")
        print_table(columns, ((p.name, p.system, p.version, p.seq, p.epoch, p.stopped) for p in pools))


@app.command()
def systems(
    name: Annotated[str | None, typer.Argument(help="Only this system.")] = None, json: JsonOption = False
) -> None:
    """List the rating systems with their parameters: what they mean, may be, and are if left out."""
    if name is not None and name not in SYSTEMS:
        raise CommandFailed(f"no system {name!r}; there are {', '.join(SYSTEMS)}", USAGE)
    chosen = [name] if name is not None else list(SYSTEMS)
    if json:
        print_json([described(system) for system in chosen])
        return
    for system in chosen:
        print_declared(system, SYSTEMS[system].citation, SYSTEMS[system])
    if name is None:
        print_declared("abandons", "parameters of every system", BombRules, AbandonRules)
        print_declared("settings", "of every pool, given with -s; nothing is rated by them", PoolSettings)


def print_declared(title: str, remark: str, *declaring: object) -> None:
    """Print what classes declare: parameters or settings, with defaults, meanings and ranges."""
    declared = [one for rules in declaring for one in fields(cast("Any", rules))]
    bombs = fields(BombRules)
    typer.echo(f"{title}: {remark}")
    print_table(
        ("name", "default", "meaning"),
        [
            (f"{BOMB_PREFIX if one in bombs else ''}{one.name}", str(one.default), explain_parameter(one))
            for one in declared
        ],
    )
    typer.echo()


def described(system: str) -> dict[str, object]:
    """Return a rating system as it is told to programs."""
    return {
        "system": system,
        "citation": SYSTEMS[system].citation,
        "parameters": {
            declared.name: {"default": declared.default, "meaning": explain_parameter(declared)}
            for declared in fields(cast("Any", SYSTEMS[system]))
        },
    }


@app.command()
def show(name: str, json: JsonOption = False) -> None:
    """Show a pool with every parameter and setting."""
    with reading() as connection:
        pool = require_pool(connection, name)
    if json:
        print_json(summary(pool))
        return
    print_table(
        ("", name), [(key, value) for key, value in summary(pool).items() if not isinstance(value, dict)]
    )
    rows = [(key, value, meaning(pool, key)) for key, value in sorted(in_force(pool).items())]
    print_table(("parameter", "value", ""), [(key, str(value), text) for key, value, text in rows])
    known = {field.name: field.metadata["limits"] for field in fields(PoolSettings)}
    shown = as_given(pool_settings(pool.settings))
    print_table(("setting", "value", ""), [(k, str(v), known[k].meaning) for k, v in shown.items()])


@app.command("set")
def set_pool(
    name: str,
    param: ParamOption = None,
    setting: SettingOption = None,
    require_signature: SignatureOption = None,
) -> None:
    """Change parameters (in force from the next event on, as a new version) or settings."""
    settings = settings_of(setting, require_signature)
    if not (param or settings):
        raise CommandFailed("nothing to set: give --param or --setting", USAGE)
    change = PoolChange(pairs(param), settings)
    with writing() as connection:
        changed = change_pool(connection, name, change)
    if changed is None:
        raise no_pool(name)
    if param:
        talk(
            f"{name}: parameters version {changed.version}, in force from ledger entry {changed.next_seq} on"
        )
    if settings:
        talk(f"{name}: settings changed")


@app.command()
def resume(name: str) -> None:
    """Let a stopped pool go on: what waits is applied within seconds.

    A pool stops by itself when more than half of its last 100 events, or 50 in a row, fail by an exception of
    Petard's own: after a bad deploy, say. Those that failed before are dead letters: 'petard dead replay'.
    """
    with writing() as connection:
        before = resume_pool(connection, name)
    if before is None:
        raise no_pool(name)
    if before.stopped is None:
        talk(f"{name}: was not stopped")
    else:
        talk(f"{name}: resumed; it was stopped because {before.stopped}")


app.command()(stats)


def pairs(given: Iterable[str] | None) -> dict[str, ParameterValue]:
    """Return K=V options as a mapping; the values are checked where they are used."""
    found: dict[str, ParameterValue] = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise CommandFailed(f"{text!r} is not of the form K=V", USAGE)
        if key in found:
            raise CommandFailed(f"{key} is given twice: {found[key]!r} and {value!r}", USAGE)
        found[key] = value
    return found


def settings_of(given: Iterable[str] | None, require_signature: bool | None) -> dict[str, ParameterValue]:
    """Return the settings that are given, the one with options of its own included."""
    settings = pairs(given)
    if require_signature is None:
        return settings
    if "require_signature" in settings:
        raise CommandFailed("require_signature is given twice: as an option and with --setting", USAGE)
    return {**settings, "require_signature": require_signature}


def summary(pool: Pool) -> dict[str, object]:
    """Return a pool as it is shown."""
    return {
        "pool": pool.name,
        "system": pool.system,
        "citation": SYSTEMS[pool.system].citation if pool.system in SYSTEMS else None,
        "version": pool.version,
        "seq": pool.seq,
        "epoch": pool.epoch,
        "stopped": pool.stopped,
        "stopped_at": pool.stopped_at,
        "stops": pool.stops,
        "open_period": open_period(pool),
        "parameters": in_force(pool),
        "settings": as_given(pool_settings(pool.settings)),
    }


def open_period(pool: Pool) -> str | None:
    """Return the first and the last day of the rating period whose ratings are running, if there is one."""
    days = in_force(pool).get("period")
    if pool.newest is None or not isinstance(days, int) or not days:
        return None
    first = start_of(first_day(pool.newest, days))
    return f"{first:%Y-%m-%d}/{first + timedelta(days=days - 1):%Y-%m-%d}"


def in_force(pool: Pool) -> dict[str, ParameterValue]:
    """Return every parameter that is in force, also those that are younger than the pool."""
    if pool.system not in SYSTEMS:
        return dict(pool.parameters)
    return pool_rules(pool.system, pool.parameters).parameters()


def meaning(pool: Pool, parameter: str) -> str:
    """Return what a parameter of the pool means and may be."""
    for declared in pool_rules(pool.system, pool.parameters).declared(parameter):
        return explain_parameter(declared)
    return ""


def explain_parameter(declared: Field[Any]) -> str:
    """Return what a parameter means and may be."""
    limits: Limits = declared.metadata["limits"]
    return f"{limits.meaning} ({describe(declared)})"
