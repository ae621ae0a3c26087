"""Runs commands in processes forked from one that has imported everything already.

Starting Python and importing the drivers is nine tenths of what a short command costs; a suite that runs a
hundred of them has no use for that. Every command still is a process of its own, from its arguments, its
environment and its standard input to its exit code. The long-running ones are started in full by `petard`.
"""

import gc
import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PATIENCE_SECONDS = 60
USED_BY_COMMANDS = (
    "petard_worker.cli.app",
    "petard_worker.demo",
    "petard_worker.fleet",
    "petard_worker.run_publisher",
    "petard_worker.run_worker",
    "petard_worker.status",
    "typer.rich_utils",
)


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    arguments: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> object:
        """What it printed for programs."""
        assert self.code == 0, self
        return json.loads(self.stdout)


@dataclass
class WarmCommands:
    """A process that forks one child per command."""

    process: subprocess.Popen[str]
    folder: Path

    def run(self, *arguments: str, environment: Mapping[str, str], stdin: bytes = b"") -> Ended:
        """Run `petard` with these arguments to its end."""
        (self.folder / "stdin").write_bytes(stdin)
        order = {
            "arguments": [os.fsencode(argument).hex() for argument in arguments],
            "environment": dict(environment),
            "folder": str(self.folder),
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_SECONDS)
        assert ready, f"petard {arguments} did not end within {PATIENCE_SECONDS} s"
        code = int(self.process.stdout.readline())
        stdout, stderr = ((self.folder / name).read_text(errors="replace") for name in ("stdout", "stderr"))
        return Ended(arguments, code, stdout, stderr)


@contextmanager
def warm_commands() -> Iterator[WarmCommands]:
    """Keep the warm process for as long as commands are to be run."""
    with (
        tempfile.TemporaryDirectory(prefix="petard-warm-") as folder,
        subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        try:
            yield WarmCommands(process, Path(folder))
        finally:
            process.kill()


def serve() -> None:
    """Fork a child for every order on standard input and say how it ended."""
    for module in USED_BY_COMMANDS:
        importlib.import_module(module)
    gc.freeze()  # a child that ends does not look through all of this again
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            become(json.loads(line))
            return
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)  # noqa: T201 - the answer


def become(order: dict[str, object]) -> None:
    """Be the command: its environment, its arguments, its standard streams."""
    folder = Path(str(order["folder"]))
    environment, arguments = order["environment"], order["arguments"]
    assert isinstance(environment, dict)
    assert isinstance(arguments, list)
    os.environ.clear()
    os.environ.update(environment)
    afresh = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, (name, flags) in enumerate((("stdin", os.O_RDONLY), ("stdout", afresh), ("stderr", afresh))):
        os.dup2(os.open(folder / name, flags, 0o600), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - a fresh buffer
    sys.argv = ["petard", *(os.fsdecode(bytes.fromhex(argument)) for argument in arguments)]

    from petard_worker.cli import main  # noqa: PLC0415

    main()


if __name__ == "__main__":
    serve()
