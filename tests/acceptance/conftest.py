"""Short commands without the price of starting Python each time, on servers of the test."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from acceptance.warm_commands import Ended, WarmCommands, warm_commands
from integration.arena import POOL, make_pool
from petard_worker.postgres.connect import Connection
from petard_worker.settings import Settings

Play = Callable[..., None]


@dataclass(frozen=True)
class Command:
    """`petard`, to be run with arguments."""

    warm: WarmCommands
    environment: dict[str, str]

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Ended:
        return self.warm.run(*arguments, environment=self.environment, stdin=stdin)

    def where(self, **settings: str) -> "Command":
        """Return the command with other environment variables."""
        return replace(self, environment=self.environment | settings)


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmCommands]:
    with warm_commands() as commands:
        yield commands


@pytest.fixture
def run(warm: WarmCommands, settings: Settings) -> Command:
    """Run `petard` with this test's servers: run("pool", "list")."""
    environment = {
        "PETARD_DATABASE_URL": settings.database_url.get_secret_value(),
        "PETARD_REDIS_URL": settings.redis_url.get_secret_value(),
        "PETARD_KEY_PREFIX": settings.key_prefix,
        "COLUMNS": "250",
    }
    return Command(warm, environment)


@pytest.fixture
def pool(connection: Connection) -> str:
    """The name of a pool with default rules."""
    make_pool(connection)
    return POOL


@pytest.fixture
def play(run: Command, pool: str) -> Play:
    """Push events to the pool as they are, and apply them."""

    def play(*events: bytes) -> None:
        assert run("push", "--unchecked", "--pool", pool, stdin=b"\n".join(events)).code == 0
        assert run("worker", "--burst").code == 0

    return play
