"""The network on a bad day: a proxy that cuts, hangs, delays, loses answers, or leads to another server."""

import contextlib
import select
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Self

HOST = "127.0.0.1"
MOST_BYTES_HELD = 1 << 20
"""What a direction holds back before it reads no more, as a kernel would."""
SECONDS_TO_CUT = 0.1
"""So long after a swallowed reply its connection is cut."""
RESET = b"\x01\x00\x00\x00\x00\x00\x00\x00"
"""struct linger {on, 0 seconds}: closing throws away what waits and sends RST."""


@dataclass(frozen=True)
class Weather:
    """How the proxy treats what passes."""

    port: int
    """Of the server."""
    hanging: bool = False
    delay: float = 0.0
    swallowing: bool = False


class TcpProxy:
    """An address on this machine that stays the same, whatever becomes of the server behind it."""

    def __init__(self, port: int) -> None:
        """Stand in front of a server on this machine."""
        self._weather = Weather(port)
        self._lines: set[Line] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server((HOST, 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="proxy", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._listener.close()
        self.cut()

    @property
    def weather(self) -> Weather:
        return self._weather

    def point_to(self, port: int) -> None:
        """Lead to another server from now on; connections to the old one are cut."""
        self._change(replace(self._weather, port=port))
        self.cut()

    def cut(self) -> None:
        """Reset all connections; who connects again is let through."""
        with self._lock:
            lines = list(self._lines)
        for line in lines:
            line.cut()

    def hang(self) -> None:
        """Accept everybody and pass nothing on, until `go_on`."""
        self._change(replace(self._weather, hanging=True))

    def delay(self, seconds: float) -> None:
        """Pass everything on so much later, each way, until `go_on`."""
        self._change(replace(self._weather, delay=seconds))

    def swallow_replies(self) -> None:
        """Pass requests on, lose what the server answers, and cut the connection then, until `go_on`."""
        self._change(replace(self._weather, swallowing=True))

    def go_on(self) -> None:
        """Pass everything on again, what was held back first."""
        self._change(Weather(self._weather.port))

    def _change(self, weather: Weather) -> None:
        self._weather = weather
        with self._lock:
            lines = list(self._lines)
        for line in lines:
            line.wake()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener was shut down
            while True:
                client, _ = self._listener.accept()
                line = Line(self, client)
                with self._lock:
                    self._lines.add(line)
                    line.start()

    def forget(self, line: "Line") -> None:
        with self._lock:
            self._lines.discard(line)


@dataclass
class Direction:
    """One way of a connection, with what is on it."""

    source: socket.socket
    target: socket.socket
    held: deque[tuple[float, bytes]] = field(default_factory=deque)
    """What was read, and when it is due."""
    size: int = 0
    ended: bool = False

    def read(self, delay: float) -> int:
        """Take what the source says; return how many bytes that is."""
        said = self.source.recv(1 << 16)
        self.ended = not said
        if said:
            self.held.append((time.monotonic() + delay, said))
            self.size += len(said)
        return len(said)

    def write(self) -> None:
        """Pass on as much as the target takes of what was read first."""
        due, said = self.held.popleft()
        sent = self.target.send(said)
        self.size -= sent
        if sent < len(said):
            self.held.appendleft((due, said[sent:]))

    def throw_away(self) -> None:
        self.held.clear()
        self.size = 0


class Line(threading.Thread):
    """One connection through the proxy."""

    def __init__(self, proxy: TcpProxy, client: socket.socket) -> None:
        super().__init__(name="proxy line", daemon=True)
        self._proxy = proxy
        self._client = client
        self._alarm, self._bell = socket.socketpair()
        self._cut_at = float("inf")

    def wake(self) -> None:
        """Have it look at the weather."""
        with contextlib.suppress(OSError):  # it has ended
            self._bell.send(b"!")

    def cut(self) -> None:
        """Reset the connection, and return when that is done."""
        self._cut_at = 0.0
        self.wake()
        self.join(5)
        assert not self.is_alive(), "a connection that cannot be cut"

    def run(self) -> None:
        with self._client as client, self._alarm, self._bell:
            with contextlib.suppress(OSError):  # one end hung up, or the server is not there
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.setblocking(False)
                self._wait_while_hanging()
                if not self._is_cut():
                    with socket.create_connection((HOST, self._proxy.weather.port)) as server:
                        self._pass_on(client, server)
            self._proxy.forget(self)

    def _is_cut(self) -> bool:
        return time.monotonic() >= self._cut_at

    def _wait_while_hanging(self) -> None:
        while self._proxy.weather.hanging and not self._is_cut():
            self._alarm.recv(1 << 10)

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server.setblocking(False)
        there, back = Direction(client, server), Direction(server, client)
        while not self._is_cut():
            if any(way.ended and not way.held for way in (there, back)):
                # Said to the end: closed in good order, and not by RST.
                for end in (client, server):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes(8))
                return
            self._step(there, back)

    def _step(self, there: Direction, back: Direction) -> None:
        """Wait for something to do, and do it."""
        weather, ways = self._proxy.weather, (there, back)
        readable, writable, until = [self._alarm], [], self._cut_at
        if not weather.hanging:
            now = time.monotonic()
            open_ways = [way for way in ways if not way.ended and way.size < MOST_BYTES_HELD]
            readable += [way.source for way in open_ways]
            writable = [way.target for way in ways if way.held and way.held[0][0] <= now]
            until = min([until, *(way.held[0][0] for way in ways if way.held and way.held[0][0] > now)])
        timeout = None if until == float("inf") else max(0.0, until - time.monotonic())
        can_read, can_write, _ = select.select(readable, writable, [], timeout)
        if self._alarm in can_read:
            # The weather has changed, perhaps while this was waited for: look again before anything passes.
            self._alarm.recv(1 << 10)
            return
        for way in ways:
            if way.target in can_write:
                way.write()
            if way.source in can_read and way.read(weather.delay) and way is back and weather.swallowing:
                way.throw_away()
                self._cut_at = min(self._cut_at, time.monotonic() + SECONDS_TO_CUT)
