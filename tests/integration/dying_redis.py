"""Redis as it behaves on a bad day: a server of the test's own to kill, and a proxy that loses messages."""

import contextlib
import select
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Self

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, TimeoutError  # noqa: A004
from redis.retry import Retry


class RedisServer:
    """A redis-server on a free port that writes every command to disk before it answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = Redis.from_url(self.url, retry=Retry(NoBackoff(), 0))
        self.start()

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        command += ["--appendonly", "yes", "--appendfsync", "always", "--dir", str(self.folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not self.answers():
            assert self.process.poll() is None, "redis-server ended at once"
            assert time.monotonic() < deadline, "redis-server does not answer"
            self.process_ended_within(0.02)

    def answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except (ConnectionError, TimeoutError):
            return False

    def process_ended_within(self, seconds: float) -> bool:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End it as kill -9 does, without a word to anybody."""
        self.process.kill()
        self.process.wait()

    def lose_everything(self) -> None:
        """Remove what a killed server wrote to disk."""
        shutil.rmtree(self.folder / "appendonlydir")

    def close(self) -> None:
        self.client.close()
        self.kill()


class LossyProxy:
    """A TCP proxy that loses one message when told to, and hangs up instead of passing it on."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lose: str | None = None
        self.lost = threading.Event()
        self.port = self._listener.getsockname()[1]
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in (self._listener, *self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        self._listener.close()

    def lose_next_request(self) -> None:
        """Lose what the client says next, before the server sees it."""
        self._lose = "request"

    def lose_next_reply(self) -> None:
        """Lose what the server says next, after it has done what it was asked."""
        self._lose = "reply"

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener was shut down
            while True:
                client, _ = self._listener.accept()
                self._connections.append(client)
                self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.create_connection(self._server) as server:
            while True:
                for speaker in select.select([client, server], [], [])[0]:
                    said = speaker.recv(65536)
                    kind = "request" if speaker is client else "reply"
                    if self._lose == kind:
                        self._lose = None
                        self.lost.set()
                        return
                    if not said:
                        return
                    (server if speaker is client else client).sendall(said)
