"""Valkey, or Redis, under our supervision."""

import subprocess
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from petard_worker.embedded.binaries import find_redis, myself
from petard_worker.embedded.server import HOST, Server, spawn


class RedisServer(Server):
    """Valkey or Redis that forgets nothing and evicts nothing, for this machine only."""

    name = "redis"
    _program: Path

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"redis://{HOST}:{self.port}/0"

    def _prepare(self) -> None:
        self._program = find_redis()

    def _launch(self) -> subprocess.Popen[bytes]:
        settings = {
            "port": str(self.port),
            "bind": HOST,
            "protected-mode": "yes",
            "dir": str(self.folder),
            "appendonly": "yes",
            "maxmemory-policy": "noeviction",
            "save": "",  # the append-only file is the whole truth
        }
        arguments = [word for name, value in settings.items() for word in (f"--{name}", value)]
        return spawn([str(self._program), *arguments], myself(), self.folder)

    def _mark(self) -> str:
        return str(self.port)  # it overwrites its command line with its address

    def _is_ready(self) -> bool:
        """Return whether the server on our port is ours and has loaded its data."""
        try:
            with redis.Redis(
                host=HOST, port=self.port, socket_timeout=2, retry=Retry(NoBackoff(), 0)
            ) as client:
                client.ping()  # INFO alone answers while the data is still being loaded
                info = client.info("server")
        except (redis.ConnectionError, redis.TimeoutError):
            return False
        return bool(info["process_id"] == self.pid)
