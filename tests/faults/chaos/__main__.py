"""`python -m faults.chaos`, which `petard chaos` becomes: a run, its table or JSON, and exit code 0 or 1."""

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

from faults.chaos.kinds import KINDS, UnknownKindError
from faults.chaos.report import KindLine, Report
from faults.chaos.scenario import Plan, run
from petard_worker.cli.errors import FAILED, USAGE, leave, plain_errors
from petard_worker.cli.output import print_json, print_table, talk
from petard_worker.log_format import configure_logging


def main() -> None:
    """Run what the arguments say."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C, leaving nothing either
    configure_logging("error")
    arguments = read_arguments()
    plan = Plan(arguments.seed, arguments.events, arguments.faults, arguments.minutes, tuple(arguments.only))
    began = time.monotonic()

    def tell(message: str) -> None:
        talk(f"{time.monotonic() - began:6.1f} s  {message}")

    with plain_errors(), tempfile.TemporaryDirectory(prefix="petard-chaos-") as folder:
        try:
            report = run(plan, Path(folder), tell)
        except UnknownKindError as unknown:
            leave(str(unknown), USAGE)
        show(report, as_json=arguments.json, file=arguments.report)
    if report.failure is not None:
        talk(f"petard: FAILED: {report.failure}\npetard: again with: {report.command}")
        raise SystemExit(FAILED)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("petard chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=Plan.seed)
    parser.add_argument("--events", type=int, default=Plan.events)
    parser.add_argument("--faults", type=int, default=Plan.faults)
    parser.add_argument("--minutes", type=float, default=Plan.minutes)
    parser.add_argument("--only", action="append", default=[], help=", ".join(kind.name for kind in KINDS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--report", type=Path)
    return parser.parse_args()


def show(report: Report, *, as_json: bool, file: Path | None) -> None:
    """Print the report, and keep it as JSON in a file."""
    if file is not None:
        file.write_text(json.dumps(report.as_json(), indent=1) + "\n", encoding="utf-8")
    if as_json:
        print_json(report.as_json())
        return
    columns = [name.replace("_", " ") for name in KindLine._fields]
    print_table(columns, report.kinds())
    print_table(("", ""), report.facts())
    sys.stdout.flush()


if __name__ == "__main__":
    main()
