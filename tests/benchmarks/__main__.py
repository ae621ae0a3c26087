"""`python -m benchmarks`, which `petard bench` becomes: some rounds, then one table or JSON."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

from benchmarks.lines import shown
from benchmarks.parts import PARTS
from benchmarks.plan import Order, Plan, read_order
from benchmarks.report import COLUMNS, Report, Round
from benchmarks.servers import Servers, open_servers
from petard_worker.cli.errors import plain_errors
from petard_worker.cli.output import print_json, print_table, talk
from petard_worker.log_format import configure_logging

SOFTWARE = ("petard", "rq", "dramatiq", "procrastinate")


def main() -> None:
    """Run what the arguments say."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C, leaving nothing either
    configure_logging("error")
    order = read_order()
    began = time.monotonic()

    def tell(message: str) -> None:
        talk(f"{time.monotonic() - began:6.1f} s  {message}")

    with plain_errors():
        tell("starting the servers")
        with open_servers(order.plan.batch_size) as servers:
            report = run(order.plan, servers, tell)
        show(report, order)


def run(plan: Plan, servers: Servers, tell: Callable[[str], None]) -> Report:
    """Measure everything as often as there are rounds."""
    facts = {**servers.versions(), **{name: version(name) for name in SOFTWARE}, **machine()}
    rounds = [run_round(plan, servers, number, tell) for number in range(1, plan.rounds + 1)]
    lines = {PARTS[name].title: PARTS[name].lines(plan) for name in plan.parts}
    return Report(facts, plan, lines, rounds)


def run_round(plan: Plan, servers: Servers, number: int, tell: Callable[[str], None]) -> Round:
    """Measure everything once, and tell each value as soon as it is known."""
    found = {}
    for part in (PARTS[name] for name in plan.parts):
        lines = {line.key: line for line in part.lines(plan)}
        for key, value in part.measure(servers, plan):
            found[key] = value
            line = lines[key]
            tell(f"round {number} of {plan.rounds}: {line.label}: {shown(value)} {line.unit}".rstrip())
    return found


def machine() -> dict[str, str]:
    """Return what runs beside us: on a busy machine only ratios mean anything."""
    return {
        "python": sys.version.split()[0],
        "cores": str(os.cpu_count()),
        "load before": f"{os.getloadavg()[0]:.1f}",
    }


def show(report: Report, order: Order) -> None:
    """Print the report, and keep it as JSON in a file."""
    if order.file is not None:
        order.file.write_text(json.dumps(report.as_json(), indent=1) + "\n", encoding="utf-8")
    if order.as_json:
        print_json(report.as_json())
        return
    sys.stdout.write(report.title() + "\n\n")
    sys.stdout.flush()
    print_table(COLUMNS, report.rows())


if __name__ == "__main__":
    main()
